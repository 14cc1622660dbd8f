// SPDX-License-Identifier: MIT
/*
 * uzswapctl: asks and commands a running uzswapd over its control socket. One
 * thread, one call, one exit code.
 */
#include "config.h"
#include "ctl/uzswapctl.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "ctl/ctl_json.h"
#include "ctl/uzswapctl_client.h"
#include "ctl/uzswapctl_list.h"
#include "ctl/uzswapctl_print.h"

struct verb {
	const char *name;
	const char *arguments;
	int fewest, most;
	unsigned options;
	const char *help;
	int (*run)(const struct uzswapctl_options *options, char **arguments);
};

static const struct verb verbs[] = {
#define VERB(name_, arguments_, fewest_, most_, options_, help_) \
	{#name_, arguments_, fewest_, most_, options_, help_, uzswapctl_##name_},
	UZSWAPCTL_FOR_EACH_VERB(VERB)
#undef VERB
};

/* clang-format off */
static const char options_help[] =
	"\n"
	"      --runtime-dir DIR  of the daemon; " UZSWAPCTL_RUNTIME_DIR " by default\n"
	"      --json             status, list, metrics: print JSON\n"
	"  -b, --bytes            status, list: exact numbers, in bytes and nanoseconds\n"
	"  -n, --noheadings       list: without the line of headings\n"
	"  -o, --output COLUMNS   list: these, separated by commas\n"
	"      --abandon          stop: without swapoff; what is swapped out is lost\n"
	"      --help, --version\n"
	"\n"
	"Exit codes: 0 done, 1 the daemon refused, 2 wrong usage, 3 no daemon,\n"
	"4 no permission. See uzswapctl(8).\n";
/* clang-format on */

static void print_usage(FILE *out)
{
	fputs("uzswapctl [--runtime-dir DIR] VERB [ARGUMENT...]\n"
	      "Shows and changes what a running uzswapd does.\n\n",
	      out);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-7s %-19s %s\n", verbs[i].name, verbs[i].arguments,
			verbs[i].help);
	fputs(options_help, out);
}

int uzswapctl_help(const struct uzswapctl_options *options, char **arguments)
{
	(void)options;
	(void)arguments;
	print_usage(stdout);
	return UZSWAPCTL_OK;
}

static int print_json(struct json_object *object)
{
	const char *text =
		object ? json_object_to_json_string_ext(
				 object, JSON_C_TO_STRING_PRETTY |
						 JSON_C_TO_STRING_SPACED |
						 JSON_C_TO_STRING_NOSLASHESCAPE)
		       : NULL;

	if (!text) {
		fputs("uzswapctl: out of memory\n", stderr);
		return UZSWAPCTL_REFUSED;
	}
	puts(text);
	return UZSWAPCTL_OK;
}

/* {"NAME": "value"}; NULL stands for "no parameters" everywhere. */
static struct json_object *one_parameter(const char *name, const char *value)
{
	struct json_object *parameters = NULL;

	if (value) {
		parameters = json_object_new_object();
		json_put_text(parameters, name, value);
	}
	return parameters;
}

static int get_status(const struct uzswapctl_options *options, const char *device,
		      struct json_object **ret_status)
{
	const struct client_call call = {
		.runtime_dir = options->runtime_dir,
		.method = "GetStatus",
		.parameters = one_parameter("device", device),
	};

	return client_run(&call, ret_status);
}

int uzswapctl_status(const struct uzswapctl_options *options, char **arguments)
{
	struct json_object *status = NULL;
	int code = get_status(options, arguments[0], &status);

	if (code == UZSWAPCTL_OK && options->json)
		code = print_json(status);
	else if (code == UZSWAPCTL_OK)
		print_status(status, options);
	json_object_put(status);
	return code;
}

int uzswapctl_list(const struct uzswapctl_options *options, char **arguments)
{
	struct json_object *status = NULL;
	struct list_columns columns;

	(void)arguments;
	if (list_parse_columns(&columns, options->columns) < 0)
		return UZSWAPCTL_USAGE;
	int code = get_status(options, NULL, &status);

	if (code == UZSWAPCTL_OK && options->json) {
		struct json_object *list = list_to_json(status, &columns);

		code = print_json(list);
		json_object_put(list);
	} else if (code == UZSWAPCTL_OK) {
		list_print(status, &columns, options);
	}
	json_object_put(status);
	return code;
}

