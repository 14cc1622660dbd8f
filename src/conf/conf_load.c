// SPDX-License-Identifier: MIT
/*
 * Loading. Two steps: each file's settings are checked where they stand and
 * noted in their section, later ones over earlier ones; when all files are read,
 * every device is put together from its own section, [Defaults], and the
 * built-in defaults, key by key, and what depends on several keys is checked.
 *
 * Owned by one call; no locks. Strings that outlive it are owned by the struct
 * conf.
 */
#include "conf/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sysinfo.h>

#include "base/cleanup.h"
#include "conf/conf_files.h"
#include "conf/conf_keys.h"
#include "conf/conf_lines.h"
#include "conf/conf_text.h"

struct conf_string {
	struct conf_string *next;
	char text[];
};

/* A value that was assigned; the value itself is in the section's draft. */
struct setting {
	const char *text; /* NULL: not assigned */
	struct conf_place place;
	bool pending; /* the draft has no value: it depends on the device's size */
	bool wrong;   /* the draft has no value: the text was reported as an error */
};

/* Everything that all files say about one section. */
struct section {
	struct conf_place last; /* of the title read last */
	union {
		struct conf_daemon daemon;
		struct conf_device device;
	} draft;
	struct setting settings[CONF_KEY_COUNT_MAX];
};

enum section_kind {
	KIND_DAEMON,
	KIND_DEVICE,
};

static const struct {
	const struct conf_key *keys;
	size_t count;
	const char *title;
} kinds[] = {
	[KIND_DAEMON] = {conf_daemon_keys, CONF_DAEMON_KEY_COUNT, "[Daemon]"},
	[KIND_DEVICE] = {conf_device_keys, CONF_DEVICE_KEY_COUNT,
			 "[Device NAME] or [Defaults]"},
};

struct loader {
	struct conf *conf; /* becomes the result */
	struct conf_report report;
	struct conf_parse_input input;
	struct section daemon, daemon_built_in;
	struct section defaults, defaults_built_in;
	struct section devices[CONF_DEVICES_MAX];
	size_t device_count;
	/* While a file is read: */
	unsigned assigned; /* sections and settings */
	struct section *section;
	enum section_kind kind;
};

/* NULL when there is no memory. */
static const char *keep_string(struct conf *conf, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct conf_string *string = malloc(sizeof(*string) + bytes);

	if (!string)
		return NULL;
	memcpy(string->text, text, bytes);
	string->next = conf->strings;
	conf->strings = string;
	return string->text;
}

static void *field_of(struct section *section, const struct conf_key *key)
{
	return (char *)&section->draft + key->offset;
}

/* ---- titles ---- */

/*
 * A section that we know but for letter case, or without its name, is an error:
 * a device that is missing in silence is worse than none starting. Any other
 * may be one of another version.
 */
static int unknown_section(struct loader *loader, const struct conf_place *place,
			   const char *title)
{
	struct conf_nearest nearest = {.text = title};
	size_t word = strcspn(title, " \t");
	char hint[CONF_HINT_BYTES];

	if (word == strlen("Device") && strncasecmp(title, "Device", word) == 0) {
		conf_report_at(
			&loader->report, LOG_LEVEL_ERROR, place,
			"%s is not a section; write [Device NAME], as in [Device swap0]",
			CONF_QUOTE(title));
		return 0;
	}
	if (strcasecmp(title, "Daemon") == 0 || strcasecmp(title, "Defaults") == 0) {
		conf_report_at(&loader->report, LOG_LEVEL_ERROR, place,
			       "%s is not a section; write [%s]", CONF_QUOTE(title),
			       strcasecmp(title, "Daemon") == 0 ? "Daemon" : "Defaults");
		return 0;
	}
	conf_nearest_offer(&nearest, "Daemon");
	conf_nearest_offer(&nearest, "Defaults");
	conf_nearest_offer(&nearest, "Device swap0");
	conf_report_at(
		&loader->report, conf_report_unknown(&loader->report), place,
		"unknown section %s, its settings are ignored%s; sections are [Daemon], "
		"[Defaults], [Device NAME]",
		CONF_QUOTE(title), conf_nearest_hint(&nearest, hint));
	return 0;
}

