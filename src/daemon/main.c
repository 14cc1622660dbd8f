// SPDX-License-Identifier: MIT
/*
 * uzswapd: start, wait for signals, stop.
 *
 * Order of starting, and why: protections first, since threads inherit them;
 * stores while memory is locked on fault (so that they are not populated as a
 * whole); then everything is locked; then the transports with their threads; then the relief valve
 * and sysctls; then swapon; then the control socket; READY last. Stopping is the reverse, and never
 * goes past swapoff while /proc/swaps lists a device.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "conf/conf.h"
#include "ctl/ctl.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "daemon/protect.h"
#include "daemon/runtime.h"

/* Exit statuses, documented in uzswapd(8); the last is sysexits(3)' EX_CONFIG. */
enum {
	EXIT_START_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_ABANDONED = 4,
	EXIT_CONFIG = 78,
};

/* What the process itself needs besides stores, buffers and the relief valve. */
#define PROCESS_LOCKED_BYTES (48 * UZ_MIB)

/* After a failed start: between attempts to swap off what was swapped on before the failure. */
#define SWAPOFF_RETRY_NS (5 * UZ_NSEC_PER_SEC)

#define DEFAULT_LINK_DIR "/dev/uzswap"
#define MAX_CPUS	 1024

struct options {
	const char *config;
	const char *runtime_dir;
	bool check_config;
};

static void print_usage(FILE *stream)
{
	fputs("uzswapd [--config FILE] [--check-config] [--runtime-dir DIR]\n"
	      "\n"
	      "Serves compressed swap devices until it is told to stop.\n"
	      "\n"
	      "  --config FILE      read FILE (and FILE.d/*.conf) instead of the usual "
	      "places\n"
	      "  --check-config     say what the configuration means and what is wrong, "
	      "and end\n"
	      "  --runtime-dir DIR  control socket, lock and links "
	      "(default " RUNTIME_DEFAULT_DIR ")\n"
	      "  --help, --version\n"
	      "\n"
	      "See uzswapd(8), uzswapd.conf(5), uzswapctl(8).\n",
	      stream);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, 'k'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int choice;

	*options = (struct options){.runtime_dir = RUNTIME_DEFAULT_DIR};
	while ((choice = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (choice) {
		case 'c':
			options->config = optarg;
			break;
		case 'k':
			options->check_config = true;
			break;
		case 'r':
			options->runtime_dir = optarg;
			break;
		case 'h':
			print_usage(stdout);
			return EXIT_SUCCESS;
		case 'v':
			printf("uzswapd %s\n", PACKAGE_VERSION);
			return EXIT_SUCCESS;
		default:
			print_usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "uzswapd: unexpected argument '%s'\n", argv[optind]);
		print_usage(stderr);
		return EXIT_USAGE;
	}
	/* Absolute, at most 63 bytes: it becomes part of socket paths and loop device
	 * labels. */
	if (options->runtime_dir[0] != '/' || strlen(options->runtime_dir) > 63) {
		fprintf(stderr,
			"uzswapd: --runtime-dir %s: must be an absolute path of at most "
			"63 bytes\n",
			options->runtime_dir);
		return EXIT_USAGE;
	}
	return -1;
}

static void report_diagnostic(void *context, const struct conf_diagnostic *diagnostic)
{
	(void)context;
	if (!diagnostic->file)
		log_line(diagnostic->level, "%s", diagnostic->text);
	else if (diagnostic->line == 0)
		log_line(diagnostic->level, "%s: %s", diagnostic->file, diagnostic->text);
	else if (diagnostic->column == 0)
		log_line(diagnostic->level, "%s:%u: %s", diagnostic->file, diagnostic->line,
			 diagnostic->text);
	else
		log_line(diagnostic->level, "%s:%u:%u: %s", diagnostic->file, diagnostic->line,
			 diagnostic->column, diagnostic->text);
}

static int check_config(const struct options *options)
{
	struct conf_sources sources = {.file = options->config};
	struct conf *conf;

	if (conf_load(&conf, &sources, true, report_diagnostic, NULL) < 0)
		return EXIT_CONFIG;
	int err = conf_describe(conf, stdout);

	conf_free(conf);
	return err < 0 ? EXIT_START_FAILED : EXIT_SUCCESS;
}

static int find_group(const char *name, gid_t *ret_group)
{
	struct group *group;

	*ret_group = CTL_NO_GROUP;
	if (name[0] == '\0')
		return 0;
	group = getgrnam(name);
	if (!group) {
		log_error("StatsGroup=%s: there is no such group", name);
		return -ENOENT;
	}
	*ret_group = group->gr_gid;
	return 0;
}

static const char *balloon_helper_path(void)
{
	const char *override = getenv("UZSWAP_BALLOON");

	return override ? override : UZ_LIBEXECDIR "/uzswap-balloon";
}

/* --- start ---------------------------------------------------------------- */

static int make_devices(struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;

	daemon->devices = calloc(conf->device_count, sizeof(*daemon->devices));
	if (!daemon->devices)
		return -ENOMEM;
	for (size_t i = 0; i < conf->device_count; i++)
		if (conf->devices[i].enabled)
			device_init(&daemon->devices[daemon->device_count++], &conf->devices[i],
				    daemon->runtime_dir);
	return 0;
}

static int check_lockable(const struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES];
	uint64_t needed = PROCESS_LOCKED_BYTES + daemon->conf->daemon.relief_reserve_bytes;

	for (unsigned i = 0; i < daemon->device_count; i++)
		needed += device_locked_bytes(&daemon->devices[i].conf, daemon->cpus);
	int err = protect_check_lockable(needed, message, sizeof(message));

	if (err < 0)
		log_error("%s", message);
	return err;
}