int uzswapctl_metrics(const struct uzswapctl_options *options, char **arguments)
{
	const struct client_call call = {
		.runtime_dir = options->runtime_dir,
		.method = "GetMetrics",
	};
	struct json_object *metrics = NULL;
	int code = client_run(&call, &metrics);

	(void)arguments;
	if (code == UZSWAPCTL_OK && options->json)
		code = print_json(metrics);
	else if (code == UZSWAPCTL_OK)
		fputs(client_text(metrics, "text"), stdout);
	json_object_put(metrics);
	return code;
}

int uzswapctl_set(const struct uzswapctl_options *options, char **arguments)
{
	struct json_object *parameters = json_object_new_object(), *reply = NULL;
	const char *device = arguments[2] ? arguments[0] : NULL;
	char **setting = arguments + (device ? 1 : 0);

	if (device)
		json_put_text(parameters, "device", device);
	json_put_text(parameters, "key", setting[0]);
	json_put_text(parameters, "value", setting[1]);
	const struct client_call call = {
		.runtime_dir = options->runtime_dir,
		.method = "Set",
		.parameters = parameters,
	};
	int code = client_run(&call, &reply);

	json_object_put(reply);
	return code;
}

/*
 * Progress of a long call: a line on the terminal that is written over.
 */
struct progress {
	const char *what;
	bool show;
	bool shown;
	uint64_t first_bytes; /* what was to do at the first report */
	uint64_t started_ns;
};

#define CLEAR_LINE "\r\033[K"

static void show_progress(struct json_object *parameters, void *context)
{
	struct progress *progress = context;

	if (!parameters && progress->shown)
		fputs(CLEAR_LINE, stderr);
	if (!parameters || !progress->show)
		return;
	uint64_t remaining_bytes = client_uint(parameters, "remaining_bytes");
	uint64_t now_ns = clock_now_ns();
	char left[PRINT_BYTES], rate[PRINT_BYTES] = "";

	if (!progress->shown) {
		progress->first_bytes = remaining_bytes;
		progress->started_ns = now_ns;
		progress->shown = true;
	}
	/* More may be swapped out while swapoff starts: then that is the whole. */
	progress->first_bytes = UZ_MAX(progress->first_bytes, remaining_bytes);
	uint64_t done_bytes = progress->first_bytes - remaining_bytes;
	double seconds = (double)(now_ns - progress->started_ns) / 1e9;

	print_size(left, remaining_bytes, false);
	if (seconds > 0.5)
		print_size(rate, (uint64_t)((double)done_bytes / seconds), false);
	fprintf(stderr, CLEAR_LINE "%s: %3.0f %%, %s left%s%s%s", progress->what,
		progress->first_bytes > 0
			? (double)done_bytes * 100 / (double)progress->first_bytes
			: 100.0,
		left, *rate ? ", " : "", rate, *rate ? "/s" : "");
	fflush(stderr);
}

static int run_long(const struct uzswapctl_options *options, const char *method,
		    const char *what, struct json_object *parameters)
{
	struct progress progress = {.what = what, .show = isatty(STDERR_FILENO)};
	struct json_object *reply = NULL;
	const struct client_call call = {
		.runtime_dir = options->runtime_dir,
		.method = method,
		.parameters = parameters,
		.progress = show_progress,
		.context = &progress,
	};
	int code = client_run(&call, &reply);

	json_object_put(reply);
	return code;
}

int uzswapctl_swapon(const struct uzswapctl_options *options, char **arguments)
{
	return run_long(options, "SwapOn", "swapon",
			one_parameter("device", arguments[0]));
}

int uzswapctl_swapoff(const struct uzswapctl_options *options, char **arguments)
{
	return run_long(options, "SwapOff", "swapoff",
			one_parameter("device", arguments[0]));
}

int uzswapctl_stop(const struct uzswapctl_options *options, char **arguments)
{
	struct json_object *parameters = json_object_new_object();

	(void)arguments;
	json_put(parameters, "abandon", json_object_new_boolean(options->abandon));
	return run_long(options, "Stop", "stop", parameters);
}

enum {
	OPTION_RUNTIME_DIR = 256,
	OPTION_JSON,
	OPTION_ABANDON,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"runtime-dir", required_argument, NULL, OPTION_RUNTIME_DIR},
	{"json", no_argument, NULL, OPTION_JSON},
	{"bytes", no_argument, NULL, 'b'},
	{"noheadings", no_argument, NULL, 'n'},
	{"output", required_argument, NULL, 'o'},
	{"abandon", no_argument, NULL, OPTION_ABANDON},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

