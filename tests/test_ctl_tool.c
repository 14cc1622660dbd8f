// SPDX-License-Identifier: MIT
/*
 * uzswapctl as people run it: a child process, its output and its exit code.
 * UZSWAPCTL names the program; the build directory's own is the default.
 */
#include "test_ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/units.h"
#include "ctl/ctl_format.h"
#include "ctl/uzswapctl.h"
#include "prometheus.h"

#define ARGUMENTS_MAX 12

struct run {
	int code; /* exit code, or 256 + signal */
	char *out;
	char *err;
};

static struct ctl_test test;

static void start(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	ctl_test_start(&test, geteuid() == 0 ? TEST_GROUP : CTL_NO_GROUP);
}

static void stop(void)
{
	ctl_test_stop(&test);
}

static char *read_all(FILE *file)
{
	size_t size = 1 << 20;
	char *text = calloc(1, size);

	rewind(file);
	ck_assert_uint_lt(fread(text, 1, size - 1, file), size - 1);
	fclose(file);
	return text;
}

static void run_done(struct run *run)
{
	free(run->out);
	free(run->err);
}

/*
 * Runs `uzswapctl WORDS...`, the words separated by blanks; as nobody, in the group, if
 * told so.
 */
static struct run run_in(const char *directory, const char *words, bool as_nobody)
{
	const char *program = getenv("UZSWAPCTL");
	char *arguments[ARGUMENTS_MAX + 4] = {
		(char *)(uintptr_t)(program ? program : "./uzswapctl"),
		(char *)(uintptr_t) "--runtime-dir", (char *)(uintptr_t)directory};
	char *copy = strdup(words), *rest = copy, *word;
	FILE *out = tmpfile(), *err = tmpfile();
	int count = 3, status;

	while ((word = strtok_r(rest, " ", &rest)))
		arguments[count++] = word;
	pid_t pid = fork();

	/* No check before this: checking allocates, which a forked child must not. */
	if (pid == 0) {
		int program_fd = open(arguments[0], O_RDONLY);

		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		if (as_nobody &&
		    (setgroups(0, NULL) < 0 || setresgid(TEST_GROUP, TEST_GROUP, TEST_GROUP) < 0 ||
		     setresuid(TEST_USER, TEST_USER, TEST_USER) < 0))
			_exit(99);
		/*
		 * By descriptor: nobody may not reach a build directory below root's
		 * home.
		 */
		fexecve(program_fd, arguments, environ);
		_exit(98);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	free(copy);
	return (struct run){
		.code = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status),
		.out = read_all(out),
		.err = read_all(err),
	};
}

static struct run run(const char *words)
{
	return run_in(test.directory, words, false);
}

/* Runs it and expects the exit code and a part of the error message. */
static void expect_failure(const char *words, int code, const char *message)
{
	struct run result = run(words);

	ck_assert_msg(result.code == code, "'%s': exit code %d, not %d: %s", words, result.code,
		      code, result.err);
	ck_assert_msg(strstr(result.err, message), "'%s' does not say '%s' but: %s", words, message,
		      result.err);
	ck_assert_str_eq(result.out, "");
	run_done(&result);
}

static struct run expect_success(const char *words)
{
	struct run result = run(words);

	ck_assert_msg(result.code == 0, "'%s': exit code %d: %s", words, result.code, result.err);
	ck_assert_str_eq(result.err, "");
	return result;
}

START_TEST(wrong_usage_is_2)
{
	expect_failure("", UZSWAPCTL_USAGE, "uzswapctl [--runtime-dir DIR] VERB");
	expect_failure("frobnicate", UZSWAPCTL_USAGE, "there is no verb 'frobnicate'");
	expect_failure("swapon", UZSWAPCTL_USAGE, "usage: uzswapctl swapon DEVICE");
	expect_failure("swapon a b", UZSWAPCTL_USAGE, "usage: uzswapctl swapon DEVICE");
	expect_failure("list a", UZSWAPCTL_USAGE, "usage: uzswapctl list");
	expect_failure("set level", UZSWAPCTL_USAGE, "usage: uzswapctl set [DEVICE] KEY VALUE");
	expect_failure("set a b c d e f", UZSWAPCTL_USAGE, "usage: uzswapctl set");
	expect_failure("status --frobnicate", UZSWAPCTL_USAGE, "frobnicate");
	expect_failure("status --abandon", UZSWAPCTL_USAGE, "status does not take --abandon");
	expect_failure("--json swapoff swap0", UZSWAPCTL_USAGE, "swapoff does not take --json");
	expect_failure("metrics --bytes", UZSWAPCTL_USAGE, "metrics does not take --bytes");
	expect_failure("list -o NAME,COLOUR", UZSWAPCTL_USAGE, "no column 'COLOUR'");
	expect_failure("list -o NAME,COLOUR", UZSWAPCTL_USAGE, "COMPRESSED");
	expect_failure("list -o NAME,", UZSWAPCTL_USAGE, "no column ''");
	ck_assert_uint_eq(ctl_fake_calls(&test.fake, NULL), 0);
}
END_TEST

