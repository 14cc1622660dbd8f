// SPDX-License-Identifier: MIT
/* The figures-only daemon. Operations may be called from any thread. */
#include "ctl_fake.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

/* Latencies as a log-uniform spread around `centre_ns`; always the same ones. */
static void fill_latency(struct histogram_snapshot *snapshot, uint64_t centre_ns,
			 unsigned count)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));
	uint32_t state = (uint32_t)centre_ns | 1;

	for (unsigned i = 0; i < count; i++) {
		state = state * 1664525u + 1013904223u;
		unsigned octaves = (state >> 16) % 1000 < 985 ? (state >> 8) % 3
							      : 3 + (state >> 8) % 4;

		histogram_record(histogram,
				 (centre_ns << octaves) / 2 +
					 (state >> 4) % (centre_ns << octaves));
	}
	memset(snapshot, 0, sizeof(*snapshot));
	histogram_add_to(histogram, snapshot);
	free(histogram);
}

static void fill_device(struct ctl_device *device, unsigned index)
{
	uint64_t *value = device->values.value;
	uint64_t scale = index + 1;

	snprintf(device->name, sizeof(device->name), "swap%u", index);
	snprintf(device->path, sizeof(device->path), "/dev/uzswap/swap%u", index);
	snprintf(device->block_path, sizeof(device->block_path), "/dev/loop%u",
		 3 + index);
	strcpy(device->transport, "fuse");
	strcpy(device->transport_reason, "the ublk driver is not there");
	strcpy(device->codec, index == 0 ? "lz4" : "zstd");
	device->level = index == 0 ? 1 : 3;
	device->priority = 100;
	device->state = index == 0 ? CTL_DEVICE_ACTIVE : CTL_DEVICE_READY;
	strcpy(device->pinning, "noswap-tmpfs");
	strcpy(device->honest_free, "slot balloon");

	uint64_t slots = (8 * UZ_GIB / scale) / UZ_PAGE_SIZE;

	value[STATS_SIZE] = slots * UZ_PAGE_SIZE;
	value[STATS_PAGES_SAME] = 12289 * scale;
	value[STATS_PAGES_COMPRESSED] = 471953 / scale;
	value[STATS_PAGES_INCOMPRESSIBLE] = 26113 * scale;
	uint64_t stored = value[STATS_PAGES_SAME] + value[STATS_PAGES_COMPRESSED] +
			  value[STATS_PAGES_INCOMPRESSIBLE];

	value[STATS_PAGES_EMPTY] = slots - stored;
	value[STATS_STORED] = stored * UZ_PAGE_SIZE;
	value[STATS_COMPRESSED] = value[STATS_PAGES_COMPRESSED] * 1109 +
				  value[STATS_PAGES_INCOMPRESSIBLE] * UZ_PAGE_SIZE;
	value[STATS_MEMORY_TABLE] = slots * 8 + 4096;
	value[STATS_MEMORY_RESERVE] = 32 * UZ_MIB + 8192;
	value[STATS_MEMORY_USED] = value[STATS_COMPRESSED] + value[STATS_MEMORY_TABLE] +
				   value[STATS_MEMORY_RESERVE] + 31 * UZ_MIB;
	value[STATS_MEMORY_PEAK] = value[STATS_MEMORY_USED] + 91 * UZ_MIB;
	value[STATS_MEMORY_LIMIT] = 4 * UZ_GIB / scale;
	value[STATS_ROOM] = 1316372 / scale;
	value[STATS_BALLOON] = index == 0 ? 131072 : 0;
	value[STATS_READS] = 1234567 * scale;
	value[STATS_WRITES] = 98765 * scale;
	value[STATS_DISCARDS] = 321 * scale;
	value[STATS_FLUSHES] = 2 * scale;
	value[STATS_PAGES_READ] = 2345678 * scale;
	value[STATS_PAGES_WRITTEN] = 3456789 * scale;
	value[STATS_PAGES_DISCARDED] = 164352 * scale;
	value[STATS_READ_ERRORS] = index;
	value[STATS_WRITE_ERRORS] = 2 * index;
	value[STATS_WRITE_NO_SPACE] = 12 * scale;
	value[STATS_STORE_WAITS] = 17 * scale;
	value[STATS_STORE_WAIT_TIME] = 30123456 * scale;
	value[STATS_STORE_WAIT_LONGEST] = 12034567 * scale;
	value[STATS_SWAP_USED] =
		index == 0 ? value[STATS_STORED] + value[STATS_BALLOON] * UZ_PAGE_SIZE +
				     40960
			   : 0;
	fill_latency(&device->read, 17000 * scale, 50000);
	fill_latency(&device->write, 38000 * scale, 20000);
}

