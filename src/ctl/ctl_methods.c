// SPDX-License-Identifier: MIT
/*
 * The methods. ctl_methods_call runs on the ctl thread, ctl_job_run on the
 * worker; they share nothing but the operations, which are constant.
 *
 * Order of checks: does the method exist, may the caller call it, are the
 * parameters what the interface says, does the device exist. A caller without
 * permission learns nothing from the later ones.
 */
#include "config.h"
#include "ctl/ctl_methods.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "ctl/ctl_format.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_json.h"

#define DENIED_LOG_INTERVAL_NS (10 * UZ_NSEC_PER_SEC)

struct parameter {
	const char *name;
	enum json_type type;
	bool required;
	struct json_object *value; /* NULL: absent, or null */
};

struct request {
	struct ctl_methods *methods;
	const struct ctl_peer *peer;
	const struct varlink_call *call;
	struct ctl_job *job;
};

/* Most parameters that a method has. */
#define PARAMETERS_MAX 3

struct method {
	const char *name;
	enum { ANYBODY, READERS, CHANGERS } access;
	struct parameter parameters[PARAMETERS_MAX + 1];
	/* Returns 0 and a reply (NULL: no memory), or 1 and request->job. */
	int (*run)(const struct request *request, const struct parameter *parameters,
		   struct json_object **ret_reply);
};

/*
 * Snapshots.
 */
static void snapshot_done(struct ctl_snapshot *snapshot)
{
	free(snapshot->devices);
}

/*
 * Takes a snapshot: of the daemon, and of the device `name`, or of all when it
 * is NULL. Returns 0, -ENOENT when there is no such device, or -errno.
 */
static int snapshot_take(const struct ctl_methods *methods, const char *name,
			 struct ctl_snapshot *ret_snapshot)
{
	struct ctl_snapshot snapshot = {0};
	int err = methods->ops->daemon(methods->context, &snapshot.daemon);
	unsigned capacity = 0;

	for (unsigned index = 0; err == 0 && index < CTL_DEVICES_MAX; index++) {
		if (snapshot.device_count == capacity) {
			unsigned grown = capacity ? capacity * 2 : 1;
			struct ctl_device *devices =
				realloc(snapshot.devices, grown * sizeof(*devices));

			if (!devices) {
				err = -ENOMEM;
				break;
			}
			snapshot.devices = devices;
			capacity = grown;
		}
		struct ctl_device *device = &snapshot.devices[snapshot.device_count];

		memset(device, 0, sizeof(*device));
		err = methods->ops->device(methods->context, index, device);
		if (err == 0 && (!name || strcmp(device->name, name) == 0))
			snapshot.device_count++;
	}
	if (err == -ENOENT)
		err = 0;
	if (err == 0 && name && snapshot.device_count == 0)
		err = -ENOENT;
	if (err < 0) {
		snapshot_done(&snapshot);
		return err;
	}
	*ret_snapshot = snapshot;
	return 0;
}

/*
 * Replies.
 */
static struct json_object *reply_result(struct json_object *parameters)
{
	return parameters ? varlink_make_reply(parameters, false) : NULL;
}

static struct json_object *reply_error(const char *error, struct json_object *parameters)
{
	return parameters ? varlink_make_error(error, parameters) : NULL;
}

