// SPDX-License-Identifier: MIT
/* Swapping devices on and off, one thread at a time. See daemon.h. */
#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "daemon/swaparea.h"

void daemon_operate_begin(struct daemon *daemon)
{
	lock_take(&daemon->lock);
	while (daemon->operating)
		condition_wait(&daemon->operated, &daemon->lock);
	daemon->operating = true;
	lock_release(&daemon->lock);
}

void daemon_operate_end(struct daemon *daemon)
{
	lock_take(&daemon->lock);
	daemon->operating = false;
	condition_wake_one(&daemon->operated);
	lock_release(&daemon->lock);
}

static void note_sysctls(struct daemon *daemon)
{
	struct sysctl_status list[SYSCTL_MAX];
	size_t count = sysctl_set_status(daemon->sysctls, list, SYSCTL_MAX);

	lock_take(&daemon->lock);
	daemon->sysctl_count = (unsigned)count;
	memcpy(daemon->sysctl_status, list, count * sizeof(list[0]));
	lock_release(&daemon->lock);
}

/* See DESIGN "Exhaustion evidence" in doc/design.md for why these. */
static int apply_sysctls(struct daemon *daemon, char *message)
{
	const struct conf_daemon *conf = &daemon->conf->daemon;
	struct sysctl_want wants[SYSCTL_MAX];
	size_t count = 0;

	if (conf->watermark_boost_factor != CONF_KEEP)
		wants[count++] = (struct sysctl_want){
			.name = "vm.watermark_boost_factor",
			.value = (uint64_t)conf->watermark_boost_factor,
		};
	if (conf->min_free_bytes > 0)
		wants[count++] = (struct sysctl_want){
			.name = "vm.min_free_kbytes",
			.value = conf->min_free_bytes / UZ_KIB,
			.at_least = true,
		};
	int err = sysctl_set_apply(daemon->sysctls, wants, count);

	if (err < 0)
		snprintf(message, DEVICE_MESSAGE_BYTES, "saving the sysctls in %s: %s",
			 daemon->runtime_dir, strerror(-err));
	note_sysctls(daemon);
	return err;
}

static bool is_swapped_on(const struct device *device)
{
	struct swaparea area;

	/* Not knowing counts as on: nothing is released then. */
	return device->front &&
	       swaparea_find(front_block_rdev(device->front), NULL, &area) != -ENOENT;
}

static bool any_swapped_on(const struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->device_count; i++)
		if (is_swapped_on(&daemon->devices[i]))
			return true;
	return false;
}

int daemon_swapon(struct daemon *daemon, struct device *device, char *message)
{
	int err = apply_sysctls(daemon, message);

	if (err < 0)
		return err;
	err = device_swapon(device, daemon->helper_path, message);
	if (err < 0 && !any_swapped_on(daemon)) {
		sysctl_set_restore(daemon->sysctls);
		note_sysctls(daemon);
	}
	return err;
}

int daemon_swapoff(struct daemon *daemon, struct device *device,
		   void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		   char *message)
{
	int err = device_swapoff(device, daemon->helper_path, progress, context, message);

	if (!any_swapped_on(daemon)) {
		sysctl_set_restore(daemon->sysctls);
		note_sysctls(daemon);
	}
	return err;
}

/* Adds what the other devices still hold to one device's progress. */
struct total_progress {
	struct daemon *daemon;
	const struct device *current;
	void (*progress)(void *context, uint64_t remaining_bytes);
	void *context;
};

static void report_total(void *context, uint64_t remaining_bytes)
{
	struct total_progress *total = context;

	for (unsigned i = 0; i < total->daemon->device_count; i++) {
		const struct device *device = &total->daemon->devices[i];
		struct swaparea area;

		if (device != total->current && device->front &&
		    swaparea_find(front_block_rdev(device->front), NULL, &area) == 0)
			remaining_bytes += area.used_pages * UZ_PAGE_SIZE;
	}
	if (total->progress)
		total->progress(total->context, remaining_bytes);
}

int daemon_swapoff_all(struct daemon *daemon,
		       void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		       char *message)
{
	struct total_progress total = {.daemon = daemon, .progress = progress, .context = context};
	char later[DEVICE_MESSAGE_BYTES];
	int first = 0;

	for (unsigned i = 0; i < daemon->device_count; i++) {
		if (!daemon->devices[i].front)
			continue;
		total.current = &daemon->devices[i];
		int err = daemon_swapoff(daemon, &daemon->devices[i], report_total, &total,
					 first == 0 ? message : later);

		if (err < 0 && first == 0)
			first = err;
		else if (err < 0)
			log_error("%s", later);
	}
	return first;
}