void ctl_fake_empty(struct ctl_device *device)
{
	uint64_t *value = device->values.value;

	value[STATS_PAGES_EMPTY] = value[STATS_SIZE] / UZ_PAGE_SIZE;
	value[STATS_PAGES_SAME] = 0;
	value[STATS_PAGES_COMPRESSED] = 0;
	value[STATS_PAGES_INCOMPRESSIBLE] = 0;
	value[STATS_STORED] = 0;
	value[STATS_COMPRESSED] = 0;
	memset(&device->read, 0, sizeof(device->read));
	memset(&device->write, 0, sizeof(device->write));
}

void ctl_fake_init(struct ctl_fake *fake)
{
	memset(fake, 0, sizeof(*fake));
	struct ctl_daemon *daemon = &fake->daemon;

	strcpy(daemon->version, "0.1.0");
	daemon->pid = 4242;
	daemon->uptime_ns = 274321 * UZ_NSEC_PER_SEC + 500000000;
	daemon->log_level = LOG_LEVEL_INFO;
	strcpy(daemon->takeover, "no");
	daemon->relief = (struct ctl_relief){
		.reserve_bytes = 32 * UZ_MIB,
		.armed_bytes = 31 * UZ_MIB + 4096,
		.given_bytes_total = 5 * 256 * UZ_KIB,
	};
	daemon->protection_count = 2;
	strcpy(daemon->protections[0].name, "PR_SET_IO_FLUSHER");
	strcpy(daemon->protections[0].reason, "CAP_SYS_RESOURCE is missing");
	strcpy(daemon->protections[1].name, "oom_score_adj");
	strcpy(daemon->protections[1].reason, "Permission denied");
	daemon->sysctl_count = 1;
	strcpy(daemon->sysctls[0].name, "vm.watermark_boost_factor");
	strcpy(daemon->sysctls[0].before, "15000");
	strcpy(daemon->sysctls[0].now, "0");
	fake->device_count = 2;
	for (unsigned i = 0; i < CTL_FAKE_DEVICES_MAX; i++)
		fill_device(&fake->devices[i], i);
	pthread_mutex_init(&fake->mutex, NULL);
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fake->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void ctl_fake_done(struct ctl_fake *fake)
{
	pthread_cond_destroy(&fake->changed);
	pthread_mutex_destroy(&fake->mutex);
}

void ctl_fake_hold(struct ctl_fake *fake, bool hold)
{
	pthread_mutex_lock(&fake->mutex);
	fake->hold = hold;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->mutex);
}

void ctl_fake_script(struct ctl_fake *fake, int result, const char *error_text,
		     unsigned reports)
{
	pthread_mutex_lock(&fake->mutex);
	fake->result = result;
	fake->error_text = error_text;
	fake->reports = reports;
	pthread_mutex_unlock(&fake->mutex);
}

void ctl_fake_delay(struct ctl_fake *fake, uint64_t ns)
{
	pthread_mutex_lock(&fake->mutex);
	fake->delay_ns = ns;
	pthread_mutex_unlock(&fake->mutex);
}

unsigned ctl_fake_most_running(struct ctl_fake *fake)
{
	pthread_mutex_lock(&fake->mutex);
	unsigned most = fake->most_running;

	pthread_mutex_unlock(&fake->mutex);
	return most;
}

bool ctl_fake_wait_running(struct ctl_fake *fake, unsigned count)
{
	struct timespec deadline;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += 5;
	pthread_mutex_lock(&fake->mutex);
	while (fake->running != count && err == 0)
		err = pthread_cond_timedwait(&fake->changed, &fake->mutex, &deadline);
	bool reached = fake->running == count;

	pthread_mutex_unlock(&fake->mutex);
	return reached;
}

