// SPDX-License-Identifier: MIT
/*
 * The configuration's text: sizes, every kind of broken file, the values of
 * each key, how devices are put together. Its files: test_conf_files.c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "conf/conf_lines.h"
#include "conf/conf_report.h"
#include "conf/conf_size.h"
#include "conf_findings.h"

#define MAX INT64_C(9223372036854775807)

/* ---- sizes ---- */

static const struct {
	const char *text;
	uint64_t bytes;
} good_sizes[] = {
	{"0", 0},
	{"1", 1},
	{"4096", 4096},
	{"512B", 512},
	{"1K", 1024},
	{"512M", 512 * UZ_MIB},
	{"0.5G", 512 * UZ_MIB},
	{"1g", UZ_GIB},
	{"1Gi", UZ_GIB},
	{"1GB", UZ_GIB},
	{"1GiB", UZ_GIB},
	{"1kB", UZ_KIB},
	{"32G", 32 * UZ_GIB},
	{"1T", 1024 * UZ_GIB},
	{"2P", 2048 * 1024 * UZ_GIB},
	{"8191P", 8191 * UZ_MIB *UZ_GIB},
	{"9223372036854775807", (uint64_t)MAX},
	{"1.1G", 1181116006},
	{"0.1", 1},
	{"00012", 12},
	{"ram", RAM},
	{"ram/2", RAM / 2},
	{"ram / 3", 2863311531},
	{"ram * 0.1 * 10", RAM},
	{"0.1G + 0.2G", 322122547},
	{"50%", RAM / 2},
	{"12.5%", RAM / 8},
	{"150%", RAM / 2 * 3},
	{"50% - 1G", 3 * UZ_GIB},
	{"min(ram/2,4G)", 4 * UZ_GIB},
	{"min(ram/2, 16G)", RAM / 2},
	{"max( 1G , ram / 16 , 600M )", UZ_GIB},
	{"max(ram - 16G, 1G)", UZ_GIB},
	{"min (1G, 2G)", UZ_GIB},
	{"1G + 2G * 3", 7 * UZ_GIB},
	{"(1G + 2G) * 3", 9 * UZ_GIB},
	{"16G / 2 / 2", 4 * UZ_GIB},
	{"4G - 1G - 1G", 2 * UZ_GIB},
	{"\t 1G \t", UZ_GIB},
	{"1P * 1P / 1P", 1024 * 1024 * UZ_GIB},
	{"ram - ram", 0},
	{"((((((((((1G))))))))))", UZ_GIB},
	{"1.00000000000000000000000000000000000000000000000000000001G", UZ_GIB},
};

START_TEST(size_is_evaluated)
{
	uint64_t bytes = 77, again = 78;
	struct conf_remark remark;
	char printed[32];

	memset(&remark, 'x', sizeof(remark));
	ck_assert_msg(conf_parse_size(good_sizes[_i].text, RAM, 0, &bytes, &remark) == 0,
		      "%s: %s", good_sizes[_i].text, remark.text);
	ck_assert_uint_eq(bytes, good_sizes[_i].bytes);
	ck_assert_str_eq(remark.text, "");
	snprintf(printed, sizeof(printed), "%" PRIu64, bytes);
	ck_assert_int_eq(conf_parse_size(printed, RAM, 0, &again, NULL), 0);
	ck_assert_uint_eq(again, bytes);
}
END_TEST

static const struct {
	const char *text;
	size_t offset;
	const char *reason;
} bad_sizes[] = {
	{"", 0, "is empty"},
	{"   ", 3, "is empty"},
	{"-1", 0, "sizes have no sign"},
	{"+5M", 0, "sizes have no sign"},
	{"1G + -1", 5, "sizes have no sign"},
	{"1e3", 1, "exponents"},
	{"1E+3", 1, "exponents"},
	{"0x10", 0, "'0x10': hexadecimal"},
	{"0X1G", 0, "hexadecimal"},
	{"1,5G", 1, "decimals have a point"},
	{"1.5.2G", 3, "after the end"},
	{".5G", 0, "before the decimal point"},
	{"1.G", 2, "must follow the decimal point"},
	{"1.", 2, "a digit must follow the decimal point"},
	{"9999999T", 0, "'9999999T' is too large"},
	{"8192P", 0, "too large"},
	{"9223372036854775808", 0, "too large"},
	{"8191P + 1P", 0, "too large"},
	{"5 M", 2, "no blank"},
	{"5 M # c", 2, "'M # c'"},
	{"50 %", 3, "no blank"},
	{"1G 2G", 3, "'2G' after the end"},
	{"1Gx", 1, "unknown unit 'Gx'"},
	{"1GiBs", 1, "unknown unit 'GiBs'"},
	{"1i", 1, "unknown unit 'i'"},
	{"1E", 1, "unknown unit 'E'"},
	{"1Mb", 1, "bits"},
	{"1b", 1, "bits"},
	{"5_000M", 1, "unknown unit '_000M'"},
	{"50%ram", 3, "unexpected 'ram'"},
	{"RAM", 0, "unknown name 'RAM'"},
	{"ram / foo", 6, "unknown name 'foo'"},
	{"size / 2", 0, "MemoryLimit= only"},
	{"ram / 0", 6, "division by zero"},
	{"1G / (ram - ram)", 5, "division by zero"},
	{"ram - 16G", 0, "is negative: -8589934592"},
	{"(1G", 3, "expected ')' for the '(' in column 1"},
	{"1G)", 2, "')' after the end"},
	{"()", 1, "unexpected ')'"},
	{"ram +", 5, "missing at the end"},
	{"min", 3, "expected '('"},
	{"min(1G", 6, "expected ',' and another size"},
	{"min(1G)", 6, "at least two"},
	{"min(1G, 2G", 10, "expected ',' or ')'"},
	{"min(1G 2G)", 7, "expected ','"},
	{"min(,1G)", 4, "unexpected ','"},
	{"1G & 2G", 3, "'& 2G' after the end"},
	{"\"1G\"", 0, "unexpected '\"'"},
	{"1G\xC2\xA0", 2, "'\\xC2\\xA0' after the end"},
	{"nan", 0, "unknown name"},
	{"inf", 0, "unknown name"},
	{"(((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))", 32,
	 "parentheses"},
};