/* Length of the UTF-8 character that `text` starts with; 0 when that is none. */
static size_t utf8_length(const char *text)
{
	unsigned char first = (unsigned char)*text;
	size_t length;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < length; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

/*
 * What is not UTF-8 becomes question marks: JSON is UTF-8, and a message that
 * quotes a value may have cut it in the middle of a character.
 */
static void make_utf8(char *text)
{
	while (*text) {
		size_t length = utf8_length(text);

		if (length == 0)
			*text = '?';
		text += length ? length : 1;
	}
}

static struct json_object *reply_message(const char *error, const char *message)
{
	return varlink_make_error_string(error, "message", message);
}

static struct json_object *reply_failed(int err, const char *message)
{
	struct json_object *parameters = json_object_new_object();
	int failed = json_put_int(parameters, "errno", -err) |
		     json_put_text(parameters, "message", *message ? message : strerror(-err));

	return reply_error(CTL_ERROR_FAILED, json_finish(parameters, failed));
}

static struct json_object *reply_no_device(const char *device, const char *message)
{
	struct json_object *parameters = json_object_new_object();
	int failed = json_put_text(parameters, "device", device) |
		     json_put_text(parameters, "message", message);

	return reply_error(CTL_ERROR_NO_SUCH_DEVICE, json_finish(parameters, failed));
}

static struct json_object *reply_invalid_value(const char *key, const char *value,
					       const char *message)
{
	struct json_object *parameters = json_object_new_object();
	int failed = json_put_text(parameters, "key", key) |
		     json_put_text(parameters, "value", value) |
		     json_put_text(parameters, "message", message);

	return reply_error(CTL_ERROR_INVALID_VALUE, json_finish(parameters, failed));
}

/* "swap0, swap1": the devices there are, as many as fit. */
static void list_names(const struct ctl_methods *methods, char *text, size_t size)
{
	struct ctl_device device;
	size_t used = 0;

	text[0] = '\0';
	for (unsigned index = 0; index < CTL_DEVICES_MAX; index++) {
		memset(&device, 0, sizeof(device));
		if (methods->ops->device(methods->context, index, &device) < 0)
			break;
		const char *comma = used ? ", " : "";

		if (used + strlen(comma) + strlen(device.name) >= size)
			break;
		used += (size_t)snprintf(text + used, size - used, "%s%s", comma, device.name);
	}
}

static struct json_object *reply_unknown_device(const struct ctl_methods *methods,
						const char *device)
{
	char names[CTL_ERROR_BYTES], message[2 * CTL_ERROR_BYTES];
	bool fits = strlen(device) < CTL_NAME_BYTES;

	list_names(methods, names, sizeof(names));
	/*
	 * A name too long to be one is not repeated: cut off it might not be UTF-8 any
	 * more.
	 */
	snprintf(message, sizeof(message), "no device%s%s%s; there is: %s", fits ? " '" : "",
		 fits ? device : "", fits ? "'" : " of that name", *names ? names : "none");
	return reply_no_device(device, message);
}

/* The reply when a snapshot of `device` (NULL: all) failed with `err`. */
static struct json_object *reply_no_snapshot(const struct ctl_methods *methods, const char *device,
					     int err)
{
	if (err == -ENOENT && device)
		return reply_unknown_device(methods, device);
	return reply_failed(err, "");
}

static const char *parameter_text(const struct parameter *parameter)
{
	return parameter->value ? json_object_get_string(parameter->value) : NULL;
}

/*
 * org.varlink.service
 */
static int run_get_info(const struct request *request, const struct parameter *parameters,
			struct json_object **ret_reply)
{
	struct json_object *info = json_object_new_object();
	struct json_object *interfaces = json_object_new_array();
	int failed = 0;

	(void)request;
	(void)parameters;
	failed |= json_append(interfaces, json_object_new_string(CTL_SERVICE_INTERFACE));
	failed |= json_append(interfaces, json_object_new_string(CTL_INTERFACE));
	failed |= json_put_text(info, "vendor", PACKAGE_NAME);
	failed |= json_put_text(info, "product", "uzswapd");
	failed |= json_put_text(info, "version", PACKAGE_VERSION);
	failed |= json_put_text(info, "url", PACKAGE_URL);
	failed |= json_put(info, "interfaces", interfaces);
	*ret_reply = reply_result(json_finish(info, failed));
	return 0;
}

static int run_get_interface_description(const struct request *request,
					 const struct parameter *parameters,
					 struct json_object **ret_reply)
{
	const char *name = parameter_text(&parameters[0]);
	const char *text = ctl_interface_description(name);

	(void)request;
	if (!text) {
		*ret_reply = varlink_make_error_string(VARLINK_ERROR_INTERFACE_NOT_FOUND,
						       "interface", name);
		return 0;
	}
	struct json_object *result = json_object_new_object();
	int failed = json_put_text(result, "description", text);

	*ret_reply = reply_result(json_finish(result, failed));
	return 0;
}

/*
 * io.uzswap.Control: reading
 */
static int run_get_status(const struct request *request, const struct parameter *parameters,
			  struct json_object **ret_reply)
{
	const char *name = parameter_text(&parameters[0]);
	struct ctl_snapshot snapshot;
	int err = snapshot_take(request->methods, name, &snapshot);

	if (err < 0) {
		*ret_reply = reply_no_snapshot(request->methods, name, err);
		return 0;
	}
	*ret_reply = reply_result(ctl_format_status(&snapshot));
	snapshot_done(&snapshot);
	return 0;
}

static int run_list(const struct request *request, const struct parameter *parameters,
		    struct json_object **ret_reply)
{
	struct ctl_snapshot snapshot;
	int err = snapshot_take(request->methods, NULL, &snapshot);

	(void)parameters;
	if (err < 0) {
		*ret_reply = reply_no_snapshot(request->methods, NULL, err);
		return 0;
	}
	*ret_reply = reply_result(ctl_format_list(&snapshot));
	snapshot_done(&snapshot);
	return 0;
}

static int run_get_metrics(const struct request *request, const struct parameter *parameters,
			   struct json_object **ret_reply)
{
	struct ctl_snapshot snapshot;
	int err = snapshot_take(request->methods, NULL, &snapshot);
	char *text = NULL;

	(void)parameters;
	if (err < 0) {
		*ret_reply = reply_no_snapshot(request->methods, NULL, err);
		return 0;
	}
	err = ctl_format_metrics(&snapshot, &text);
	snapshot_done(&snapshot);
	if (err < 0) {
		*ret_reply = NULL;
		return 0;
	}
	struct json_object *result = json_object_new_object();
	int failed = json_put_text(result, "text", text);

	free(text);
	*ret_reply = reply_result(json_finish(result, failed));
	return 0;
}

/*
 * io.uzswap.Control: changing
 */
static const char *const set_keys[] = {"memory-limit", "codec", "level", "log-level"};

/*
 * The device that a Set without one means: the only one. Returns 0, or -EINVAL
 * with the names of all in `names`.
 */
static int only_device(const struct ctl_methods *methods, char name[CTL_NAME_BYTES], char *names,
		       size_t size)
{
	struct ctl_device device = {0};

	list_names(methods, names, size);
	if (methods->ops->device(methods->context, 0, &device) < 0)
		return -EINVAL;
	memcpy(name, device.name, CTL_NAME_BYTES);
	memset(&device, 0, sizeof(device));
	return methods->ops->device(methods->context, 1, &device) < 0 ? 0 : -EINVAL;
}

static bool device_exists(const struct ctl_methods *methods, const char *name)
{
	struct ctl_device device;

	for (unsigned index = 0; index < CTL_DEVICES_MAX; index++) {
		memset(&device, 0, sizeof(device));
		if (methods->ops->device(methods->context, index, &device) < 0)
			return false;
		if (strcmp(device.name, name) == 0)
			return true;
	}
	return false;
}

/* The reply to an operation of the daemon that failed. */
static struct json_object *reply_operation(int err, const char *device, const char *error_text)
{
	if (err == -ENOENT || err == -ENODEV)
		return reply_no_device(device ? device : "",
				       *error_text ? error_text : "there is no such device");
	if (err == -EBUSY)
		return reply_message(CTL_ERROR_BUSY, *error_text ? error_text : strerror(EBUSY));
	return reply_failed(err, error_text);
}

/* Checks what is the same for every daemon. Returns NULL, or why the value is refused. */
static const char *refuse_set(const char *device, const char *key, const char *value)
{
	enum log_level level;
	bool known = false;

	for (size_t i = 0; i < UZ_ARRAY_SIZE(set_keys); i++)
		known |= strcmp(key, set_keys[i]) == 0;
	if (!known)
		return "the keys are: memory-limit, codec, level, log-level";
	if (strcmp(key, "log-level") != 0)
		return NULL;
	if (device)
		return "log-level belongs to the daemon, not to a device";
	if (log_level_parse(value, &level) < 0)
		return "the log levels are: error, warning, notice, info, debug";
	return NULL;
}

static int run_set(const struct request *request, const struct parameter *parameters,
		   struct json_object **ret_reply)
{
	struct ctl_methods *methods = request->methods;
	const char *device = parameter_text(&parameters[0]);
	const char *key = parameter_text(&parameters[1]);
	const char *value = parameter_text(&parameters[2]);
	const char *refusal = refuse_set(device, key, value);
	char only[CTL_NAME_BYTES], error_text[CTL_ERROR_BYTES] = "";

	if (refusal) {
		*ret_reply = reply_invalid_value(key, value, refusal);
		return 0;
	}
	if (device && !device_exists(methods, device)) {
		*ret_reply = reply_unknown_device(methods, device);
		return 0;
	}
	if (!device && strcmp(key, "log-level") != 0) {
		char names[CTL_ERROR_BYTES], message[2 * CTL_ERROR_BYTES];

		if (only_device(methods, only, names, sizeof(names)) < 0) {
			snprintf(message, sizeof(message), "name a device; there is: %s",
				 *names ? names : "none");
			*ret_reply = reply_no_device("", message);
			return 0;
		}
		device = only;
	}
	int err = methods->ops->set(methods->context, device, key, value, error_text);

	make_utf8(error_text);
	/* As JSON: quoted, and nothing in it can break a log line. */
	log_notice("control: uid %u, pid %d: set %s%s%s = %s: %s", request->peer->uid,
		   request->peer->pid, device ? device : "", device ? " " : "", key,
		   json_object_to_json_string(parameters[2].value),
		   err == 0 ? "done" : strerror(-err));
	if (err == 0)
		*ret_reply = varlink_make_reply(NULL, false);
	else if (err == -EINVAL)
		*ret_reply = reply_invalid_value(key, value,
						 *error_text ? error_text : strerror(EINVAL));
	else
		*ret_reply = reply_operation(err, device, error_text);
	return 0;
}

static void job_init(const struct request *request, enum ctl_job_kind kind)
{
	*request->job = (struct ctl_job){
		.kind = kind,
		.uid = request->peer->uid,
		.pid = request->peer->pid,
	};
}

static int run_on_device(const struct request *request, const struct parameter *parameters,
			 struct json_object **ret_reply, enum ctl_job_kind kind)
{
	const char *device = parameter_text(&parameters[0]);

	if (!device_exists(request->methods, device)) {
		*ret_reply = reply_unknown_device(request->methods, device);
		return 0;
	}
	job_init(request, kind);
	snprintf(request->job->device, sizeof(request->job->device), "%s", device);
	return 1;
}

static int run_swapon(const struct request *request, const struct parameter *parameters,
		      struct json_object **ret_reply)
{
	return run_on_device(request, parameters, ret_reply, CTL_JOB_SWAPON);
}

static int run_swapoff(const struct request *request, const struct parameter *parameters,
		       struct json_object **ret_reply)
{
	return run_on_device(request, parameters, ret_reply, CTL_JOB_SWAPOFF);
}

static int run_stop(const struct request *request, const struct parameter *parameters,
		    struct json_object **ret_reply)
{
	(void)ret_reply;
	job_init(request, CTL_JOB_STOP);
	request->job->abandon = parameters[0].value && json_object_get_boolean(parameters[0].value);
	return 1;
}

/* clang-format off */
#define STRING  json_type_string
#define BOOLEAN json_type_boolean

static const struct method methods_table[] = {
	{CTL_SERVICE_INTERFACE ".GetInfo", ANYBODY, {{0}}, run_get_info},
	{CTL_SERVICE_INTERFACE ".GetInterfaceDescription", ANYBODY,
	 {{.name = "interface", .type = STRING, .required = true}},
	 run_get_interface_description},
	{CTL_INTERFACE ".GetStatus", READERS, {{.name = "device", .type = STRING}}, run_get_status},
	{CTL_INTERFACE ".List", READERS, {{0}}, run_list},
	{CTL_INTERFACE ".GetMetrics", READERS, {{0}}, run_get_metrics},
	{CTL_INTERFACE ".Set", CHANGERS,
	 {{.name = "device", .type = STRING},
	  {.name = "key", .type = STRING, .required = true},
	  {.name = "value", .type = STRING, .required = true}},
	 run_set},
	{CTL_INTERFACE ".SwapOn", CHANGERS,
	 {{.name = "device", .type = STRING, .required = true}}, run_swapon},
	{CTL_INTERFACE ".SwapOff", CHANGERS,
	 {{.name = "device", .type = STRING, .required = true}}, run_swapoff},
	{CTL_INTERFACE ".Stop", CHANGERS, {{.name = "abandon", .type = BOOLEAN}}, run_stop},
};
/* clang-format on */

void ctl_methods_for_each(void (*visit)(const char *name, void *context), void *context)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(methods_table); i++)
		visit(methods_table[i].name, context);
}