static int start_relief(struct daemon *daemon)
{
	struct relief_config config = {
		.reserve_bytes = daemon->conf->daemon.relief_reserve_bytes,
	};

	if (config.reserve_bytes == 0)
		return 0;
	int err = relief_start(&daemon->relief, &config);

	if (err < 0)
		log_error("the relief valve's reserve of %llu MiB cannot be locked: %s "
			  "(ReliefReserve=0 does without)",
			  (unsigned long long)(config.reserve_bytes / UZ_MIB), strerror(-err));
	return err;
}

static int swapon_devices(struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES];
	int err = 0;

	daemon_operate_begin(daemon);
	for (unsigned i = 0; i < daemon->device_count && err == 0; i++) {
		struct device *device = &daemon->devices[i];

		if (device->conf.swap_on)
			err = daemon_swapon(daemon, device, message);
	}
	daemon_operate_end(daemon);
	if (err < 0)
		log_error("%s", message);
	return err;
}

static int start(struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES], link_dir[128];
	if (strcmp(daemon->runtime_dir, RUNTIME_DEFAULT_DIR) == 0)
		snprintf(link_dir, sizeof(link_dir), DEFAULT_LINK_DIR);
	else
		snprintf(link_dir, sizeof(link_dir), "%s/dev", daemon->runtime_dir);
	int err = check_lockable(daemon);

	if (err == 0)
		err = protect_lock_on_fault();
	for (unsigned i = 0; i < daemon->device_count && err == 0; i++) {
		err = device_make_store(&daemon->devices[i], daemon->cpus, message);
		if (err < 0)
			log_error("%s", message);
	}
	if (err == 0)
		err = protect_lock_all();
	for (unsigned i = 0; i < daemon->device_count && err == 0; i++) {
		err = device_attach(&daemon->devices[i], link_dir, daemon->cpus, message);
		if (err < 0)
			log_error("%s", message);
	}
	if (err == 0)
		err = start_relief(daemon);
	if (err == 0)
		err = sysctl_set_new(&daemon->sysctls, daemon->runtime_dir, "");
	if (err == 0)
		err = swapon_devices(daemon);
	return err;
}

/* --- run ------------------------------------------------------------------ */

static void report_swapoff(void *context, uint64_t remaining_bytes)
{
	(void)context;
	/* Five seconds more each time there is progress: a long swapoff is not a stuck
	 * one. */
	notify("STATUS=swapoff: %llu MiB to go\nEXTEND_TIMEOUT_USEC=5000000",
	       (unsigned long long)(remaining_bytes / UZ_MIB));
}

