/* SPDX-License-Identifier: MIT */
/* Telling the service manager; without libsystemd or without one, nothing happens. */
#ifndef UZ_DAEMON_NOTIFY_H
#define UZ_DAEMON_NOTIFY_H

/* `format` makes newline-separated assignments as in sd_notify(3). */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