/*
 * Sorts the call's parameters into `parameters`, which ends with a nameless
 * one. Returns NULL, or the name of the first parameter that is unknown, of
 * another type, or missing.
 */
static const char *take_parameters(struct json_object *object, struct parameter *parameters)
{
	if (object) {
		json_object_object_foreach(object, name, value)
		{
			struct parameter *known = parameters;

			while (known->name && strcmp(known->name, name) != 0)
				known++;
			if (!known->name)
				return name;
			if (!value)
				continue;
			if (!json_object_is_type(value, known->type))
				return name;
			/* All that follows uses C strings. */
			if (known->type == STRING &&
			    strlen(json_object_get_string(value)) !=
				    (size_t)json_object_get_string_len(value))
				return name;
			known->value = value;
		}
	}
	for (; parameters->name; parameters++)
		if (parameters->required && !parameters->value)
			return parameters->name;
	return NULL;
}

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(methods_table); i++)
		if (strcmp(methods_table[i].name, name) == 0)
			return &methods_table[i];
	return NULL;
}

static bool is_implemented(const struct ctl_ops *ops, const struct method *method)
{
	if (method->run == run_set)
		return ops->set;
	if (method->run == run_swapon)
		return ops->swapon;
	if (method->run == run_swapoff)
		return ops->swapoff;
	if (method->run == run_stop)
		return ops->stop;
	return true;
}