START_TEST(bad_size_is_explained)
{
	uint64_t bytes = 77;
	struct conf_remark remark = {.text = ""};

	ck_assert_int_eq(conf_parse_size(bad_sizes[_i].text, RAM, 0, &bytes, &remark),
			 -EINVAL);
	ck_assert_msg(strstr(remark.text, bad_sizes[_i].reason), "'%s': %s",
		      bad_sizes[_i].text, remark.text);
	ck_assert_uint_eq(remark.offset, bad_sizes[_i].offset);
	ck_assert_int_eq(remark.level, LOG_LEVEL_ERROR);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_int_eq(conf_parse_size(bad_sizes[_i].text, RAM, 0, &bytes, NULL),
			 -EINVAL);
}
END_TEST

START_TEST(size_of_the_device_is_a_name)
{
	const struct conf_size_names pending = {.ram_bytes = RAM,
						.size_use = CONF_SIZE_PENDING};
	struct conf_size_result result;
	uint64_t bytes;

	ck_assert_int_eq(conf_parse_size("size / 4 + 1K", RAM, 4 * UZ_GIB, &bytes, NULL),
			 0);
	ck_assert_uint_eq(bytes, UZ_GIB + UZ_KIB);
	/* Nothing that depends on it is an error before it is known; all else is. */
	ck_assert_int_eq(conf_size_evaluate("1G / (size - 1G)", &pending, &result, NULL),
			 0);
	ck_assert(result.pending);
	ck_assert_int_eq(conf_size_evaluate("max(2G, size, 1G)", &pending, &result, NULL),
			 0);
	ck_assert(result.pending);
	ck_assert_int_eq(conf_size_evaluate("size * (1G / 0)", &pending, &result, NULL),
			 -EINVAL);
	ck_assert_int_eq(conf_size_evaluate("ram / 2", &pending, &result, NULL), 0);
	ck_assert(!result.pending);
}
END_TEST

START_TEST(no_length_of_expression_overflows)
{
	enum { TERMS = 4000 };
	char *product = malloc(3 * TERMS + 8), *digits = malloc(TERMS + 1);
	uint64_t bytes;

	ck_assert(product && digits);
	strcpy(product, "9P");
	for (size_t i = 0; i < TERMS; i++)
		strcpy(product + 2 + 3 * i, "*9P");
	ck_assert_int_eq(conf_parse_size(product, RAM, 0, &bytes, NULL), -EINVAL);
	memset(digits, '9', TERMS);
	digits[TERMS] = '\0';
	ck_assert_int_eq(conf_parse_size(digits, RAM, 0, &bytes, NULL), -EINVAL);
	digits[TERMS - 1] = '%';
	ck_assert_int_eq(conf_parse_size(digits, RAM, 0, &bytes, NULL), -EINVAL);
	free(product);
	free(digits);
}
END_TEST

/* H50, H41: what Size= and MemoryLimit= make of a number. NULL: accepted in silence. */
static const struct {
	const char *setting;
	uint64_t bytes;
	const char *finding;
} limits[] = {
	{"Size=0", 0, NULL},
	{"Size=1", 0, "error f.conf:2:6 Size='1': is 1 bytes, below the minimum 40960"},
	{"Size=4095", 0, "error f.conf:2:6"},
	{"Size=4096", 0, "error f.conf:2:6"},
	{"Size=36864", 0, "error f.conf:2:6"},
	{"Size=40959", 0, "error f.conf:2:6"},
	{"Size=40960", 40960, "warning f.conf:2:6 Size='40960': is only 40960 bytes"},
	{"Size=40961", 40960,
	 "warning f.conf:2:6 Size='40961': is only 40961 bytes (40960 in"},
	{"Size=1G + 1", UZ_GIB,
	 "notice f.conf:2:6 Size='1G + 1': is 1073741825 bytes, rounded"},
	{"Size=1M", UZ_MIB, NULL},
	{"Size=64G", 64 * UZ_GIB,
	 "warning f.conf:2:6 device 'swap0': Size (65536 MiB) is more"},
	{"MemoryLimit=6144M", 6144 * UZ_MIB, NULL},
	{"MemoryLimit=4194304", 4194304, NULL},
	{"MemoryLimit=4194303", 0,
	 "error f.conf:2:13 MemoryLimit='4194303': is 4194303 bytes, "},
	{"MemoryLimit=6144", 0,
	 "error f.conf:2:13 MemoryLimit='6144': is 6144 bytes, below the minimum 4194304 "
	 "(4M); "
	 "plain numbers are bytes: did you mean 6144M?"},
	{"MemoryLimit=min(ram / 2, 4096)", 0, "error f.conf:2:13"},
	{"MemoryLimit=0", 0, "error f.conf:2:13"},
	{"MemoryLimit=4194305", 4194304, NULL},
	{"MemoryLimit=16G", 16 * UZ_GIB,
	 "warning -:0:0 MemoryLimit of all devices together is"},
};

