// SPDX-License-Identifier: MIT
/*
 * Sysctls set for as long as swap is on. Called by the thread that turns swap
 * on and off; allocates and does file I/O, so never by one that serves I/O.
 *
 * Invariant: a sysctl that holds our value has a line in the file, from before
 * the value was written until after it was put back. A kill at any moment thus
 * leaves either the old value, or ours and the line to undo it.
 */
#include "daemon/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"

#define SAVED_NAME "sysctl.saved"
#define BOOT_BYTES 40

struct entry {
	char name[SYSCTL_NAME_BYTES];
	uint64_t before; /* found when we first set it */
	uint64_t ours;	 /* what we set it to */
	bool changed;	 /* ours is (to be) in force: the entry belongs in the file */
	bool wanted;	 /* part of the last apply; otherwise left by an earlier daemon */
	int error;
};

struct sysctl_set {
	char root[PATH_MAX / 4];
	char directory[PATH_MAX / 4];
	char boot[BOOT_BYTES]; /* values of another boot are of no interest */
	/* After new: what an earlier daemon left; after apply: the wishes. */
	struct entry entries[SYSCTL_MAX];
	size_t count;
};

/* The file of a sysctl: dots become slashes. */
static int sysctl_path(const struct sysctl_set *set, const char *name, char *out,
		       size_t bytes)
{
	if (!name[0] || strlen(name) >= SYSCTL_NAME_BYTES || strchr(name, '/') ||
	    strstr(name, ".."))
		return -EINVAL;
	int prefix = snprintf(out, bytes, "%s/proc/sys/", set->root);

	if (prefix < 0 || (size_t)prefix + strlen(name) >= bytes)
		return -ENAMETOOLONG;
	char *at = out + prefix;

	for (; *name; name++)
		*at++ = *name == '.' ? '/' : *name;
	*at = '\0';
	return 0;
}

static int read_text(const char *path, char *out, size_t bytes)
{
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t got = read(fd, out, bytes - 1);

	if (got < 0)
		return -errno;
	out[got] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

static int sysctl_read(const struct sysctl_set *set, const char *name,
		       uint64_t *ret_value)
{
	char path[PATH_MAX], text[64], *end;
	int err = sysctl_path(set, name, path, sizeof(path));

	if (err == 0)
		err = read_text(path, text, sizeof(text));
	if (err < 0)
		return err;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);

	if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static int sysctl_write(const struct sysctl_set *set, const char *name, uint64_t value)
{
	char path[PATH_MAX], text[32];
	int err = sysctl_path(set, name, path, sizeof(path));

	if (err < 0)
		return err;
	int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	/* Not O_TRUNC: a sysctl has no length, and a test's stand-in must not be seen
	 * empty. */
	UZ_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, (size_t)length) < 0 ? -errno : 0;
}

static struct entry *find(struct sysctl_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcmp(set->entries[i].name, name) == 0)
			return &set->entries[i];
	return NULL;
}

static struct entry *add(struct sysctl_set *set, const char *name)
{
	if (set->count == UZ_ARRAY_SIZE(set->entries))
		return NULL;
	struct entry *entry = &set->entries[set->count++];

	memset(entry, 0, sizeof(*entry));
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	return entry;
}

/* Forgets the entries that hold no value of ours. */
static void drop_settled(struct sysctl_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->entries[i].changed)
			set->entries[kept++] = set->entries[i];
	set->count = kept;
}

