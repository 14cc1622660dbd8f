// SPDX-License-Identifier: MIT
/*
 * Files, with systemd's precedence. A file that exists and cannot be read is an
 * error, never "no configuration": a wrong label or mode must not turn into the
 * defaults. Owned by one load; no locks.
 */
#include "conf/conf_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "conf/conf_text.h"

/* Highest precedence first. Fixed, as the manual page and packagers rely on them. */
static const char *const directories[] = {"/etc/uzswap", "/run/uzswap",
					  "/usr/lib/uzswap"};

#define MAIN_NAME "uzswapd.conf"
#define SUFFIX	  ".conf"

/* A file of ours has a few hundred bytes. */
#define BYTES_MAX   (4 * UZ_MIB)
#define CMDLINE_MAX (64 * UZ_KIB)

static void report_unreadable(struct conf_report *report, const char *path, int err)
{
	struct conf_place place = {.file = path};

	if (report->status == 0)
		report->status = err;
	if (err == -EACCES || err == -EPERM)
		conf_report_at(report, LOG_LEVEL_ERROR, &place,
			       "cannot be read: %s; check modes and security labels of "
			       "the file and "
			       "of its directories with 'ls -lZ' and 'ls -ldZ'",
			       strerror(-err));
	else
		conf_report_at(report, LOG_LEVEL_ERROR, &place, "cannot be read: %s",
			       strerror(-err));
}

static void report_masked(struct conf_report *report, const char *path,
			  const char *masked_by)
{
	conf_report_at(report, LOG_LEVEL_DEBUG, &(struct conf_place){.file = path},
		       "not used: %s takes its place", masked_by);
}

/* Appends `path` and owns it, also on failure. NULL (from concat) is -ENOMEM. */
static int list_append(struct conf_file_list *list, char *path)
{
	char **paths;

	if (!path)
		return -ENOMEM;
	paths = reallocarray(list->paths, list->count + 1, sizeof(*paths));
	if (!paths) {
		free(path);
		return -ENOMEM;
	}
	list->paths = paths;
	list->paths[list->count++] = path;
	return 0;
}

void conf_file_list_done(struct conf_file_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct conf_file_list){0};
}

