/* SPDX-License-Identifier: MIT */
/* The configuration's files, and the switch on the kernel command line. */
#ifndef UZ_CONF_CONF_FILES_H
#define UZ_CONF_CONF_FILES_H

#include "conf/conf_report.h"

struct conf_file_list {
	size_t count;
	char **paths; /* lowest precedence first */
};

/*
 * The main file, if there is one, and the drop-ins. Files that cannot be
 * looked for are reported. Returns 0 or -ENOMEM. Free with conf_file_list_done.
 */
int conf_files_find(struct conf_file_list *ret_list, const struct conf_sources *sources,
		    struct conf_report *report);
void conf_file_list_done(struct conf_file_list *list);

/*
 * Reads a whole file. Returns 1 with *ret_data for the caller to free, 0 for
 * /dev/null (the file is switched off) and after a report, or -ENOMEM.
 */
int conf_file_read(const char *path, char **ret_data, size_t *ret_length,
		   struct conf_report *report);

/* True when the kernel command line ends up with uzswap=off. */
bool conf_kill_switch(const char *cmdline_path, struct conf_report *report);

#endif
