// SPDX-License-Identifier: MIT
/*
 * Size expressions, by recursive descent. Pure functions; any thread.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = primary { ("*" | "/") primary }
 *   primary = number [unit | "%"] | "ram" | "size"
 *           | ("min" | "max") "(" sum "," sum { "," sum } ")" | "(" sum ")"
 *
 * Values are long doubles: where they have 64 bits of mantissa every byte count
 * is exact, elsewhere those up to 8 PiB. Results are rounded to the nearest
 * byte, so that "ram * 0.1 * 10" is ram and not a byte less.
 */
#include "conf/conf_size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "conf/conf_text.h"

/* Parentheses and functions within each other: far above any use, far below the stack. */
#define DEPTH_MAX 32

struct parser {
	const char *start, *at;
	const struct conf_size_names *names;
	struct conf_remark *remark;
	unsigned depth;
};

struct operand {
	long double bytes;
	bool pending;
	const char *bare;
	size_t bare_length;
};

#define FAIL(parser, where, ...)                           \
	conf_remark_set((parser)->remark, LOG_LEVEL_ERROR, \
			(size_t)((where) - (parser)->start), __VA_ARGS__)

static int parse_sum(struct parser *parser, struct operand *ret);

static void skip_blanks(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t')
		parser->at++;
}

/* Characters of the word (letters, digits, underscores) at `text`. */
static size_t word_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return length;
}

/* Consumes a number's unit; explains those of other programs. */
static int parse_unit(struct parser *parser, const char *number, long double *bytes)
{
	static const char letters[] = "KMGTP";
	const char *unit = parser->at;
	size_t length = word_length(unit), used = 0;
	const char *letter = NULL;

	if (length == 0)
		return 0;
	if (*number == '0' && unit == number + 1 && (*unit == 'x' || *unit == 'X'))
		return FAIL(parser, number, "%s: hexadecimal numbers are not allowed",
			    CONF_QUOTE_N(number, 1 + length));
	if ((*unit == 'e' || *unit == 'E') &&
	    (isdigit((unsigned char)unit[1]) || unit[1] == '+' || unit[1] == '-'))
		return FAIL(parser, unit, "%s: exponents are not allowed",
			    CONF_QUOTE_N(unit, length));
	letter = strchr(letters, toupper((unsigned char)*unit));
	if (letter) {
		used++;
		if (unit[used] == 'i')
			used++;
	}
	if (unit[used] == 'b' && used + 1 == length)
		return FAIL(parser, unit, "%s: 'b' would be bits; write %s",
			    CONF_QUOTE_N(unit, length),
			    letter ? "'B' or nothing" : "'B'");
	if (unit[used] == 'B')
		used++;
	if (used != length)
		return FAIL(
			parser, unit,
			"unknown unit %s; units are K, M, G, T, P (powers of 1024), with "
			"'i' and 'B' after them as you like",
			CONF_QUOTE_N(unit, length));
	if (letter)
		for (const char *step = letters; step <= letter; step++)
			*bytes *= 1024;
	parser->at += length;
	return 0;
}

static int parse_number(struct parser *parser, struct operand *ret)
{
	const char *number = parser->at, *unit;
	long double value = 0, place = 1;
	int err;

	for (; isdigit((unsigned char)*parser->at); parser->at++)
		value = value * 10 + (*parser->at - '0');
	if (*parser->at == '.') {
		parser->at++;
		if (!isdigit((unsigned char)*parser->at))
			return FAIL(parser, parser->at,
				    "a digit must follow the decimal point");
		for (; isdigit((unsigned char)*parser->at); parser->at++) {
			place *= 10;
			/* Digits beyond any precision must not overflow `place`. */
			if (place < 1e30L)
				value += (*parser->at - '0') / place;
			else
				place = 1e30L;
		}
	}
	unit = parser->at;
	if (*unit == '%') {
		value = value * (long double)parser->names->ram_bytes / 100;
		parser->at++;
		if (word_length(parser->at) > 0)
			return FAIL(parser, parser->at,
				    "unexpected %s: N%% is already a part of the RAM",
				    CONF_QUOTE_N(parser->at, word_length(parser->at)));
	} else {
		err = parse_unit(parser, number, &value);
		if (err < 0)
			return err;
	}
	if (!(value <= (long double)CONF_SIZE_MAX_BYTES))
		return FAIL(parser, number,
			    "%s is too large: the maximum is %" PRIu64 " bytes",
			    CONF_QUOTE_N(number, (size_t)(parser->at - number)),
			    CONF_SIZE_MAX_BYTES);
	*ret = (struct operand){.bytes = value};
	if (parser->at == unit) {
		ret->bare = number;
		ret->bare_length = (size_t)(unit - number);
	}
	return 0;
}

