// SPDX-License-Identifier: MIT
/*
 * The interface definitions. Constant data; the list of statistics is made
 * from the table, so that a new number describes itself.
 */
#include "ctl/ctl_interface.h"

#include <stddef.h>
#include <string.h>

#include "stats/stats.h"

/* The texts keep their own lines. */
/* clang-format off */

/* Every unit but nanoseconds stands in the name already. */
#define UNIT_NOTE_NONE  ""
#define UNIT_NOTE_PAGES ""
#define UNIT_NOTE_BYTES ""
#define UNIT_NOTE_NS    " In nanoseconds."

#define FIELD(id, name, type, unit, help) \
	"\t# " help UNIT_NOTE_##unit "\n" \
	"\t" name ": int,\n"

static const char control_description[] =
	"# Statistics and control of uzswapd, the compressed swap daemon.\n"
	"# Reading needs root or the statistics group, changing needs root.\n"
	"interface " CTL_INTERFACE "\n"
	"\n"
	"# The numbers of a device. Pages are 4096 bytes; _total counts since the start.\n"
	"type Statistics (\n"
	STATS_FOR_EACH(FIELD)
	"\t# stored_bytes / compressed_bytes; null while there is no data.\n"
	"\tratio: ?float,\n"
	"\t# stored_bytes / memory_used_bytes; null while there is no data.\n"
	"\teffective_ratio: ?float\n"
	")\n"
	"\n"
	"# How long requests took, from their arrival to their answer.\n"
	"type RequestLatency (\n"
	"\tcount: int,\n"
	"\tp50_ns: int,\n"
	"\tp99_ns: int,\n"
	"\tmax_ns: int,\n"
	"\tsum_ns: int\n"
	")\n"
	"\n"
	"type Latency (read: RequestLatency, write: RequestLatency)\n"
	"\n"
	"# active: swap is on. ready: the block device is there, swap is off.\n"
	"type DeviceState (starting, active, ready, stopping)\n"
	"\n"
	"type Device (\n"
	"\tname: string,\n"
	"\t# The stable path, and the block device that it stands for now.\n"
	"\tpath: string,\n"
	"\tblock_path: string,\n"
	"\ttransport: string,\n"
	"\t# Why that transport is used.\n"
	"\ttransport_reason: string,\n"
	"\tcodec: string,\n"
	"\tlevel: int,\n"
	"\tpriority: int,\n"
	"\tstate: DeviceState,\n"
	"\t# How the memory of the store is kept from being swapped itself.\n"
	"\tpinning: string,\n"
	"\t# What keeps the kernel's idea of free swap honest.\n"
	"\thonest_free: string,\n"
	"\tstatistics: Statistics,\n"
	"\tlatency: Latency\n"
	")\n"
	"\n"
	"# A protection that the daemon asked for and did not get.\n"
	"type Protection (name: string, reason: string)\n"
	"\n"
	"# A sysctl that the daemon has changed and will restore.\n"
	"type Sysctl (name: string, before: string, now: string)\n"
	"\n"
	"# The locked reserve that is given to the kernel when it runs out of memory.\n"
	"type ReliefValve (\n"
	"\treserve_bytes: int,\n"
	"\tarmed_bytes: int,\n"
	"\tgiven_bytes_total: int\n"
	")\n"
	"\n"
	"type Daemon (\n"
	"\tversion: string,\n"
	"\tpid: int,\n"
	"\tuptime_ns: int,\n"
	"\tlog_level: string,\n"
	"\ttakeover: string,\n"
	"\trelief_valve: ReliefValve,\n"
	"\tprotections_missing: []Protection,\n"
	"\tsysctls: []Sysctl\n"
	")\n"
	"\n"
	"# What List tells of a device.\n"
	"type DeviceSummary (\n"
	"\tname: string,\n"
	"\tpath: string,\n"
	"\tblock_path: string,\n"
	"\ttransport: string,\n"
	"\tcodec: string,\n"
	"\tlevel: int,\n"
	"\tpriority: int,\n"
	"\tstate: DeviceState,\n"
	"\tsize_bytes: int\n"
	")\n"
	"\n"
	"# All that is known of the daemon and of one device, or of all.\n"
	"method GetStatus(device: ?string) -> (version: int, daemon: Daemon, devices: []Device)\n"
	"\n"
	"method List() -> (version: int, devices: []DeviceSummary)\n"
	"\n"
	"# The same numbers as Prometheus text.\n"
	"method GetMetrics() -> (text: string)\n"
	"\n"
	"# Changes memory-limit, codec or level of a device (it may be left out when there\n"
	"# is only one), or log-level of the daemon. No configuration file is changed.\n"
	"method Set(device: ?string, key: string, value: string) -> ()\n"
	"\n"
	"method SwapOn(device: string) -> ()\n"
	"\n"
	"# Called with 'more' it first replies several times with what is left to do.\n"
	"method SwapOff(device: string) -> (remaining_bytes: int)\n"
	"\n"
	"# Ends the daemon after swapoff of all devices. abandon: without swapoff, which\n"
	"# loses what is swapped out. Called with 'more' it reports like SwapOff.\n"
	"method Stop(abandon: ?bool) -> (remaining_bytes: int)\n"
	"\n"
	"error PermissionDenied (message: string)\n"
	"\n"
	"# One SwapOn, SwapOff or Stop runs at a time.\n"
	"error Busy (message: string)\n"
	"\n"
	"error NoSuchDevice (device: string, message: string)\n"
	"\n"
	"# The message names the allowed values.\n"
	"error InvalidValue (key: string, value: string, message: string)\n"
	"\n"
	"error Failed (errno: int, message: string)\n";

static const char service_description[] =
	"# Every Varlink service tells with this interface what it is and what it offers.\n"
	"interface " CTL_SERVICE_INTERFACE "\n"
	"\n"
	"method GetInfo() -> (\n"
	"\tvendor: string,\n"
	"\tproduct: string,\n"
	"\tversion: string,\n"
	"\turl: string,\n"
	"\tinterfaces: []string\n"
	")\n"
	"\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"\n"
	"error MethodNotFound (method: string)\n"
	"\n"
	"error MethodNotImplemented (method: string)\n"
	"\n"
	"error InvalidParameter (parameter: string)\n";
/* clang-format on */

const char *ctl_interface_description(const char *name)
{
	if (strcmp(name, CTL_INTERFACE) == 0)
		return control_description;
	if (strcmp(name, CTL_SERVICE_INTERFACE) == 0)
		return service_description;
	return NULL;
}
