/* SPDX-License-Identifier: MIT */
/*
 * Building JSON without a test after every line: json_put* return 0 or -1 (no
 * memory) and take a NULL object or value as a failure that has happened
 * before. A caller ORs the results and asks json_finish once.
 */
#ifndef UZ_CTL_JSON_H
#define UZ_CTL_JSON_H

#include <stdint.h>

#include <json-c/json.h>

/* Adds `value`, which is consumed also on failure. */
static inline int json_put(struct json_object *object, const char *name,
			   struct json_object *value)
{
	if (object && value && json_object_object_add(object, name, value) == 0)
		return 0;
	json_object_put(value);
	return -1;
}

static inline int json_put_null(struct json_object *object, const char *name)
{
	return object && json_object_object_add(object, name, NULL) == 0 ? 0 : -1;
}

static inline int json_put_text(struct json_object *object, const char *name,
				const char *text)
{
	return json_put(object, name, json_object_new_string(text));
}

static inline int json_put_int(struct json_object *object, const char *name,
			       int64_t value)
{
	return json_put(object, name, json_object_new_int64(value));
}

static inline int json_put_uint(struct json_object *object, const char *name,
				uint64_t value)
{
	return json_put(object, name, json_object_new_uint64(value));
}

/* Adds `value` to the array's end; it is consumed also on failure. */
static inline int json_append(struct json_object *array, struct json_object *value)
{
	if (array && value && json_object_array_add(array, value) == 0)
		return 0;
	json_object_put(value);
	return -1;
}

/* The finished object, or NULL when something in it failed. */
static inline struct json_object *json_finish(struct json_object *object, int failed)
{
	if (!failed)
		return object;
	json_object_put(object);
	return NULL;
}

#endif