START_TEST(refusals_are_1)
{
	expect_failure("status swap7", UZSWAPCTL_REFUSED,
		       "uzswapctl: no device 'swap7'; there is: swap0, swap1\n");
	expect_failure("set swap0 codec gzip", UZSWAPCTL_REFUSED,
		       "uzswapctl: the codecs are: lz4, zstd\n");
	expect_failure("set log-level loud", UZSWAPCTL_REFUSED,
		       "the log levels are: error, warning, notice, info, debug");
	expect_failure("set swap0 colour red", UZSWAPCTL_REFUSED,
		       "the keys are: memory-limit, codec, level, log-level");
	ctl_fake_script(&test.fake, -ENOMEM, NULL, 0);
	expect_failure("swapoff swap0", UZSWAPCTL_REFUSED, "Cannot allocate memory");
}
END_TEST

START_TEST(no_daemon_is_3)
{
	struct run result = run_in("/nonexistent", "status", false);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char directory[80];

	ck_assert_int_eq(result.code, UZSWAPCTL_NO_DAEMON);
	ck_assert_str_eq(result.err, "uzswapctl: no daemon at /nonexistent/control: "
				     "is uzswapd running?\n");
	run_done(&result);
	/* The socket that a killed daemon has left. */
	snprintf(directory, sizeof(directory), "%s/stale", test.directory);
	ck_assert_int_eq(mkdir(directory, 0700), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", directory);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	result = run_in(directory, "list", false);
	ck_assert_int_eq(unlink(address.sun_path), 0);
	ck_assert_int_eq(rmdir(directory), 0);
	ck_assert_int_eq(result.code, UZSWAPCTL_NO_DAEMON);
	ck_assert_ptr_nonnull(strstr(result.err, "/control: is uzswapd running?\n"));
	run_done(&result);
}
END_TEST

START_TEST(no_permission_is_4)
{
	REQUIRE_ROOT();
	struct run result = run_in(test.directory, "stop", true);

	ck_assert_int_eq(result.code, UZSWAPCTL_PERMISSION);
	ck_assert_str_eq(result.err, "uzswapctl: only root may change anything\n");
	run_done(&result);
	/* Members of the group may read. */
	result = run_in(test.directory, "status", true);
	ck_assert_int_eq(result.code, UZSWAPCTL_OK);
	run_done(&result);
	/* Who is not allowed to connect gets the same exit code. */
	char path[128];

	snprintf(path, sizeof(path), "%s/control", test.directory);
	ck_assert_int_eq(chmod(path, 0600), 0);
	result = run_in(test.directory, "list", true);
	ck_assert_int_eq(result.code, UZSWAPCTL_PERMISSION);
	ck_assert_ptr_nonnull(strstr(result.err, "permission denied"));
	run_done(&result);
	ck_assert_uint_eq(ctl_fake_calls(&test.fake, NULL), 0);
}
END_TEST

START_TEST(verbs_reach_the_daemon)
{
	static const char *const words[][2] = {
		{"set swap1 memory-limit 2G", "set swap1 memory-limit 2G"},
		{"set swap0 level -5", "set swap0 level -5"},
		{"set -- swap0 level -5", "set swap0 level -5"},
		{"set log-level debug", "set - log-level debug"},
		{"swapon swap1", "swapon swap1"},
		{"swapoff swap0", "swapoff swap0"},
		{"stop", "stop"},
		{"stop --abandon", "stop abandon"},
		{"--abandon stop", "stop abandon"},
	};

	ctl_fake_script(&test.fake, 0, NULL, 3);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(words); i++) {
		struct run result = expect_success(words[i][0]);
		char call[256];

		/* Silence is success; progress is for terminals. */
		ck_assert_str_eq(result.out, "");
		ck_assert_uint_eq(ctl_fake_calls(&test.fake, call), i + 1);
		ck_assert_str_eq(call, words[i][1]);
		run_done(&result);
	}
}
END_TEST

