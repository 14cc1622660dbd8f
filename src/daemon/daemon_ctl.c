// SPDX-License-Identifier: MIT
/*
 * What ctl may ask of the daemon. `daemon`, `device` and `set` run on the ctl
 * thread and only look or set single values; swapon, swapoff and stop run on
 * ctl's worker and wait for their turn.
 */
#include "config.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/protect.h"

static struct device *find_device(struct daemon *daemon, const char *name)
{
	for (unsigned i = 0; i < daemon->device_count; i++)
		if (strcmp(daemon->devices[i].conf.name, name) == 0)
			return &daemon->devices[i];
	return NULL;
}

static int on_daemon(void *context, struct ctl_daemon *ret)
{
	struct daemon *daemon = context;
	const struct protection *list;
	size_t protections = protect_list(&list);
	struct relief_stats relief = {0};

	snprintf(ret->version, sizeof(ret->version), "%s", PACKAGE_VERSION);
	ret->pid = getpid();
	ret->uptime_ns = clock_now_ns() - daemon->started_ns;
	ret->log_level = log_get_level();
	snprintf(ret->takeover, sizeof(ret->takeover), "no");
	if (daemon->relief)
		relief_stats(daemon->relief, &relief);
	ret->relief = (struct ctl_relief){
		.reserve_bytes = relief.reserve_bytes,
		.armed_bytes = relief.armed_bytes,
		.given_bytes_total = relief.given_bytes,
	};
	for (size_t i = 0; i < protections && ret->protection_count < CTL_PROTECTIONS_MAX; i++) {
		struct ctl_protection *missing = &ret->protections[ret->protection_count];

		if (!list[i].missing)
			continue;
		snprintf(missing->name, sizeof(missing->name), "%s", list[i].name);
		snprintf(missing->reason, sizeof(missing->reason), "%.*s",
			 (int)sizeof(missing->reason) - 1, list[i].reason);
		ret->protection_count++;
	}
	lock_take(&daemon->lock);
	for (unsigned i = 0; i < daemon->sysctl_count && i < CTL_SYSCTLS_MAX; i++) {
		const struct sysctl_status *status = &daemon->sysctl_status[i];
		struct ctl_sysctl *sysctl = &ret->sysctls[ret->sysctl_count++];

		snprintf(sysctl->name, sizeof(sysctl->name), "%s", status->name);
		snprintf(sysctl->before, sizeof(sysctl->before), "%llu",
			 (unsigned long long)status->before);
		snprintf(sysctl->now, sizeof(sysctl->now), "%llu", (unsigned long long)status->now);
	}
	lock_release(&daemon->lock);
	return 0;
}

static int on_device(void *context, unsigned index, struct ctl_device *ret)
{
	struct daemon *daemon = context;

	if (index >= daemon->device_count)
		return -ENOENT;
	device_snapshot(&daemon->devices[index], ret);
	return 0;
}

/* --- set ------------------------------------------------------------------ */

static int set_memory_limit(struct device *device, const char *value, char *error_text)
{
	struct conf_remark remark = {0};
	struct sysinfo info;
	uint64_t bytes, ram = 0;

	if (sysinfo(&info) == 0)
		ram = (uint64_t)info.totalram * info.mem_unit;
	int err = conf_parse_size(value, ram, device->conf.size_bytes, &bytes, &remark);

	if (err < 0) {
		snprintf(error_text, CTL_ERROR_BYTES, "%.*s", CTL_ERROR_BYTES - 1, remark.text);
		return err;
	}
	err = store_set_limit(device->store, bytes);
	if (err < 0)
		snprintf(error_text, CTL_ERROR_BYTES,
			 "%llu bytes: allowed are %llu to %llu (%llu MiB to %llu MiB)",
			 (unsigned long long)bytes,
			 (unsigned long long)store_minimum_limit_bytes(device->conf.size_bytes),
			 (unsigned long long)store_maximum_limit_bytes(device->store),
			 (unsigned long long)(store_minimum_limit_bytes(device->conf.size_bytes) /
					      UZ_MIB),
			 (unsigned long long)(store_maximum_limit_bytes(device->store) / UZ_MIB));
	return err;
}

static int set_codec(struct device *device, const char *value, char *error_text)
{
	const struct codec_info *info = codec_info_by_name(value);

	if (!info) {
		snprintf(error_text, CTL_ERROR_BYTES, "codec '%.40s': allowed are %s", value,
			 codec_names());
		return -EINVAL;
	}
	return store_set_codec(device->store, info->id, info->level_default);
}

