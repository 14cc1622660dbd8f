// SPDX-License-Identifier: MIT
/*
 * Lines. inih splits settings into key and value; the reader that feeds it
 * counts lines, knows columns, and lets nothing through that inih would accept
 * in silence, or read in another way than the manual page says: "key: value",
 * continued lines, comments after values, bytes behind a NUL, lines that are
 * longer than its buffer. Section lines do not reach inih: it keeps 49 bytes of
 * them and says nothing of a section without settings.
 *
 * Owned by one load; no locks.
 */
#include "conf/conf_lines.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <string.h>

#include "conf/conf_text.h"

enum section_state {
	SECTION_NONE, /* before the first */
	SECTION_WANTED,
	SECTION_SKIPPED, /* its line was wrong, or the sink does not want it */
};

struct lines {
	struct conf_report *report;
	const struct conf_sink *sink;
	const char *file;
	const char *next, *end; /* what is not read yet */
	unsigned number;	/* of the line read last, from 1 */
	const char *start;	/* of that line */
	enum section_state section;
	/* The setting that inih has been given and will call the handler for. */
	struct conf_place key_place, value_place;
	int err; /* of the sink; ends the reading */
};

/* A part of the current line. */
struct part {
	const char *text;
	size_t length;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct part trim(struct part part)
{
	while (part.length > 0 && is_blank(*part.text)) {
		part.text++;
		part.length--;
	}
	while (part.length > 0 && is_blank(part.text[part.length - 1]))
		part.length--;
	return part;
}

static struct conf_place place_of(const struct lines *lines, const char *at)
{
	return (struct conf_place){
		.file = lines->file,
		.line = lines->number,
		.column = conf_utf8_count(lines->start, (size_t)(at - lines->start)) + 1,
	};
}

#define REPORT(lines, level, at, ...)                                               \
	do {                                                                        \
		struct conf_place report_place = place_of(lines, at);               \
		conf_report_at((lines)->report, level, &report_place, __VA_ARGS__); \
	} while (0)

#define ERROR(lines, at, ...) REPORT(lines, LOG_LEVEL_ERROR, at, __VA_ARGS__)

/* The next line without its end. Returns false when there is none. */
static bool next_line(struct lines *lines, struct part *ret_line)
{
	const char *newline;

	if (lines->next == lines->end)
		return false;
	lines->start = lines->next;
	lines->number++;
	newline = memchr(lines->start, '\n', (size_t)(lines->end - lines->start));
	ret_line->text = lines->start;
	ret_line->length = (size_t)((newline ? newline : lines->end) - lines->start);
	lines->next = newline ? newline + 1 : lines->end;
	if (ret_line->length > 0 && ret_line->text[ret_line->length - 1] == '\r')
		ret_line->length--;
	return true;
}

/* Bytes that no text has. Returns false when the line must be skipped. */
static bool check_encoding(struct lines *lines, struct part line)
{
	const char *nul = memchr(line.text, '\0', line.length);
	bool comment = line.length > 0 && (*line.text == '#' || *line.text == ';');
	size_t at;

	if (nul) {
		ERROR(lines, nul, "NUL byte: the file is damaged, or not a text file");
		return false;
	}
	at = conf_utf8_invalid_at(line.text, line.length);
	if (at < line.length)
		REPORT(lines, comment ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
		       line.text + at, "%s is not UTF-8",
		       CONF_QUOTE_N(line.text + at, 1));
	return at == line.length;
}

/* Sections and settings are ASCII: a web page's no-break space looks like a blank. */
static bool check_characters(struct lines *lines, struct part line)
{
	for (size_t i = 0; i < line.length; i++) {
		unsigned char c = (unsigned char)line.text[i];
		size_t bytes = 1;

		if (c == '\t' || (c >= ' ' && c <= '~'))
			continue;
		while (i + bytes < line.length &&
		       ((unsigned char)line.text[i + bytes] & 0xC0) == 0x80)
			bytes++;
		ERROR(lines, line.text + i,
		      "character %s is not allowed: outside of comments there is ASCII "
		      "text only",
		      CONF_QUOTE_N(line.text + i, bytes));
		return false;
	}
	return true;
}

static const char *find_comment(struct part part)
{
	for (size_t i = 0; i < part.length; i++)
		if (part.text[i] == '#' || part.text[i] == ';')
			return part.text + i;
	return NULL;
}

#define OWN_LINE "a comment must stand on a line of its own"

static void read_section(struct lines *lines, struct part line)
{
	char title[CONF_LINE_BYTES_MAX + 1];
	const char *close = memchr(line.text, ']', line.length), *rest;
	size_t length;
	struct conf_place place;
	int wanted;

	if (!close) {
		ERROR(lines, line.text + line.length, "']' is missing at the end of %s",
		      CONF_QUOTE_N(line.text, line.length));
		return;
	}
	rest = close + 1;
	while (rest < line.text + line.length && is_blank(*rest))
		rest++;
	if (rest < line.text + line.length) {
		ERROR(lines, rest, "unexpected %s after ']'%s",
		      CONF_QUOTE_N(rest, (size_t)(line.text + line.length - rest)),
		      *rest == '#' || *rest == ';' ? ": " OWN_LINE : "");
		return;
	}
	length = (size_t)(close - line.text) - 1;
	memcpy(title, line.text + 1, length);
	title[length] = '\0';
	place = place_of(lines, line.text + 1);
	if (length == 0 || is_blank(title[0]) || is_blank(title[length - 1])) {
		conf_report_at(lines->report, LOG_LEVEL_ERROR, &place, "%s",
			       length == 0 ? "the section has no name"
					   : "no blank may stand next to the brackets");
		return;
	}
	wanted = lines->sink->section(lines->sink->context, &place, title);
	if (wanted < 0)
		lines->err = wanted;
	else if (wanted > 0)
		lines->section = SECTION_WANTED;
}

static bool is_key_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool check_key(struct lines *lines, struct part line, const char *equals)
{
	struct part key = trim((struct part){line.text, (size_t)(equals - line.text)});

	if (key.length == 0) {
		ERROR(lines, equals, "a key is missing before '=' in %s",
		      CONF_QUOTE_N(line.text, line.length));
		return false;
	}
	for (size_t i = 0; i < key.length; i++) {
		if (is_key_character(key.text[i]))
			continue;
		ERROR(lines, key.text + i, "%s may not stand in a key: %s",
		      CONF_QUOTE_N(key.text + i, 1), CONF_QUOTE_N(key.text, key.length));
		return false;
	}
	lines->key_place = place_of(lines, key.text);
	return true;
}

static bool check_value(struct lines *lines, struct part line, const char *equals)
{
	size_t before = (size_t)(equals + 1 - line.text);
	struct part value = trim((struct part){equals + 1, line.length - before});
	const char *comment = find_comment(value);

	if (comment) {
		ERROR(lines, comment, "unexpected '%c' in %s: " OWN_LINE, *comment,
		      CONF_QUOTE_N(value.text, value.length));
		return false;
	}
	if (value.length > 0 && (*value.text == '"' || *value.text == '\'')) {
		ERROR(lines, value.text,
		      "unexpected quotation mark: write the value %s without it",
		      CONF_QUOTE_N(value.text, value.length));
		return false;
	}
	if (value.length > 0 && value.text[value.length - 1] == '\\') {
		ERROR(lines, value.text + value.length - 1,
		      "a line cannot be continued on the next one with '\\'");
		return false;
	}
	lines->value_place = place_of(lines, value.text);
	return true;
}

static bool check_setting(struct lines *lines, struct part line)
{
	const char *equals = memchr(line.text, '=', line.length);
	const char *bracket = memchr(line.text, '[', line.length);

	if (!equals) {
		ERROR(lines, line.text, "%s is neither Key=value nor [Section]%s",
		      CONF_QUOTE_N(line.text, line.length),
		      bracket ? ": '[' must be the first character of its line" : "");
		return false;
	}
	if (!check_key(lines, line, equals) || !check_value(lines, line, equals))
		return false;
	if (lines->section == SECTION_NONE)
		ERROR(lines, line.text,
		      "%s stands before the first section, such as [Device swap0]",
		      CONF_QUOTE_N(line.text, line.length));
	return lines->section == SECTION_WANTED;
}

/* ini_reader: as fgets, but only with settings that are worth inih's while. */
static char *read_setting(char *buffer, int capacity, void *context)
{
	struct lines *lines = context;
	/* Besides the line, inih asks for room for "\r\n" and the NUL. */
	size_t limit = UZ_MIN((size_t)CONF_LINE_BYTES_MAX, (size_t)capacity - 3);
	struct part line;

	while (lines->err == 0 && next_line(lines, &line)) {
		line = trim(line);
		/* Whatever is wrong with it, what follows is not the section before. */
		if (line.length > 0 && *line.text == '[')
			lines->section = SECTION_SKIPPED;
		if (!check_encoding(lines, line))
			continue;
		if (line.length == 0 || *line.text == '#' || *line.text == ';')
			continue;
		if (line.length > limit) {
			ERROR(lines, line.text + limit,
			      "the line has %zu characters; at most %zu are allowed "
			      "outside of comments",
			      line.length, limit);
			continue;
		}
		if (!check_characters(lines, line))
			continue;
		if (*line.text == '[') {
			read_section(lines, line);
			continue;
		}
		if (!check_setting(lines, line))
			continue;
		memcpy(buffer, line.text, line.length);
		memcpy(buffer + line.length, "\n", 2);
		return buffer;
	}
	return NULL;
}

/* ini_handler. With the line number that newer builds of inih add we have no business. */
static int handle_setting(void *context, const char *section, const char *key,
			  const char *value
#if INI_HANDLER_LINENO
			  ,
			  int line
#endif
)
{
	struct lines *lines = context;

	(void)section;
#if INI_HANDLER_LINENO
	(void)line;
#endif
	if (lines->err == 0 && key)
		lines->err = lines->sink->setting(lines->sink->context, &lines->key_place,
						  &lines->value_place, key,
						  value ? value : "");
	return 1;
}

/* True for files that are not even nearly UTF-8. */
static bool is_utf16(const char *data, size_t length)
{
	if (length < 2)
		return false;
	if (memcmp(data, "\xFF\xFE", 2) == 0 || memcmp(data, "\xFE\xFF", 2) == 0)
		return true;
	/* Without a mark: two ASCII characters, each with a zero byte beside it. */
	return length >= 4 && ((data[0] && !data[1] && data[2] && !data[3]) ||
			       (!data[0] && data[1] && !data[2] && data[3]));
}

int conf_lines_parse(struct conf_report *report, const char *file, const char *data,
		     size_t length, const struct conf_sink *sink)
{
	static const char mark[] = "\xEF\xBB\xBF";
	struct conf_place top = {.file = file, .line = 1, .column = 1};
	struct lines lines = {
		.report = report,
		.sink = sink,
		.file = file,
		.next = data,
		.end = data + length,
	};
	int wrong_line;

	if (is_utf16(data, length)) {
		conf_report_at(report, LOG_LEVEL_ERROR, &top,
			       "the file is in UTF-16 or UTF-32; save it as UTF-8");
		return 0;
	}
	if (length >= 3 && memcmp(data, mark, 3) == 0) {
		conf_report_at(
			report, LOG_LEVEL_WARNING, &top,
			"byte order mark (EF BB BF) ignored; save the file without it");
		lines.next += 3;
	}
	wrong_line = ini_parse_stream(read_setting, &lines, handle_setting, &lines);
	if (lines.err < 0)
		return lines.err;
	if (wrong_line == -2)
		return -ENOMEM; /* builds of inih with a buffer on the heap */
	if (wrong_line != 0)	/* an inih that reads less than we let through */
		conf_report_at(report, LOG_LEVEL_ERROR,
			       &(struct conf_place){.file = file},
			       "the library inih refuses setting number %d of this file",
			       wrong_line);
	return 0;
}
