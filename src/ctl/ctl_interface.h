/* SPDX-License-Identifier: MIT */
/* The Varlink interfaces that the socket offers: their names and descriptions. */
#ifndef UZ_CTL_INTERFACE_H
#define UZ_CTL_INTERFACE_H

#define CTL_INTERFACE         "io.uzswap.Control"
#define CTL_SERVICE_INTERFACE "org.varlink.service"

/*
 * The "version" of status and list replies: goes up when a field changes its meaning or
 * goes.
 */
#define CTL_STATUS_VERSION 1

#define CTL_ERROR_PERMISSION_DENIED CTL_INTERFACE ".PermissionDenied"
#define CTL_ERROR_BUSY              CTL_INTERFACE ".Busy"
#define CTL_ERROR_NO_SUCH_DEVICE    CTL_INTERFACE ".NoSuchDevice"
#define CTL_ERROR_INVALID_VALUE     CTL_INTERFACE ".InvalidValue"
#define CTL_ERROR_FAILED            CTL_INTERFACE ".Failed"

/* The text in Varlink's interface definition language, or NULL for another name. */
const char *ctl_interface_description(const char *name);

#endif
