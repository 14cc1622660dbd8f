// SPDX-License-Identifier: MIT
/*
 * The slot balloon, daemon's side. One thread, "uzswap:balloon", owns the helper
 * process and all state but the stop descriptor and the counters. It serves no
 * I/O, so it may wait for memory; it holds no lock while it does.
 *
 * It looks four times a second, more often while something is moving. That much
 * is needed even on an idle machine: when an administrator runs swapoff, the
 * kernel starts to read the balloon's zero pages into memory, about 1 GB/s of
 * them, and nothing announces it. swaparea_survey finds out about it; pages that
 * come back unasked, for which the helper looks, are the second sign.
 *
 * The kernel's figure for used slots lags a little: it includes slots in per-CPU
 * caches (before 6.15) and pages that are in the swap cache as well.
 */
#include "daemon/balloon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/thread.h"
#include "base/units.h"
#include "daemon/balloon_protocol.h"
#include "daemon/protect.h"
#include "daemon/swaparea.h"

#define TICK_FAST_MS 50
#define TICK_MS	     250
#define TICK_SLOW_MS 1000 /* without swap: a change of /proc/swaps wakes us anyway */

/* The helper checks its pages with every order, so it gets one at least this often. */
#define ORDER_MAX_NS (1 * UZ_NSEC_PER_SEC)

/* After pages did not go out, or came back unasked. */
#define STUCK_PAUSE_NS	(1 * UZ_NSEC_PER_SEC)
#define OUSTED_PAUSE_NS (5 * UZ_NSEC_PER_SEC)

/* A helper that lived this long was all right; one that did not is started ever more
 * slowly. */
#define LIVED_NS       (10 * UZ_NSEC_PER_SEC)
#define BACKOFF_MIN_NS (250 * UZ_NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (10 * UZ_NSEC_PER_SEC)

/* 1 MiB: not worth an order. */
#define STEP_PAGES 256

struct balloon {
	struct balloon_config config;
	char helper_path[PATH_MAX];
	struct thread thread;
	int swaps_fd;
	int stop_fd; /* readable: end */

	/* Of the thread alone. */
	pid_t pid; /* of the helper; 0: there is none */
	int socket;
	bool ordered;	     /* a report is due */
	uint64_t ordered_ns; /* when the last order was sent */
	uint64_t held_pages; /* as the last report says */
	uint64_t target_pages;
	uint64_t started_ns; /* the helper that runs, or ran last */
	uint64_t backoff_ns;
	uint64_t pause_until_ns; /* no new helper and no inflating before */
	enum balloon_state paused_as;
	uint64_t last_free_pages;

	/* Written by the thread (relaxed), read by anybody; each stands for itself. */
	_Atomic int state, in_cgroup, oom_victim;
	_Atomic uint64_t stat_held_pages, stat_target_pages, restarts;
};

const char *balloon_state_text(enum balloon_state state)
{
	switch (state) {
	case BALLOON_OFF:
		return "off";
	case BALLOON_NO_SWAP:
		return "waiting: the device is not swapped on";
	case BALLOON_ACTIVE:
		return "active";
	case BALLOON_RIVAL:
		return "held back: another swap area has the same or a higher priority";
	case BALLOON_SWAPOFF:
		return "deflated: the device is being swapped off";
	case BALLOON_RESTART:
		return "waiting: the helper has ended and will be started again";
	case BALLOON_STUCK:
		return "stuck: the helper's pages do not go out (memory cgroup limit?)";
	}
	return "unknown";
}

uint64_t balloon_target(const struct balloon_view *view)
{
	uint64_t held = view->held_pages;
	uint64_t room = view->room_pages;

	if (view->free_pages > room) {
		uint64_t lack = view->free_pages - room;

		if (room > 0 && lack < STEP_PAGES)
			return held;
		return held + lack;
	}
	uint64_t excess = UZ_MIN(held, room - view->free_pages);

	if (excess >= STEP_PAGES && view->free_pages < room / 2)
		return held - excess;
	if (excess > view->size_pages * 3 / 100)
		return held - uz_div_round_up(excess, 2);
	return held;
}

/* ---- the helper ---- */

static void set_held(struct balloon *balloon, uint64_t pages)
{
	balloon->held_pages = pages;
	atomic_store_explicit(&balloon->stat_held_pages, pages, memory_order_relaxed);
}

/* Waits for a helper that is dying. Returns what spawn_wait returns. */
static int bury_helper(struct balloon *balloon)
{
	int status = spawn_wait(balloon->pid);

	close(balloon->socket);
	balloon->pid = 0;
	balloon->socket = -1;
	balloon->ordered = false;
	set_held(balloon, 0);
	return status;
}

/* The quick way to deflate: an exit frees all slots, whatever the helper waits for. */
static void kill_helper(struct balloon *balloon)
{
	if (balloon->pid == 0)
		return;
	kill(balloon->pid, SIGKILL);
	bury_helper(balloon);
}