/* Returns whether the daemon may end. */
static bool try_to_stop(struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES];

	notify("STOPPING=1\nSTATUS=swapoff");
	daemon_operate_begin(daemon);
	int err = daemon_swapoff_all(daemon, report_swapoff, NULL, message);

	daemon_operate_end(daemon);
	if (err == 0)
		return true;
	log_error("%s", message);
	log_error("not stopping: swap is still on. Try again later, or lose the pages with "
		  "'uzswapctl stop --abandon'");
	notify("READY=1\nSTATUS=serving; the last attempt to stop failed: %s", message);
	return false;
}

static void housekeeping(struct daemon *daemon)
{
	uint64_t stored = 0, used = 0;

	for (unsigned i = 0; i < daemon->device_count; i++) {
		struct stats_values values = {0};

		device_housekeeping(&daemon->devices[i], clock_now_ns());
		store_stats(daemon->devices[i].store, &values);
		stored += values.value[STATS_STORED];
		used += values.value[STATS_MEMORY_USED];
	}
	notify("STATUS=%llu MiB of pages in %llu MiB of memory",
	       (unsigned long long)(stored / UZ_MIB), (unsigned long long)(used / UZ_MIB));
}

/* Serves until it is time to end. Returns the exit status. */
static int run(struct daemon *daemon, int signal_fd)
{
	for (;;) {
		struct pollfd fds[2] = {
			{.fd = signal_fd, .events = POLLIN},
			{.fd = daemon->wake_fd, .events = POLLIN},
		};
		struct signalfd_siginfo info;

		int ready = poll(fds, 2, 1000);

		if (ready == 0)
			housekeeping(daemon);
		switch (atomic_load_explicit(&daemon->wish, memory_order_acquire)) {
		case DAEMON_STOP:
			return EXIT_SUCCESS;
		case DAEMON_ABANDON:
			return EXIT_ABANDONED;
		default:
			break;
		}
		if (ready <= 0 || !(fds[0].revents & POLLIN) ||
		    read(signal_fd, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo == SIGHUP) {
			log_notice("SIGHUP: a changed configuration needs a restart; "
				   "'uzswapctl set' changes limit, codec and level at once");
			continue;
		}
		log_notice("%s: swapping off", strsignal((int)info.ssi_signo));
		if (try_to_stop(daemon))
			return EXIT_SUCCESS;
	}
}

/* Returns whether everything could be taken down. */
static bool stop(struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES];
	bool done = true;

	for (unsigned i = 0; i < daemon->device_count; i++) {
		if (device_detach(&daemon->devices[i], message) < 0) {
			log_error("%s", message);
			done = false;
		}
	}
	if (!done)
		return false;
	for (unsigned i = 0; i < daemon->device_count; i++)
		device_done(&daemon->devices[i]);
	relief_stop(daemon->relief);
	if (daemon->sysctls)
		sysctl_set_restore(daemon->sysctls);
	sysctl_set_free(daemon->sysctls);
	return true;
}

/* After a failed start: whatever is swapped on already must be off before anything is
 * released. */
