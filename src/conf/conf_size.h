/* SPDX-License-Identifier: MIT */
/* Size expressions: "512M", "min(ram / 2, 4G)". The grammar is in uzswapd.conf(5). */
#ifndef UZ_CONF_CONF_SIZE_H
#define UZ_CONF_CONF_SIZE_H

#include "conf/conf.h"

/* Files and block devices end at off_t. */
#define CONF_SIZE_MAX_BYTES ((uint64_t)INT64_MAX)

enum conf_size_use {
	CONF_SIZE_FORBIDDEN, /* `size` is an error */
	CONF_SIZE_PENDING,   /* `size` is allowed, its value not known yet */
	CONF_SIZE_KNOWN,
};

struct conf_size_names {
	uint64_t ram_bytes;
	enum conf_size_use size_use;
	uint64_t size_bytes; /* for CONF_SIZE_KNOWN */
};

struct conf_size_result {
	uint64_t bytes;
	bool pending; /* depends on `size`: only the syntax could be checked */
	/*
	 * The plain number without a unit that decided the result, within the
	 * expression: what a user who thinks in MiB got wrong. NULL: none.
	 */
	const char *bare;
	size_t bare_length;
};

/* Returns 0, or -EINVAL with the reason and its offset in *remark (may be NULL). */
int conf_size_evaluate(const char *text, const struct conf_size_names *names,
		       struct conf_size_result *ret_result, struct conf_remark *remark);

#endif
