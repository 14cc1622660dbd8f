// SPDX-License-Identifier: MIT
/*
 * Hardening. Runs in the main thread during start-up; the table is not written
 * afterwards. The _pause/_resume pair is per thread and touches no table.
 *
 * Sources: mlockall(2), PR_SET_IO_FLUSHER(2const), proc_pid_oom_score_adj(5),
 * mallopt(3).
 */
#include "daemon/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"

/* Linux 5.6; spelt out for older headers. */
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#define PR_GET_IO_FLUSHER 58
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

#define OOM_SCORE_ADJ_MIN (-1000)

/*
 * The heap is extended by this much at a time, so that the few allocations of
 * a running daemon (control requests) hardly ever have to ask the kernel.
 */
#define HEAP_TOP_PAD_BYTES (1024 * 1024)

/* As much as other threads have in all (UZ_THREAD_STACK_BYTES). */
#define MAIN_STACK_BYTES (256 * 1024)

enum { IO_FLUSHER, OOM_SCORE, NO_CORE_DUMP, HEAP, LOCKED_MEMORY, PROTECTIONS };

static struct protection table[PROTECTIONS] = {
	[IO_FLUSHER] = {.name = "io-flusher"},
	[OOM_SCORE] = {.name = "oom-score"},
	[NO_CORE_DUMP] = {.name = "no-core-dump"},
	[HEAP] = {.name = "heap"},
	[LOCKED_MEMORY] = {.name = "locked-memory",
			   .missing = true,
			   .reason = "not locked yet"},
};

static void set_missing(int which, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void set_missing(int which, const char *format, ...)
{
	va_list args;

	table[which].missing = true;
	va_start(args, format);
	vsnprintf(table[which].reason, sizeof(table[which].reason), format, args);
	va_end(args);
	log_warning("protection %s is missing: %s", table[which].name,
		    table[which].reason);
}

static void set_present(int which)
{
	table[which].missing = false;
	table[which].reason[0] = '\0';
}

/* With CAP_IPC_LOCK the limit does not matter, so a refusal here is no loss by itself. */
static void raise_memlock_limit(void)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
}

static void apply_io_flusher(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0)
		set_present(IO_FLUSHER);
	else
		set_missing(IO_FLUSHER, "prctl(PR_SET_IO_FLUSHER): %s%s", strerror(errno),
			    errno == EPERM ? " (needs CAP_SYS_RESOURCE)" : "");
}

int protect_oom_score_adj(int *ret_adj)
{
	char text[16] = "";
	char *end;
	UZ_AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -errno;
	long adj = strtol(text, &end, 10);

	if (end == text)
		return -EINVAL;
	*ret_adj = (int)adj;
	return 0;
}

static void apply_oom_score(void)
{
	static const char wanted[] = "-1000";
	int adj = 0, err = 0;
	UZ_AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, wanted, sizeof(wanted) - 1) < 0)
		err = errno;
	/* The service manager may have set it where we are not allowed to: the value
	 * counts. */
	if (protect_oom_score_adj(&adj) == 0 && adj == OOM_SCORE_ADJ_MIN)
		set_present(OOM_SCORE);
	else
		set_missing(OOM_SCORE, "oom_score_adj is %d: %s%s", adj, strerror(err),
			    err == EACCES
				    ? " (needs CAP_SYS_RESOURCE or OOMScoreAdjust=-1000)"
				    : "");
}

/* Either one keeps the kernel from dumping; the limit also covers a pipe to a dump
 * handler. */
static void apply_no_core_dump(void)
{
	const struct rlimit none = {0, 0};
	int limited = setrlimit(RLIMIT_CORE, &none) == 0;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && limited)
		set_present(NO_CORE_DUMP);
	else
		set_missing(NO_CORE_DUMP, "%s", strerror(errno));
}

/*
 * A second arena or a trimmed and regrown heap is an mprotect or brk that
 * populates memory, at a moment when there may be none: seen to hang.
 */
static void apply_heap(void)
{
#ifdef __GLIBC__
	if (mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MMAP_MAX, 0) == 1 &&
	    mallopt(M_TRIM_THRESHOLD, -1) == 1 &&
	    mallopt(M_TOP_PAD, HEAP_TOP_PAD_BYTES) == 1) {
		set_present(HEAP);
		return;
	}
	set_missing(HEAP, "mallopt refused a setting");
#else
	set_missing(HEAP, "this C library has no mallopt");
#endif
}

void protect_apply(void)
{
	raise_memlock_limit();
	apply_io_flusher();
	apply_oom_score();
	apply_no_core_dump();
	apply_heap();
}

size_t protect_list(const struct protection **ret_list)
{
	*ret_list = table;
	return PROTECTIONS;
}