static int parse_group(struct parser *parser, struct operand *ret)
{
	const char *open = parser->at++;
	int err = parse_sum(parser, ret);

	if (err < 0)
		return err;
	if (*parser->at != ')')
		return FAIL(parser, parser->at,
			    "expected ')' for the '(' in column %zu of the value",
			    (size_t)(open - parser->start) + 1);
	parser->at++;
	return 0;
}

/* min and max. What is pending makes the result pending. */
static int parse_function(struct parser *parser, bool is_max, struct operand *ret)
{
	const char *name = is_max ? "max" : "min";
	struct operand chosen, next;
	int err;

	if (*parser->at != '(')
		return FAIL(parser, parser->at, "expected '(' after '%s'", name);
	parser->at++;
	err = parse_sum(parser, &chosen);
	if (err < 0)
		return err;
	if (*parser->at != ',')
		return FAIL(parser, parser->at,
			    "expected ',' and another size: %s() compares at least two",
			    name);
	while (*parser->at == ',') {
		parser->at++;
		err = parse_sum(parser, &next);
		if (err < 0)
			return err;
		if (next.pending ||
		    (!chosen.pending &&
		     (is_max ? next.bytes > chosen.bytes : next.bytes < chosen.bytes)))
			chosen = next;
	}
	if (*parser->at != ')')
		return FAIL(parser, parser->at, "expected ',' or ')' in %s()", name);
	parser->at++;
	*ret = chosen;
	return 0;
}

static int parse_name(struct parser *parser, struct operand *ret)
{
	const char *name = parser->at;
	size_t length = word_length(name);
	const struct conf_size_names *names = parser->names;

	if (length == 3 && (memcmp(name, "min", 3) == 0 || memcmp(name, "max", 3) == 0)) {
		parser->at += length;
		skip_blanks(parser);
		return parse_function(parser, name[1] == 'a', ret);
	}
	*ret = (struct operand){0};
	if (length == 3 && memcmp(name, "ram", 3) == 0) {
		ret->bytes = (long double)names->ram_bytes;
	} else if (length == 4 && memcmp(name, "size", 4) == 0) {
		if (names->size_use == CONF_SIZE_FORBIDDEN)
			return FAIL(parser, name,
				    "'size' may be used in MemoryLimit= only");
		ret->pending = names->size_use == CONF_SIZE_PENDING;
		ret->bytes = (long double)names->size_bytes;
	} else {
		return FAIL(parser, name,
			    "unknown name %s; names are ram%s, min() and max()",
			    CONF_QUOTE_N(name, length),
			    names->size_use == CONF_SIZE_FORBIDDEN ? "" : ", size");
	}
	parser->at += length;
	return 0;
}

static int parse_primary(struct parser *parser, struct operand *ret)
{
	int err;

	skip_blanks(parser);
	if (parser->depth >= DEPTH_MAX)
		return FAIL(parser, parser->at,
			    "more than %d parentheses within each other", DEPTH_MAX);
	parser->depth++;
	if (isdigit((unsigned char)*parser->at))
		err = parse_number(parser, ret);
	else if (isalpha((unsigned char)*parser->at) || *parser->at == '_')
		err = parse_name(parser, ret);
	else if (*parser->at == '(')
		err = parse_group(parser, ret);
	else if (*parser->at == '+' || *parser->at == '-')
		err = FAIL(parser, parser->at, "unexpected '%c': sizes have no sign",
			   *parser->at);
	else if (*parser->at == '.')
		err = FAIL(parser, parser->at,
			   "a digit must stand before the decimal point");
	else if (*parser->at == '\0')
		err = FAIL(parser, parser->at, "a size is missing at the end");
	else
		err = FAIL(parser, parser->at, "unexpected %s where a size should stand",
			   CONF_QUOTE_N(parser->at, 1));
	if (err < 0)
		return err;
	parser->depth--;
	skip_blanks(parser);
	return 0;
}

