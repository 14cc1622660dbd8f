// SPDX-License-Identifier: MIT
/*
 * Swap areas. No state and no threads: every function may be called from any
 * thread, except from those that serve the device (they would wait for
 * themselves). The parts that read /proc/swaps allocate no memory.
 *
 * Format of the header: mkswap(8), `union swap_header` in the kernel's
 * include/linux/swap.h. Format of /proc/swaps: swap_show in its mm/swapfile.c.
 */
#include "daemon/swaparea.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/units.h"
#include "daemon/protect.h"

#define BUSY_ATTEMPTS  20
#define BUSY_PAUSE_NS  (100 * UZ_NSEC_PER_MSEC)
#define PROGRESS_MS    200
#define OFF_PAUSE_NS   (500 * UZ_NSEC_PER_MSEC)
#define KIB_PER_PAGE   (UZ_PAGE_SIZE / 1024)
#define DELETED_SUFFIX " (deleted)"

/* How far SwapTotal and the list may be apart, being read one after the other. */
#define LEAVING_TOLERANCE_PAGES 1024

/* swapoff(8), EXIT STATUS */
#define SWAPOFF_EXIT_NOMEM 2

/* 0x10000 alone asks for both kinds: once at swapon, and of freed pages later. */
#ifndef SWAP_FLAG_DISCARD
#define SWAP_FLAG_DISCARD 0x10000
#endif

/* The first page of an area. The numbers are in the byte order of the machine. */
struct header_page {
	uint8_t boot_bits[1024];
	uint32_t version;
	uint32_t last_page;
	uint32_t bad_pages_count;
	uint8_t uuid[SWAPAREA_UUID_BYTES];
	char label[SWAPAREA_LABEL_BYTES];
	uint32_t padding[117];
	uint32_t bad_pages[1];
	uint8_t unused[2546];
	char magic[10];
};

_Static_assert(sizeof(struct header_page) == UZ_PAGE_SIZE, "the header is one page");

static const char magic_v1[10] = "SWAPSPACE2";

/* What a hibernated kernel leaves in the magic's place until it has resumed. */
static const char *const suspended[] = {"S1SUSPEND", "S2SUSPEND", "ULSUSPEND",
					"LINHIB0001"};

