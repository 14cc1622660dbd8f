// SPDX-License-Identifier: MIT
/*
 * Statistics as JSON and as Prometheus text, their names (which people's
 * dashboards rely on), and whether everything that has a name is documented.
 */
#include "test_ctl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "ctl/ctl_format.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_methods.h"
#include "ctl/uzswapctl.h"
#include "prometheus.h"

/*
 * The names of all metrics. Renaming or removing one breaks somebody's alerts:
 * change this list only together with NEWS.
 */
static const char *const golden_metrics[] = {
	"gauge uzswap_info",
	"gauge uzswap_uptime_seconds",
	"gauge uzswap_protection_missing",
	"gauge uzswap_relief_valve_reserve_bytes",
	"gauge uzswap_relief_valve_armed_bytes",
	"counter uzswap_relief_valve_given_bytes_total",
	"gauge uzswap_device_info",
	"gauge uzswap_device_state",
	"gauge uzswap_size_bytes",
	"gauge uzswap_empty_pages",
	"gauge uzswap_same_filled_pages",
	"gauge uzswap_compressed_pages",
	"gauge uzswap_incompressible_pages",
	"gauge uzswap_stored_bytes",
	"gauge uzswap_compressed_bytes",
	"gauge uzswap_memory_used_bytes",
	"gauge uzswap_memory_peak_bytes",
	"gauge uzswap_memory_limit_bytes",
	"gauge uzswap_memory_reserve_bytes",
	"gauge uzswap_memory_table_bytes",
	"gauge uzswap_room_pages",
	"gauge uzswap_balloon_pages",
	"counter uzswap_reads_total",
	"counter uzswap_writes_total",
	"counter uzswap_discards_total",
	"counter uzswap_flushes_total",
	"counter uzswap_read_pages_total",
	"counter uzswap_written_pages_total",
	"counter uzswap_discarded_pages_total",
	"counter uzswap_read_errors_total",
	"counter uzswap_write_errors_total",
	"counter uzswap_write_no_space_total",
	"counter uzswap_store_waits_total",
	"counter uzswap_store_wait_seconds_total",
	"gauge uzswap_store_wait_longest_seconds",
	"gauge uzswap_swap_used_bytes",
	"gauge uzswap_ratio",
	"gauge uzswap_effective_ratio",
	"histogram uzswap_request_duration_seconds",
};

static struct ctl_snapshot snapshot_of(struct ctl_fake *fake)
{
	return (struct ctl_snapshot){
		.daemon = fake->daemon,
		.device_count = fake->device_count,
		.devices = fake->devices,
	};
}

static struct prometheus *metrics_of(struct ctl_fake *fake)
{
	struct ctl_snapshot snapshot = snapshot_of(fake);
	char *text = NULL;

	ck_assert_int_eq(ctl_format_metrics(&snapshot, &text), 0);
	/* It refuses values that are not finite. */
	struct prometheus *metrics = prometheus_parse(text);

	ck_assert_ptr_nonnull(metrics);
	free(text);
	return metrics;
}

START_TEST(metric_names_are_frozen)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	struct prometheus *metrics = metrics_of(&fake);

	for (unsigned i = 0; i < metrics->family_count || i < UZ_ARRAY_SIZE(golden_metrics); i++) {
		char line[PROMETHEUS_NAME_BYTES + 20] = "(none)";

		if (i < metrics->family_count)
			snprintf(line, sizeof(line), "%s %s", metrics->families[i].type,
				 metrics->families[i].name);
		ck_assert_str_eq(line,
				 i < UZ_ARRAY_SIZE(golden_metrics) ? golden_metrics[i] : "(none)");
	}
	free(metrics);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(metrics_have_the_values)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	struct prometheus *metrics = metrics_of(&fake);

	for (unsigned i = 0; i < fake.device_count; i++) {
		char labels[64];

		snprintf(labels, sizeof(labels), "device=%s", fake.devices[i].name);
		for (int id = 0; id < STATS_COUNT; id++) {
			char name[CTL_METRIC_NAME_BYTES];
			double value = (double)fake.devices[i].values.value[id];

			ctl_metric_name(&stats_table[id], name);
			const struct prometheus_sample *sample =
				prometheus_find(metrics, name, labels);

			ck_assert_msg(sample, "no %s for %s", name, labels);
			if (stats_table[id].unit == STATS_UNIT_NS)
				value /= 1e9;
			ck_assert_msg(sample->value == value, "%s is %s, not %.17g", name,
				      sample->text, value);
		}
	}
	ck_assert_str_eq(
		prometheus_find(metrics, "uzswap_store_wait_seconds_total", "device=swap0")->text,
		"0.030123456");
	ck_assert_str_eq(prometheus_find(metrics, "uzswap_uptime_seconds", "")->text, "274321.5");
	ck_assert_str_eq(prometheus_find(metrics, "uzswap_info", "version=0.1.0")->text, "1");
	ck_assert_ptr_nonnull(
		prometheus_find(metrics, "uzswap_protection_missing", "name=PR_SET_IO_FLUSHER"));
	ck_assert_ptr_nonnull(
		prometheus_find(metrics, "uzswap_protection_missing", "name=oom_score_adj"));
	ck_assert_str_eq(
		prometheus_find(metrics, "uzswap_device_state", "device=swap0,state=active")->text,
		"1");
	ck_assert_str_eq(
		prometheus_find(metrics, "uzswap_device_state", "device=swap0,state=ready")->text,
		"0");
	free(metrics);
	ctl_fake_done(&fake);
}
END_TEST