static int give_up(struct daemon *daemon)
{
	char message[DEVICE_MESSAGE_BYTES];

	daemon_operate_begin(daemon);
	/* Not an end before swap is off: processes may have pages here already. */
	while (daemon->sysctls && daemon_swapoff_all(daemon, NULL, NULL, message) < 0) {
		log_error("%s; trying again", message);
		clock_sleep_ns(SWAPOFF_RETRY_NS);
	}
	daemon_operate_end(daemon);
	stop(daemon);
	return EXIT_START_FAILED;
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int serve(struct daemon *daemon, gid_t group)
{
	struct ctl_config ctl_config = {
		.runtime_dir = daemon->runtime_dir,
		.stats_group = group,
		.ops = &daemon_ctl_ops,
		.context = daemon,
	};
	struct ctl_server *ctl = NULL;
	int signal_fd = block_signals();

	if (signal_fd < 0 || start(daemon) < 0)
		return give_up(daemon);
	int err = ctl_server_new(&ctl, &ctl_config);

	if (err < 0) {
		log_error("control socket in %s: %s", daemon->runtime_dir, strerror(-err));
		return give_up(daemon);
	}
	for (unsigned i = 0; i < daemon->device_count; i++) {
		const struct device *device = &daemon->devices[i];

		log_notice("%s: %s, %llu MiB, at most %llu MiB of memory, %s", device->conf.name,
			   device->link_path,
			   (unsigned long long)(device->conf.size_bytes / UZ_MIB),
			   (unsigned long long)(device->conf.memory_limit_bytes / UZ_MIB),
			   device->conf.swap_on ? "swapped on" : "not swapped on (SwapOn=no)");
	}
	notify("READY=1\nSTATUS=serving");
	int status;

	for (;;) {
		status = run(daemon, signal_fd);
		ctl_server_free(ctl);
		ctl = NULL;
		if (status == EXIT_ABANDONED) {
			log_error("abandoning the devices as ordered: pages on them are "
				  "lost");
			return status;
		}
		if (stop(daemon))
			return status;
		/* Somebody swapped a device on again, or has it open: go on serving. */
		atomic_store_explicit(&daemon->wish, DAEMON_GO_ON, memory_order_relaxed);
		if (ctl_server_new(&ctl, &ctl_config) < 0)
			log_warning("no control socket any more; SIGTERM still works");
	}
}

static int run_daemon(const struct options *options, const struct conf *conf)
{
	char message[DEVICE_MESSAGE_BYTES];
	int cpus[MAX_CPUS];
	gid_t group;
	struct daemon daemon = {
		.conf = conf,
		.runtime_dir = options->runtime_dir,
		.helper_path = balloon_helper_path(),
		.cpus = thread_allowed_cpus(cpus, MAX_CPUS),
		.started_ns = clock_now_ns(),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};

	if (geteuid() != 0) {
		log_error("must be started as root: it mounts, attaches a loop device "
			  "and swaps on");
		return EXIT_START_FAILED;
	}
	if (sysconf(_SC_PAGESIZE) != (long)UZ_PAGE_SIZE) {
		log_error("the kernel's page size is %ld bytes; this build works with "
			  "4096 only",
			  sysconf(_SC_PAGESIZE));
		return EXIT_START_FAILED;
	}
	if (find_group(conf->daemon.stats_group, &group) < 0)
		return EXIT_CONFIG;
	if (runtime_enter(daemon.runtime_dir, group, message, sizeof(message)) < 0 ||
	    runtime_clean_stale(daemon.runtime_dir, message, sizeof(message)) < 0) {
		log_error("%s", message);
		return EXIT_START_FAILED;
	}
	lock_init(&daemon.lock, LOCK_RANK_DAEMON);
	condition_init(&daemon.operated);
	if (make_devices(&daemon) < 0)
		return EXIT_START_FAILED;
	if (daemon.device_count == 0) {
		log_notice("no device is enabled: nothing to do");
		notify("READY=1\nSTATUS=no device is enabled");
		return EXIT_SUCCESS;
	}
	return serve(&daemon, group);
}

int main(int argc, char **argv)
{
	struct options options;
	struct conf_sources sources;
	struct conf *conf;
	int status = parse_options(argc, argv, &options);

	if (status >= 0)
		return status;
	if (options.check_config)
		return check_config(&options);
	umask(0077);
	sources = (struct conf_sources){.file = options.config};
	if (conf_load(&conf, &sources, false, report_diagnostic, NULL) < 0)
		return EXIT_CONFIG;
	log_set_level(conf->daemon.log_level);
	if (conf->disabled) {
		log_notice("disabled by uzswap=off on the kernel command line");
		notify("READY=1\nSTATUS=disabled by uzswap=off");
		conf_free(conf);
		return EXIT_SUCCESS;
	}
	protect_apply();
	status = run_daemon(&options, conf);
	conf_free(conf);
	return status;
}
