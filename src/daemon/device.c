// SPDX-License-Identifier: MIT
/* One device. See the header for the threads. */
#include "daemon/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"
#include "daemon/swaparea.h"
#include "front/fuse_receive.h"

/* udev and blkid let go of a device within this, measured well below a second. */
#define DETACH_TIMEOUT_NS (10 * UZ_NSEC_PER_SEC)

/* One line of a kind in so long: refusals come by the thousand. */
#define LOG_INTERVAL_NS (10 * UZ_NSEC_PER_SEC)

static const unsigned full_levels_percent[] = {80, 90, 95};

/* A level is left when the use is so far below it: no line each time a page comes and
 * goes. */
#define FULL_HYSTERESIS_PERCENT 3u

void device_init(struct device *device, const struct conf_device *conf, const char *runtime_dir)
{
	memset(device, 0, sizeof(*device));
	device->conf = *conf;
	device->runtime_dir = runtime_dir;
	lock_init(&device->lock, LOCK_RANK_DAEMON);
}

uint64_t device_locked_bytes(const struct conf_device *conf, int cpus)
{
	const uint64_t threads = 3 * (uint64_t)cpus + 8;

	/* Buffers of the transport, and stacks and contexts of its threads. */
	return conf->memory_limit_bytes +
	       threads * (FUSE_RECEIVE_MAX_BYTES + UZ_THREAD_STACK_BYTES);
}

static int fail(char *message, int err, const char *name, const char *what)
{
	snprintf(message, DEVICE_MESSAGE_BYTES, "%s: %s: %s", name, what, strerror(-err));
	return err;
}

/* --- start ---------------------------------------------------------------- */

/* Puts the swap signature into slot 0, so that no mkswap has to find the device at a bad
 * moment. */
static int write_signature(struct device *device)
{
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8)));
	struct store_thread *thread;
	struct store_request request = {
		.op = STORE_WRITE,
		.length_bytes = UZ_PAGE_SIZE,
		.data = page,
		.received_ns = clock_now_ns(),
	};
	char label[SWAPAREA_LABEL_BYTES + 1];

	/* A name may be longer than a label. */
	snprintf(label, sizeof(label), "%.*s", SWAPAREA_LABEL_BYTES, device->conf.name);
	int err = swaparea_header_write(page, device->conf.size_bytes, label, NULL);

	if (err == 0)
		err = store_thread_new(&thread, device->store, true);
	if (err < 0)
		return err;
	store_submit(thread, &request);
	store_thread_free(thread);
	return request.result;
}

int device_make_store(struct device *device, int cpus, char *message)
{
	const struct conf_device *conf = &device->conf;
	struct store_config config = {
		.size_bytes = conf->size_bytes,
		.memory_limit_bytes = conf->memory_limit_bytes,
		.codec = conf->codec,
		.level = conf->level,
		.cpus = cpus,
		.expected_ratio_permille = conf->expected_ratio_permille,
		.name = conf->name,
	};
	uint64_t minimum = store_minimum_limit_bytes(conf->size_bytes);

	if (conf->memory_limit_bytes < minimum) {
		snprintf(message, DEVICE_MESSAGE_BYTES,
			 "%s: MemoryLimit= is %llu bytes, but a device of Size=%llu "
			 "bytes needs "
			 "at least %llu (its slot table alone is %llu)",
			 conf->name, (unsigned long long)conf->memory_limit_bytes,
			 (unsigned long long)conf->size_bytes, (unsigned long long)minimum,
			 (unsigned long long)(conf->size_bytes / UZ_PAGE_SIZE * sizeof(uint64_t)));
		return -EINVAL;
	}
	int err = store_new(&device->store, &config);

	if (err < 0)
		return fail(message, err, conf->name, "making the store");
	if (conf->swap_on) {
		err = write_signature(device);
		if (err < 0)
			return fail(message, err, conf->name, "writing the swap signature");
	}
	return 0;
}