/* A random UUID, RFC 9562 version 4. */
static int uuid_random(uint8_t uuid[SWAPAREA_UUID_BYTES])
{
	if (getrandom(uuid, SWAPAREA_UUID_BYTES, 0) != SWAPAREA_UUID_BYTES)
		return errno ? -errno : -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

int swaparea_header_write(void *page, uint64_t size_bytes, const char *label,
			  const uint8_t uuid[SWAPAREA_UUID_BYTES])
{
	uint64_t pages = size_bytes / UZ_PAGE_SIZE;
	uint8_t own_uuid[SWAPAREA_UUID_BYTES];
	struct header_page *header = page;

	if (pages < SWAPAREA_MIN_PAGES || pages - 1 > UINT32_MAX)
		return -EINVAL;
	if (label && strlen(label) > SWAPAREA_LABEL_BYTES)
		return -EINVAL;
	if (!uuid) {
		int err = uuid_random(own_uuid);

		if (err < 0)
			return err;
		uuid = own_uuid;
	}
	memset(header, 0, sizeof(*header));
	header->version = 1;
	header->last_page = (uint32_t)(pages - 1);
	memcpy(header->uuid, uuid, SWAPAREA_UUID_BYTES);
	if (label)
		memcpy(header->label, label, strlen(label));
	memcpy(header->magic, magic_v1, sizeof(magic_v1));
	return 0;
}

int swaparea_header_read(const void *page, uint64_t size_bytes,
			 struct swaparea_header *ret_header)
{
	const struct header_page *header = page;

	for (size_t i = 0; i < UZ_ARRAY_SIZE(suspended); i++)
		if (memcmp(header->magic, suspended[i], strlen(suspended[i])) == 0)
			return -EINVAL;
	if (memcmp(header->magic, magic_v1, sizeof(magic_v1)) != 0)
		return -ENODATA;
	if (header->version != 1 || header->bad_pages_count != 0)
		return -EINVAL;
	uint64_t pages = (uint64_t)header->last_page + 1;

	if (pages < SWAPAREA_MIN_PAGES || pages > size_bytes / UZ_PAGE_SIZE)
		return -EINVAL;
	ret_header->size_pages = pages;
	memcpy(ret_header->uuid, header->uuid, SWAPAREA_UUID_BYTES);
	memcpy(ret_header->label, header->label, SWAPAREA_LABEL_BYTES);
	ret_header->label[SWAPAREA_LABEL_BYTES] = '\0';
	return 0;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/*
 * Copies the first word of `line`, undoing the kernel's \ooo for blanks and
 * backslashes. Returns its length in `line`, or -EINVAL.
 */
static ptrdiff_t unescape_word(const char *line, char *out, size_t out_bytes)
{
	const char *in = line;
	size_t used = 0;

	while (*in && *in != ' ' && *in != '\t' && *in != '\n') {
		if (used + 1 >= out_bytes)
			return -EINVAL;
		if (in[0] == '\\' && is_octal(in[1]) && is_octal(in[2]) &&
		    is_octal(in[3])) {
			out[used++] = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 |
					     (in[3] - '0'));
			in += 4;
		} else {
			out[used++] = *in++;
		}
	}
	out[used] = '\0';
	return used > 0 ? in - line : -EINVAL;
}

int swaparea_parse(const char *line, struct swaparea *ret_area)
{
	struct swaparea area = {0};
	uint64_t size_kib, used_kib;
	ptrdiff_t word = unescape_word(line, area.path, sizeof(area.path));

	if (word < 0 || sscanf(line + word, " %*s %" SCNu64 " %" SCNu64 " %d", &size_kib,
			       &used_kib, &area.priority) != 3)
		return -EINVAL;
	area.size_pages = size_kib / KIB_PER_PAGE;
	area.used_pages = used_kib / KIB_PER_PAGE;

	size_t length = strlen(area.path), suffix = strlen(DELETED_SUFFIX);

	if (length > suffix && strcmp(area.path + length - suffix, DELETED_SUFFIX) == 0) {
		area.path[length - suffix] = '\0';
		area.deleted = true;
	}
	*ret_area = area;
	return 0;
}

/* The kernel's own name of a block device: "loop0". Empty when it has none. */
static void kernel_name(dev_t device, char *out, size_t out_bytes)
{
	char link[64], target[256];

	out[0] = '\0';
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	ssize_t length = readlink(link, target, sizeof(target) - 1);

	if (length <= 0)
		return;
	target[length] = '\0';
	const char *slash = strrchr(target, '/');

	snprintf(out, out_bytes, "%s", slash ? slash + 1 : target);
}

bool swaparea_is_on(const struct swaparea *area, dev_t device)
{
	char name[256];
	struct stat st;

	if (stat(area->path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device)
		return true;
	if (!area->deleted && access(area->path, F_OK) == 0)
		return false;
	/* The node is not there for us: unlinked, or of another mount namespace. */
	const char *slash = strrchr(area->path, '/');

	kernel_name(device, name, sizeof(name));
	return name[0] && strcmp(slash ? slash + 1 : area->path, name) == 0;
}

uint64_t swaparea_total_pages(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return UINT64_MAX;
	return (uint64_t)info.totalswap * info.mem_unit / UZ_PAGE_SIZE;
}

/* The list of areas in memory. `next` is where the next line starts. */
struct swaps_text {
	char text[16384]; /* the kernel has room for 32 areas, a line is 64 bytes or so */
	const char *next;
};

static int swaps_read(struct swaps_text *swaps, int fd)
{
	const size_t room = sizeof(swaps->text) - 1;
	size_t used = 0;
	ssize_t got;

	while ((got = pread(fd, swaps->text + used, room - used, (off_t)used)) > 0)
		used += (size_t)got;
	if (got < 0)
		return -errno;
	if (used == room)
		return -EOVERFLOW;
	swaps->text[used] = '\0';
	swaps->next = swaps->text;
	return 0;
}

/* The next area of the list; false at its end. */
static bool swaps_next(struct swaps_text *swaps, struct swaparea *ret_area)
{
	while (*swaps->next) {
		const char *line = swaps->next;
		const char *end = strchr(line, '\n');

		swaps->next = end ? end + 1 : line + strlen(line);
		if (swaparea_parse(line, ret_area) == 0)
			return true;
	}
	return false;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The path of the area that is leaving, if any: the one whose free slots are what is
 * missing. */
static void find_leaving(struct swaps_text *swaps, uint64_t total_pages, char *ret_path)
{
	struct swaparea area;
	uint64_t listed_pages = 0, best = LEAVING_TOLERANCE_PAGES + 1;

	ret_path[0] = '\0';
	for (swaps->next = swaps->text; swaps_next(swaps, &area);)
		listed_pages += area.size_pages;
	if (total_pages >= listed_pages)
		return;
	uint64_t missing = listed_pages - total_pages;

	for (swaps->next = swaps->text; swaps_next(swaps, &area);) {
		uint64_t off = distance(area.size_pages - area.used_pages, missing);

		if (off < best) {
			best = off;
			memcpy(ret_path, area.path, sizeof(area.path));
		}
	}
}

int swaparea_survey(int swaps_fd, uint64_t total_pages, dev_t device,
		    struct swaparea_survey *ret_survey)
{
	struct swaparea_survey survey = {0};
	struct swaparea area;
	struct swaps_text swaps;
	char leaving[sizeof(area.path)];
	int err = swaps_read(&swaps, swaps_fd);

	if (err < 0)
		return err;
	find_leaving(&swaps, total_pages, leaving);
	for (swaps.next = swaps.text; !survey.listed && swaps_next(&swaps, &area);) {
		if (!swaparea_is_on(&area, device))
			continue;
		survey.listed = true;
		survey.leaving = strcmp(area.path, leaving) == 0;
		survey.ours = area;
	}
	for (swaps.next = swaps.text; survey.listed && swaps_next(&swaps, &area);) {
		if (strcmp(area.path, survey.ours.path) == 0 ||
		    strcmp(area.path, leaving) == 0 ||
		    area.priority < survey.ours.priority)
			continue;
		survey.rival_free_pages += area.size_pages - area.used_pages;
		if (survey.rivals++ == 0 || area.priority > survey.first_rival.priority)
			survey.first_rival = area;
	}
	*ret_survey = survey;
	return 0;
}

static int survey_path(const char *swaps_path, dev_t device,
		       struct swaparea_survey *ret_survey)
{
	UZ_AUTO_CLOSE int fd =
		open(swaps_path ? swaps_path : "/proc/swaps", O_RDONLY | O_CLOEXEC);

	/* A missing /proc is no answer to whether the device is in use. */
	if (fd < 0)
		return errno == ENOENT ? -EIO : -errno;
	uint64_t total_pages = swaps_path ? UINT64_MAX : swaparea_total_pages();
	int err = swaparea_survey(fd, total_pages, device, ret_survey);

	if (err < 0)
		return err;
	return ret_survey->listed ? 0 : -ENOENT;
}

int swaparea_find(dev_t device, const char *swaps_path, struct swaparea *ret_area)
{
	struct swaparea_survey survey;
	int err = survey_path(swaps_path, device, &survey);

	if (err == 0)
		*ret_area = survey.ours;
	return err;
}

int swaparea_rivals(dev_t device, const char *swaps_path, struct swaparea *ret_first)
{
	struct swaparea_survey survey;
	int err = survey_path(swaps_path, device, &survey);

	if (err < 0)
		return err;
	if (survey.rivals > 0)
		*ret_first = survey.first_rival;
	return (int)survey.rivals;
}

bool swaparea_zswap_enabled(const char *root)
{
	char path[512], value = 'N';

	snprintf(path, sizeof(path), "%s/sys/module/zswap/parameters/enabled", root);
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &value, 1) == 1 && (value == 'Y' || value == '1');
}

static int device_of(const char *path, dev_t *ret_device)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.st_mode))
		return -ENOTBLK;
	*ret_device = st.st_rdev;
	return 0;
}