/* Returns false after a report. `place` is that of the name. */
static bool check_device_name(struct loader *loader, const struct conf_place *place,
			      const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	size_t good = strspn(name, allowed);
	struct conf_place at = *place;

	if (*name == '.' || *name == '-') {
		conf_report_at(&loader->report, LOG_LEVEL_ERROR, &at,
			       "device name %s: may not begin with '%c'",
			       CONF_QUOTE(name), *name);
		return false;
	}
	if (name[good] != '\0') {
		at.column += (unsigned)good;
		conf_report_at(&loader->report, LOG_LEVEL_ERROR, &at,
			       "device name %s: unexpected %s; allowed: letters, digits, "
			       "'_', '.', '-'",
			       CONF_QUOTE(name), CONF_QUOTE_N(name + good, 1));
		return false;
	}
	if (good > CONF_NAME_MAX) {
		at.column += CONF_NAME_MAX;
		conf_report_at(&loader->report, LOG_LEVEL_ERROR, &at,
			       "device name %s: longer than %d characters",
			       CONF_QUOTE(name), CONF_NAME_MAX);
		return false;
	}
	return true;
}

/* The device's section, made when it is new. NULL after a report. */
static struct section *device_section(struct loader *loader,
				      const struct conf_place *place, const char *name)
{
	struct section *section;

	if (!check_device_name(loader, place, name))
		return NULL;
	for (size_t i = 0; i < loader->device_count; i++)
		if (strcmp(loader->devices[i].draft.device.name, name) == 0)
			return &loader->devices[i];
	if (loader->device_count == CONF_DEVICES_MAX) {
		conf_report_at(
			&loader->report, LOG_LEVEL_ERROR, place,
			"device %s: more than %d devices; one device serves all CPUs",
			CONF_QUOTE(name), CONF_DEVICES_MAX);
		return NULL;
	}
	section = &loader->devices[loader->device_count++];
	memcpy(section->draft.device.name, name, strlen(name) + 1);
	return section;
}

/* conf_sink.section */
static int on_section(void *context, const struct conf_place *place, const char *title)
{
	struct loader *loader = context;
	size_t word = strcspn(title, " \t");
	struct conf_place name_place = *place;

	loader->assigned++;
	loader->section = NULL;
	loader->kind = KIND_DEVICE;
	if (strcmp(title, "Daemon") == 0) {
		loader->section = &loader->daemon;
		loader->kind = KIND_DAEMON;
	} else if (strcmp(title, "Defaults") == 0) {
		loader->section = &loader->defaults;
	} else if (word == strlen("Device") && strncmp(title, "Device", word) == 0 &&
		   title[word]) {
		size_t name = word + strspn(title + word, " \t");

		name_place.column += (unsigned)name;
		loader->section = device_section(loader, &name_place, title + name);
		if (!loader->section)
			return 0;
	} else {
		return unknown_section(loader, place, title);
	}
	if (loader->section->last.file == place->file)
		conf_report_at(
			&loader->report, LOG_LEVEL_NOTICE, place,
			"section [%s] again: its settings are added to those of line %u",
			title, loader->section->last.line);
	loader->section->last = *place;
	return 1;
}

/* ---- settings ---- */

static const struct conf_key *find_key(enum section_kind kind, const char *name)
{
	for (size_t i = 0; i < kinds[kind].count; i++)
		if (strcmp(kinds[kind].keys[i].name, name) == 0)
			return &kinds[kind].keys[i];
	return NULL;
}