START_TEST(size_keys_have_floors)
{
	bool is_size = strncmp(limits[_i].setting, "Size", 4) == 0;
	bool error = limits[_i].finding && *limits[_i].finding == 'e';
	char text[256];
	struct conf *conf;

	snprintf(text, sizeof(text), "[Device swap0]\n%s\n%s", limits[_i].setting,
		 is_size ? "" : "Size=16M\n");
	conf = load_bytes(text, strlen(text), false, error ? -EINVAL : 0);
	ASSERT_COUNT(limits[_i].finding ? 1 : 0);
	if (limits[_i].finding)
		ASSERT_FINDING(limits[_i].finding, "");
	if (conf) {
		ck_assert_uint_eq(is_size ? conf->devices[0].size_bytes
					  : conf->devices[0].memory_limit_bytes,
				  limits[_i].bytes);
		ck_assert(conf->devices[0].size_bytes % UZ_PAGE_SIZE == 0);
		ck_assert(conf->devices[0].enabled == (conf->devices[0].size_bytes > 0));
	}
	conf_free(conf);
}
END_TEST

START_TEST(plain_number_in_expression_is_suspected)
{
	load_bad("[Device a]\nSize=min(ram / 2, 4096)\n");
	ASSERT_FINDING("error f.conf:2:6", "is 4096 bytes, ");
	ASSERT_FINDING("error f.conf:2:6", "did you mean 4096M?");
	/* In a product or a quotient it is a count. */
	load_bad("[Device a]\nSize=40000 / 2\n");
	ck_assert(!finding("error", "did you mean"));
	load_bad("[Daemon]\nMinFree=65536\n"); /* the sysctl's unit is KiB */
	ASSERT_FINDING("error f.conf:2:9", "did you mean 65536K?");
	load_bad("[Daemon]\nReliefReserve=32\n");
	ASSERT_FINDING("error f.conf:2:15", "did you mean 32M?");
}
END_TEST

/* ---- broken files ---- */

#define BYTES(text) text, sizeof(text) - 1
#define DEV	    "[Device swap0]\n"