/* /dev/uzswap/NAME -> /dev/loop3, replaced in one step. */
static int make_link(struct device *device, const char *link_dir)
{
	char fresh[sizeof(device->link_path) + 8];

	/* Readable for all whatever the umask: it holds names only. */
	if (mkdir(link_dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (chmod(link_dir, 0755) < 0)
		return -errno;
	snprintf(device->link_path, sizeof(device->link_path), "%s/%s", link_dir,
		 device->conf.name);
	snprintf(fresh, sizeof(fresh), "%s.new", device->link_path);
	unlink(fresh);
	if (symlink(front_block_path(device->front), fresh) < 0 ||
	    rename(fresh, device->link_path) < 0) {
		int err = -errno;

		device->link_path[0] = '\0';
		return err;
	}
	return 0;
}

static int choose_transport(struct device *device, char *message)
{
	switch (device->conf.transport) {
	case CONF_TRANSPORT_UBLK:
		snprintf(message, DEVICE_MESSAGE_BYTES,
			 "%s: Transport=ublk: this build has no ublk transport (allowed: "
			 "auto, fuse)",
			 device->conf.name);
		return -EOPNOTSUPP;
	case CONF_TRANSPORT_AUTO:
		snprintf(device->transport_reason, sizeof(device->transport_reason),
			 "auto: this build has no ublk transport");
		return 0;
	case CONF_TRANSPORT_FUSE:
		snprintf(device->transport_reason, sizeof(device->transport_reason), "configured");
		return 0;
	}
	return -EINVAL;
}

int device_attach(struct device *device, const char *link_dir, int cpus, char *message)
{
	char error[DEVICE_MESSAGE_BYTES - CONF_NAME_MAX - 4];
	struct front_config config = {
		.store = device->store,
		.name = device->conf.name,
		.runtime_dir = device->runtime_dir,
		.size_bytes = device->conf.size_bytes,
		.poll_ns = device->conf.poll_ns,
		.cpus = cpus,
	};
	int err = choose_transport(device, message);

	if (err < 0)
		return err;
	err = front_fuse_new(&device->front, &config, error, sizeof(error));
	if (err < 0) {
		snprintf(message, DEVICE_MESSAGE_BYTES, "%s: %s", device->conf.name, error);
		return err;
	}
	err = make_link(device, link_dir);
	if (err < 0)
		return fail(message, err, device->conf.name, link_dir);
	return 0;
}

/* --- swap ----------------------------------------------------------------- */

static uint64_t balloon_room(void *context)
{
	struct device *device = context;

	return store_room_pages(device->store);
}

static void start_balloon(struct device *device, const char *helper_path)
{
	struct balloon_config config = {
		.device = front_block_rdev(device->front),
		.helper_path = helper_path,
		.room_pages = balloon_room,
		.context = device,
	};
	struct balloon *balloon = NULL;

	if (device->conf.honest_free == CONF_NO || device->balloon)
		return;
	int err = balloon_start(&balloon, &config);

	if (err < 0)
		log_warning("%s: no slot balloon (%s): the kernel will not see when the "
			    "pool is full",
			    device->conf.name, strerror(-err));
	lock_take(&device->lock);
	device->balloon = balloon;
	lock_release(&device->lock);
}

static void stop_balloon(struct device *device)
{
	lock_take(&device->lock);
	struct balloon *balloon = device->balloon;

	device->balloon = NULL;
	lock_release(&device->lock);
	balloon_stop(balloon);
}

static void warn_of_rivals(const struct device *device)
{
	struct swaparea rival;
	int rivals = swaparea_rivals(front_block_rdev(device->front), NULL, &rival);

	if (rivals > 0)
		log_warning("%s: %s has priority %d, ours has %d: the kernel fills that "
			    "one first",
			    device->conf.name, rival.path, rival.priority, device->conf.priority);
	if (swaparea_zswap_enabled(""))
		log_warning("%s: zswap is enabled and compresses pages before they get here; "
			    "turn it off: echo N > /sys/module/zswap/parameters/enabled",
			    device->conf.name);
}

int device_swapon(struct device *device, const char *helper_path, char *message)
{
	char reason[DEVICE_MESSAGE_BYTES - CONF_NAME_MAX - 4];

	if (!device->front)
		return fail(message, -ESHUTDOWN, device->conf.name, "has no block device any more");
	int err = swaparea_on(front_block_path(device->front), device->conf.priority, true, reason,
			      sizeof(reason));

	if (err < 0 && err != -EALREADY) {
		snprintf(message, DEVICE_MESSAGE_BYTES, "%s: %s", device->conf.name, reason);
		return err;
	}
	warn_of_rivals(device);
	start_balloon(device, helper_path);
	return 0;
}

/* After swapoff nobody can ask for the pages any more; the header stays for the next
 * swapon. */
static void forget_pages(struct device *device)
{
	struct store_thread *thread;

	if (store_thread_new(&thread, device->store, false) < 0)
		return; /* the next swapon discards them */
	store_forget(thread, 1);
	store_thread_free(thread);
}

static void explain_lack_of_memory(const struct device *device, char *message)
{
	struct stats_values values = {0};
	size_t used = strlen(message);

	store_stats(device->store, &values);
	snprintf(message + used, DEVICE_MESSAGE_BYTES - used,
		 "; %llu MiB of pages must fit into memory. Stop something and try again: "
		 "the device goes on serving",
		 (unsigned long long)(values.value[STATS_STORED] / UZ_MIB));
}

int device_swapoff(struct device *device, const char *helper_path,
		   void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		   char *message)
{
	char reason[DEVICE_MESSAGE_BYTES - CONF_NAME_MAX - 4];
	struct swaparea area;

	if (!device->front)
		return 0;
	struct swaparea_off off = {
		.path = front_block_path(device->front),
		.device = front_block_rdev(device->front),
		.progress = progress,
		.context = context,
	};

	if (swaparea_find(off.device, NULL, &area) == -ENOENT) {
		stop_balloon(device);
		/* Somebody else has swapped it off; what is left of it is dead. */
		if (device->conf.swap_on)
			forget_pages(device);
		return 0;
	}
	atomic_store_explicit(&device->changing, 1, memory_order_relaxed);
	stop_balloon(device);
	int err = swaparea_off(&off, reason, sizeof(reason));

	if (err == 0) {
		forget_pages(device);
	} else {
		snprintf(message, DEVICE_MESSAGE_BYTES, "%s: %s", device->conf.name, reason);
		if (err == -ENOMEM)
			explain_lack_of_memory(device, message);
		start_balloon(device, helper_path);
	}
	atomic_store_explicit(&device->changing, 0, memory_order_relaxed);
	return err;
}

/* --- end ------------------------------------------------------------------ */

int device_detach(struct device *device, char *message)
{
	struct swaparea area;

	if (!device->front)
		return 0;
	/* Whatever the reason, while /proc/swaps may list it nothing is released. */
	if (swaparea_find(front_block_rdev(device->front), NULL, &area) != -ENOENT) {
		snprintf(message, DEVICE_MESSAGE_BYTES, "%s: still swapped on", device->conf.name);
		return -EBUSY;
	}
	atomic_store_explicit(&device->changing, 1, memory_order_relaxed);
	int err = front_free(device->front, DETACH_TIMEOUT_NS);

	if (err < 0) {
		atomic_store_explicit(&device->changing, 0, memory_order_relaxed);
		snprintf(message, DEVICE_MESSAGE_BYTES, "%s: %s is open in another process",
			 device->conf.name, front_block_path(device->front));
		return err;
	}
	device->front = NULL;
	if (device->link_path[0])
		unlink(device->link_path);
	return 0;
}

void device_done(struct device *device)
{
	stop_balloon(device);
	store_free(device->store);
	device->store = NULL;
	lock_done(&device->lock);
}

/* --- what others want to know ---------------------------------------------- */

static enum ctl_device_state state_of(const struct device *device, bool swapped_on)
{
	if (!device->front)
		return CTL_DEVICE_STARTING;
	if (atomic_load_explicit(&device->changing, memory_order_relaxed))
		return CTL_DEVICE_STOPPING;
	return swapped_on ? CTL_DEVICE_ACTIVE : CTL_DEVICE_READY;
}

static void fill_balloon(struct device *device, struct ctl_device *snapshot)
{
	struct balloon_stats stats = {.state = BALLOON_OFF};

	lock_take(&device->lock);
	balloon_stats(device->balloon, &stats);
	lock_release(&device->lock);
	snapshot->values.value[STATS_BALLOON] = stats.held_pages;
	snprintf(snapshot->honest_free, sizeof(snapshot->honest_free), "%s",
		 device->conf.honest_free == CONF_NO ? "off: HonestFree=no"
						     : balloon_state_text(stats.state));
}

void device_snapshot(struct device *device, struct ctl_device *snapshot)
{
	enum codec_id codec;
	struct swaparea area = {0};
	bool on = device->front && swaparea_find(front_block_rdev(device->front), NULL, &area) == 0;

	snprintf(snapshot->name, sizeof(snapshot->name), "%s", device->conf.name);
	snprintf(snapshot->path, sizeof(snapshot->path), "%s", device->link_path);
	snprintf(snapshot->block_path, sizeof(snapshot->block_path), "%s",
		 device->front ? front_block_path(device->front) : "");
	snprintf(snapshot->transport, sizeof(snapshot->transport), "fuse");
	snprintf(snapshot->transport_reason, sizeof(snapshot->transport_reason), "%s",
		 device->transport_reason);
	store_get_codec(device->store, &codec, &snapshot->level);
	snprintf(snapshot->codec, sizeof(snapshot->codec), "%s", codec_info_by_id(codec)->name);
	snapshot->priority = on ? area.priority : device->conf.priority;
	snapshot->state = state_of(device, on);
	snprintf(snapshot->pinning, sizeof(snapshot->pinning), "%s", store_pinning(device->store));
	store_stats(device->store, &snapshot->values);
	snapshot->values.value[STATS_SWAP_USED] = on ? area.used_pages * UZ_PAGE_SIZE : 0;
	fill_balloon(device, snapshot);
	store_latency(device->store, STORE_READ, &snapshot->read);
	store_latency(device->store, STORE_WRITE, &snapshot->write);
}

static void log_counter(const struct device *device, struct log_limit *limit, uint64_t counter,
			uint64_t now_ns, const char *what)
{
	uint64_t news = log_limit_due(limit, counter, now_ns, LOG_INTERVAL_NS);

	if (news > 0)
		log_error("%s: %llu %s (%llu since the start)", device->conf.name,
			  (unsigned long long)news, what, (unsigned long long)counter);
}

static void log_fullness(struct device *device, const struct stats_values *values)
{
	uint64_t used = values->value[STATS_MEMORY_USED] - values->value[STATS_MEMORY_RESERVE];
	unsigned percent = (unsigned)(used * 100 / UZ_MAX(values->value[STATS_MEMORY_LIMIT], 1u));
	unsigned level = 0;

	while (level < UZ_ARRAY_SIZE(full_levels_percent) &&
	       percent >= full_levels_percent[level] -
				  (level < device->full_level ? FULL_HYSTERESIS_PERCENT : 0))
		level++;
	if (level > device->full_level)
		log_warning(
			"%s: the pool is %u %% full; %llu MiB more can be stored at "
			"the present "
			"ratio",
			device->conf.name, percent,
			(unsigned long long)(values->value[STATS_ROOM] * UZ_PAGE_SIZE / UZ_MIB));
	else if (level == 0 && device->full_level > 0)
		log_info("%s: the pool is %u %% full again", device->conf.name, percent);
	device->full_level = level;
}

void device_housekeeping(struct device *device, uint64_t now_ns)
{
	struct stats_values values = {0};

	store_stats(device->store, &values);
	log_counter(device, &device->no_space, values.value[STATS_WRITE_NO_SPACE], now_ns,
		    "writes refused: the pool is full, the kernel keeps the pages");
	log_counter(device, &device->read_errors, values.value[STATS_READ_ERRORS], now_ns,
		    "reads failed");
	log_counter(device, &device->write_errors, values.value[STATS_WRITE_ERRORS], now_ns,
		    "writes failed");
	log_fullness(device, &values);
	if (device->front && !device->dead && !front_is_alive(device->front)) {
		device->dead = true;
		log_error("%s: the FUSE connection was aborted: the device answers with errors, its "
			  "pages are lost. Swap it off and restart",
			  device->conf.name);
	}
}