static void unknown_key(struct loader *loader, const struct conf_place *place,
			const char *name)
{
	enum section_kind other = loader->kind == KIND_DAEMON ? KIND_DEVICE : KIND_DAEMON;
	enum log_level level = conf_report_unknown(&loader->report);
	struct conf_nearest nearest = {.text = name};
	char hint[CONF_HINT_BYTES];

	if (find_key(other, name)) {
		conf_report_at(&loader->report, level, place,
			       "key %s ignored: it belongs to a section %s",
			       CONF_QUOTE(name), kinds[other].title);
		return;
	}
	for (size_t i = 0; i < kinds[loader->kind].count; i++)
		conf_nearest_offer(&nearest, kinds[loader->kind].keys[i].name);
	conf_report_at(&loader->report, level, place, "unknown key %s ignored%s",
		       CONF_QUOTE(name), conf_nearest_hint(&nearest, hint));
}

/* Reports what a parser said. `subject` is put before it: "" or "device 'x': ". */
static void report_remark(struct loader *loader, const struct conf_key *key,
			  const struct setting *setting, const struct conf_remark *remark,
			  const char *subject)
{
	struct conf_place place = setting->place;
	const char *allowed = key->allowed, *joint = "; allowed: ";

	/* Built-in defaults may be rounded without a word; they must not be wrong. */
	if (remark->text[0] == '\0' || (!place.file && remark->level != LOG_LEVEL_ERROR))
		return;
	if (remark->level != LOG_LEVEL_ERROR || !allowed)
		allowed = joint = "";
	else if (remark->text[strlen(remark->text) - 1] == '?')
		joint = " Allowed: ";
	place.column += (unsigned)remark->offset;
	conf_report_at(&loader->report, remark->level, &place, "%s%s=%s: %s%s%s", subject,
		       key->name, CONF_QUOTE(setting->text), remark->text, joint,
		       allowed);
}

/*
 * Checks the value and notes it in the section. A wrong value is noted too, so
 * that what depends on it is not reported as well. Returns 0 or -ENOMEM.
 */
static int assign(struct loader *loader, struct section *section,
		  const struct conf_key *key, struct setting *setting,
		  const struct conf_place *place, const char *text)
{
	struct conf_remark remark = {.text = ""};
	int err;

	setting->text = keep_string(loader->conf, text);
	if (!setting->text)
		return -ENOMEM;
	setting->place = *place;
	setting->pending = false;
	setting->wrong = true;
	if (*text == '\0' && !key->type->may_be_empty) {
		conf_report_at(
			&loader->report, LOG_LEVEL_ERROR, place,
			"%s= has no value; without the line the default is in force%s%s",
			key->name, key->allowed ? "; allowed: " : "",
			key->allowed ? key->allowed : "");
		return 0;
	}
	err = key->type->parse(&loader->input, text, field_of(section, key), &remark);
	setting->pending = err == CONF_PARSE_PENDING;
	setting->wrong = err < 0;
	report_remark(loader, key, setting, &remark, "");
	return 0;
}

/* conf_sink.setting */
static int on_setting(void *context, const struct conf_place *key_place,
		      const struct conf_place *value_place, const char *name,
		      const char *value)
{
	struct loader *loader = context;
	const struct conf_key *key = find_key(loader->kind, name);
	struct setting *setting;

	loader->assigned++;
	if (!key) {
		unknown_key(loader, key_place, name);
		return 0;
	}
	setting = &loader->section->settings[key - kinds[loader->kind].keys];
	if (setting->text && setting->place.file == key_place->file)
		conf_report_at(&loader->report, LOG_LEVEL_NOTICE, key_place,
			       "%s= again: this value replaces %s of line %u", name,
			       CONF_QUOTE(setting->text), setting->place.line);
	return assign(loader, loader->section, key, setting, value_place, value);
}

/* ---- files ---- */

