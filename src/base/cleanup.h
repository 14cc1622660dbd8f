/* SPDX-License-Identifier: MIT */
/* Scope-bound release of file descriptors and heap memory (gcc and clang attribute). */
#ifndef UZ_BASE_CLEANUP_H
#define UZ_BASE_CLEANUP_H

#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>

static inline void uz_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void uz_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void uz_cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define UZ_AUTO_CLOSE  __attribute__((cleanup(uz_cleanup_close)))
#define UZ_AUTO_FREE   __attribute__((cleanup(uz_cleanup_free)))
#define UZ_AUTO_FCLOSE __attribute__((cleanup(uz_cleanup_fclose)))

/* Hands a descriptor to the caller and keeps the scope's cleanup from closing it. */
static inline int uz_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
