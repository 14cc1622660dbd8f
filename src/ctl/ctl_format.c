// SPDX-License-Identifier: MIT
/*
 * Formatting. Runs on the ctl thread, works on its arguments alone.
 *
 * Numbers leave as integers, or as decimal fractions made from integers, so
 * that JSON, Prometheus and uzswapctl never differ by a rounding.
 */
#include "ctl/ctl_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_json.h"

static const char *const state_names[CTL_DEVICE_STATE_COUNT] = {
	[CTL_DEVICE_STARTING] = "starting",
	[CTL_DEVICE_ACTIVE] = "active",
	[CTL_DEVICE_READY] = "ready",
	[CTL_DEVICE_STOPPING] = "stopping",
};

const char *ctl_device_state_name(enum ctl_device_state state)
{
	return state_names[state];
}

bool ctl_format_ratio(uint64_t numerator, uint64_t denominator,
		      char ret_text[CTL_RATIO_BYTES])
{
	if (numerator == 0 || denominator == 0)
		return false;
	snprintf(ret_text, CTL_RATIO_BYTES, "%.6g",
		 (double)numerator / (double)denominator);
	return true;
}

/*
 * JSON.
 */
static int put_ratio(struct json_object *object, const char *name, uint64_t numerator,
		     uint64_t denominator)
{
	char text[CTL_RATIO_BYTES];

	if (!ctl_format_ratio(numerator, denominator, text))
		return json_put_null(object, name);
	return json_put(object, name, json_object_new_double_s(strtod(text, NULL), text));
}

static struct json_object *format_statistics(const struct stats_values *values)
{
	struct json_object *object = json_object_new_object();
	const uint64_t *value = values->value;
	int failed = 0;

	for (int i = 0; i < STATS_COUNT; i++)
		failed |= json_put_uint(object, stats_table[i].name, value[i]);
	failed |=
		put_ratio(object, "ratio", value[STATS_STORED], value[STATS_COMPRESSED]);
	failed |= put_ratio(object, "effective_ratio", value[STATS_STORED],
			    value[STATS_MEMORY_USED]);
	return json_finish(object, failed);
}

static struct json_object *
format_request_latency(const struct histogram_snapshot *snapshot)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put_uint(object, "count", snapshot->total);
	failed |= json_put_uint(object, "p50_ns", histogram_quantile_ns(snapshot, 5000));
	failed |= json_put_uint(object, "p99_ns", histogram_quantile_ns(snapshot, 9900));
	failed |= json_put_uint(object, "max_ns", snapshot->max_ns);
	failed |= json_put_uint(object, "sum_ns", snapshot->sum_ns);
	return json_finish(object, failed);
}

static struct json_object *format_latency(const struct ctl_device *device)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put(object, "read", format_request_latency(&device->read));
	failed |= json_put(object, "write", format_request_latency(&device->write));
	return json_finish(object, failed);
}

/* What status and list both tell. Returns 0 or -1. */
static int put_device_identity(struct json_object *object,
			       const struct ctl_device *device)
{
	int failed = 0;

	failed |= json_put_text(object, "name", device->name);
	failed |= json_put_text(object, "path", device->path);
	failed |= json_put_text(object, "block_path", device->block_path);
	failed |= json_put_text(object, "transport", device->transport);
	failed |= json_put_text(object, "codec", device->codec);
	failed |= json_put_int(object, "level", device->level);
	failed |= json_put_int(object, "priority", device->priority);
	failed |= json_put_text(object, "state", ctl_device_state_name(device->state));
	return failed;
}

static struct json_object *format_device(const struct ctl_device *device)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= put_device_identity(object, device);
	failed |= json_put_text(object, "transport_reason", device->transport_reason);
	failed |= json_put_text(object, "pinning", device->pinning);
	failed |= json_put_text(object, "honest_free", device->honest_free);
	failed |= json_put(object, "statistics", format_statistics(&device->values));
	failed |= json_put(object, "latency", format_latency(device));
	return json_finish(object, failed);
}