static int read_text(struct loader *loader, const char *name, const char *data,
		     size_t length)
{
	const struct conf_sink sink = {on_section, on_setting, loader};
	struct conf *conf = loader->conf;
	const char *file, **files;
	unsigned errors = loader->report.errors;
	int err;

	files = reallocarray(conf->files, conf->file_count + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	conf->files = files;
	file = keep_string(conf, name);
	if (!file)
		return -ENOMEM;
	files[conf->file_count++] = file;
	loader->assigned = 0;
	err = conf_lines_parse(&loader->report, file, data, length, &sink);
	if (err == 0 && loader->assigned == 0 && loader->report.errors == errors)
		conf_report_at(&loader->report, LOG_LEVEL_NOTICE,
			       &(struct conf_place){.file = file},
			       "has no settings: the file changes nothing");
	conf_report_file_end(&loader->report, file);
	return err;
}

static int read_files(struct loader *loader, const struct conf_sources *sources)
{
	struct conf_file_list list;
	int err = conf_files_find(&list, sources, &loader->report);

	if (err < 0)
		return err;
	conf_report_file_end(&loader->report, NULL);
	for (size_t i = 0; i < list.count && err >= 0; i++) {
		UZ_AUTO_FREE char *data = NULL;
		size_t length;

		err = conf_file_read(list.paths[i], &data, &length, &loader->report);
		if (err > 0)
			err = read_text(loader, list.paths[i], data, length);
	}
	conf_file_list_done(&list);
	return err;
}

/* ---- putting it together ---- */

/* Parses the table's defaults as if they stood in a file. Returns 0 or -ENOMEM. */
static int set_built_in(struct loader *loader, enum section_kind kind,
			struct section *section)
{
	for (size_t i = 0; i < kinds[kind].count; i++) {
		const struct conf_key *key = &kinds[kind].keys[i];
		const struct conf_place place = {.file = NULL};
		struct setting *setting = &section->settings[i];

		if (!key->default_text)
			continue;
		int err =
			assign(loader, section, key, setting, &place, key->default_text);

		if (err < 0)
			return err;
	}
	return 0;
}

/* The section among these, highest precedence first, that assigns the key. NULL: none. */
static struct section *choose(struct section *const candidates[], size_t count,
			      size_t key)
{
	for (size_t i = 0; i < count; i++)
		if (candidates[i]->settings[key].text)
			return candidates[i];
	return NULL;
}

static struct conf_origin origin_of(const struct setting *setting)
{
	return (struct conf_origin){.file = setting->place.file,
				    .line = setting->place.line,
				    .text = setting->text};
}

static void take_value(struct conf_device *device, struct section *from,
		       enum conf_device_key i)
{
	const struct conf_key *key = &conf_device_keys[i];

	memcpy((char *)device + key->offset, field_of(from, key), key->type->bytes);
	device->origins[i] = origin_of(&from->settings[i]);
}

static void resolve_daemon(struct loader *loader)
{
	struct section *const candidates[] = {&loader->daemon, &loader->daemon_built_in};
	struct conf_daemon *daemon = &loader->conf->daemon;

	for (size_t i = 0; i < CONF_DAEMON_KEY_COUNT; i++) {
		struct section *from = choose(candidates, UZ_ARRAY_SIZE(candidates), i);
		const struct conf_key *key = &conf_daemon_keys[i];

		memcpy((char *)daemon + key->offset, field_of(from, key),
		       key->type->bytes);
		daemon->origins[i] = origin_of(&from->settings[i]);
	}
}

#define SUBJECT_BYTES (CONF_NAME_MAX + sizeof("device '': "))

static const char *subject_of(const struct conf_device *device,
			      char buffer[SUBJECT_BYTES])
{
	snprintf(buffer, SUBJECT_BYTES, "device '%s': ", device->name);
	return buffer;
}

/* A limit that is given relative to `size`. */
static void resolve_memory_limit(struct loader *loader, struct conf_device *device,
				 const struct setting *setting)
{
	const struct conf_key *key = &conf_device_keys[CONF_MEMORY_LIMIT];
	struct conf_parse_input input = loader->input;
	struct conf_remark remark = {.text = ""};
	char subject[SUBJECT_BYTES];

	input.size_known = true;
	input.size_bytes = device->size_bytes;
	key->type->parse(&input, setting->text, &device->memory_limit_bytes, &remark);
	report_remark(loader, key, setting, &remark, subject_of(device, subject));
}

/*
 * A level means nothing without its codec: that of [Defaults] is for the codec
 * of [Defaults], and a device that chose another one gets that one's default.
 */
static void resolve_level(struct loader *loader, struct conf_device *device,
			  const struct setting *setting, bool for_this_codec)
{
	const struct codec_info *info = codec_info_by_id(device->codec);
	struct conf_remark remark = {.text = ""};
	char subject[SUBJECT_BYTES];

	if (!info || (setting && setting->wrong)) /* reported already */
		return;
	if (!setting || !for_this_codec) {
		device->level = info->level_default;
		device->origins[CONF_LEVEL] =
			(struct conf_origin){.text = "the codec's default"};
		return;
	}
	if (device->level >= info->level_min && device->level <= info->level_max)
		return;
	conf_remark_set(&remark, LOG_LEVEL_ERROR, 0, "is outside %d..%d, %s's range (%s)",
			info->level_min, info->level_max, info->name,
			info->level_meaning);
	report_remark(loader, &(struct conf_key){.name = "Level"}, setting, &remark,
		      subject_of(device, subject));
}

static void check_ratio_of_sizes(struct loader *loader, const struct conf_device *device,
				 const struct conf_place *place)
{
	char subject[SUBJECT_BYTES];

	if (device->size_bytes / 4 <= device->memory_limit_bytes)
		return;
	conf_report_at(
		&loader->report, LOG_LEVEL_WARNING, place,
		"%sSize (%llu MiB) is more than four times MemoryLimit (%llu MiB): the "
		"memory will be full long before the device",
		subject_of(device, subject), device->size_bytes / UZ_MIB,
		device->memory_limit_bytes / UZ_MIB);
}

/* What depends on the device's size, once that is known. */
static void resolve_sizes(struct loader *loader, struct conf_device *device,
			  const struct setting *size, const struct setting *limit)
{
	struct section *built_in = &loader->defaults_built_in;
	unsigned errors = loader->report.errors;

	if (size->wrong)
		return;
	if (device->size_bytes == 0) {
		device->enabled = false;
		device->origins[CONF_ENABLED] = device->origins[CONF_SIZE];
		/* A limit relative to a size that is none means nothing. */
		if (limit->pending)
			take_value(device, built_in, CONF_MEMORY_LIMIT);
		return;
	}
	if (limit->pending)
		resolve_memory_limit(loader, device, limit);
	if (device->enabled && !limit->wrong && loader->report.errors == errors)
		check_ratio_of_sizes(loader, device, &size->place);
}

static void resolve_device(struct loader *loader, struct section *section,
			   struct conf_device *device)
{
	struct section *const candidates[] = {section, &loader->defaults,
					      &loader->defaults_built_in};
	const struct setting *chosen[CONF_DEVICE_KEY_COUNT] = {0};
	const struct section *defaults;
	bool for_this_codec;

	memcpy(device->name, section->draft.device.name, sizeof(device->name));
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++) {
		struct section *from = choose(candidates, UZ_ARRAY_SIZE(candidates), i);

		if (!from) /* Level= */
			continue;
		chosen[i] = &from->settings[i];
		take_value(device, from, (enum conf_device_key)i);
	}
	defaults = choose(candidates + 1, UZ_ARRAY_SIZE(candidates) - 1, CONF_CODEC);
	for_this_codec = section->settings[CONF_LEVEL].text ||
			 device->codec == defaults->draft.device.codec;
	resolve_level(loader, device, chosen[CONF_LEVEL], for_this_codec);
	resolve_sizes(loader, device, chosen[CONF_SIZE], chosen[CONF_MEMORY_LIMIT]);
}