static void check_durations(const struct prometheus *metrics, const char *op,
			    const struct histogram_snapshot *snapshot)
{
	double last_bound = 0, last_count = 0, infinite = -1;
	char labels[64];
	unsigned bounds = 0;

	snprintf(labels, sizeof(labels), "device=swap0,op=%s", op);
	for (unsigned i = 0; i < metrics->sample_count; i++) {
		const struct prometheus_sample *sample = &metrics->samples[i];

		if (strcmp(sample->name, "uzswap_request_duration_seconds_bucket") != 0 ||
		    strcmp(sample->labels[0].value, "swap0") != 0 ||
		    strcmp(sample->labels[1].value, op) != 0)
			continue;
		ck_assert_uint_eq(sample->label_count, 3);
		ck_assert_str_eq(sample->labels[2].name, "le");
		if (strcmp(sample->labels[2].value, "+Inf") == 0) {
			infinite = sample->value;
			continue;
		}
		double bound = strtod(sample->labels[2].value, NULL);

		ck_assert(infinite < 0);
		ck_assert(bound > last_bound);
		ck_assert(sample->value >= last_count);
		ck_assert(sample->value ==
			  (double)histogram_count_below(snapshot, (uint64_t)(bound * 1e9 + 0.5)));
		last_bound = bound;
		last_count = sample->value;
		bounds++;
	}
	/* From a microsecond, which is faster than any request, to seconds. */
	ck_assert_uint_ge(bounds, 20);
	ck_assert(last_bound > 10 && last_bound < 60);
	ck_assert(infinite == (double)snapshot->total);
	ck_assert(
		prometheus_find(metrics, "uzswap_request_duration_seconds_count", labels)->value ==
		(double)snapshot->total);
	ck_assert(prometheus_find(metrics, "uzswap_request_duration_seconds_sum", labels)->value ==
		  (double)snapshot->sum_ns / 1e9);
}