/* No helper is started and nothing inflated for a while; `status` tells why. */
static void pause_balloon(struct balloon *balloon, enum balloon_state why,
			  uint64_t for_ns)
{
	balloon->paused_as = why;
	balloon->pause_until_ns = clock_now_ns() + for_ns;
}

/* The helper has ended, or could not be started: try again, ever more slowly. */
static void plan_restart(struct balloon *balloon, const char *what, int number)
{
	bool lived = clock_now_ns() - balloon->started_ns >= LIVED_NS;

	balloon->backoff_ns = lived || balloon->backoff_ns == 0
				      ? BACKOFF_MIN_NS
				      : UZ_MIN(2 * balloon->backoff_ns, BACKOFF_MAX_NS);
	log_warning("slot balloon: helper %s %d, starting it again in %" PRIu64 " ms",
		    what, number, (uint64_t)(balloon->backoff_ns / UZ_NSEC_PER_MSEC));
	pause_balloon(balloon, BALLOON_RESTART, balloon->backoff_ns);
	atomic_fetch_add_explicit(&balloon->restarts, 1, memory_order_relaxed);
}

static void helper_has_ended(struct balloon *balloon)
{
	int status = bury_helper(balloon);

	if (status >= 256)
		plan_restart(balloon, "ended by signal", status - 256);
	else
		plan_restart(balloon, "ended with status", status);
}

static void start_helper(struct balloon *balloon, uint64_t max_pages)
{
	int sockets[2];
	char pages[24];
	char *const argv[] = {balloon->helper_path, pages, NULL};

	balloon->started_ns = clock_now_ns();
	snprintf(pages, sizeof(pages), "%" PRIu64, max_pages);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
		plan_restart(balloon, "has no socket: error", errno);
		return;
	}
	bool paused = protect_io_flusher_pause();
	int err = spawn_start(argv, sockets[1], -1, STDERR_FILENO, &balloon->pid);

	protect_io_flusher_resume(paused);
	close(sockets[1]);
	if (err < 0) {
		close(sockets[0]);
		balloon->pid = 0;
		plan_restart(balloon, "cannot be started: error", -err);
		return;
	}
	balloon->socket = sockets[0];
}