START_TEST(help_names_every_verb)
{
	struct run result = expect_success("help"), option = expect_success("--help");

	ck_assert_str_eq(result.out, option.out);
#define EXPECT_VERB(name, arguments, fewest, most, options, help) \
	ck_assert_ptr_nonnull(strstr(result.out, "\n  " #name " "));
	UZSWAPCTL_FOR_EACH_VERB(EXPECT_VERB)
	run_done(&result);
	run_done(&option);
	result = expect_success("--version");
	ck_assert(strncmp(result.out, "uzswapctl ", 10) == 0);
	run_done(&result);
}
END_TEST

/*
 * Text, JSON and Prometheus say the same.
 */

/* The figure behind `label` in the status page's columns; fails when there is none. */
static uint64_t figure_in_text(const char *text, const char *label)
{
	size_t length = strlen(label);

	for (const char *at = text; (at = strstr(at, label)); at += length) {
		/* At the start of a column: after two blanks, or a line's indent. */
		if (at == text || at[-1] != ' ' || at[length] != ' ')
			continue;
		const char *figure = at + length + strspn(at + length, " ");

		if (*figure >= '0' && *figure <= '9' && figure - at > (ptrdiff_t)length)
			return strtoull(figure, NULL, 10);
	}
	ck_abort_msg("no figure for '%s' in:\n%s", label, text);
}

/* The `index`-th figure of a line of the table of requests. */
static uint64_t figure_in_table(const char *text, const char *label, int index)
{
	char start[32];

	snprintf(start, sizeof(start), "\n  %s ", label);
	const char *at = strstr(text, start);

	ck_assert_msg(at, "no line '%s'", label);
	at += strlen(start);
	for (int i = 0;; i++) {
		at += strspn(at, " ");
		ck_assert_int_ne(*at, '\n');
		if (i == index)
			return strtoull(at, NULL, 10);
		at += strcspn(at, " \n");
		if (strncmp(at, " ns", 3) == 0)
			at += 3;
	}
}

static const struct {
	int id;
	const char *label;
	int index; /* in the table of requests; -1: in the columns */
} places[] = {
	{STATS_SIZE, "size", -1},
	{STATS_SWAP_USED, "swap used", -1},
	{STATS_BALLOON, "by the balloon", -1},
	{STATS_ROOM, "free room", -1},
	{STATS_PAGES_EMPTY, "empty", -1},
	{STATS_STORED, "stored", -1},
	{STATS_PAGES_COMPRESSED, "compressed", -1},
	{STATS_PAGES_INCOMPRESSIBLE, "incompressible", -1},
	{STATS_PAGES_SAME, "same-filled", -1},
	{STATS_MEMORY_LIMIT, "limit", -1},
	{STATS_MEMORY_USED, "used in all", -1},
	{STATS_COMPRESSED, "compressed bytes", -1},
	{STATS_MEMORY_TABLE, "slot table", -1},
	{STATS_MEMORY_RESERVE, "free reserve", -1},
	{STATS_MEMORY_PEAK, "highest so far", -1},
	{STATS_STORE_WAITS, "waits for memory", -1},
	{STATS_STORE_WAIT_TIME, "time in all", -1},
	{STATS_STORE_WAIT_LONGEST, "longest", -1},
	{STATS_READS, "reads", 0},
	{STATS_PAGES_READ, "reads", 1},
	{STATS_READ_ERRORS, "reads", 2},
	{STATS_WRITES, "writes", 0},
	{STATS_PAGES_WRITTEN, "writes", 1},
	{STATS_WRITE_ERRORS, "writes", 2},
	{STATS_WRITE_NO_SPACE, "writes", 3},
	{STATS_DISCARDS, "discards", 0},
	{STATS_PAGES_DISCARDED, "discards", 1},
	{STATS_FLUSHES, "flushes", 0},
};

/* What the status page says of a statistic; pages that are held stand there as bytes. */
static uint64_t value_in_text(const char *text, int id)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(places); i++) {
		if (places[i].id != id)
			continue;
		if (places[i].index >= 0)
			return figure_in_table(text, places[i].label, places[i].index);
		uint64_t value = figure_in_text(text, places[i].label);

		return stats_table[id].unit == STATS_UNIT_PAGES ? value / UZ_PAGE_SIZE : value;
	}
	/* A new one is shown by its own name. */
	return figure_in_text(text, stats_table[id].name);
}