static const struct {
	const char *data;
	size_t length;
	const char *start; /* of the only finding */
	const char *part;
} broken[] = {
	{BYTES(""), "notice f.conf:0:0", "no settings"},
	{BYTES("\n\n"), "notice f.conf:0:0", "no settings"},
	{BYTES("# only\n; comments\n  # here"), "notice f.conf:0:0", "no settings"},
	{BYTES("\xEF\xBB\xBF" DEV), "warning f.conf:1:1", "byte order mark"},
	{BYTES("\xFF\xFE[\0D\0"), "error f.conf:1:1", "UTF-16"},
	{BYTES("\xFE\xFF\0[\0D"), "error f.conf:1:1", "UTF-16"},
	{BYTES("[\0D\0e\0"), "error f.conf:1:1", "UTF-16"},
	{BYTES("\0[\0D\0e"), "error f.conf:1:1", "UTF-16"},
	{BYTES(DEV "Size=1G\0\n"), "error f.conf:2:8", "NUL byte"},
	{BYTES(DEV "# caf\xC3\xA9 \0\n"), "error f.conf:2:8", "NUL byte"},
	{BYTES(DEV "Size=1\xE4G\n"), "error f.conf:2:7", "'\\xE4' is not UTF-8"},
	{BYTES(DEV "# Gr\xFC\xDF"
		   "e\n"),
	 "warning f.conf:2:5", "'\\xFC' is not UTF-8"},
	{BYTES(DEV "# \xED\xA0\x80\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xC0\xAF\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xF4\x90\x80\x80\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xE0\x9F\xBF\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xF0\x8F\xBF\xBF\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xE2\x82\x41\n"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "# \xE2\x82\xAC \xF0\x9F\x98\x80 \xFF\n"), "warning f.conf:2:7",
	 "'\\xFF'"},
	{BYTES(DEV "# \xE2\x82"), "warning f.conf:2:3", "not UTF-8"},
	{BYTES(DEV "Size=1\xC2\xA0G\n"), "error f.conf:2:7",
	 "'\\xC2\\xA0' is not allowed"},
	{BYTES(DEV "Size=\x1B[31m1G\n"), "error f.conf:2:6", "'\\x1B' is not allowed"},
	{BYTES(DEV "Size=1G\rCodec=lz4\r"), "error f.conf:2:8", "'\\x0D' is not allowed"},
	{BYTES("Size=1G\n" DEV), "error f.conf:1:1",
	 "'Size=1G' stands before the first section"},
	{BYTES(DEV "Size\n"), "error f.conf:2:1",
	 "'Size' is neither Key=value nor [Section]"},
	{BYTES(DEV "  Size: 1G\n"), "error f.conf:2:3", "neither Key=value nor"},
	{BYTES(DEV "Si:ze=1G\n"), "error f.conf:2:3", "':' may not stand in a key"},
	{BYTES(DEV "Si ze=1G\n"), "error f.conf:2:3", "' ' may not stand in a key"},
	{BYTES(DEV "=1G\n"), "error f.conf:2:1", "a key is missing before '='"},
	{BYTES(DEV "Size=\n"), "error f.conf:2:6", "Size= has no value"},
	{BYTES(DEV "Codec = \n"), "error f.conf:2:8", "Codec= has no value"},
	{BYTES("x[zram0]\n" DEV), "error f.conf:1:1", "'[' must be the first character"},
	{BYTES("[Device swap0\n"), "error f.conf:1:14",
	 "']' is missing at the end of '[Device"},
	{BYTES("[Device a]\nSize=1G\n[Device b\xE4]\nSize=2G\n"), "error f.conf:3:10",
	 "UTF-8"},
	{BYTES("[Device a]\nSize=1G\n[Device b\xC3\xA4]\nSize=2G\n"), "error f.conf:3:10",
	 "not allowed"},
	{BYTES("[Device swap0] Size=1G\n"), "error f.conf:1:16",
	 "unexpected 'Size=1G' after ']'"},
	{BYTES("[Device swap0] # main\n"), "error f.conf:1:16",
	 "comment must stand on a line"},
	{BYTES("[]\n"), "error f.conf:1:2", "no name"},
	{BYTES("[ Device swap0 ]\n"), "error f.conf:1:2", "no blank may stand next"},
	{BYTES("[Device]\n"), "error f.conf:1:2", "write [Device NAME]"},
	{BYTES("[device swap0]\nSize=1G\n"), "error f.conf:1:2", "write [Device NAME]"},
	{BYTES("[daemon]\nLogLevel=x\n"), "error f.conf:1:2", "write [Daemon]"},
	{BYTES("[DEFAULTS]\n"), "error f.conf:1:2", "write [Defaults]"},
	{BYTES("[Device a b]\n"), "error f.conf:1:10", "unexpected ' '"},
	{BYTES("[Device ../x]\n"), "error f.conf:1:9", "may not begin with '.'"},
	{BYTES("[Device -x]\n"), "error f.conf:1:9", "may not begin with '-'"},
	{BYTES("[Device a/b]\n"), "error f.conf:1:10", "unexpected '/'"},
	{BYTES("[Device \"a\"]\n"), "error f.conf:1:9", "unexpected '\"'"},
	{BYTES("[Device 12345678901234567890123456789012]\n"), "error f.conf:1:40",
	 "longer than 31"},
	{BYTES(DEV "Size=1G # big\n"), "error f.conf:2:9",
	 "comment must stand on a line of its"},
	{BYTES(DEV "Size=1G ; big\n"), "error f.conf:2:9", "unexpected ';'"},
	{BYTES(DEV "Size=1G;\n"), "error f.conf:2:8", "unexpected ';'"},
	{BYTES(DEV "\tSize\t=\t1G#big\n"), "error f.conf:2:11", "unexpected '#'"},
	{BYTES(DEV "Size=\"1G\"\n"), "error f.conf:2:6", "quotation mark"},
	{BYTES(DEV "Size=1G \\\n"), "error f.conf:2:9", "continued"},
	{BYTES(DEV "Size=1,5G"), "error f.conf:2:7", "decimals have a point"},
	{BYTES(DEV "Size = 1X\r\n"), "error f.conf:2:9", "unknown unit 'X'"},
	{BYTES("[zram0]\nzram-size=1G\n"), "warning f.conf:1:2",
	 "unknown section 'zram0'"},
	{BYTES(DEV "AVeryLongNameOfAKeyThatIsLongerThanAnyKeyThatExists=1\n"),
	 "warning f.conf:2:1", "'AVeryLongNameOfAKeyThatIsLongerThanAnyKeyThatExi"},
	{BYTES("[Deamon]\nLogLevel=info\n"), "warning f.conf:1:2",
	 "did you mean 'Daemon'?"},
	{BYTES("[Devise swap0]\n"), "warning f.conf:1:2", "did you mean 'Device swap0'?"},
	{BYTES(DEV "\n[Daemon]\n" DEV), "notice f.conf:4:2", "added to those of line 1"},
};

START_TEST(broken_file_is_explained)
{
	bool error = broken[_i].start[0] == 'e';

	conf_free(load_bytes(broken[_i].data, broken[_i].length, false,
			     error ? -EINVAL : 0));
	ASSERT_FINDING(broken[_i].start, broken[_i].part);
	ASSERT_COUNT(1);
}
END_TEST

START_TEST(byte_order_mark_is_no_character)
{
	load_bad("\xEF\xBB\xBF Size=1G\n");
	ASSERT_FINDING("warning f.conf:1:1", "byte order mark");
	ASSERT_FINDING("error f.conf:1:2", "before the first section");
	ASSERT_COUNT(2);
}
END_TEST

START_TEST(harmless_forms_are_accepted)
{
	struct conf *conf =
		load_good("\r\n# \xC3\xA4\r\n\t[Device a]\t\r\n  Size =\t1G \r\n"
			  "PollTime= 0\r\n;x\r\n \t\r\nMemoryLimit=1G");

	ASSERT_COUNT(0);
	ck_assert_uint_eq(conf->devices[0].size_bytes, UZ_GIB);
	ck_assert_uint_eq(conf->devices[0].memory_limit_bytes, UZ_GIB);
	ck_assert_uint_eq(conf->devices[0].poll_ns, 0);
	conf_free(conf);
}
END_TEST

