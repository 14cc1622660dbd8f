// SPDX-License-Identifier: MIT
/* The effective configuration as text, and the difference of two. Any thread. */
#include "conf/conf.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "conf/conf_keys.h"

static void describe_key(FILE *stream, const struct conf_key *key, const void *object,
			 const struct conf_origin *origin)
{
	const void *field = (const char *)object + key->offset;
	char value[CONF_VALUE_BYTES];

	key->type->print(field, value);
	if (origin->file) {
		fputs("# ", stream);
		/* A name may contain anything; a line break would end the comment. */
		for (const char *at = origin->file; *at; at++)
			fputc((unsigned char)*at < ' ' ? '?' : *at, stream);
		fprintf(stream, ":%u: %s", origin->line, origin->text);
	} else {
		fprintf(stream, "# default: %s",
			*origin->text ? origin->text : "nothing");
	}
	if (key->type->is_size && strspn(value, "0123456789") == strlen(value)) {
		uint64_t bytes = *(const uint64_t *)field;

		fprintf(stream, " = %" PRIu64 " bytes (%.*f MiB)", bytes,
			bytes % UZ_MIB ? 3 : 0, (double)bytes / (double)UZ_MIB);
	}
	fprintf(stream, "\n%s=%s\n", key->name, value);
}

int conf_describe(const struct conf *conf, FILE *stream)
{
	if (conf->disabled)
		fputs("# Disabled by uzswap=off on the kernel command line.\n", stream);
	if (conf->file_count == 0)
		fputs("# No configuration file was read.\n", stream);
	for (size_t i = 0; i < conf->file_count; i++) {
		fputs("# Read: ", stream);
		for (const char *at = conf->files[i]; *at; at++)
			fputc((unsigned char)*at < ' ' ? '?' : *at, stream);
		fputc('\n', stream);
	}
	fputs("\n[Daemon]\n", stream);
	for (size_t i = 0; i < CONF_DAEMON_KEY_COUNT; i++)
		describe_key(stream, &conf_daemon_keys[i], &conf->daemon,
			     &conf->daemon.origins[i]);
	for (size_t i = 0; i < conf->device_count; i++) {
		const struct conf_device *device = &conf->devices[i];

		fprintf(stream, "\n[Device %s]\n", device->name);
		for (size_t j = 0; j < CONF_DEVICE_KEY_COUNT; j++)
			describe_key(stream, &conf_device_keys[j], device,
				     &device->origins[j]);
	}
	return ferror(stream) ? -EIO : 0;
}

static unsigned diff_section(const char *section, const struct conf_key *keys,
			     size_t count, const void *old_object, const void *new_object,
			     conf_change_fn change, void *context)
{
	unsigned differences = 0;

	for (size_t i = 0; i < count; i++) {
		char old_value[CONF_VALUE_BYTES], new_value[CONF_VALUE_BYTES];

		keys[i].type->print((const char *)old_object + keys[i].offset, old_value);
		keys[i].type->print((const char *)new_object + keys[i].offset, new_value);
		if (strcmp(old_value, new_value) == 0)
			continue;
		differences++;
		change(context, &(struct conf_change){section, keys[i].name, old_value,
						      new_value});
	}
	return differences;
}

static const struct conf_device *find_device(const struct conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->device_count; i++)
		if (strcmp(conf->devices[i].name, name) == 0)
			return &conf->devices[i];
	return NULL;
}

unsigned conf_diff(const struct conf *old_conf, const struct conf *new_conf,
		   conf_change_fn change, void *context)
{
	char section[sizeof("Device ") + CONF_NAME_MAX];
	unsigned differences =
		diff_section("Daemon", conf_daemon_keys, CONF_DAEMON_KEY_COUNT,
			     &old_conf->daemon, &new_conf->daemon, change, context);

	for (size_t i = 0; i < old_conf->device_count; i++) {
		const struct conf_device *old_device = &old_conf->devices[i];
		const struct conf_device *new_device =
			find_device(new_conf, old_device->name);

		snprintf(section, sizeof(section), "Device %s", old_device->name);
		if (new_device) {
			differences += diff_section(section, conf_device_keys,
						    CONF_DEVICE_KEY_COUNT, old_device,
						    new_device, change, context);
		} else {
			differences++;
			change(context, &(struct conf_change){.section = section,
							      .old_value = section});
		}
	}
	for (size_t i = 0; i < new_conf->device_count; i++) {
		const struct conf_device *new_device = &new_conf->devices[i];

		if (find_device(old_conf, new_device->name))
			continue;
		snprintf(section, sizeof(section), "Device %s", new_device->name);
		differences++;
		change(context,
		       &(struct conf_change){.section = section, .new_value = section});
	}
	return differences;
}