static struct json_object *reply_unknown_method(const char *name)
{
	size_t length = varlink_interface_length(name);
	char interface[64];

	if (length > 0 && length < sizeof(interface)) {
		memcpy(interface, name, length);
		interface[length] = '\0';
		if (ctl_interface_description(interface))
			length = 0;
	}
	if (length == 0)
		return varlink_make_error_string(VARLINK_ERROR_METHOD_NOT_FOUND, "method", name);
	struct json_object *parameters = json_object_new_object();
	int failed =
		json_put(parameters, "interface", json_object_new_string_len(name, (int)length));

	return reply_error(VARLINK_ERROR_INTERFACE_NOT_FOUND, json_finish(parameters, failed));
}

static bool is_allowed(const struct ctl_peer *peer, const struct method *method)
{
	switch (method->access) {
	case ANYBODY:
		return true;
	case READERS:
		return peer->may_read;
	case CHANGERS:
		return peer->may_change;
	}
	return false;
}

/* The audit trail; a flood of refused calls makes one line in a while. */
static struct json_object *reply_denied(struct ctl_methods *methods, const struct ctl_peer *peer,
					const struct method *method)
{
	methods->denied++;
	uint64_t news = log_limit_due(&methods->denied_limit, methods->denied, clock_now_ns(),
				      DENIED_LOG_INTERVAL_NS);

	if (news > 0)
		log_notice("control: refused %s to uid %u, pid %d (%llu refused since "
			   "the last "
			   "such line)",
			   method->name, peer->uid, peer->pid, (unsigned long long)news);
	return reply_message(CTL_ERROR_PERMISSION_DENIED,
			     method->access == CHANGERS
				     ? "only root may change anything"
				     : "only root and the statistics group may read");
}

