// SPDX-License-Identifier: MIT
/* Telling the service manager. Main thread and ctl's worker; sd_notify is a datagram. */
#include "config.h"
#include "daemon/notify.h"

#include <stdarg.h>
#include <stdio.h>

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

void notify(const char *format, ...)
{
	char state[512];
	va_list args;

	va_start(args, format);
	vsnprintf(state, sizeof(state), format, args);
	va_end(args);
#ifdef HAVE_LIBSYSTEMD
	sd_notify(0, state);
#endif
}