/* NULL when there is no memory. */
static char *concat(const char *a, const char *b, const char *c)
{
	char *text;

	return asprintf(&text, "%s%s%s", a, b, c) < 0 ? NULL : text;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * The first main file that exists, even if only as a dangling link: reading it
 * then says so. One that cannot be looked at counts as existing.
 */
static int find_main(struct conf_file_list *list, const char *root,
		     struct conf_report *report)
{
	const char *found = NULL;

	for (size_t i = 0; i < UZ_ARRAY_SIZE(directories); i++) {
		char *path = concat(root, directories[i], "/" MAIN_NAME);
		struct stat status;
		int err;

		if (path && lstat(path, &status) < 0 && errno == ENOENT) {
			free(path);
			continue;
		}
		if (path && found) {
			report_masked(report, path, found);
			free(path);
			continue;
		}
		err = list_append(list, path);
		if (err < 0)
			return err;
		found = path;
	}
	return 0;
}

static bool is_drop_in(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > strlen(SUFFIX) &&
	       strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

/* Adds a directory's drop-ins, except those that a directory before it masks. */
static int find_drop_ins(struct conf_file_list *list, const char *directory,
			 struct conf_report *report)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	int err = 0;

	if (!stream) {
		if (errno != ENOENT)
			report_unreadable(report, directory, -errno);
		return 0;
	}
	while (err == 0 && (errno = 0, entry = readdir(stream))) {
		const char *masked_by = NULL;
		char *path;

		if (!is_drop_in(entry->d_name))
			continue;
		path = concat(directory, "/", entry->d_name);
		if (!path) {
			err = -ENOMEM;
			break;
		}
		for (size_t i = 0; i < list->count && !masked_by; i++)
			if (strcmp(base_name(list->paths[i]), entry->d_name) == 0)
				masked_by = list->paths[i];
		if (!masked_by) {
			err = list_append(list, path);
			continue;
		}
		report_masked(report, path, masked_by);
		free(path);
	}
	if (err == 0 && errno != 0)
		report_unreadable(report, directory, -errno);
	closedir(stream);
	return err;
}

static int find_all_drop_ins(struct conf_file_list *list,
			     const struct conf_sources *sources, const char *root,
			     struct conf_report *report)
{
	size_t count = sources->file ? 1 : UZ_ARRAY_SIZE(directories);
	int err = 0;

	for (size_t i = 0; i < count && err == 0; i++) {
		UZ_AUTO_FREE char *directory =
			sources->file ? concat(sources->file, ".d", "")
				      : concat(root, directories[i], "/" MAIN_NAME ".d");

		err = directory ? find_drop_ins(list, directory, report) : -ENOMEM;
	}
	return err;
}

static int compare_base_names(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

int conf_files_find(struct conf_file_list *ret_list, const struct conf_sources *sources,
		    struct conf_report *report)
{
	const char *root = sources->root ? sources->root : "";
	struct conf_file_list list = {0}, drop_ins = {0};
	int err;

	err = sources->file ? list_append(&list, strdup(sources->file))
			    : find_main(&list, root, report);
	if (err == 0)
		err = find_all_drop_ins(&drop_ins, sources, root, report);
	if (drop_ins.count > 0)
		qsort(drop_ins.paths, drop_ins.count, sizeof(*drop_ins.paths),
		      compare_base_names);
	for (size_t i = 0; i < drop_ins.count && err == 0; i++) {
		err = list_append(&list, drop_ins.paths[i]);
		drop_ins.paths[i] = NULL;
	}
	conf_file_list_done(&drop_ins);
	if (err < 0)
		conf_file_list_done(&list);
	else
		*ret_list = list;
	return err;
}

/* Reads to the end and puts a NUL there. Returns 0 or -errno; -EFBIG above `limit`. */
static int read_all(int fd, size_t limit, char **ret_data, size_t *ret_length)
{
	UZ_AUTO_FREE char *data = NULL;
	size_t length = 0, capacity = 0;

	for (;;) {
		ssize_t count;

		if (length == capacity) {
			char *grown;

			if (capacity > limit)
				return -EFBIG;
			capacity = UZ_MAX(2 * capacity, (size_t)(16 * UZ_KIB));
			grown = realloc(data, capacity + 1);
			if (!grown)
				return -ENOMEM;
			data = grown;
		}
		count = read(fd, data + length, capacity - length);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			break;
		length += (size_t)count;
	}
	if (length > limit)
		return -EFBIG;
	data[length] = '\0';
	*ret_data = data;
	*ret_length = length;
	data = NULL;
	return 0;
}

int conf_file_read(const char *path, char **ret_data, size_t *ret_length,
		   struct conf_report *report)
{
	struct conf_place place = {.file = path};
	struct stat status;
	/* Not blocking: somebody may have put a FIFO there. */
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int err;

	if (fd < 0 && errno == ENOENT && lstat(path, &status) == 0) {
		report->status = report->status ? report->status : -ENOENT;
		conf_report_at(
			report, LOG_LEVEL_ERROR, &place,
			"is a symbolic link to a file that does not exist; link it to "
			"/dev/null to switch it off");
		return 0;
	}
	if (fd < 0 || fstat(fd, &status) < 0) {
		report_unreadable(report, path, -errno);
		return 0;
	}
	if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) {
		conf_report_at(report, LOG_LEVEL_DEBUG, &place,
			       "switched off: it is /dev/null");
		return 0;
	}
	if (S_ISDIR(status.st_mode)) {
		report_unreadable(report, path, -EISDIR);
		return 0;
	}
	if (!S_ISREG(status.st_mode)) {
		report->status = report->status ? report->status : -EINVAL;
		conf_report_at(report, LOG_LEVEL_ERROR, &place, "is not a regular file");
		return 0;
	}
	err = read_all(fd, BYTES_MAX, ret_data, ret_length);
	if (err == -ENOMEM)
		return err;
	if (err < 0) {
		report_unreadable(report, path, err);
		return 0;
	}
	return 1;
}

/*
 * Takes the next word, as the kernel does: blanks between double quotes do not
 * end it. The quotes are removed, the word is terminated in place.
 */
static char *next_word(char **text)
{
	char *at = *text, *word, *out;
	bool quoted = false;

	while (*at == ' ' || *at == '\t' || *at == '\n')
		at++;
	if (*at == '\0')
		return NULL;
	word = out = at;
	for (; *at != '\0' && (quoted || (*at != ' ' && *at != '\t' && *at != '\n'));
	     at++) {
		if (*at == '"')
			quoted = !quoted;
		else
			*out++ = *at;
	}
	*text = *at == '\0' ? at : at + 1;
	*out = '\0';
	return word;
}

bool conf_kill_switch(const char *cmdline_path, struct conf_report *report)
{
	static const char name[] = "uzswap=";
	const char *path = cmdline_path ? cmdline_path : CONF_CMDLINE_PATH;
	struct conf_place place = {.file = path};
	UZ_AUTO_FREE char *data = NULL;
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *rest, *word;
	size_t length;
	bool on = true;
	int err = fd < 0 ? -errno : read_all(fd, CMDLINE_MAX, &data, &length);

	if (err < 0) {
		conf_report_at(report, LOG_LEVEL_WARNING, &place,
			       "cannot be read: %s; going on as without uzswap=off",
			       strerror(-err));
		return false;
	}
	for (rest = data; (word = next_word(&rest));) {
		const char *value = word + strlen(name);

		if (strncmp(word, name, strlen(name)) != 0)
			continue;
		if (conf_parse_bool(value, &on) < 0)
			conf_report_at(
				report, LOG_LEVEL_WARNING, &place,
				"uzswap=%s ignored; allowed: uzswap=off, uzswap=on",
				CONF_QUOTE(value));
	}
	return !on;
}