/* Answers the call or makes a job of it, like struct method's run. */
static int answer(const struct request *request, struct json_object **ret_reply)
{
	struct ctl_methods *methods = request->methods;
	const struct varlink_call *call = request->call;
	const struct method *method = find_method(call->method);

	if (!method) {
		*ret_reply = reply_unknown_method(call->method);
		return 0;
	}
	if (!is_allowed(request->peer, method)) {
		*ret_reply = reply_denied(methods, request->peer, method);
		return 0;
	}
	if (!is_implemented(methods->ops, method)) {
		*ret_reply = varlink_make_error_string(VARLINK_ERROR_METHOD_NOT_IMPLEMENTED,
						       "method", method->name);
		return 0;
	}
	struct parameter parameters[PARAMETERS_MAX + 1];
	const char *wrong;

	memcpy(parameters, method->parameters, sizeof(parameters));
	wrong = call->upgrade ? "upgrade" : take_parameters(call->parameters, parameters);
	if (wrong) {
		*ret_reply = varlink_make_error_string(VARLINK_ERROR_INVALID_PARAMETER, "parameter",
						       wrong);
		return 0;
	}
	return method->run(request, parameters, ret_reply);
}

int ctl_methods_call(struct ctl_methods *methods, const struct ctl_peer *peer,
		     const struct varlink_call *call, struct json_object **ret_reply,
		     struct ctl_job *ret_job)
{
	struct request request = {
		.methods = methods,
		.peer = peer,
		.call = call,
		.job = ret_job,
	};
	struct json_object *reply = NULL;