unsigned ctl_fake_calls(struct ctl_fake *fake, char ret_last_call[256])
{
	pthread_mutex_lock(&fake->mutex);
	unsigned calls = fake->calls;

	if (ret_last_call)
		memcpy(ret_last_call, fake->last_call, sizeof(fake->last_call));
	pthread_mutex_unlock(&fake->mutex);
	return calls;
}

static int fake_daemon(void *context, struct ctl_daemon *ret_daemon)
{
	struct ctl_fake *fake = context;

	pthread_mutex_lock(&fake->mutex);
	uint64_t delay_ns = fake->delay_ns;

	pthread_mutex_unlock(&fake->mutex);
	if (delay_ns > 0)
		clock_sleep_ns(delay_ns);
	*ret_daemon = fake->daemon;
	return 0;
}

static int fake_device(void *context, unsigned index, struct ctl_device *ret_device)
{
	struct ctl_fake *fake = context;

	if (index >= fake->device_count)
		return -ENOENT;
	*ret_device = fake->devices[index];
	return 0;
}

/* Notes the call. Returns the result that the test has asked for. With the mutex. */
static int note_call(struct ctl_fake *fake, char *error_text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int note_call(struct ctl_fake *fake, char *error_text, const char *format, ...)
{
	va_list args;

	fake->calls++;
	va_start(args, format);
	vsnprintf(fake->last_call, sizeof(fake->last_call), format, args);
	va_end(args);
	if (fake->result < 0 && fake->error_text)
		snprintf(error_text, CTL_ERROR_BYTES, "%s", fake->error_text);
	return fake->result;
}

static int fake_set(void *context, const char *device, const char *key, const char *value,
		    char *error_text)
{
	struct ctl_fake *fake = context;

	pthread_mutex_lock(&fake->mutex);
	int err = note_call(fake, error_text, "set %s %s %s", device ? device : "-", key,
			    value);

	pthread_mutex_unlock(&fake->mutex);
	if (err < 0)
		return err;
	if (strcmp(key, "codec") == 0 && strcmp(value, "lz4") != 0 &&
	    strcmp(value, "zstd") != 0) {
		snprintf(error_text, CTL_ERROR_BYTES, "the codecs are: lz4, zstd");
		return -EINVAL;
	}
	if (strcmp(key, "level") == 0 && (atoi(value) < -7 || atoi(value) > 19)) {
		snprintf(error_text, CTL_ERROR_BYTES, "the levels of zstd are -7 to 19");
		return -EINVAL;
	}
	return 0;
}

/* A long operation: reports some progress and waits while the test holds it. */
static int run_long(struct ctl_fake *fake, const struct ctl_progress *progress,
		    char *error_text, const char *what)
{
	pthread_mutex_lock(&fake->mutex);
	int err = note_call(fake, error_text, "%s", what);
	unsigned reports = progress ? fake->reports : 0;

	fake->running++;
	if (fake->running > fake->most_running)
		fake->most_running = fake->running;
	pthread_cond_broadcast(&fake->changed);
	while (fake->hold)
		pthread_cond_wait(&fake->changed, &fake->mutex);
	pthread_mutex_unlock(&fake->mutex);
	for (unsigned i = reports; i > 0; i--) {
		ctl_progress_report(progress, i * UZ_MIB);
		clock_sleep_ns(2 * UZ_NSEC_PER_MSEC);
	}
	pthread_mutex_lock(&fake->mutex);
	fake->running--;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->mutex);
	return err;
}

static int fake_swapon(void *context, const char *device, char *error_text)
{
	char what[64];

	snprintf(what, sizeof(what), "swapon %s", device);
	return run_long(context, NULL, error_text, what);
}

static int fake_swapoff(void *context, const char *device,
			const struct ctl_progress *progress, char *error_text)
{
	char what[64];

	snprintf(what, sizeof(what), "swapoff %s", device);
	return run_long(context, progress, error_text, what);
}

static int fake_stop(void *context, bool abandon, const struct ctl_progress *progress,
		     char *error_text)
{
	return run_long(context, progress, error_text, abandon ? "stop abandon" : "stop");
}

const struct ctl_ops ctl_fake_ops = {
	.daemon = fake_daemon,
	.device = fake_device,
	.set = fake_set,
	.swapon = fake_swapon,
	.swapoff = fake_swapoff,
	.stop = fake_stop,
};
