/* SPDX-License-Identifier: MIT */
/* The table of keys: name, default, allowed values, parser, printer. */
#ifndef UZ_CONF_CONF_KEYS_H
#define UZ_CONF_CONF_KEYS_H

#include "conf/conf.h"

struct conf_parse_input {
	uint64_t ram_bytes;
	bool size_known; /* the device's size: known when all files have been read */
	uint64_t size_bytes;
};

/* A parser's result besides 0 and -EINVAL: parse again when the size is known. */
#define CONF_PARSE_PENDING 1

struct conf_type {
	size_t bytes; /* of the field */
	bool is_size; /* a number of bytes; people like to see it in MiB too */
	bool may_be_empty;
	/*
	 * Stores the value in *field and returns 0, or CONF_PARSE_PENDING, or
	 * -EINVAL with the reason in *remark; *field is then left alone. With 0
	 * there may be a remark that is no error. `remark` starts without text.
	 */
	int (*parse)(const struct conf_parse_input *input, const char *text, void *field,
		     struct conf_remark *remark);
	/* Writes what parse would read, at most CONF_VALUE_BYTES with the terminator. */
	void (*print)(const void *field, char *buffer);
};

#define CONF_VALUE_BYTES 48

struct conf_key {
	const char *name;
	const char *default_text; /* parsed like any other; NULL: the codec's (Level=) */
	const char *allowed; /* for messages; NULL: the parser's remark says it all */
	size_t offset;	     /* of the field in struct conf_daemon or conf_device */
	const struct conf_type *type;
};

extern const struct conf_key conf_daemon_keys[CONF_DAEMON_KEY_COUNT];
extern const struct conf_key conf_device_keys[CONF_DEVICE_KEY_COUNT];

#define CONF_KEY_COUNT_MAX \
	UZ_MAX((size_t)CONF_DAEMON_KEY_COUNT, (size_t)CONF_DEVICE_KEY_COUNT)

/* The name of the device that exists when no file has a [Device] section. */
#define CONF_DEFAULT_DEVICE "swap0"

#endif