/* All limits together: the memory is locked, nothing can take it back. */
static void check_sum_of_limits(struct loader *loader)
{
	const struct conf *conf = loader->conf;
	uint64_t sum_bytes = 0;

	for (size_t i = 0; i < conf->device_count; i++)
		if (conf->devices[i].enabled)
			sum_bytes += UZ_MIN(conf->devices[i].memory_limit_bytes,
					    UINT64_MAX / CONF_DEVICES_MAX);
	if (sum_bytes > loader->input.ram_bytes)
		conf_report_at(
			&loader->report, LOG_LEVEL_WARNING,
			&(struct conf_place){.file = NULL},
			"MemoryLimit of all devices together is %llu MiB, more than the "
			"RAM (%llu MiB)",
			sum_bytes / UZ_MIB, loader->input.ram_bytes / UZ_MIB);
}

static void resolve_devices(struct loader *loader)
{
	struct conf *conf = loader->conf;

	if (loader->device_count == 0) {
		struct conf_device *only =
			&loader->devices[loader->device_count++].draft.device;

		strcpy(only->name, CONF_DEFAULT_DEVICE);
	}
	for (size_t i = 0; i < loader->device_count; i++)
		resolve_device(loader, &loader->devices[i], &conf->devices[i]);
	conf->device_count = loader->device_count;
	if (loader->report.errors == 0)
		check_sum_of_limits(loader);
}