struct command_line {
	struct uzswapctl_options options;
	unsigned given; /* UZSWAPCTL_JSON and so on: what only some verbs take */
	bool help, version;
};

/*
 * Takes options from argv[optind] on, up to the first other argument. Returns 0
 * or UZSWAPCTL_USAGE.
 */
static int parse_options(struct command_line *line, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "+bno:", long_options, NULL)) >= 0) {
		switch (option) {
		case OPTION_RUNTIME_DIR:
			line->options.runtime_dir = optarg;
			break;
		case OPTION_JSON:
			line->options.json = true;
			line->given |= UZSWAPCTL_JSON;
			break;
		case 'b':
			line->options.bytes = true;
			line->given |= UZSWAPCTL_BYTES;
			break;
		case 'n':
			line->options.no_headings = true;
			line->given |= UZSWAPCTL_COLUMNS;
			break;
		case 'o':
			line->options.columns = optarg;
			line->given |= UZSWAPCTL_COLUMNS;
			break;
		case OPTION_ABANDON:
			line->options.abandon = true;
			line->given |= UZSWAPCTL_ABANDON;
			break;
		case OPTION_HELP:
			line->help = true;
			break;
		case OPTION_VERSION:
			line->version = true;
			break;
		default:
			return UZSWAPCTL_USAGE;
		}
	}
	return 0;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int __attribute__((format(printf, 1, 2))) usage_error(const char *format, ...)
{
	va_list args;

	fputs("uzswapctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'uzswapctl help'.\n", stderr);
	return UZSWAPCTL_USAGE;
}

/* Most that a verb takes, one more to see that there are too many, and a NULL. */
#define ARGUMENTS_MAX 3

/*
 * Sorts what follows the verb into options and arguments. Returns the number of
 * arguments, or -1 when an option is wrong.
 */
static int parse_arguments(struct command_line *line, const struct verb *verb, int argc,
			   char **argv, char *arguments[ARGUMENTS_MAX + 2])
{
	bool only_arguments = false;
	int count = 0;

	while (count <= ARGUMENTS_MAX) {
		if (!only_arguments && parse_options(line, argc, argv) != 0)
			return -1;
		if (optind >= argc)
			break;
		/* After "--"; and the value to set may be a negative level. */
		only_arguments |=
			strcmp(argv[optind - 1], "--") == 0 || verb->run == uzswapctl_set;
		arguments[count++] = argv[optind++];
	}
	arguments[count] = NULL;
	return count;
}

/* For a message: the first of the options in `set`. */
static const char *option_names(unsigned set)
{
	if (set & UZSWAPCTL_JSON)
		return "--json";
	if (set & UZSWAPCTL_BYTES)
		return "--bytes";
	return set & UZSWAPCTL_ABANDON ? "--abandon" : "--noheadings or --output";
}

/* Carries out the command line. Returns the exit code. */
static int run(int argc, char **argv)
{
	struct command_line line = {.options.runtime_dir = UZSWAPCTL_RUNTIME_DIR};
	char *arguments[ARGUMENTS_MAX + 2] = {NULL};
	const struct verb *verb = NULL;
	int count = 0;

	if (parse_options(&line, argc, argv) != 0)
		return UZSWAPCTL_USAGE;
	if (optind < argc) {
		verb = find_verb(argv[optind]);
		if (!verb)
			return usage_error("there is no verb '%s'", argv[optind]);
		optind++;
		count = parse_arguments(&line, verb, argc, argv, arguments);
		if (count < 0)
			return UZSWAPCTL_USAGE;
	}
	if (line.version) {
		puts("uzswapctl " PACKAGE_VERSION);
		return UZSWAPCTL_OK;
	}
	if (line.help)
		return uzswapctl_help(&line.options, arguments);
	if (!verb) {
		print_usage(stderr);
		return UZSWAPCTL_USAGE;
	}
	if (count < verb->fewest || count > verb->most)
		return usage_error("usage: uzswapctl %s %s", verb->name, verb->arguments);
	if (line.given & ~verb->options)
		return usage_error("%s does not take %s", verb->name,
				   option_names(line.given & ~verb->options));
	return verb->run(&line.options, arguments);
}

int main(int argc, char **argv)
{
	print_init();
	int code = run(argc, argv);

	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("uzswapctl: standard output");
		if (code == UZSWAPCTL_OK)
			code = UZSWAPCTL_REFUSED;
	}
	return code;
}