START_TEST(line_length_is_limited)
{
	enum { MIB = 1024 * 1024 };
	size_t head = strlen(DEV);
	char *text = malloc(MIB + 64);

	ck_assert_ptr_nonnull(text);
	/* A comment may have any length, a setting may not. */
	memset(text, 'x', MIB);
	memcpy(text, DEV "#", head + 1);
	conf_free(load_bytes(text, MIB, false, 0));
	ASSERT_COUNT(0);
	text[head] = 'x';
	load_bytes(text, MIB, false, -EINVAL);
	ASSERT_FINDING("error f.conf:2:191", "at most 190 are allowed");
	ASSERT_COUNT(1);
	/* Exactly the limit, and one more. */
	memset(text, ' ', MIB);
	memcpy(text, DEV "Size=", head + 5);
	memcpy(text + head + CONF_LINE_BYTES_MAX - 2, "1G\n", 4);
	conf_free(load_good(text));
	ASSERT_COUNT(0);
	memcpy(text + head + CONF_LINE_BYTES_MAX - 1, "1G\n", 4);
	load_bad(text);
	ASSERT_FINDING("error f.conf:2:191", "has 191 characters");
	free(text);
}
END_TEST

START_TEST(all_errors_are_reported)
{
	load_bad("Size=1G\n"
		 "[Device a]\n"
		 "Size=1Q\n"
		 "Priority=high\n"
		 "nonsense\n"
		 "[Device b\n"
		 "Size=1Q\n" /* not checked: nobody knows where it belongs */
		 "[Defaults]\n"
		 "Codec=gzip\n"
		 "[Device c]\n"
		 "Level=99\n"
		 "Codec=zstd\n"
		 "MemoryLimit=size / 0\n");
	ASSERT_FINDING("error f.conf:1:1", "before the first section");
	ASSERT_FINDING("error f.conf:3:7", "unknown unit 'Q'");
	ASSERT_FINDING("error f.conf:4:10", "is not an integer");
	ASSERT_FINDING("error f.conf:5:1", "neither");
	ASSERT_FINDING("error f.conf:6:10", "']' is missing");
	ASSERT_FINDING("error f.conf:9:7",
		       "Codec='gzip': is not known; allowed: lz4, zstd");
	ASSERT_FINDING("error f.conf:13:20", "division by zero");
	ASSERT_FINDING("error f.conf:11:7",
		       "device 'c': Level='99': is outside -7..22, zstd's");
	ASSERT_COUNT(8);
}
END_TEST

START_TEST(flood_of_errors_is_dammed)
{
	static char binary[20000];

	for (size_t i = 0; i < sizeof(binary); i++)
		binary[i] = i % 10 == 9 ? '\n' : 'x';
	load_bytes(binary, sizeof(binary), false, -EINVAL);
	ASSERT_COUNT(CONF_REPORTS_PER_FILE + 1);
	ASSERT_FINDING("error f.conf:50:1", "neither");
	ASSERT_FINDING("error f.conf:0:0", "1950 more problems are not shown");
}
END_TEST

START_TEST(unknown_names_are_warnings_or_errors)
{
	static const char text[] =
		"[Device a]\nMemoryLimt=1G\n[Daemon]\nSize=1G\nXyzzy=1\n"
		"[Writeback]\nEnabled=what\n";

	conf_free(load_bytes(BYTES(text), false, 0));
	ASSERT_FINDING("warning f.conf:2:1",
		       "unknown key 'MemoryLimt' ignored; did you mean "
		       "'MemoryLimit'?");
	ASSERT_FINDING("warning f.conf:4:1", "belongs to a section [Device NAME]");
	ASSERT_FINDING("warning f.conf:5:1", "unknown key 'Xyzzy' ignored");
	ck_assert(!finding("warning f.conf:5:1", "did you mean"));
	ASSERT_FINDING("warning f.conf:6:2", "unknown section 'Writeback', its settings");
	ASSERT_COUNT(4);
	load_bytes(BYTES(text), true, -EINVAL);
	ck_assert_uint_eq(found.errors, 4);
	ASSERT_COUNT(4);
}
END_TEST

static const char *const slips[][2] = {
	{"mem_limit", "MemoryLimit"},
	{"memorylimit", "MemoryLimit"},
	{"Memory-Limit", "MemoryLimit"},
	{"size", "Size"},
	{"Sise", "Size"},
	{"Piority", "Priority"},
	{"Proirity", "Priority"},
	{"Swapon", "SwapOn"},
	{"Enable", "Enabled"},
	{"ExpectRatio", "ExpectedRatio"},
};

START_TEST(nearest_key_is_named)
{
	char text[128], hint[64];

	snprintf(text, sizeof(text), "[Defaults]\n%s=1\n", slips[_i][0]);
	snprintf(hint, sizeof(hint), "did you mean '%s'?", slips[_i][1]);
	conf_free(load_good(text));
	ASSERT_FINDING("warning f.conf:2:1", hint);
}
END_TEST

START_TEST(repeated_names_are_noted)
{
	struct conf *conf = load_good("[Device a]\nPriority=1\nPriority=2\n[Daemon]\n"
				      "[Device a]\nPriority=3\nSwapOn=no\n");

	ASSERT_FINDING("notice f.conf:3:1",
		       "Priority= again: this value replaces '1' of line 2");
	ASSERT_FINDING("notice f.conf:5:2",
		       "section [Device a] again: its settings are added to "
		       "those of line 1");
	ASSERT_FINDING("notice f.conf:6:1", "replaces '2' of line 3");
	ASSERT_COUNT(3);
	ck_assert_uint_eq(conf->device_count, 1);
	ck_assert_int_eq(conf->devices[0].priority, 3);
	ck_assert(!conf->devices[0].swap_on);
	conf_free(conf);
}
END_TEST

/* ---- values ---- */