START_TEST(durations_are_histograms)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	struct prometheus *metrics = metrics_of(&fake);

	check_durations(metrics, "read", &fake.devices[0].read);
	check_durations(metrics, "write", &fake.devices[0].write);
	free(metrics);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(labels_are_escaped)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	strcpy(fake.devices[0].name, "a\"b");
	strcpy(fake.devices[1].name, "c\\n\nd");
	strcpy(fake.daemon.protections[1].name, fake.daemon.protections[0].name);
	struct ctl_snapshot snapshot = snapshot_of(&fake);
	char *text = NULL;

	ck_assert_int_eq(ctl_format_metrics(&snapshot, &text), 0);
	ck_assert_ptr_nonnull(strstr(text, "\nuzswap_size_bytes{device=\"a\\\"b\"} "));
	ck_assert_ptr_nonnull(strstr(text, "\nuzswap_size_bytes{device=\"c\\\\n\\nd\"} "));
	free(text);
	/* Two protections of one name make one series, or the reader refuses. */
	struct prometheus *metrics = metrics_of(&fake);

	ck_assert_ptr_nonnull(prometheus_find(metrics, "uzswap_reads_total", "device=a\"b"));
	ck_assert_ptr_nonnull(prometheus_find(metrics, "uzswap_reads_total", "device=c\\n\nd"));
	free(metrics);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(an_empty_store_has_no_ratio)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	ctl_fake_empty(&fake.devices[0]);
	/* Same-filled pages alone: something is stored, in no bytes at all. */
	ctl_fake_empty(&fake.devices[1]);
	fake.devices[1].values.value[STATS_PAGES_SAME] = 3;
	fake.devices[1].values.value[STATS_STORED] = 3 * UZ_PAGE_SIZE;
	fake.devices[1].values.value[STATS_MEMORY_USED] = 2 * UZ_PAGE_SIZE;
	struct ctl_snapshot snapshot = snapshot_of(&fake);
	struct json_object *status = ctl_format_status(&snapshot);
	struct json_object *devices = member(status, "devices");
	struct json_object *empty = member(json_object_array_get_idx(devices, 0), "statistics");
	struct json_object *same = member(json_object_array_get_idx(devices, 1), "statistics");

	ck_assert_ptr_null(member(empty, "ratio"));
	ck_assert_ptr_null(member(empty, "effective_ratio"));
	ck_assert_ptr_null(member(same, "ratio"));
	ck_assert(json_object_get_double(member(same, "effective_ratio")) == 1.5);
	const char *text = json_object_to_json_string(status);

	ck_assert_ptr_null(strstr(text, "NaN"));
	ck_assert_ptr_null(strstr(text, "nan"));
	ck_assert_ptr_null(strstr(text, "Infinity"));
	json_object_put(status);

	struct prometheus *metrics = metrics_of(&fake);

	ck_assert_ptr_null(prometheus_find(metrics, "uzswap_ratio", ""));
	ck_assert_ptr_null(prometheus_find(metrics, "uzswap_effective_ratio", "device=swap0"));
	ck_assert(prometheus_find(metrics, "uzswap_effective_ratio", "device=swap1")->value == 1.5);
	free(metrics);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(status_has_the_values)
{
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	/* What does not fit into a signed number, nor into a double. */
	fake.devices[0].values.value[STATS_READS] = UINT64_MAX - 1;
	struct ctl_snapshot snapshot = snapshot_of(&fake);
	struct json_object *status = ctl_format_status(&snapshot);

	ck_assert_int_eq(json_object_get_int(member(status, "version")), 1);
	ck_assert_uint_eq(json_object_array_length(member(status, "devices")), 2);
	for (unsigned i = 0; i < fake.device_count; i++) {
		struct json_object *device =
			json_object_array_get_idx(member(status, "devices"), i);
		struct json_object *statistics = member(device, "statistics");
		struct json_object *read = member(member(device, "latency"), "read");
		const uint64_t *value = fake.devices[i].values.value;

		ck_assert_int_eq(json_object_object_length(statistics), STATS_COUNT + 2);
		for (int id = 0; id < STATS_COUNT; id++)
			ck_assert_uint_eq(
				json_object_get_uint64(member(statistics, stats_table[id].name)),
				value[id]);
		ck_assert_uint_eq(json_object_get_uint64(member(read, "count")),
				  fake.devices[i].read.total);
		ck_assert_uint_eq(json_object_get_uint64(member(read, "p50_ns")),
				  histogram_quantile_ns(&fake.devices[i].read, 5000));
		ck_assert_uint_eq(json_object_get_uint64(member(read, "p99_ns")),
				  histogram_quantile_ns(&fake.devices[i].read, 9900));
		ck_assert_uint_eq(json_object_get_uint64(member(read, "max_ns")),
				  fake.devices[i].read.max_ns);
		ck_assert_uint_eq(json_object_get_uint64(member(read, "sum_ns")),
				  fake.devices[i].read.sum_ns);
		double ratio = json_object_get_double(member(statistics, "ratio"));

		ck_assert_double_eq_tol(
			ratio, (double)value[STATS_STORED] / (double)value[STATS_COMPRESSED],
			ratio / 1e5);
	}
	struct json_object *daemon = member(status, "daemon");
	struct json_object *missing =
		json_object_array_get_idx(member(daemon, "protections_missing"), 0);

	ck_assert_str_eq(json_object_get_string(member(missing, "name")), "PR_SET_IO_FLUSHER");
	ck_assert_str_eq(json_object_get_string(member(missing, "reason")),
			 "CAP_SYS_RESOURCE is missing");
	json_object_put(status);
	ctl_fake_done(&fake);
}
END_TEST

/*
 * What has a name is described: in the interface definition and in the manual.
 */
static void expect_field(const char *idl, const char *name)
{
	char field[128];

	snprintf(field, sizeof(field), "%s: ", name);
	for (const char *at = idl; (at = strstr(at, field)); at++)
		if (!isalnum((unsigned char)at[-1]) && at[-1] != '_')
			return;
	ck_abort_msg("the interface does not describe %s", name);
}

static void expect_fields(const char *idl, struct json_object *value)
{
	if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++)
			expect_fields(idl, json_object_array_get_idx(value, i));
	} else if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, name, inner)
		{
			expect_field(idl, name);
			expect_fields(idl, inner);
		}
	}
}