static void send_order(struct balloon *balloon)
{
	const struct balloon_order order = {.target_pages = balloon->target_pages};

	balloon->ordered_ns = clock_now_ns();
	/* A failure means that the helper has died; the poll says so as well. */
	balloon->ordered = send(balloon->socket, &order, sizeof(order),
				MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(order);
}

static void receive_report(struct balloon *balloon)
{
	struct balloon_report report;
	ssize_t got = recv(balloon->socket, &report, sizeof(report), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(report)) {
		/* The end of the stream; anything else would be a helper gone mad. */
		kill(balloon->pid, SIGKILL);
		helper_has_ended(balloon);
		return;
	}
	balloon->ordered = false;
	atomic_store_explicit(&balloon->in_cgroup,
			      (report.flags & BALLOON_IN_CGROUP) != 0,
			      memory_order_relaxed);
	atomic_store_explicit(&balloon->oom_victim,
			      (report.flags & BALLOON_OOM_VICTIM) != 0,
			      memory_order_relaxed);
	if (report.flags & BALLOON_OUSTED) {
		log_notice("slot balloon: pages came back unasked, giving up all slots");
		pause_balloon(balloon, BALLOON_SWAPOFF, OUSTED_PAUSE_NS);
	} else if (report.error < 0 && report.held_pages <= balloon->held_pages) {
		log_debug("slot balloon: pages do not go out: %s",
			  strerror(-report.error));
		pause_balloon(balloon, BALLOON_STUCK, STUCK_PAUSE_NS);
	}
	set_held(balloon, report.held_pages);
}

/* ---- the thread ---- */

static void set_state(struct balloon *balloon, enum balloon_state state)
{
	int old = atomic_exchange_explicit(&balloon->state, (int)state,
					   memory_order_relaxed);

	if (old != (int)state)
		log_debug("slot balloon: %s", balloon_state_text(state));
}

static void set_target(struct balloon *balloon, uint64_t pages)
{
	balloon->target_pages = pages;
	atomic_store_explicit(&balloon->stat_target_pages, pages, memory_order_relaxed);
}

/* With our device on and the helper at rest: decides, and sends an order when due. */
static void steer(struct balloon *balloon, const struct swaparea_survey *survey)
{
	uint64_t now_ns = clock_now_ns();
	bool paused = now_ns < balloon->pause_until_ns;
	struct balloon_view view = {
		.size_pages = survey->ours.size_pages,
		.free_pages = survey->ours.size_pages - survey->ours.used_pages,
		.held_pages = balloon->held_pages,
		.room_pages = balloon->config.room_pages(balloon->config.context),
	};
	uint64_t target = balloon_target(&view);

	if (paused || survey->rival_free_pages > 0)
		target = UZ_MIN(target, view.held_pages);
	set_target(balloon, target);
	if (paused)
		set_state(balloon, balloon->paused_as);
	else
		set_state(balloon,
			  survey->rival_free_pages > 0 ? BALLOON_RIVAL : BALLOON_ACTIVE);

	if (balloon->pid == 0 && target > 0)
		start_helper(balloon, view.size_pages);
	if (balloon->pid == 0)
		return;
	if (target != view.held_pages ||
	    (view.held_pages > 0 && now_ns - balloon->ordered_ns >= ORDER_MAX_NS))
		send_order(balloon);
}

/* One look at the world. Returns the milliseconds until the next. */
static int tick(struct balloon *balloon)
{
	struct swaparea_survey survey;
	int err = swaparea_survey(balloon->swaps_fd, swaparea_total_pages(),
				  balloon->config.device, &survey);

	if (err < 0) {
		log_debug("slot balloon: /proc/swaps: %s", strerror(-err));
		return TICK_SLOW_MS;
	}
	if (!survey.listed || survey.leaving) {
		kill_helper(balloon);
		set_target(balloon, 0);
		set_state(balloon, survey.listed ? BALLOON_SWAPOFF : BALLOON_NO_SWAP);
		return survey.listed ? TICK_MS : TICK_SLOW_MS;
	}
	uint64_t free_pages = survey.ours.size_pages - survey.ours.used_pages;
	uint64_t moved = free_pages > balloon->last_free_pages
				 ? free_pages - balloon->last_free_pages
				 : balloon->last_free_pages - free_pages;

	balloon->last_free_pages = free_pages;
	if (!balloon->ordered)
		steer(balloon, &survey);
	bool busy = balloon->ordered || moved > survey.ours.size_pages / 200;

	return busy ? TICK_FAST_MS : TICK_MS;
}

static void run(void *argument)
{
	struct balloon *balloon = argument;

	for (;;) {
		int wait_ms = tick(balloon);
		struct pollfd fds[] = {
			{.fd = balloon->stop_fd, .events = POLLIN},
			{.fd = balloon->socket, .events = POLLIN}, /* -1 is skipped */
			{.fd = balloon->swaps_fd, .events = POLLPRI},
		};

		if (poll(fds, UZ_ARRAY_SIZE(fds), wait_ms) <= 0)
			continue;
		if (fds[0].revents)
			break;
		if (fds[1].revents)
			receive_report(balloon);
	}
	kill_helper(balloon);
}

int balloon_start(struct balloon **ret_balloon, const struct balloon_config *config)
{
	struct balloon *balloon = calloc(1, sizeof(*balloon));
	int err = 0;

	if (!balloon)
		return -ENOMEM;
	balloon->config = *config;
	snprintf(balloon->helper_path, sizeof(balloon->helper_path), "%s",
		 config->helper_path);
	balloon->socket = -1;
	balloon->state = BALLOON_NO_SWAP;
	balloon->stop_fd = eventfd(0, EFD_CLOEXEC);
	balloon->swaps_fd = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	if (balloon->stop_fd < 0 || balloon->swaps_fd < 0)
		err = -errno;
	if (err == 0)
		err = thread_start(&balloon->thread, "uzswap:balloon", run, balloon, -1,
				   0);
	if (err < 0) {
		balloon_stop(balloon);
		return err;
	}
	*ret_balloon = balloon;
	return 0;
}

void balloon_stop(struct balloon *balloon)
{
	const uint64_t one = 1;

	if (!balloon)
		return;
	if (balloon->thread.started &&
	    write(balloon->stop_fd, &one, sizeof(one)) == sizeof(one))
		thread_join(&balloon->thread);
	if (balloon->stop_fd >= 0)
		close(balloon->stop_fd);
	if (balloon->swaps_fd >= 0)
		close(balloon->swaps_fd);
	free(balloon);
}

void balloon_stats(const struct balloon *balloon, struct balloon_stats *ret_stats)
{
	if (!balloon) {
		*ret_stats = (struct balloon_stats){.state = BALLOON_OFF};
		return;
	}
	ret_stats->state = (enum balloon_state)atomic_load_explicit(&balloon->state,
								    memory_order_relaxed);
	ret_stats->held_pages =
		atomic_load_explicit(&balloon->stat_held_pages, memory_order_relaxed);
	ret_stats->target_pages =
		atomic_load_explicit(&balloon->stat_target_pages, memory_order_relaxed);
	ret_stats->restarts =
		atomic_load_explicit(&balloon->restarts, memory_order_relaxed);
	ret_stats->in_cgroup =
		atomic_load_explicit(&balloon->in_cgroup, memory_order_relaxed);
	ret_stats->oom_victim =
		atomic_load_explicit(&balloon->oom_victim, memory_order_relaxed);
}