static const struct {
	const char *key, *value;
	const char *result; /* canonical value; NULL: an error */
	const char *reason; /* part of the error */
} values[] = {
	{"Priority", "-2", NULL,
	 "is outside -1..32767; allowed: an integer from -1 to 32767"},
	{"Priority", "-1", "-1", NULL},
	{"Priority", "0", "0", NULL},
	{"Priority", "100", "100", NULL},
	{"Priority", "32767", "32767", NULL},
	{"Priority", "32768", NULL, "is outside"},
	{"Priority", "99999999999999999999", NULL, "is outside"},
	{"Priority", "high", NULL, "is not an integer"},
	{"Priority", "5x", NULL, "is not an integer: unexpected 'x'"},
	{"Priority", "-", NULL, "is not an integer"},
	{"Priority", "+5", NULL, "is not an integer"},
	{"Priority", "5.0", NULL, "is not an integer"},
	{"Enabled", "no", "no", NULL},
	{"Enabled", "False", "no", NULL},
	{"Enabled", "0", "no", NULL},
	{"Enabled", "ON", "yes", NULL},
	{"Enabled", "ye", NULL, "is not known; did you mean 'yes'? Allowed: yes, no"},
	{"SwapOn", "off", "no", NULL},
	{"SwapOn", "np", NULL, "did you mean 'no'?"},
	{"SwapOn", "2", NULL, "is not known"},
	{"HonestFree", "auto", "auto", NULL},
	{"HonestFree", "yes", "yes", NULL},
	{"HonestFree", "off", "no", NULL},
	{"HonestFree", "atuo", NULL, "did you mean 'auto'?"},
	{"Transport", "ublk", "ublk", NULL},
	{"Transport", "fuse", "fuse", NULL},
	{"Transport", "FUSE", NULL, "did you mean 'fuse'? Allowed: auto, ublk, fuse"},
	{"Transport", "nbd", NULL, "allowed: auto, ublk, fuse"},
	{"Codec", "zstd", "zstd", NULL},
	{"Codec", "LZ4", NULL, "did you mean 'lz4'?; allowed: lz4, zstd"},
	{"Codec", "raw", NULL, "allowed: lz4, zstd"},
	{"Codec", "lzo-rle", NULL, "allowed: lz4, zstd"},
	{"Level", "65537", "65537", NULL},
	{"Level", "65538", NULL, "is outside 1..65537, lz4's range (acceleration)"},
	{"Level", "0", NULL, "is outside"},
	{"Level", "fast", NULL, "is not an integer"},
	{"ExpectedRatio", "1", "1.000", NULL},
	{"ExpectedRatio", "1.0", "1.000", NULL},
	{"ExpectedRatio", "20", "20.000", NULL},
	{"ExpectedRatio", "2.125", "2.125", NULL},
	{"ExpectedRatio", "0.999", NULL, "is outside 1.0..20"},
	{"ExpectedRatio", "20.001", NULL, "is outside"},
	{"ExpectedRatio", "99999999999", NULL, "is outside"},
	{"ExpectedRatio", "2.1255", NULL, "more than three decimals"},
	{"ExpectedRatio", "2,5", NULL, "decimals have a point"},
	{"ExpectedRatio", "2.", NULL, "a digit must follow"},
	{"ExpectedRatio", "-3", NULL, "is not a decimal number"},
	{"ExpectedRatio", "3:1", NULL, "is not a decimal number"},
	{"PollTime", "0", "0", NULL},
	{"PollTime", "0ms", "0", NULL},
	{"PollTime", "50us", "50us", NULL},
	{"PollTime", "1ms", "1ms", NULL},
	{"PollTime", "1500ns", "1500ns", NULL},
	{"PollTime", "10ms", "10ms", NULL},
	{"PollTime", "10000001ns", NULL, "is longer than 10ms"},
	{"PollTime", "1s", NULL, "is longer than 10ms"},
	{"PollTime", "99999999999999999999999s", NULL, "is longer"},
	{"PollTime", "50", NULL,
	 "has no unit; did you mean '50us'? Allowed: 0, or a time"},
	{"PollTime", "50 us", NULL, "unknown unit ' us'"},
	{"PollTime", "5min", NULL, "unknown unit 'min'"},
	{"PollTime", "us", NULL, "does not begin with a number"},
	{"LogLevel", "debug", "debug", NULL},
	{"LogLevel", "warn", NULL, "allowed: error, warning, notice, info, debug"},
	{"LogLevel", "Info", NULL, "did you mean 'info'?"},
	{"StatsGroup", "", "", NULL},
	{"StatsGroup", "adm", "adm", NULL},
	{"StatsGroup", "_uz-swap.1", "_uz-swap.1", NULL},
	{"StatsGroup", "4", NULL, "'4' may not begin a group's name"},
	{"StatsGroup", "a b", NULL, "' ' may not stand in a group's name"},
	{"StatsGroup", "a234567890123456789012345678901",
	 "a234567890123456789012345678901", NULL},
	{"StatsGroup", "a2345678901234567890123456789012", NULL,
	 "longer than 31 characters"},
	{"ReliefReserve", "0", "0", NULL},
	{"ReliefReserve", "64M", "67108864", NULL},
	{"ReliefReserve", "1M + 1", "1048576", NULL},
	{"ReliefReserve", "ram / 8", "1073741824", NULL},
	{"ReliefReserve", "ram / 4", NULL, "above the maximum ram / 8 = 1073741824"},
	{"ReliefReserve", "4K", NULL, "below the minimum 1048576"},
	{"ReliefReserve", "keep", NULL, "unknown name 'keep'"},
	{"WatermarkBoostFactor", "keep", "keep", NULL},
	{"WatermarkBoostFactor", "15000", "15000", NULL},
	{"WatermarkBoostFactor", "-1", NULL, "is outside 0..2147483647"},
	{"WatermarkBoostFactor", "2147483648", NULL, "is outside"},
	{"MinFree", "keep", "keep", NULL},
	{"MinFree", "64M", "67108864", NULL},
	{"MinFree", "0", NULL, "below the minimum"},
	{"MinFree", "50%", NULL, "above the maximum"},
};