/* Writes the lines of all changed entries, or removes the file when there are none. */
static int save(const struct sysctl_set *set)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	size_t lines = 0;

	snprintf(path, sizeof(path), "%s/" SAVED_NAME, set->directory);
	snprintf(fresh, sizeof(fresh), "%s/" SAVED_NAME ".new", set->directory);
	for (size_t i = 0; i < set->count; i++)
		lines += set->entries[i].changed;
	if (lines == 0)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;

	FILE *file = fopen(fresh, "we");

	if (!file)
		return -errno;
	fprintf(file,
		"# Sysctls that uzswapd has changed: name, value before, value set.\n");
	fprintf(file, "boot %s\n", set->boot);
	for (size_t i = 0; i < set->count; i++) {
		const struct entry *entry = &set->entries[i];

		if (entry->changed)
			fprintf(file, "%s %" PRIu64 " %" PRIu64 "\n", entry->name,
				entry->before, entry->ours);
	}
	int failed = ferror(file);

	/* No fsync: the file need not outlive the boot. */
	if (fclose(file) != 0 || failed) {
		unlink(fresh);
		return -EIO;
	}
	return rename(fresh, path) < 0 ? -errno : 0;
}

static void load(struct sysctl_set *set)
{
	char path[PATH_MAX], line[256];
	bool same_boot = false;

	snprintf(path, sizeof(path), "%s/" SAVED_NAME, set->directory);
	UZ_AUTO_FCLOSE FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		char name[SYSCTL_NAME_BYTES], boot[BOOT_BYTES];
		uint64_t before, ours, now;

		if (line[0] == '#')
			continue;
		if (sscanf(line, "boot %39s", boot) == 1) {
			same_boot = strcmp(boot, set->boot) == 0;
			continue;
		}
		if (!same_boot || sscanf(line, "%63s %" SCNu64 " %" SCNu64, name, &before,
					 &ours) != 3) {
			log_warning("%s is of another boot or damaged, ignoring it",
				    path);
			set->count = 0;
			return;
		}
		/* Changed by somebody else since: what they set is the original now. */
		if (sysctl_read(set, name, &now) < 0 || now != ours)
			continue;
		struct entry *entry = find(set, name) ? NULL : add(set, name);

		if (entry) {
			entry->before = before;
			entry->ours = ours;
			entry->changed = true;
		}
	}
}

int sysctl_set_new(struct sysctl_set **ret_set, const char *runtime_dir, const char *root)
{
	struct sysctl_set *set = calloc(1, sizeof(*set));
	char path[PATH_MAX];

	if (!set)
		return -ENOMEM;
	snprintf(set->root, sizeof(set->root), "%s", root);
	snprintf(set->directory, sizeof(set->directory), "%s", runtime_dir);
	snprintf(path, sizeof(path), "%s/proc/sys/kernel/random/boot_id", set->root);
	if (read_text(path, set->boot, sizeof(set->boot)) < 0)
		snprintf(set->boot, sizeof(set->boot), "unknown");
	load(set);
	*ret_set = set;
	return 0;
}

void sysctl_set_free(struct sysctl_set *set)
{
	free(set);
}

/* Puts one value back if it is still ours. The entry leaves the file at the next save. */
static void put_back(struct sysctl_set *set, struct entry *entry)
{
	uint64_t now;

	if (!entry->changed)
		return;
	int err = sysctl_read(set, entry->name, &now);

	if (err == 0 && now != entry->ours) {
		log_notice("sysctl %s is %" PRIu64 " and not our %" PRIu64
			   " any more, leaving it",
			   entry->name, now, entry->ours);
	} else {
		if (err == 0)
			err = sysctl_write(set, entry->name, entry->before);
		if (err < 0)
			log_warning("sysctl %s: cannot put back %" PRIu64 ": %s",
				    entry->name, entry->before, strerror(-err));
	}
	entry->changed = false;
}

static uint64_t value_for(const struct sysctl_want *want, uint64_t before)
{
	return want->at_least ? UZ_MAX(want->value, before) : want->value;
}

/*
 * Puts back the leftovers that are not wished for, or with another value: a
 * line of the file can only undo the one value that it names.
 */
static void settle_leftovers(struct sysctl_set *set, const struct sysctl_want *wants,
			     size_t count)
{
	for (size_t i = 0; i < set->count; i++) {
		struct entry *entry = &set->entries[i];
		bool keep = false;

		for (size_t j = 0; j < count; j++)
			keep |= strcmp(entry->name, wants[j].name) == 0 &&
				entry->ours == value_for(&wants[j], entry->before);
		if (!keep)
			put_back(set, entry);
	}
}