/* Retries while somebody else has the device open exclusively. */
static int swapon_patiently(const char *path, dev_t device, int flags)
{
	struct swaparea area;

	for (int attempt = 1;; attempt++) {
		if (swapon(path, flags) == 0)
			return 0;
		if (errno != EBUSY)
			return -errno;
		/* It is also what one gets for an area that is in use already. */
		if (swaparea_find(device, NULL, &area) == 0)
			return -EALREADY;
		if (attempt == BUSY_ATTEMPTS)
			return -EBUSY;
		clock_sleep_ns(BUSY_PAUSE_NS);
	}
}

int swaparea_on(const char *path, int priority, bool discard, char *message,
		size_t message_bytes)
{
	struct swaparea area = {0};
	dev_t device = 0;
	int flags = discard ? SWAP_FLAG_DISCARD : 0;

	if (priority < SWAPAREA_PRIORITY_MIN || priority > SWAPAREA_PRIORITY_MAX) {
		snprintf(message, message_bytes,
			 "swapon %s: priority %d is not within %d..%d", path, priority,
			 SWAPAREA_PRIORITY_MIN, SWAPAREA_PRIORITY_MAX);
		return -EINVAL;
	}
	if (priority >= 0)
		flags |= SWAP_FLAG_PREFER |
			 (priority << SWAP_FLAG_PRIO_SHIFT & SWAP_FLAG_PRIO_MASK);

	int err = device_of(path, &device);

	if (err < 0) {
		snprintf(message, message_bytes, "swapon: %s: %s", path, strerror(-err));
		return err;
	}
	err = swapon_patiently(path, device, flags);
	if (err < 0) {
		snprintf(message, message_bytes, "swapon %s: %s", path, strerror(-err));
		return err;
	}
	err = swaparea_find(device, NULL, &area);
	if (err < 0) {
		snprintf(message, message_bytes,
			 "swapon %s succeeded, but /proc/swaps does not show the device: "
			 "%s",
			 path, strerror(-err));
		return err == -ENOENT ? -EIO : err;
	}
	if (priority >= 0 && area.priority != priority)
		log_warning("%s: swapped on with priority %d instead of %d", path,
			    area.priority, priority);
	return 0;
}