static bool is_daemon_key(const char *key)
{
	for (size_t i = 0; i < CONF_DAEMON_KEY_COUNT; i++)
		if (strcmp(conf_daemon_keys[i].name, key) == 0)
			return true;
	return false;
}

START_TEST(value_is_checked)
{
	char text[256];
	struct conf *conf;

	snprintf(text, sizeof(text), "[%s]\n%s=%s\n",
		 is_daemon_key(values[_i].key) ? "Daemon" : "Device swap0",
		 values[_i].key, values[_i].value);
	conf = load_bytes(text, strlen(text), true, values[_i].result ? 0 : -EINVAL);
	if (values[_i].result) {
		ck_assert_str_eq(described(conf, values[_i].key), values[_i].result);
		ASSERT_COUNT(0);
	} else {
		ASSERT_FINDING("error f.conf:2:", values[_i].reason);
		ASSERT_FINDING("error f.conf:2:", values[_i].value); /* quoted */
		ASSERT_COUNT(1);
	}
	conf_free(conf);
}
END_TEST

START_TEST(truth_values)
{
	bool value = true;

	ck_assert_int_eq(conf_parse_bool("off", &value), 0);
	ck_assert(!value);
	ck_assert_int_eq(conf_parse_bool("TRUE", &value), 0);
	ck_assert(value);
	ck_assert_int_eq(conf_parse_bool("", &value), -EINVAL);
	ck_assert_int_eq(conf_parse_bool("yes ", &value), -EINVAL);
	ck_assert_int_eq(conf_parse_bool("auto", &value), -EINVAL);
	ck_assert(value);
}
END_TEST

/* ---- devices ---- */

START_TEST(defaults_without_settings)
{
	struct conf *conf = load_good("[Daemon]\n");
	const struct conf_device *device = &conf->devices[0];

	ASSERT_COUNT(0);
	ck_assert(!conf->disabled);
	ck_assert_int_eq(conf->daemon.log_level, LOG_LEVEL_INFO);
	ck_assert_str_eq(conf->daemon.stats_group, "");
	ck_assert_uint_eq(conf->daemon.relief_reserve_bytes, 32 * UZ_MIB);
	ck_assert_int_eq(conf->daemon.watermark_boost_factor, 0);
	ck_assert_uint_eq(conf->daemon.min_free_bytes, 0);
	ck_assert_uint_eq(conf->device_count, 1);
	ck_assert_str_eq(device->name, "swap0");
	ck_assert(device->enabled && device->swap_on);
	ck_assert_int_eq(device->transport, CONF_TRANSPORT_AUTO);
	ck_assert_uint_eq(device->size_bytes, RAM);
	ck_assert_uint_eq(device->memory_limit_bytes, RAM / 2);
	ck_assert_int_eq(device->codec, CODEC_LZ4);
	ck_assert_int_eq(device->level, codec_info_by_id(CODEC_LZ4)->level_default);
	ck_assert_int_eq(device->priority, 100);
	ck_assert_int_eq(device->honest_free, CONF_AUTO);
	ck_assert_uint_eq(device->expected_ratio_permille, 3000);
	ck_assert_uint_eq(device->poll_ns, 50000);
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++) {
		ck_assert_ptr_null(device->origins[i].file);
		ck_assert_ptr_nonnull(device->origins[i].text);
	}
	conf_free(conf);
}
END_TEST

START_TEST(defaults_section_gives_values)
{
	struct conf *conf =
		load_good("[Device own]\nPriority=5\nCodec=lz4\n"
			  "[Defaults]\nPriority=7\nCodec=zstd\nLevel=9\nSize=2G\n"
			  "MemoryLimit=size / 2\n"
			  "[Device other]\nSize=4G\n"
			  "[Device empty]\n");
	const struct conf_device *own = &conf->devices[0], *other = &conf->devices[1];

	ASSERT_COUNT(0);
	ck_assert_uint_eq(conf->device_count, 3);
	ck_assert_str_eq(own->name, "own");
	ck_assert_int_eq(own->priority, 5);
	ck_assert_uint_eq(own->origins[CONF_PRIORITY].line, 2);
	ck_assert_uint_eq(own->size_bytes, 2 * UZ_GIB);
	ck_assert_uint_eq(own->memory_limit_bytes, UZ_GIB);
	/* A level is for the codec that it was given with. */
	ck_assert_int_eq(own->codec, CODEC_LZ4);
	ck_assert_int_eq(own->level, codec_info_by_id(CODEC_LZ4)->level_default);
	ck_assert_ptr_null(own->origins[CONF_LEVEL].file);
	ck_assert_str_eq(other->name, "other");
	ck_assert_int_eq(other->codec, CODEC_ZSTD);
	ck_assert_int_eq(other->level, 9);
	ck_assert_int_eq(other->priority, 7);
	ck_assert_uint_eq(other->memory_limit_bytes, 2 * UZ_GIB);
	ck_assert_str_eq(other->origins[CONF_MEMORY_LIMIT].file, "f.conf");
	ck_assert_uint_eq(other->origins[CONF_MEMORY_LIMIT].line, 9);
	ck_assert_str_eq(other->origins[CONF_MEMORY_LIMIT].text, "size / 2");
	ck_assert_str_eq(conf->devices[2].name, "empty");
	conf_free(conf);
	/* It does not make a device by itself. */
	conf = load_good("[Defaults]\nSize=2G\n");
	ck_assert_uint_eq(conf->device_count, 1);
	ck_assert_str_eq(conf->devices[0].name, "swap0");
	ck_assert_uint_eq(conf->devices[0].size_bytes, 2 * UZ_GIB);
	conf_free(conf);
}
END_TEST