static int parse_product(struct parser *parser, struct operand *ret)
{
	struct operand factor;
	int err = parse_primary(parser, ret);

	while (err == 0 && (*parser->at == '*' || *parser->at == '/')) {
		char symbol = *parser->at++;
		const char *where;

		skip_blanks(parser);
		where = parser->at;
		err = parse_primary(parser, &factor);
		if (err < 0)
			break;
		if (symbol == '/' && !factor.pending &&
		    !(factor.bytes < 0 || factor.bytes > 0))
			return FAIL(parser, where, "division by zero");
		if (symbol == '*')
			ret->bytes *= factor.bytes;
		else if (!factor.pending)
			ret->bytes /= factor.bytes;
		if (!(ret->bytes <= 1e300L && ret->bytes >= -1e300L))
			return FAIL(parser, where, "the product is too large");
		ret->pending = ret->pending || factor.pending;
		/* A plain factor is a count, not a size without its unit. */
		ret->bare = NULL;
	}
	return err;
}

static int parse_sum(struct parser *parser, struct operand *ret)
{
	struct operand term;
	int err = parse_product(parser, ret);

	while (err == 0 && (*parser->at == '+' || *parser->at == '-')) {
		char symbol = *parser->at++;

		err = parse_product(parser, &term);
		if (err < 0)
			break;
		ret->bytes += symbol == '+' ? term.bytes : -term.bytes;
		ret->pending = ret->pending || term.pending;
		if (!ret->bare) {
			ret->bare = term.bare;
			ret->bare_length = term.bare_length;
		}
	}
	return err;
}

/* Something stands after a complete expression. */
static int explain_rest(struct parser *parser)
{
	const char *rest = parser->at;

	if (*rest == ',' && rest > parser->start && isdigit((unsigned char)rest[-1]))
		return FAIL(parser, rest,
			    "unexpected ',': decimals have a point, as in 1.5G");
	if (rest > parser->start && rest[-1] == ' ' &&
	    (isalpha((unsigned char)*rest) || *rest == '%'))
		return FAIL(parser, rest,
			    "unexpected %s: no blank may stand between a number and its "
			    "unit, and an operator must stand between sizes",
			    CONF_QUOTE(rest));
	return FAIL(parser, rest, "unexpected %s after the end of the size",
		    CONF_QUOTE(rest));
}

int conf_size_evaluate(const char *text, const struct conf_size_names *names,
		       struct conf_size_result *ret_result, struct conf_remark *remark)
{
	struct parser parser = {
		.start = text, .at = text, .names = names, .remark = remark};
	struct operand result;
	int err;

	skip_blanks(&parser);
	if (*parser.at == '\0')
		return FAIL(&parser, parser.at, "is empty");
	err = parse_sum(&parser, &result);
	if (err < 0)
		return err;
	if (*parser.at != '\0')
		return explain_rest(&parser);
	if (!result.pending && !(result.bytes > -0.5L))
		return FAIL(&parser, text, "is negative: %.0Lf bytes", result.bytes);
	if (!result.pending && !(result.bytes < (long double)CONF_SIZE_MAX_BYTES + 0.5L))
		return FAIL(&parser, text,
			    "is too large: the maximum is %" PRIu64 " bytes",
			    CONF_SIZE_MAX_BYTES);
	*ret_result = (struct conf_size_result){
		.pending = result.pending,
		.bare = result.bare,
		.bare_length = result.bare_length,
	};
	/* A fraction of a byte must not become 0, which means "none" to some keys. */
	if (!result.pending && result.bytes > 0)
		ret_result->bytes = UZ_MAX((uint64_t)(result.bytes + 0.5L), 1u);
	return 0;
}

int conf_parse_size(const char *text, uint64_t ram_bytes, uint64_t device_bytes,
		    uint64_t *ret_bytes, struct conf_remark *ret_remark)
{
	struct conf_size_names names = {
		.ram_bytes = ram_bytes,
		.size_use = device_bytes > 0 ? CONF_SIZE_KNOWN : CONF_SIZE_FORBIDDEN,
		.size_bytes = device_bytes,
	};
	struct conf_size_result result;
	int err = conf_size_evaluate(text, &names, &result, ret_remark);

	if (err < 0)
		return err;
	if (ret_remark)
		ret_remark->text[0] = '\0';
	*ret_bytes = result.bytes;
	return 0;
}