/* What is to be done about one wish, noted in its entry; changes no sysctl. */
static int plan(struct sysctl_set *set, const struct sysctl_want *want)
{
	struct entry *entry = find(set, want->name);
	uint64_t now;

	if (!entry)
		entry = add(set, want->name);
	if (!entry)
		return -EINVAL;
	entry->error = sysctl_read(set, want->name, &now);
	if (entry->error < 0) {
		entry->changed = false;
		return 0;
	}
	/* With our value in force already, the original is the one that was saved with
	 * it. */
	if (!entry->changed || now != entry->ours)
		entry->before = now;
	entry->ours = value_for(want, entry->before);
	entry->changed = entry->ours != entry->before;
	return 0;
}

/* Carries out the plan for one entry. Returns whether the file's line is not right any
 * more. */
static bool carry_out(struct sysctl_set *set, struct entry *entry)
{
	uint64_t now = entry->ours;
	int err = sysctl_write(set, entry->name, entry->ours);

	if (err == 0)
		err = sysctl_read(set, entry->name, &now);
	if (err < 0) {
		log_warning("sysctl %s: cannot set it to %" PRIu64 ": %s, leaving it",
			    entry->name, entry->ours, strerror(-err));
		entry->error = err;
		entry->changed = false;
		return true;
	}
	if (now == entry->ours)
		return false;
	/* The kernel adjusts some values: ours is what it made of it. */
	entry->ours = now;
	entry->changed = now != entry->before;
	return true;
}

/* Without a file to undo it, nothing new is changed; what is in force already still
 * counts. */
static void abandon_plan(struct sysctl_set *set)
{
	uint64_t now;

	for (size_t i = 0; i < set->count; i++) {
		struct entry *entry = &set->entries[i];

		entry->changed = entry->changed &&
				 sysctl_read(set, entry->name, &now) == 0 &&
				 now == entry->ours;
	}
}

int sysctl_set_apply(struct sysctl_set *set, const struct sysctl_want *wants,
		     size_t count)
{
	char path[PATH_MAX];
	bool stale = false;

	if (count > SYSCTL_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (sysctl_path(set, wants[i].name, path, sizeof(path)) < 0)
			return -EINVAL;
	settle_leftovers(set, wants, count);
	drop_settled(set);
	for (size_t i = 0; i < count; i++) {
		int err = plan(set, &wants[i]);

		if (err < 0)
			return err;
	}
	int err = save(set);

	if (err < 0) {
		log_warning("%s/" SAVED_NAME ": %s, leaving all sysctls alone",
			    set->directory, strerror(-err));
		abandon_plan(set);
		return err;
	}
	for (size_t i = 0; i < set->count; i++)
		if (set->entries[i].changed)
			stale |= carry_out(set, &set->entries[i]);
	return stale ? save(set) : 0;
}

void sysctl_set_restore(struct sysctl_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		put_back(set, &set->entries[i]);
	set->count = 0;
	int err = save(set);

	if (err < 0)
		log_warning("%s/" SAVED_NAME ": %s", set->directory, strerror(-err));
}

size_t sysctl_set_status(struct sysctl_set *set, struct sysctl_status *ret_list,
			 size_t max)
{
	size_t listed = 0;

	for (size_t i = 0; i < set->count && listed < max; i++) {
		const struct entry *entry = &set->entries[i];
		struct sysctl_status *status = &ret_list[listed];

		memset(status, 0, sizeof(*status));
		snprintf(status->name, sizeof(status->name), "%s", entry->name);
		status->before = entry->before;
		status->error = entry->error;
		if (sysctl_read(set, entry->name, &status->now) < 0)
			status->now = entry->before;
		status->changed = entry->changed && status->now == entry->ours;
		listed++;
	}
	return listed;
}