static struct json_object *format_summary(const struct ctl_device *device)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= put_device_identity(object, device);
	failed |= json_put_uint(object, "size_bytes", device->values.value[STATS_SIZE]);
	return json_finish(object, failed);
}

static struct json_object *
format_devices(const struct ctl_snapshot *snapshot,
	       struct json_object *(*format)(const struct ctl_device *device))
{
	struct json_object *array = json_object_new_array();
	int failed = !array;

	for (unsigned i = 0; i < snapshot->device_count; i++)
		failed |= json_append(array, format(&snapshot->devices[i]));
	return json_finish(array, failed);
}

static struct json_object *format_protections(const struct ctl_daemon *daemon)
{
	struct json_object *array = json_object_new_array();
	int failed = !array;

	for (unsigned i = 0; i < daemon->protection_count; i++) {
		struct json_object *object = json_object_new_object();

		failed |= json_put_text(object, "name", daemon->protections[i].name);
		failed |= json_put_text(object, "reason", daemon->protections[i].reason);
		failed |= json_append(array, object);
	}
	return json_finish(array, failed);
}

static struct json_object *format_sysctls(const struct ctl_daemon *daemon)
{
	struct json_object *array = json_object_new_array();
	int failed = !array;

	for (unsigned i = 0; i < daemon->sysctl_count; i++) {
		struct json_object *object = json_object_new_object();

		failed |= json_put_text(object, "name", daemon->sysctls[i].name);
		failed |= json_put_text(object, "before", daemon->sysctls[i].before);
		failed |= json_put_text(object, "now", daemon->sysctls[i].now);
		failed |= json_append(array, object);
	}
	return json_finish(array, failed);
}

static struct json_object *format_relief(const struct ctl_relief *relief)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put_uint(object, "reserve_bytes", relief->reserve_bytes);
	failed |= json_put_uint(object, "armed_bytes", relief->armed_bytes);
	failed |= json_put_uint(object, "given_bytes_total", relief->given_bytes_total);
	return json_finish(object, failed);
}

static struct json_object *format_daemon(const struct ctl_daemon *daemon)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put_text(object, "version", daemon->version);
	failed |= json_put_int(object, "pid", daemon->pid);
	failed |= json_put_uint(object, "uptime_ns", daemon->uptime_ns);
	failed |= json_put_text(object, "log_level", log_level_name(daemon->log_level));
	failed |= json_put_text(object, "takeover", daemon->takeover);
	failed |= json_put(object, "relief_valve", format_relief(&daemon->relief));
	failed |= json_put(object, "protections_missing", format_protections(daemon));
	failed |= json_put(object, "sysctls", format_sysctls(daemon));
	return json_finish(object, failed);
}

struct json_object *ctl_format_status(const struct ctl_snapshot *snapshot)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put_int(object, "version", CTL_STATUS_VERSION);
	failed |= json_put(object, "daemon", format_daemon(&snapshot->daemon));
	failed |= json_put(object, "devices", format_devices(snapshot, format_device));
	return json_finish(object, failed);
}

struct json_object *ctl_format_list(const struct ctl_snapshot *snapshot)
{
	struct json_object *object = json_object_new_object();
	int failed = 0;

	failed |= json_put_int(object, "version", CTL_STATUS_VERSION);
	failed |= json_put(object, "devices", format_devices(snapshot, format_summary));
	return json_finish(object, failed);
}

/*
 * Prometheus.
 */
static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

void ctl_metric_name(const struct stats_metric *metric,
		     char ret_name[CTL_METRIC_NAME_BYTES])
{
	const char *total = "_total";
	int length = (int)strlen(metric->name);

	if (ends_with(metric->name, total))
		length -= (int)strlen(total);
	snprintf(ret_name, CTL_METRIC_NAME_BYTES, "uzswap_%.*s%s%s", length, metric->name,
		 metric->unit == STATS_UNIT_NS ? "_seconds" : "",
		 metric->type == STATS_COUNTER ? total : "");
}