static uint64_t locked_now_bytes(void)
{
	char line[256];
	uint64_t kib = 0;
	UZ_AUTO_FCLOSE FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmLck: %" SCNu64, &kib) == 1)
			break;
	return kib * UZ_KIB;
}

/*
 * PROT_NONE and lock-on-fault: the kernel does all its sums, and not a page is
 * touched or committed. Better than reading the capability sets, which say
 * nothing about a user namespace or a security module.
 */
static int try_lock(uint64_t needed_bytes)
{
	size_t length = (size_t)uz_round_up(UZ_MAX(needed_bytes, 1), UZ_PAGE_SIZE);
	void *probe = mmap(NULL, length, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (probe == MAP_FAILED)
		return -errno;
	int err = mlock2(probe, length, MLOCK_ONFAULT) < 0 ? -errno : 0;

	munmap(probe, length);
	return err;
}

int protect_check_lockable(uint64_t needed_bytes, char *message, size_t message_bytes)
{
	struct rlimit limit = {0, 0};
	int err = try_lock(needed_bytes);

	if (err == 0)
		return 0;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY) {
		snprintf(message, message_bytes,
			 "cannot lock memory: %" PRIu64 " bytes needed: %s", needed_bytes,
			 strerror(-err));
		return -EPERM;
	}
	uint64_t used = locked_now_bytes();
	uint64_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;

	snprintf(
		message, message_bytes,
		"cannot lock memory: %" PRIu64 " bytes needed, %" PRIu64
		" available (RLIMIT_MEMLOCK, no CAP_IPC_LOCK); set LimitMEMLOCK=infinity",
		needed_bytes, left);
	return -EPERM;
}

int protect_lock_on_fault(void)
{
	if (mlockall(MCL_FUTURE | MCL_ONFAULT) < 0) {
		int err = errno;

		set_missing(LOCKED_MEMORY, "mlockall(MCL_FUTURE|MCL_ONFAULT): %s",
			    strerror(err));
		return -err;
	}
	return 0;
}

/*
 * Populates and locks one mapping. ENOMEM means one of two things: over the
 * limit, or an end that no access could reach either (a library's segment
 * beyond the end of its file), where the kernel gives up after it has populated
 * all before. Locking on fault populates nothing, so only the first kind fails
 * again; pages that are locked already stay so.
 */
static int lock_mapping(char *start, size_t bytes)
{
	if (bytes <= PROTECT_POPULATE_MAX_BYTES) {
		if (mlock(start, bytes) == 0)
			return 0;
		if (errno != ENOMEM)
			return -errno;
	}
	return mlock2(start, bytes, MLOCK_ONFAULT) < 0 ? -errno : 0;
}

/*
 * The calling thread's stack grows by faults, locked or not; other threads
 * touch theirs when they start (base/thread.c).
 */
static void __attribute__((noinline)) grow_stack(void)
{
	volatile char block[MAIN_STACK_BYTES];

	for (size_t i = 0; i < sizeof(block); i += UZ_PAGE_SIZE)
		block[i] = 1;
}

int protect_lock_all(void)
{
	UZ_AUTO_FREE char *line = NULL;
	size_t line_bytes = 0;
	uint64_t failed_bytes = 0;
	int err = 0;

	grow_stack();
	if (mlockall(MCL_FUTURE) < 0) {
		err = -errno;
		set_missing(LOCKED_MEMORY, "mlockall(MCL_FUTURE): %s", strerror(-err));
		return err;
	}
	UZ_AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps) {
		err = -errno;
		set_missing(LOCKED_MEMORY, "/proc/self/maps: %s", strerror(-err));
		return err;
	}
	while (getline(&line, &line_bytes, maps) > 0) {
		uintptr_t start, end;
		char mode[8];

		int fields =
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &start, &end, mode);

		/* What cannot be read is a guard page or a reservation. */
		if (fields != 3 || mode[0] != 'r' || mode[3] != 'p')
			continue;
		int one = lock_mapping((char *)start, end - start);

		if (one < 0) {
			err = one;
			failed_bytes += end - start;
		}
	}
	if (err < 0)
		set_missing(LOCKED_MEMORY,
			    "%" PRIu64 " KiB of the daemon could not be locked: %s",
			    (uint64_t)(failed_bytes / UZ_KIB), strerror(-err));
	else
		set_present(LOCKED_MEMORY);
	return err;
}

bool protect_io_flusher_pause(void)
{
	return prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1 &&
	       prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0) == 0;
}

void protect_io_flusher_resume(bool paused)
{
	/* Cannot fail: the capability was there a moment ago. */
	if (paused)
		prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}