static uint64_t ram_of_machine(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0) /* cannot fail for a valid address */
		return 0;
	return (uint64_t)info.totalram * info.mem_unit;
}

/* Returns 0 or -ENOMEM. */
static int loader_new(struct loader **ret_loader, uint64_t ram_bytes, bool strict,
		      conf_diagnostic_fn diagnose, void *context)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int err;

	if (!loader)
		return -ENOMEM;
	loader->conf = calloc(1, sizeof(*loader->conf));
	if (!loader->conf) {
		free(loader);
		return -ENOMEM;
	}
	loader->report.diagnose = diagnose;
	loader->report.context = context;
	loader->report.strict = strict;
	loader->input.ram_bytes = ram_bytes > 0 ? ram_bytes : ram_of_machine();
	err = set_built_in(loader, KIND_DAEMON, &loader->daemon_built_in);
	if (err == 0)
		err = set_built_in(loader, KIND_DEVICE, &loader->defaults_built_in);
	if (err < 0) {
		conf_free(loader->conf);
		free(loader);
		return err;
	}
	*ret_loader = loader;
	return 0;
}

/* Ends the load with `err` or, when that is 0, with what was found. Frees the loader. */
static int loader_finish(struct loader *loader, int err, struct conf **ret_conf)
{
	if (err == 0) {
		resolve_daemon(loader);
		if (!loader->conf->disabled || loader->report.strict)
			resolve_devices(loader);
		conf_report_file_end(&loader->report, NULL);
		err = conf_report_result(&loader->report);
	}
	if (err == 0)
		*ret_conf = loader->conf;
	else
		conf_free(loader->conf);
	free(loader);
	return err;
}

int conf_load(struct conf **ret_conf, const struct conf_sources *sources, bool strict,
	      conf_diagnostic_fn diagnose, void *context)
{
	struct loader *loader;
	int err = loader_new(&loader, sources->ram_bytes, strict, diagnose, context);

	if (err < 0)
		return err;
	loader->conf->disabled = conf_kill_switch(sources->cmdline_path, &loader->report);
	/* A broken file must not get in the way of a switch for such cases. */
	if (!loader->conf->disabled || strict)
		err = read_files(loader, sources);
	return loader_finish(loader, err, ret_conf);
}

int conf_load_memory(struct conf **ret_conf, const char *name, const char *data,
		     size_t length, uint64_t ram_bytes, bool strict,
		     conf_diagnostic_fn diagnose, void *context)
{
	struct loader *loader;
	int err = loader_new(&loader, ram_bytes, strict, diagnose, context);

	if (err < 0)
		return err;
	err = read_text(loader, name, data, length);
	return loader_finish(loader, err, ret_conf);
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	for (struct conf_string *string = conf->strings; string;) {
		struct conf_string *next = string->next;

		free(string);
		string = next;
	}
	free(conf->files);
	free(conf);
}
