/* SPDX-License-Identifier: MIT */
/*
 * A reader of Prometheus' text format that is stricter than Prometheus: each
 * family is announced by one HELP and one TYPE line, in that order, directly
 * before its samples, and no series comes twice.
 */
#ifndef UZ_TESTS_PROMETHEUS_H
#define UZ_TESTS_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

#define PROMETHEUS_NAME_BYTES   80
#define PROMETHEUS_LABELS_MAX   6
#define PROMETHEUS_VALUE_BYTES  128
#define PROMETHEUS_FAMILIES_MAX 128
#define PROMETHEUS_SAMPLES_MAX  4096

struct prometheus_label {
	char name[PROMETHEUS_NAME_BYTES];
	char value[PROMETHEUS_VALUE_BYTES]; /* without its escapes */
};

struct prometheus_sample {
	char name[PROMETHEUS_NAME_BYTES];
	unsigned label_count;
	struct prometheus_label labels[PROMETHEUS_LABELS_MAX];
	double value;
	char text[64]; /* the value as it stands there */
};

struct prometheus_family {
	char name[PROMETHEUS_NAME_BYTES];
	char type[16];
};

struct prometheus {
	unsigned family_count;
	struct prometheus_family families[PROMETHEUS_FAMILIES_MAX];
	unsigned sample_count;
	struct prometheus_sample samples[PROMETHEUS_SAMPLES_MAX];
	char error[256];
};

/* Returns NULL, and says why on standard error, when `text` is wrong. free() it. */
struct prometheus *prometheus_parse(const char *text);

/*
 * The sample of that name with all the labels given, "device=swap0,op=read", and
 * maybe more; NULL when there is none.
 */
const struct prometheus_sample *prometheus_find(const struct prometheus *metrics,
						const char *name, const char *labels);

#endif