START_TEST(device_of_size_zero_is_disabled)
{
	struct conf *conf =
		load_good("[Device a]\nSize=ram - ram\nMemoryLimit=1G / size\n"
			  "[Device b]\nEnabled=no\nSize=1G\n[Device c]\nSize=1G\n");

	ASSERT_COUNT(0);
	ck_assert_uint_eq(conf->device_count, 3);
	ck_assert(!conf->devices[0].enabled);
	ck_assert_uint_eq(conf->devices[0].size_bytes, 0);
	ck_assert(!conf->devices[1].enabled);
	ck_assert_uint_eq(conf->devices[1].size_bytes, UZ_GIB);
	ck_assert(conf->devices[2].enabled);
	conf_free(conf);
	/* Wrong stays wrong, disabled or not. */
	load_bad("[Device a]\nEnabled=no\nMemoryLimit=1X\n");
	load_bad("[Device a]\nSize=0\nMemoryLimit=1X\n");
}
END_TEST

START_TEST(limit_relative_to_size_is_checked_per_device)
{
	load_bad("[Defaults]\nMemoryLimit=size / 4\n[Device a]\nSize=8M\n[Device "
		 "b]\nSize=1G\n");
	ASSERT_FINDING("error f.conf:2:13", "device 'a': MemoryLimit='size / 4': is "
					    "2097152 bytes, below the minimum");
	ASSERT_COUNT(1);
	load_bad("[Device a]\nSize=1G\nMemoryLimit=1G / (size - 1G)\n");
	ASSERT_FINDING("error f.conf:3:18", "division by zero");
	/* With a wrong size nothing is said of the limit. */
	load_bad("[Device a]\nSize=1X\nMemoryLimit=size / 2\n");
	ASSERT_COUNT(1);
	load_bad("[Device a]\nSize=8M\nSize=1X\nMemoryLimit=size / 4\n");
	ck_assert_uint_eq(found.errors, 1);
}
END_TEST

START_TEST(number_of_devices_is_limited)
{
	char text[1024] = "[Defaults]\nMemoryLimit=64M\nSize=128M\n";
	struct conf *conf;

	for (int i = 0; i < CONF_DEVICES_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "[Device d%d]\n", i);
	conf = load_good(text);
	ck_assert_uint_eq(conf->device_count, CONF_DEVICES_MAX);
	ck_assert_str_eq(conf->devices[15].name, "d15");
	conf_free(conf);
	strcat(text, "[Device d3]\n[Device more]\nSize=x\n");
	load_bad(text);
	ASSERT_FINDING("error f.conf:21:9", "device 'more': more than 16 devices");
	ck_assert_uint_eq(found.errors, 1);
}
END_TEST

START_TEST(longest_names_fit)
{
	struct conf *conf =
		load_good("[Device a123456789012345678901234567890]\nSize=1G\n");

	ck_assert_str_eq(conf->devices[0].name, "a123456789012345678901234567890");
	conf_free(conf);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf");
	TCase *sizes = tcase_create("sizes"), *lines = tcase_create("lines");
	TCase *keys = tcase_create("keys"), *devices = tcase_create("devices");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(sizes, size_is_evaluated, 0, UZ_ARRAY_SIZE(good_sizes));
	tcase_add_loop_test(sizes, bad_size_is_explained, 0, UZ_ARRAY_SIZE(bad_sizes));
	tcase_add_test(sizes, size_of_the_device_is_a_name);
	tcase_add_test(sizes, no_length_of_expression_overflows);
	tcase_add_loop_test(sizes, size_keys_have_floors, 0, UZ_ARRAY_SIZE(limits));
	tcase_add_test(sizes, plain_number_in_expression_is_suspected);
	tcase_add_loop_test(lines, broken_file_is_explained, 0, UZ_ARRAY_SIZE(broken));
	tcase_add_test(lines, byte_order_mark_is_no_character);
	tcase_add_test(lines, harmless_forms_are_accepted);
	tcase_add_test(lines, line_length_is_limited);
	tcase_add_test(lines, all_errors_are_reported);
	tcase_add_test(lines, flood_of_errors_is_dammed);
	tcase_add_test(keys, unknown_names_are_warnings_or_errors);
	tcase_add_loop_test(keys, nearest_key_is_named, 0, UZ_ARRAY_SIZE(slips));
	tcase_add_test(keys, repeated_names_are_noted);
	tcase_add_loop_test(keys, value_is_checked, 0, UZ_ARRAY_SIZE(values));
	tcase_add_test(keys, truth_values);
	tcase_add_test(devices, defaults_without_settings);
	tcase_add_test(devices, defaults_section_gives_values);
	tcase_add_test(devices, device_of_size_zero_is_disabled);
	tcase_add_test(devices, limit_relative_to_size_is_checked_per_device);
	tcase_add_test(devices, number_of_devices_is_limited);
	tcase_add_test(devices, longest_names_fit);
	suite_add_tcase(suite, sizes);
	suite_add_tcase(suite, lines);
	suite_add_tcase(suite, keys);
	suite_add_tcase(suite, devices);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