static void print_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s ", name);
	for (; *help; help++) {
		if (*help == '\\')
			fputs("\\\\", out);
		else if (*help == '\n')
			fputs("\\n", out);
		else
			fputc(*help, out);
	}
	fprintf(out, "\n# TYPE %s %s\n", name, type);
}

/* name="value" with the three escapes that the format knows. */
static void print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

/* Nanoseconds as seconds, exactly. */
static void print_seconds(FILE *out, uint64_t ns)
{
	uint64_t seconds = ns / UZ_NSEC_PER_SEC, rest_ns = ns % UZ_NSEC_PER_SEC;
	char fraction[16];
	int length = snprintf(fraction, sizeof(fraction), ".%09" PRIu64, rest_ns);

	while (fraction[length - 1] == '0')
		length--;
	if (fraction[length - 1] == '.')
		length--;
	fprintf(out, "%" PRIu64 "%.*s", seconds, length, fraction);
}

static void print_daemon_metrics(FILE *out, const struct ctl_daemon *daemon)
{
	const struct ctl_relief *relief = &daemon->relief;

	print_family(out, "uzswap_info", "gauge", "The version that runs; always 1.");
	fputs("uzswap_info{", out);
	print_label(out, "version", daemon->version);
	fputs("} 1\n", out);

	print_family(out, "uzswap_uptime_seconds", "gauge",
		     "Time since the daemon's start.");
	fputs("uzswap_uptime_seconds ", out);
	print_seconds(out, daemon->uptime_ns);
	fputc('\n', out);

	print_family(out, "uzswap_protection_missing", "gauge",
		     "1 for each protection that the daemon asked for and did not get.");
	for (unsigned i = 0; i < daemon->protection_count; i++) {
		unsigned first = 0;

		/* A series is unique; two threads may miss the same protection. */
		while (strcmp(daemon->protections[first].name,
			      daemon->protections[i].name) != 0)
			first++;
		if (first < i)
			continue;
		fputs("uzswap_protection_missing{", out);
		print_label(out, "name", daemon->protections[i].name);
		fputs("} 1\n", out);
	}

	print_family(out, "uzswap_relief_valve_reserve_bytes", "gauge",
		     "Size of the locked reserve that the kernel gets when it runs out "
		     "of memory.");
	fprintf(out, "uzswap_relief_valve_reserve_bytes %" PRIu64 "\n",
		relief->reserve_bytes);
	print_family(out, "uzswap_relief_valve_armed_bytes", "gauge",
		     "Part of that reserve that is ready now.");
	fprintf(out, "uzswap_relief_valve_armed_bytes %" PRIu64 "\n",
		relief->armed_bytes);
	print_family(out, "uzswap_relief_valve_given_bytes_total", "counter",
		     "Memory of that reserve given to the kernel so far.");
	fprintf(out, "uzswap_relief_valve_given_bytes_total %" PRIu64 "\n",
		relief->given_bytes_total);
}

static void print_device_identities(FILE *out, const struct ctl_snapshot *snapshot)
{
	print_family(out, "uzswap_device_info", "gauge",
		     "What a device is made of; always 1.");
	for (unsigned i = 0; i < snapshot->device_count; i++) {
		const struct ctl_device *device = &snapshot->devices[i];

		fputs("uzswap_device_info{", out);
		print_label(out, "device", device->name);
		fputc(',', out);
		print_label(out, "block_device", device->block_path);
		fputc(',', out);
		print_label(out, "transport", device->transport);
		fputc(',', out);
		print_label(out, "codec", device->codec);
		fputc(',', out);
		print_label(out, "pinning", device->pinning);
		fputs("} 1\n", out);
	}
	print_family(out, "uzswap_device_state", "gauge",
		     "1 for the state that a device is in, 0 for the others.");
	for (unsigned i = 0; i < snapshot->device_count; i++) {
		for (int state = 0; state < CTL_DEVICE_STATE_COUNT; state++) {
			fputs("uzswap_device_state{", out);
			print_label(out, "device", snapshot->devices[i].name);
			fputc(',', out);
			print_label(out, "state", state_names[state]);
			fprintf(out, "} %d\n", (int)snapshot->devices[i].state == state);
		}
	}
}

