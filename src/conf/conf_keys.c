// SPDX-License-Identifier: MIT
/* The keys. Constant data; tests compare it with the manual page and the example. */
#include "conf/conf_keys.h"

#include "conf/conf_value.h"

#define ALLOWED_SIZE "a size such as 512M, 0.5G, 25% or min(ram / 2, 4G)"

#define DAEMON_KEY(field_) .offset = offsetof(struct conf_daemon, field_)
#define DEVICE_KEY(field_) .offset = offsetof(struct conf_device, field_)

const struct conf_key conf_daemon_keys[CONF_DAEMON_KEY_COUNT] = {
	[CONF_LOG_LEVEL] = {"LogLevel", "info", "error, warning, notice, info, debug",
			    DAEMON_KEY(log_level), &conf_type_log_level},
	[CONF_STATS_GROUP] = {"StatsGroup", "", "the name of a group, or nothing",
			      DAEMON_KEY(stats_group), &conf_type_group},
	[CONF_RELIEF_RESERVE] = {"ReliefReserve", "min(32M, ram / 8)",
				 "0, or a size from 1M to ram / 8",
				 DAEMON_KEY(relief_reserve_bytes),
				 &conf_type_relief_reserve},
	[CONF_WATERMARK_BOOST_FACTOR] = {"WatermarkBoostFactor", "0",
					 "keep, or an integer from 0",
					 DAEMON_KEY(watermark_boost_factor),
					 &conf_type_boost_factor},
	[CONF_MIN_FREE] = {"MinFree", "keep", "keep, or a size from 1M to ram / 8",
			   DAEMON_KEY(min_free_bytes), &conf_type_min_free},
};

const struct conf_key conf_device_keys[CONF_DEVICE_KEY_COUNT] = {
	[CONF_ENABLED] = {"Enabled", "yes", "yes, no", DEVICE_KEY(enabled),
			  &conf_type_bool},
	[CONF_TRANSPORT] = {"Transport", "auto", "auto, ublk, fuse",
			    DEVICE_KEY(transport), &conf_type_transport},
	[CONF_SIZE] = {"Size", "min(ram, 16G)", ALLOWED_SIZE, DEVICE_KEY(size_bytes),
		       &conf_type_device_size},
	[CONF_MEMORY_LIMIT] = {"MemoryLimit", "min(ram / 2, 8G)", ALLOWED_SIZE,
			       DEVICE_KEY(memory_limit_bytes), &conf_type_memory_limit},
	[CONF_CODEC] = {"Codec", "lz4", NULL, DEVICE_KEY(codec), &conf_type_codec},
	[CONF_LEVEL] = {"Level", NULL, "an integer in the codec's range",
			DEVICE_KEY(level), &conf_type_level},
	[CONF_PRIORITY] = {"Priority", "100", "an integer from -1 to 32767",
			   DEVICE_KEY(priority), &conf_type_priority},
	[CONF_SWAP_ON] = {"SwapOn", "yes", "yes, no", DEVICE_KEY(swap_on),
			  &conf_type_bool},
	[CONF_HONEST_FREE] = {"HonestFree", "auto", "auto, yes, no",
			      DEVICE_KEY(honest_free), &conf_type_tristate},
	[CONF_EXPECTED_RATIO] = {"ExpectedRatio", "3.0", "a number from 1.0 to 20",
				 DEVICE_KEY(expected_ratio_permille), &conf_type_ratio},
	[CONF_POLL_TIME] = {"PollTime", "50us",
			    "0, or a time such as 50us or 1ms, up to 10ms",
			    DEVICE_KEY(poll_ns), &conf_type_poll_time},
};