static void expect_method(const char *name, void *context)
{
	char line[128];
	const char *method = strrchr(name, '.') + 1;
	char *interface = strndup(name, (size_t)(method - name) - 1);
	const char *idl = ctl_interface_description(interface);

	(void)context;
	snprintf(line, sizeof(line), "\nmethod %s(", method);
	ck_assert_ptr_nonnull(idl);
	ck_assert_msg(strstr(idl, line), "the interface does not describe %s", name);
	free(interface);
}

START_TEST(the_interface_describes_all)
{
	const char *idl = ctl_interface_description(CTL_INTERFACE);
	struct ctl_fake fake;

	ctl_fake_init(&fake);
	struct ctl_snapshot snapshot = snapshot_of(&fake);
	struct json_object *status = ctl_format_status(&snapshot);
	struct json_object *list = ctl_format_list(&snapshot);

	expect_fields(idl, status);
	expect_fields(idl, list);
	json_object_put(status);
	json_object_put(list);
	ctl_methods_for_each(expect_method, NULL);
	ck_assert_ptr_null(ctl_interface_description("io.uzswap.Controls"));
	ck_assert_ptr_null(ctl_interface_description(""));
	ctl_fake_done(&fake);
}
END_TEST

/* The manual page with its escaped minus signs made plain. */
static char *read_manual(void)
{
	UZ_AUTO_FCLOSE FILE *file = fopen(UZ_TOP_SRCDIR "/man/uzswapctl.8", "r");
	size_t size = 256 * 1024, length = 0;
	char *text = calloc(1, size);
	int c, last = 0;

	ck_assert_msg(file, "no manual page");
	while ((c = fgetc(file)) != EOF && length + 1 < size) {
		if (c == '-' && last == '\\')
			length--;
		text[length++] = (char)c;
		last = c;
	}
	return text;
}

static void expect_documented(const char *manual, const char *macro, const char *name)
{
	char line[128];
	size_t length = (size_t)snprintf(line, sizeof(line), "\n.It %s %s", macro, name);

	for (const char *at = manual; (at = strstr(at, line)); at++)
		if (at[length] == '\n' || at[length] == ' ')
			return;
	ck_abort_msg("the manual page has no '.It %s %s'", macro, name);
}

START_TEST(the_manual_describes_all)
{
	static const char *const exit_codes[] = {"0", "1", "2", "3", "4"};
	static const char *const options[] = {"runtime-dir", "json", "bytes",	"noheadings",
					      "output",	     "help", "abandon", "version"};
	char *manual = read_manual();

	for (int id = 0; id < STATS_COUNT; id++)
		expect_documented(manual, "Va", stats_table[id].name);
	expect_documented(manual, "Va", "ratio");
	expect_documented(manual, "Va", "effective_ratio");
#define EXPECT_VERB(name, arguments, fewest, most, options, help) \
	expect_documented(manual, "Cm", #name);
	UZSWAPCTL_FOR_EACH_VERB(EXPECT_VERB)
	for (size_t i = 0; i < UZ_ARRAY_SIZE(exit_codes); i++)
		expect_documented(manual, "Er", exit_codes[i]);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(options); i++) {
		char option[64];

		snprintf(option, sizeof(option), "Fl -%s", options[i]);
		ck_assert_msg(strstr(manual, option), "no option --%s", options[i]);
	}
	for (size_t i = 0; i < UZ_ARRAY_SIZE(golden_metrics); i++) {
		const char *name = strchr(golden_metrics[i], ' ') + 1;
		bool of_table = false;

		for (int id = 0; id < STATS_COUNT; id++) {
			char metric[CTL_METRIC_NAME_BYTES];

			ctl_metric_name(&stats_table[id], metric);
			of_table |= strcmp(metric, name) == 0;
		}
		ck_assert_msg(of_table || strstr(manual, name), "no metric %s", name);
	}
	free(manual);
}
END_TEST

Suite *suite_format(void)
{
	Suite *suite = suite_create("format");
	TCase *tcase = tcase_create("format");

	tcase_add_test(tcase, metric_names_are_frozen);
	tcase_add_test(tcase, metrics_have_the_values);
	tcase_add_test(tcase, durations_are_histograms);
	tcase_add_test(tcase, labels_are_escaped);
	tcase_add_test(tcase, an_empty_store_has_no_ratio);
	tcase_add_test(tcase, status_has_the_values);
	tcase_add_test(tcase, the_interface_describes_all);
	tcase_add_test(tcase, the_manual_describes_all);
	suite_add_tcase(suite, tcase);
	return suite;
}