START_TEST(text_json_and_prometheus_agree)
{
	struct run json = expect_success("status --json");
	struct run metrics_text = expect_success("metrics");
	struct json_object *status = json_tokener_parse(json.out);
	struct prometheus *metrics = prometheus_parse(metrics_text.out);

	ck_assert_ptr_nonnull(metrics);
	for (unsigned i = 0; i < test.fake.device_count; i++) {
		struct ctl_device *device = &test.fake.devices[i];
		struct json_object *object =
			json_object_array_get_idx(member(status, "devices"), i);
		struct json_object *statistics = member(object, "statistics");
		char words[64], labels[64];

		snprintf(words, sizeof(words), "status --bytes %s", device->name);
		snprintf(labels, sizeof(labels), "device=%s", device->name);
		struct run text = expect_success(words);

		for (int id = 0; id < STATS_COUNT; id++) {
			char name[CTL_METRIC_NAME_BYTES];
			uint64_t in_json =
				json_object_get_uint64(member(statistics, stats_table[id].name));
			double scale = stats_table[id].unit == STATS_UNIT_NS ? 1e9 : 1;

			ctl_metric_name(&stats_table[id], name);
			ck_assert_uint_eq(in_json, device->values.value[id]);
			ck_assert(prometheus_find(metrics, name, labels)->value ==
				  (double)in_json / scale);
			ck_assert_msg(value_in_text(text.out, id) == in_json,
				      "%s: %" PRIu64 " in the text, %" PRIu64 " in JSON",
				      stats_table[id].name, value_in_text(text.out, id), in_json);
		}
		struct json_object *read = member(member(object, "latency"), "read");

		ck_assert_uint_eq(figure_in_table(text.out, "reads", 4),
				  json_object_get_uint64(member(read, "p50_ns")));
		ck_assert_uint_eq(figure_in_table(text.out, "reads", 5),
				  json_object_get_uint64(member(read, "p99_ns")));
		ck_assert_uint_eq(figure_in_table(text.out, "reads", 6),
				  json_object_get_uint64(member(read, "max_ns")));
		ck_assert(prometheus_find(metrics, "uzswap_ratio", labels)->value ==
			  json_object_get_double(member(statistics, "ratio")));
		ck_assert(prometheus_find(metrics, "uzswap_effective_ratio", labels)->value ==
			  json_object_get_double(member(statistics, "effective_ratio")));
		run_done(&text);
	}
	free(metrics);
	json_object_put(status);
	run_done(&json);
	run_done(&metrics_text);
}
END_TEST

/* No line is longer than a terminal's, or ends with blanks. */
static void expect_fits(const char *text)
{
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t width = 0;

		for (const char *c = line; c < end; c++)
			width += ((unsigned char)*c & 0xc0) != 0x80;
		ck_assert_msg(width <= 80, "%zu columns: %.*s", width, (int)(end - line), line);
		ck_assert_msg(end == line || end[-1] != ' ', "blanks at the end: %.*s",
			      (int)(end - line), line);
	}
}

START_TEST(status_fits_a_terminal)
{
	struct run result = expect_success("status");

	expect_fits(result.out);
	ck_assert_ptr_nonnull(strstr(result.out, "swap0: active"));
	ck_assert_ptr_nonnull(strstr(result.out, "swap1: ready"));
	ck_assert_ptr_nonnull(strstr(
		result.out, "missing protection PR_SET_IO_FLUSHER: CAP_SYS_RESOURCE is missing\n"));
	ck_assert_ptr_null(strchr(result.out, '\033'));
	run_done(&result);
}
END_TEST