/* A path that leads to the device now: the caller's, or the one that is listed. */
static const char *usable_path(const struct swaparea_off *off,
			       const struct swaparea *area)
{
	dev_t device = 0;

	if (device_of(off->path, &device) == 0 && device == off->device)
		return off->path;
	if (device_of(area->path, &device) == 0 && device == off->device)
		return area->path;
	return NULL;
}

static int start_swapoff(const struct swaparea_off *off, const char *path, pid_t *ret_pid)
{
	/* A service's PATH may lack the sbin directories. */
	const char *const programs[] = {"swapoff", "/usr/sbin/swapoff", "/sbin/swapoff"};
	int err = -ENOENT;
	bool paused = protect_io_flusher_pause();

	for (size_t i = 0; i < UZ_ARRAY_SIZE(programs) && err == -ENOENT; i++) {
		const char *program = off->program ? off->program : programs[i];
		char *const argv[] = {(char *)program, (char *)path, NULL};

		err = spawn_start(argv, -1, STDERR_FILENO, STDERR_FILENO, ret_pid);
		if (off->program)
			break;
	}
	protect_io_flusher_resume(paused);
	return err;
}

static void report_progress(const struct swaparea_off *off)
{
	struct swaparea area;

	if (off->progress && swaparea_find(off->device, off->swaps_path, &area) == 0)
		off->progress(off->context, area.used_pages * UZ_PAGE_SIZE);
}