static int set_level(struct device *device, const char *value, char *error_text)
{
	enum codec_id codec;
	int now;
	char *end;

	store_get_codec(device->store, &codec, &now);
	const struct codec_info *info = codec_info_by_id(codec);

	errno = 0;
	long level = strtol(value, &end, 10);

	if (errno != 0 || *end != '\0' || end == value || level < info->level_min ||
	    level > info->level_max) {
		snprintf(error_text, CTL_ERROR_BYTES,
			 "level '%.40s': allowed for %s are %d to %d (%s)", value, info->name,
			 info->level_min, info->level_max, info->level_meaning);
		return -EINVAL;
	}
	return store_set_codec(device->store, codec, (int)level);
}

static int on_set(void *context, const char *device_name, const char *key, const char *value,
		  char *error_text)
{
	struct daemon *daemon = context;

	if (strcmp(key, "log-level") == 0) {
		enum log_level level;

		if (log_level_parse(value, &level) < 0)
			return -EINVAL;
		log_set_level(level);
		return 0;
	}
	struct device *device = device_name ? find_device(daemon, device_name) : NULL;

	if (!device)
		return -ENOENT;
	int err;

	if (strcmp(key, "memory-limit") == 0)
		err = set_memory_limit(device, value, error_text);
	else if (strcmp(key, "codec") == 0)
		err = set_codec(device, value, error_text);
	else if (strcmp(key, "level") == 0)
		err = set_level(device, value, error_text);
	else
		return -EINVAL;
	if (err == 0)
		log_notice("%s: %s set to %s", device_name, key, value);
	return err;
}

/* --- swapon, swapoff, stop -------------------------------------------------- */

static void copy_error(char *error_text, const char *message)
{
	snprintf(error_text, CTL_ERROR_BYTES, "%.*s", CTL_ERROR_BYTES - 1, message);
}

static int on_swapon(void *context, const char *device_name, char *error_text)
{
	struct daemon *daemon = context;
	char message[DEVICE_MESSAGE_BYTES] = "";
	struct device *device = find_device(daemon, device_name);

	if (!device)
		return -ENOENT;
	daemon_operate_begin(daemon);
	int err = daemon_swapon(daemon, device, message);

	daemon_operate_end(daemon);
	if (err < 0)
		copy_error(error_text, message);
	else
		log_notice("%s: swapped on as asked", device_name);
	return err;
}

static void forward_progress(void *context, uint64_t remaining_bytes)
{
	ctl_progress_report(context, remaining_bytes);
}

static int on_swapoff(void *context, const char *device_name, const struct ctl_progress *progress,
		      char *error_text)
{
	struct daemon *daemon = context;
	char message[DEVICE_MESSAGE_BYTES] = "";
	struct device *device = find_device(daemon, device_name);

	if (!device)
		return -ENOENT;
	daemon_operate_begin(daemon);
	int err = daemon_swapoff(daemon, device, forward_progress, (void *)(uintptr_t)progress,
				 message);

	daemon_operate_end(daemon);
	if (err < 0)
		copy_error(error_text, message);
	else
		log_notice("%s: swapped off as asked", device_name);
	/* -ENOENT is ctl's word for an unknown device; here it would be a missing program. */
	return err == -ENOENT || err == -ENODEV ? -EIO : err;
}

static int on_stop(void *context, bool abandon, const struct ctl_progress *progress,
		   char *error_text)
{
	struct daemon *daemon = context;
	char message[DEVICE_MESSAGE_BYTES] = "";
	int err = 0;

	if (!abandon) {
		daemon_operate_begin(daemon);
		err = daemon_swapoff_all(daemon, forward_progress, (void *)(uintptr_t)progress,
					 message);
		daemon_operate_end(daemon);
	}
	if (err < 0) {
		copy_error(error_text, message);
		return err;
	}
	uint64_t one = 1;

	atomic_store_explicit(&daemon->wish, abandon ? DAEMON_ABANDON : DAEMON_STOP,
			      memory_order_release);
	if (write(daemon->wake_fd, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

const struct ctl_ops daemon_ctl_ops = {
	.daemon = on_daemon,
	.device = on_device,
	.set = on_set,
	.swapon = on_swapon,
	.swapoff = on_swapoff,
	.stop = on_stop,
};