START_TEST(list_has_columns_to_choose)
{
	struct run result = expect_success("list -o NAME,state,SIZE,reads_total,PINNING");

	ck_assert_str_eq(result.out, "NAME   STATE      SIZE  reads_total  PINNING\n"
				     "swap0  active  8.00GiB      1234567  noswap-tmpfs\n"
				     "swap1  ready   4.00GiB      2469134  noswap-tmpfs\n");
	run_done(&result);
	result = expect_success("list --noheadings --bytes --output NAME,SIZE,SAME,RATIO");
	ck_assert_str_eq(result.out, "swap0  8589934592   50335744  3.31625\n"
				     "swap1  4294967296  100671488  2.69366\n");
	run_done(&result);
	result = expect_success("list --json -o NAME,SIZE,EFFECTIVE,WRITE-P50");
	struct json_object *list = json_tokener_parse(result.out);
	struct json_object *first = json_object_array_get_idx(member(list, "devices"), 0);

	ck_assert_int_eq(json_object_get_int(member(list, "version")), 1);
	ck_assert_int_eq(json_object_object_length(first), 4);
	ck_assert_str_eq(json_object_get_string(member(first, "name")), "swap0");
	ck_assert_uint_eq(json_object_get_uint64(member(first, "size_bytes")), 8 * UZ_GIB);
	ck_assert_uint_eq(json_object_get_uint64(member(first, "write_p50_ns")),
			  histogram_quantile_ns(&test.fake.devices[0].write, 5000));
	json_object_put(list);
	run_done(&result);
}
END_TEST

START_TEST(no_devices_and_no_data_are_fine)
{
	struct ctl_test own = {0};

	ctl_test_start(&own, CTL_NO_GROUP);
	ctl_server_free(own.server);
	ctl_fake_empty(&own.fake.devices[0]);
	own.fake.devices[0].block_path[0] = '\0';
	own.fake.devices[0].state = CTL_DEVICE_STARTING;
	own.fake.device_count = 1;
	own.fake.daemon.protection_count = 0;
	strcpy(own.fake.devices[0].transport_reason,
	       "this kernel has the ublk driver, but the module is not loaded and "
	       "loading it "
	       "was not permitted");
	ck_assert_int_eq(ctl_server_new(&own.server, &own.config), 0);
	struct run result = run_in(own.directory, "status", false);

	ck_assert_int_eq(result.code, 0);
	ck_assert_ptr_nonnull(strstr(result.out, "swap0: starting\n"));
	expect_fits(result.out);
	ck_assert_ptr_nonnull(strstr(result.out, "no data"));
	ck_assert_ptr_null(strstr(result.out, "missing"));
	ck_assert_ptr_null(strstr(result.out, "nan"));
	run_done(&result);
	result = run_in(own.directory, "list -n -o NAME,BLOCK,RATIO,READ-P50", false);
	ck_assert_str_eq(result.out, "swap0  -  -  0ns\n");
	run_done(&result);

	ctl_server_free(own.server);
	own.fake.device_count = 0;
	ck_assert_int_eq(ctl_server_new(&own.server, &own.config), 0);
	result = run_in(own.directory, "status", false);
	ck_assert_int_eq(result.code, 0);
	ck_assert_ptr_nonnull(strstr(result.out, "no devices"));
	run_done(&result);
	result = run_in(own.directory, "list", false);
	ck_assert_int_eq(result.code, 0);
	ck_assert_str_eq(result.out, "");
	run_done(&result);
	result = run_in(own.directory, "metrics", false);
	ck_assert_int_eq(result.code, 0);
	struct prometheus *metrics = prometheus_parse(result.out);

	ck_assert_ptr_nonnull(metrics);
	free(metrics);
	run_done(&result);
	ctl_test_stop(&own);
}
END_TEST

START_TEST(a_full_disk_is_noticed)
{
	const char *program = getenv("UZSWAPCTL");
	char command[256];

	snprintf(command, sizeof(command), "%s --runtime-dir %s metrics >/dev/full 2>/dev/null",
		 program ? program : "./uzswapctl", test.directory);
	int status = system(command);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), UZSWAPCTL_REFUSED);
}
END_TEST

Suite *suite_tool(void)
{
	Suite *suite = suite_create("uzswapctl");
	TCase *tcase = tcase_create("uzswapctl");

	tcase_add_checked_fixture(tcase, start, stop);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, wrong_usage_is_2);
	tcase_add_test(tcase, refusals_are_1);
	tcase_add_test(tcase, no_daemon_is_3);
	tcase_add_test(tcase, no_permission_is_4);
	tcase_add_test(tcase, verbs_reach_the_daemon);
	tcase_add_test(tcase, help_names_every_verb);
	tcase_add_test(tcase, text_json_and_prometheus_agree);
	tcase_add_test(tcase, status_fits_a_terminal);
	tcase_add_test(tcase, list_has_columns_to_choose);
	tcase_add_test(tcase, no_devices_and_no_data_are_fine);
	tcase_add_test(tcase, a_full_disk_is_noticed);
	suite_add_tcase(suite, tcase);
	return suite;
}
