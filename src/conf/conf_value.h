/* SPDX-License-Identifier: MIT */
/* Values of the keys, one type each: how they are read, checked and printed. */
#ifndef UZ_CONF_CONF_VALUE_H
#define UZ_CONF_CONF_VALUE_H

#include "conf/conf_keys.h"

extern const struct conf_type conf_type_bool;
extern const struct conf_type conf_type_tristate;
extern const struct conf_type conf_type_log_level;
extern const struct conf_type conf_type_transport;
extern const struct conf_type conf_type_codec;
extern const struct conf_type conf_type_level;
extern const struct conf_type conf_type_priority;
extern const struct conf_type conf_type_boost_factor;
extern const struct conf_type conf_type_ratio;
extern const struct conf_type conf_type_poll_time;
extern const struct conf_type conf_type_group;
extern const struct conf_type conf_type_device_size;
extern const struct conf_type conf_type_memory_limit;
extern const struct conf_type conf_type_relief_reserve;
extern const struct conf_type conf_type_min_free;

#endif