	if (answer(&request, &reply) == 1)
		return 1;
	if (!reply)
		return -ENOMEM;
	*ret_reply = reply;
	return 0;
}

/*
 * Jobs.
 */
void ctl_job_run(struct ctl_job *job, const struct ctl_ops *ops, void *context,
		 const struct ctl_progress *progress)
{
	const char *what = "";

	job->result = -ENOSYS;
	switch (job->kind) {
	case CTL_JOB_SWAPON:
		what = "swapon";
		job->result = ops->swapon(context, job->device, job->error_text);
		break;
	case CTL_JOB_SWAPOFF:
		what = "swapoff";
		job->result = ops->swapoff(context, job->device, progress, job->error_text);
		break;
	case CTL_JOB_STOP:
		what = job->abandon ? "stop, abandoning the swap" : "stop";
		job->result = ops->stop(context, job->abandon, progress, job->error_text);
		break;
	}
	make_utf8(job->error_text);
	log_notice("control: uid %u, pid %d: %s%s%s: %s", job->uid, job->pid, what,
		   *job->device ? " " : "", job->device,
		   job->result == 0 ? "done" : strerror(-job->result));
}

static struct json_object *remaining(uint64_t bytes)
{
	struct json_object *parameters = json_object_new_object();

	return json_finish(parameters, json_put_uint(parameters, "remaining_bytes", bytes));
}

struct json_object *ctl_job_reply(const struct ctl_job *job)
{
	if (job->result < 0)
		return reply_operation(job->result, job->device, job->error_text);
	if (job->kind == CTL_JOB_SWAPON)
		return varlink_make_reply(NULL, false);
	return reply_result(remaining(0));
}

struct json_object *ctl_job_reply_busy(void)
{
	return reply_message(CTL_ERROR_BUSY, "another SwapOn, SwapOff or Stop is running");
}

struct json_object *ctl_job_reply_progress(uint64_t remaining_bytes)
{
	struct json_object *parameters = remaining(remaining_bytes);

	return parameters ? varlink_make_reply(parameters, true) : NULL;
}
