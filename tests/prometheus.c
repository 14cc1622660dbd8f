// SPDX-License-Identifier: MIT
/* The strict reader of Prometheus text. */
#include "prometheus.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool __attribute__((format(printf, 2, 3)))
fail(struct prometheus *metrics, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(metrics->error, sizeof(metrics->error), format, args);
	va_end(args);
	return false;
}

/* Takes a name off the text. */
static bool take_name(const char **text, char name[PROMETHEUS_NAME_BYTES])
{
	size_t length = 0;

	while (isalnum((unsigned char)(*text)[length]) || (*text)[length] == '_')
		length++;
	if (length == 0 || length >= PROMETHEUS_NAME_BYTES ||
	    isdigit((unsigned char)**text))
		return false;
	memcpy(name, *text, length);
	name[length] = '\0';
	*text += length;
	return true;
}

static bool take(const char **text, const char *expected)
{
	size_t length = strlen(expected);

	if (strncmp(*text, expected, length) != 0)
		return false;
	*text += length;
	return true;
}

static bool take_label(const char **text, struct prometheus_label *label)
{
	size_t length = 0;

	if (!take_name(text, label->name) || !take(text, "=\""))
		return false;
	while (**text != '"') {
		char c = *(*text)++;

		if (c == '\\') {
			c = *(*text)++;
			if (c == 'n')
				c = '\n';
			else if (c != '\\' && c != '"')
				return false;
		}
		if (c == '\0' || length + 1 >= sizeof(label->value))
			return false;
		label->value[length++] = c;
	}
	label->value[length] = '\0';
	return take(text, "\"");
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether a sample of that name belongs to the family. */
static bool belongs(const struct prometheus_family *family, const char *name)
{
	size_t length = strlen(family->name);

	if (strcmp(family->type, "histogram") != 0)
		return strcmp(family->name, name) == 0;
	return strncmp(family->name, name, length) == 0 &&
	       (strcmp(name + length, "_bucket") == 0 ||
		strcmp(name + length, "_sum") == 0 ||
		strcmp(name + length, "_count") == 0);
}

static bool same_series(const struct prometheus_sample *a,
			const struct prometheus_sample *b)
{
	if (strcmp(a->name, b->name) != 0 || a->label_count != b->label_count)
		return false;
	for (unsigned i = 0; i < a->label_count; i++)
		if (strcmp(a->labels[i].name, b->labels[i].name) != 0 ||
		    strcmp(a->labels[i].value, b->labels[i].value) != 0)
			return false;
	return true;
}

static bool parse_sample(struct prometheus *metrics, const char *line)
{
	struct prometheus_sample *sample = &metrics->samples[metrics->sample_count];
	const char *text = line;
	char *end;

	if (metrics->sample_count == PROMETHEUS_SAMPLES_MAX)
		return fail(metrics, "too many samples");
	memset(sample, 0, sizeof(*sample));
	if (!take_name(&text, sample->name))
		return fail(metrics, "no name: %s", line);
	if (take(&text, "{")) {
		do {
			if (sample->label_count == PROMETHEUS_LABELS_MAX ||
			    !take_label(&text, &sample->labels[sample->label_count++]))
				return fail(metrics, "bad label: %s", line);
		} while (take(&text, ","));
		if (!take(&text, "}"))
			return fail(metrics, "labels not closed: %s", line);
	}
	if (!take(&text, " ") || isspace((unsigned char)*text) ||
	    strlen(text) >= sizeof(sample->text))
		return fail(metrics, "no value: %s", line);
	strcpy(sample->text, text);
	sample->value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(sample->value))
		return fail(metrics, "bad value: %s", line);
	if (metrics->family_count == 0 ||
	    !belongs(&metrics->families[metrics->family_count - 1], sample->name))
		return fail(metrics, "outside its family: %s", line);
	for (unsigned i = 0; i < metrics->sample_count; i++)
		if (same_series(&metrics->samples[i], sample))
			return fail(metrics, "twice: %s", line);
	metrics->sample_count++;
	return true;
}

/* "# HELP name text" and "# TYPE name type", in turn. */
static bool parse_comment(struct prometheus *metrics, const char *line, bool *after_help)
{
	char name[PROMETHEUS_NAME_BYTES];
	const char *text = line;
	struct prometheus_family *family = &metrics->families[metrics->family_count];

	if (!*after_help) {
		if (!take(&text, "# HELP ") || !take_name(&text, name) ||
		    !take(&text, " ") || !*text)
			return fail(metrics, "no HELP: %s", line);
		for (unsigned i = 0; i < metrics->family_count; i++)
			if (strcmp(metrics->families[i].name, name) == 0)
				return fail(metrics, "family in two parts: %s", line);
		if (metrics->family_count == PROMETHEUS_FAMILIES_MAX)
			return fail(metrics, "too many families");
		strcpy(family->name, name);
		*after_help = true;
		return true;
	}
	*after_help = false;
	if (!take(&text, "# TYPE ") || !take_name(&text, name) || !take(&text, " ") ||
	    strcmp(family->name, name) != 0)
		return fail(metrics, "no TYPE after HELP: %s", line);
	if (strcmp(text, "counter") != 0 && strcmp(text, "gauge") != 0 &&
	    strcmp(text, "histogram") != 0)
		return fail(metrics, "unknown type: %s", line);
	strcpy(family->type, text);
	if ((strcmp(text, "counter") == 0) != ends_with(name, "_total"))
		return fail(metrics, "counters, and only they, end in _total: %s", line);
	metrics->family_count++;
	return true;
}

static bool parse_all(struct prometheus *metrics, char *text)
{
	bool after_help = false;

	if (!ends_with(text, "\n"))
		return fail(metrics, "the last line does not end");
	for (char *end; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		bool comment = *text == '#' || after_help;

		if (!(comment ? parse_comment(metrics, text, &after_help)
			      : parse_sample(metrics, text)))
			return false;
	}
	return true;
}

struct prometheus *prometheus_parse(const char *text)
{
	struct prometheus *metrics = calloc(1, sizeof(*metrics));
	char *copy = strdup(text);
	bool good = parse_all(metrics, copy);

	free(copy);
	if (good)
		return metrics;
	fprintf(stderr, "prometheus: %s\n", metrics->error);
	free(metrics);
	return NULL;
}

static bool has_label(const struct prometheus_sample *sample, const char *label,
		      size_t length)
{
	for (unsigned i = 0; i < sample->label_count; i++) {
		char text[PROMETHEUS_NAME_BYTES + PROMETHEUS_VALUE_BYTES + 1];

		snprintf(text, sizeof(text), "%s=%s", sample->labels[i].name,
			 sample->labels[i].value);
		if (strlen(text) == length && memcmp(text, label, length) == 0)
			return true;
	}
	return false;
}

const struct prometheus_sample *prometheus_find(const struct prometheus *metrics,
						const char *name, const char *labels)
{
	for (unsigned i = 0; i < metrics->sample_count; i++) {
		const struct prometheus_sample *sample = &metrics->samples[i];
		bool matches = strcmp(sample->name, name) == 0;
		const char *label = labels;

		while (matches && *label) {
			size_t length = strcspn(label, ",");

			matches = has_label(sample, label, length);
			label += length + (label[length] == ',');
		}
		if (matches)
			return sample;
	}
	return NULL;
}