/* Waits for the child, reporting meanwhile. Returns what spawn_wait returns. */
static int watch_swapoff(const struct swaparea_off *off, pid_t pid)
{
	/* Where there is no pidfd (-1), poll just sleeps: the end is noticed a little
	 * later. */
	UZ_AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	siginfo_t info = {0};

	for (;;) {
		poll(&ended, 1, PROGRESS_MS);
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid == pid)
			return spawn_wait(pid);
		report_progress(off);
	}
}

/* Runs swapoff once. Returns what spawn_wait returns, or why it could not be started. */
static int run_swapoff(const struct swaparea_off *off, const struct swaparea *area)
{
	const char *path = usable_path(off, area);
	pid_t pid;

	if (!path)
		return -ENODEV;
	int err = start_swapoff(off, path, &pid);

	return err < 0 ? err : watch_swapoff(off, pid);
}

/* 1: the device is listed; 0: it is not; < 0: cannot tell, so it must be taken for
 * listed. */
static int still_on(const struct swaparea_off *off, struct swaparea *ret_area,
		    char *message, size_t message_bytes)
{
	int err = swaparea_find(off->device, off->swaps_path, ret_area);

	if (err == -ENOENT)
		return 0;
	if (err == 0)
		return 1;
	snprintf(message, message_bytes, "swapoff %s: cannot read /proc/swaps: %s",
		 off->path, strerror(-err));
	return -EIO;
}

/* Turns the way in which swapoff failed into a result and its text. */
static int explain_failure(const char *path, int status, char *message,
			   size_t message_bytes)
{
	if (status == -ENODEV) {
		snprintf(message, message_bytes,
			 "swapoff %s: no path leads to the device any more; swap is "
			 "still on",
			 path);
		return -ENODEV;
	}
	if (status < 0) {
		snprintf(message, message_bytes,
			 "swapoff %s: cannot run swapoff: %s; swap is still on", path,
			 strerror(-status));
		return status == -ENOENT ? -ENOENT : -EIO;
	}
	if (status >= 256) {
		snprintf(message, message_bytes,
			 "swapoff %s: ended by signal %d in the last of %d attempts; "
			 "swap is still on",
			 path, status - 256, SWAPAREA_OFF_ATTEMPTS);
		return -EINTR;
	}
	snprintf(message, message_bytes, "swapoff %s: exit status %d%s; swap is still on",
		 path, status,
		 status == SWAPOFF_EXIT_NOMEM ? " (not enough memory)" : "");
	return status == SWAPOFF_EXIT_NOMEM ? -ENOMEM : -EIO;
}

/* An exit status is an answer, and what is not there will not come; the rest may pass. */
static bool worth_another_try(int status)
{
	return status >= 256 || (status < 0 && status != -ENOENT && status != -ENODEV);
}

int swaparea_off(const struct swaparea_off *off, char *message, size_t message_bytes)
{
	struct swaparea area;
	int on = still_on(off, &area, message, message_bytes);

	for (int attempt = 1; on > 0; attempt++) {
		int status = run_swapoff(off, &area);

		on = still_on(off, &area, message, message_bytes);
		if (on <= 0)
			break;
		if (attempt == SWAPAREA_OFF_ATTEMPTS || !worth_another_try(status))
			return explain_failure(off->path, status, message, message_bytes);
		if (status < 0)
			log_notice("swapoff %s: %s, starting it again", off->path,
				   strerror(-status));
		else
			log_notice("swapoff %s: ended by signal %d, starting it again",
				   off->path, status - 256);
		clock_sleep_ns(OFF_PAUSE_NS);
	}
	return on;
}