static void print_statistic(FILE *out, const struct ctl_snapshot *snapshot, int id)
{
	const struct stats_metric *metric = &stats_table[id];
	char name[CTL_METRIC_NAME_BYTES];

	ctl_metric_name(metric, name);
	print_family(out, name, metric->type == STATS_COUNTER ? "counter" : "gauge",
		     metric->help);
	for (unsigned i = 0; i < snapshot->device_count; i++) {
		uint64_t value = snapshot->devices[i].values.value[id];

		fprintf(out, "%s{", name);
		print_label(out, "device", snapshot->devices[i].name);
		fputs("} ", out);
		if (metric->unit == STATS_UNIT_NS)
			print_seconds(out, value);
		else
			fprintf(out, "%" PRIu64, value);
		fputc('\n', out);
	}
}

/* A device without data has no sample: absent, never NaN. */
static void print_ratio(FILE *out, const struct ctl_snapshot *snapshot, const char *name,
			const char *help, enum stats_id denominator)
{
	char text[CTL_RATIO_BYTES];

	print_family(out, name, "gauge", help);
	for (unsigned i = 0; i < snapshot->device_count; i++) {
		const uint64_t *value = snapshot->devices[i].values.value;

		if (!ctl_format_ratio(value[STATS_STORED], value[denominator], text))
			continue;
		fprintf(out, "%s{", name);
		print_label(out, "device", snapshot->devices[i].name);
		fprintf(out, "} %s\n", text);
	}
}

/*
 * Bounds from 1 microsecond to 17 seconds. Powers of two, because those are
 * where the histogram's own buckets end, so no count is off by part of a bucket.
 */
#define BOUND_SHIFT_MIN 10u
#define BOUND_SHIFT_MAX 34u

static void print_duration_labels(FILE *out, const char *suffix, const char *device,
				  const char *op)
{
	fprintf(out, "uzswap_request_duration_seconds%s{", suffix);
	print_label(out, "device", device);
	fputc(',', out);
	print_label(out, "op", op);
}

static void print_durations(FILE *out, const char *device, const char *op,
			    const struct histogram_snapshot *snapshot)
{
	for (unsigned shift = BOUND_SHIFT_MIN; shift <= BOUND_SHIFT_MAX; shift++) {
		uint64_t bound_ns = 1ull << shift;

		print_duration_labels(out, "_bucket", device, op);
		fputs(",le=\"", out);
		print_seconds(out, bound_ns);
		fprintf(out, "\"} %" PRIu64 "\n",
			histogram_count_below(snapshot, bound_ns));
	}
	print_duration_labels(out, "_bucket", device, op);
	fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", snapshot->total);
	print_duration_labels(out, "_sum", device, op);
	fputs("} ", out);
	print_seconds(out, snapshot->sum_ns);
	fputc('\n', out);
	print_duration_labels(out, "_count", device, op);
	fprintf(out, "} %" PRIu64 "\n", snapshot->total);
}

int ctl_format_metrics(const struct ctl_snapshot *snapshot, char **ret_text)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return -ENOMEM;
	print_daemon_metrics(out, &snapshot->daemon);
	print_device_identities(out, snapshot);
	for (int id = 0; id < STATS_COUNT; id++)
		print_statistic(out, snapshot, id);
	print_ratio(out, snapshot, "uzswap_ratio", "stored_bytes / compressed_bytes.",
		    STATS_COMPRESSED);
	print_ratio(out, snapshot, "uzswap_effective_ratio",
		    "stored_bytes / memory_used_bytes.", STATS_MEMORY_USED);
	print_family(out, "uzswap_request_duration_seconds", "histogram",
		     "Time from a request's arrival to its answer.");
	for (unsigned i = 0; i < snapshot->device_count; i++) {
		const struct ctl_device *device = &snapshot->devices[i];

		print_durations(out, device->name, "read", &device->read);
		print_durations(out, device->name, "write", &device->write);
	}
	int failed = ferror(out);

	if (fclose(out) != 0 || failed) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}
