// SPDX-License-Identifier: MIT
/*
 * The configuration's files: precedence, masking, files that cannot be read,
 * the switch on the kernel command line; description and difference of
 * configurations; and that parser, manual page and example name the same keys
 * with the same defaults. Needs no privileges: as root, the test of unreadable
 * files becomes another user for its duration.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "conf_findings.h"

/* ---- a tree of files ---- */

static char base[64]; /* made and removed by the parent, also when a test dies */
static char root[96]; /* of this test, below it */

static int remove_entry(const char *path, const struct stat *status, int type,
			struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void make_base(void)
{
	strcpy(base, "/tmp/uzswap-test-conf-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	ck_assert_int_eq(chmod(base, 0755), 0);
}

static void remove_base(void)
{
	nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_root(void)
{
	snprintf(root, sizeof(root), "%s/XXXXXX", base);
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chmod(root, 0755), 0);
}

/* Absolute path of one below the root; of the last four calls. */
static const char *below(const char *path)
{
	static char buffers[4][512];
	static unsigned next;
	char *buffer = buffers[next++ % 4];

	snprintf(buffer, sizeof(buffers[0]), "%s/%s", root, path);
	return buffer;
}

static void make_parents(const char *path)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = strchr(copy + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		ck_assert(mkdir(copy, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static void put(const char *path, const char *text)
{
	const char *full = below(path);
	FILE *file;

	make_parents(full);
	file = fopen(full, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void put_link(const char *path, const char *target)
{
	const char *full = below(path);

	make_parents(full);
	ck_assert_int_eq(symlink(target, full), 0);
}

static struct conf *load_sources(const struct conf_sources *sources, bool strict,
				 int expected)
{
	struct conf *conf = NULL;
	int err;

	memset(&found, 0, sizeof(found));
	err = conf_load(&conf, sources, strict, collect, &found);
	ck_assert_msg(err == expected, "%d instead of %d\n%s", err, expected,
		      all_findings());
	ck_assert((err == 0) == (found.errors == 0));
	ck_assert((err == 0) == (conf != NULL));
	return conf;
}

static struct conf *load_tree(int expected)
{
	const struct conf_sources sources = {
		.root = root, .ram_bytes = RAM, .cmdline_path = "/dev/null"};

	return load_sources(&sources, false, expected);
}

static void assert_origin(const struct conf *conf, enum conf_device_key key,
			  const char *path)
{
	const char *file = conf->devices[0].origins[key].file;

	ck_assert_msg(file && strcmp(file, below(path)) == 0,
		      "%s comes from %s, not from %s", conf_device_keys[key].name, file,
		      path);
}

static void assert_described(const struct conf *conf, const char *start)
{
	UZ_AUTO_FREE char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	ck_assert_int_eq(conf_describe(conf, stream), 0);
	fclose(stream);
	ck_assert_msg(strncmp(text, start, strlen(start)) == 0, "%s", text);
}

#define ETC   "etc/uzswap/uzswapd.conf"
#define RUN   "run/uzswap/uzswapd.conf"
#define USR   "usr/lib/uzswap/uzswapd.conf"
#define DEV   "[Device swap0]\n"
#define ETC_D ETC ".d/"
#define RUN_D RUN ".d/"
#define USR_D USR ".d/"

START_TEST(no_file_is_fine)
{
	struct conf *conf = load_tree(0);

	ASSERT_COUNT(0);
	ck_assert_uint_eq(conf->file_count, 0);
	ck_assert_uint_eq(conf->device_count, 1);
	ck_assert_str_eq(conf->devices[0].name, "swap0");
	assert_described(conf, "# No configuration file was read.\n");
	conf_free(conf);
}
END_TEST

START_TEST(first_main_file_counts)
{
	struct conf *conf;

	put(USR, DEV "Priority=3\nPollTime=3us\n");
	conf = load_tree(0);
	ck_assert_int_eq(conf->devices[0].priority, 3);
	conf_free(conf);
	put(RUN, DEV "Priority=2\n");
	conf = load_tree(0);
	ck_assert_int_eq(conf->devices[0].priority, 2);
	conf_free(conf);
	put(ETC, DEV "SwapOn=no\n");
	conf = load_tree(0);
	ck_assert_uint_eq(conf->file_count, 1);
	ck_assert_int_eq(conf->devices[0].priority, 100);
	ck_assert_uint_eq(conf->devices[0].poll_ns, 50000);
	ck_assert(!conf->devices[0].swap_on);
	ck_assert_uint_eq(conf->devices[0].origins[CONF_SWAP_ON].line, 2);
	assert_origin(conf, CONF_SWAP_ON, ETC);
	ASSERT_COUNT(2);
	ASSERT_FINDING("debug ", "takes its place");
	conf_free(conf);
}
END_TEST

START_TEST(drop_ins_are_merged_by_name)
{
	struct conf *conf;

	put(ETC, DEV "Size=1G\nPriority=1\nPollTime=1us\nExpectedRatio=1\nCodec=lz4\n");
	put(USR_D "10-a.conf", DEV "Size=2G\nMemoryLimit=100M\n"); /* masked by /etc */
	put(ETC_D "10-a.conf", DEV "Priority=10\nSize=3G\n");
	put(ETC_D "05-b.conf", DEV "Priority=5\nSize=5G\n");
	put(USR_D "20-c.conf", DEV "Size=20G\n");
	put_link(ETC_D "20-c.conf", "/dev/null");
	put(RUN_D "99-z.conf", DEV "PollTime=99us\n[Device late]\nSize=1G\n");
	put(USR_D "99-z.conf", DEV "PollTime=98us\n"); /* masked by /run */
	put(USR_D "30-d.conf", DEV "ExpectedRatio=2\nPollTime=30us\n");
	put(USR_D "31-empty.conf", DEV "ExpectedRatio=9\n");
	put(ETC_D "31-empty.conf", "");
	put(ETC_D ".40-hidden.conf", "broken");
	put(ETC_D "40-backup.conf~", "broken");
	put(ETC_D ".conf", "broken");
	put(ETC_D "README", "broken");
	put(ETC_D "sub/50-e.conf", "broken");
	conf = load_tree(0);
	ck_assert_uint_eq(conf->device_count, 2);
	ck_assert_uint_eq(conf->devices[0].size_bytes, 3 * UZ_GIB);
	assert_origin(conf, CONF_SIZE, ETC_D "10-a.conf");
	ck_assert_uint_eq(conf->devices[0].origins[CONF_SIZE].line, 3);
	ck_assert_int_eq(conf->devices[0].priority, 10);
	ck_assert_uint_eq(conf->devices[0].memory_limit_bytes, RAM / 2);
	ck_assert_uint_eq(conf->devices[0].poll_ns, 99000);
	assert_origin(conf, CONF_POLL_TIME, RUN_D "99-z.conf");
	ck_assert_uint_eq(conf->devices[0].expected_ratio_permille, 2000);
	assert_origin(conf, CONF_EXPECTED_RATIO, USR_D "30-d.conf");
	assert_origin(conf, CONF_CODEC, ETC);
	ck_assert_str_eq(conf->devices[1].name, "late");
	/* The order in which they are read: sorted by name, main file first. */
	ck_assert_uint_eq(conf->file_count, 6);
	ck_assert_str_eq(conf->files[0], below(ETC));
	ck_assert_str_eq(conf->files[1], below(ETC_D "05-b.conf"));
	ck_assert_str_eq(conf->files[2], below(ETC_D "10-a.conf"));
	ck_assert_str_eq(conf->files[3], below(USR_D "30-d.conf"));
	ck_assert_str_eq(conf->files[4], below(ETC_D "31-empty.conf"));
	ck_assert_str_eq(conf->files[5], below(RUN_D "99-z.conf"));
	ASSERT_FINDING("notice ", "has no settings");
	conf_free(conf);
}
END_TEST

START_TEST(main_file_is_switched_off_by_dev_null)
{
	struct conf *conf;

	put(USR, DEV "Priority=3\n");
	put_link(ETC, "/dev/null");
	conf = load_tree(0);
	ck_assert_int_eq(conf->devices[0].priority, 100);
	conf_free(conf);
}
END_TEST

START_TEST(same_key_in_two_files_is_no_repetition)
{
	put(ETC, DEV "Priority=3\n");
	put(ETC_D "a.conf", DEV "Priority=4\n");
	conf_free(load_tree(0));
	ASSERT_COUNT(0);
}
END_TEST

START_TEST(named_file_stands_alone)
{
	struct conf_sources sources = {
		.root = root, .ram_bytes = RAM, .cmdline_path = "/dev/null"};
	struct conf *conf;

	put(ETC, DEV "Priority=3\n");
	put(ETC_D "a.conf", DEV "Priority=4\n");
	put("my.conf", DEV "SwapOn=no\n");
	sources.file = below("my.conf");
	conf = load_sources(&sources, false, 0);
	ck_assert_int_eq(conf->devices[0].priority, 100);
	ck_assert(!conf->devices[0].swap_on);
	conf_free(conf);
	put("my.conf.d/b.conf", DEV "Priority=5\n");
	sources.file = below("my.conf");
	conf = load_sources(&sources, false, 0);
	ck_assert_int_eq(conf->devices[0].priority, 5);
	ck_assert(!conf->devices[0].swap_on);
	conf_free(conf);
	sources.file = below("other.conf");
	load_sources(&sources, false, -ENOENT);
	ASSERT_FINDING("error ", "cannot be read: No such file or directory");
}
END_TEST

START_TEST(errors_of_all_files_are_reported)
{
	put(ETC, DEV "Size=1X\n");
	put(ETC_D "a.conf", DEV "Size=2X\n");
	put(ETC_D "b.conf", DEV "Size=1G\nLevel=0\n");
	load_tree(-EINVAL);
	ASSERT_COUNT(3);
	ck_assert_ptr_nonnull(strstr(found.lines[0], ETC ":2:7 "));
	ck_assert_ptr_nonnull(strstr(found.lines[1], "a.conf:2:7 "));
	ck_assert_ptr_nonnull(
		strstr(found.lines[2], "b.conf:3:7 device 'swap0': Level='0'"));
}
END_TEST

START_TEST(findings_are_limited_per_file)
{
	char text[512] = "";

	for (int i = 0; i < 40; i++)
		strcat(text, "broken\n");
	put(ETC, text);
	put(ETC_D "a.conf", text);
	load_tree(-EINVAL);
	ASSERT_COUNT(80);
}
END_TEST

/* A file that is there and cannot be read must not become "no configuration". */
START_TEST(unreadable_file_is_an_error)
{
	bool is_root = geteuid() == 0;

	put(USR, DEV "Priority=3\n");
	put(ETC, DEV "Priority=4\n");
	put(ETC_D "a.conf", DEV "Size=1X\n");
	ck_assert_int_eq(chmod(below(ETC), 0), 0);
	if (is_root)
		ck_assert_int_eq(seteuid(65534), 0);
	load_tree(-EACCES);
	ASSERT_FINDING("error ", ETC ":0:0 cannot be read: Permission denied");
	ASSERT_FINDING("error ", "ls -lZ");
	ASSERT_FINDING("error ",
		       "unknown unit 'X'"); /* the others are looked at nonetheless */
	ck_assert_uint_eq(found.errors, 2);
	if (is_root)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(unreadable_directory_is_an_error)
{
	bool is_root = geteuid() == 0;

	put(USR, DEV "Priority=3\n");
	put(ETC_D "a.conf", DEV "Priority=4\n");
	/* The drop-ins cannot be listed ... */
	ck_assert_int_eq(chmod(below(ETC ".d"), 0), 0);
	if (is_root)
		ck_assert_int_eq(seteuid(65534), 0);
	load_tree(-EACCES);
	ASSERT_FINDING("error ", ETC ".d:0:0 cannot be read: Permission denied");
	ck_assert_uint_eq(found.errors, 1);
	if (is_root)
		ck_assert_int_eq(seteuid(0), 0);
	/* ... or not even whether there is a main file can be told. */
	ck_assert_int_eq(chmod(below(ETC ".d"), 0755), 0);
	ck_assert_int_eq(chmod(below("etc/uzswap"), 0), 0);
	if (is_root)
		ck_assert_int_eq(seteuid(65534), 0);
	load_tree(-EACCES);
	ASSERT_FINDING("error ", ETC ":0:0 cannot be read: Permission denied");
	if (is_root)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(below("etc/uzswap"), 0755), 0);
}
END_TEST

START_TEST(things_that_are_no_files_are_errors)
{
	put_link(ETC, "missing");
	put(USR, DEV "Priority=3\n");
	put(ETC_D "a.conf/x", "");
	make_parents(below(RUN_D "x"));
	ck_assert_int_eq(mkfifo(below(RUN_D "b.conf"), 0644), 0);
	put_link(USR_D "c.conf", "c.conf");
	put_link(USR_D "d.conf", "/dev/zero");
	load_tree(-ENOENT);
	ASSERT_FINDING("error ",
		       ETC ":0:0 is a symbolic link to a file that does not exist");
	ASSERT_FINDING("error ", "a.conf:0:0 cannot be read: Is a directory");
	ASSERT_FINDING("error ", "b.conf:0:0 is not a regular file");
	ASSERT_FINDING("error ", "c.conf:0:0 cannot be read: Too many levels");
	ASSERT_FINDING("error ", "d.conf:0:0 is not a regular file");
	ck_assert_uint_eq(found.errors, 5);
}
END_TEST

START_TEST(huge_file_is_refused)
{
	put(ETC, DEV);
	ck_assert_int_eq(truncate(below(ETC), 5 * (off_t)UZ_MIB), 0);
	load_tree(-EFBIG);
	ASSERT_FINDING("error ", "cannot be read: File too large");
}
END_TEST

/* H37: a configuration that is wrong leaves the one in force alone. */
START_TEST(failed_load_changes_nothing)
{
	const struct conf_sources sources = {
		.root = root, .ram_bytes = RAM, .cmdline_path = "/dev/null"};
	struct conf *conf, *before;

	put(ETC, DEV "Priority=3\n");
	conf = before = load_tree(0);
	put(ETC, DEV "Priority=4\nSize=1X\n");
	memset(&found, 0, sizeof(found));
	ck_assert_int_eq(conf_load(&conf, &sources, false, collect, &found), -EINVAL);
	ck_assert_ptr_eq(conf, before);
	ck_assert_int_eq(conf->devices[0].priority, 3);
	ck_assert_int_eq(conf_load(&conf, &sources, false, NULL, NULL), -EINVAL);
	ck_assert_ptr_eq(conf, before);
	conf_free(conf);
	conf_free(NULL);
}
END_TEST

/* ---- the kernel command line ---- */

static const struct {
	const char *cmdline;
	bool disabled;
	const char *warning;
} cmdlines[] = {
	{"quiet uzswap=off splash\n", true, NULL},
	{"uzswap=0", true, NULL},
	{" \t uzswap=off", true, NULL},
	{"uzswap=no\n", true, NULL},
	{"\"uzswap=off\"\n", true, NULL},
	{"a=\"x y\" uzswap=\"off\"\n", true, NULL},
	{"uzswap=on uzswap=off\n", true, NULL},
	{"uzswap=off uzswap=on\n", false, NULL},
	{"quiet\n", false, NULL},
	{"", false, NULL},
	{"uzswap\n", false, NULL},
	{"xuzswap=off uzswap.x=off\n", false, NULL},
	{"a=\"x uzswap=off\"\n", false, NULL},
	{"uzswap=maybe\n", false, "uzswap='maybe' ignored"},
	{"uzswap=off uzswap=\n", true, "uzswap='' ignored"},
};

START_TEST(kernel_command_line_switches_off)
{
	struct conf_sources sources = {.root = root, .ram_bytes = RAM};
	struct conf *conf;

	put("cmdline", cmdlines[_i].cmdline);
	put(ETC, DEV "Priority=3\n");
	sources.cmdline_path = below("cmdline");
	conf = load_sources(&sources, false, 0);
	ck_assert(conf->disabled == cmdlines[_i].disabled);
	ck_assert_uint_eq(conf->device_count, cmdlines[_i].disabled ? 0 : 1);
	ASSERT_COUNT(cmdlines[_i].warning ? 1 : 0);
	if (cmdlines[_i].warning)
		ASSERT_FINDING("warning ", cmdlines[_i].warning);
	conf_free(conf);
}
END_TEST

START_TEST(switch_comes_before_broken_files)
{
	struct conf_sources sources = {.root = root, .ram_bytes = RAM};

	put("cmdline", "uzswap=off\n");
	put(ETC, "broken\n");
	sources.cmdline_path = below("cmdline");
	conf_free(load_sources(&sources, false, 0));
	ASSERT_COUNT(0);
	/* Who asks for a check gets it. */
	load_sources(&sources, true, -EINVAL);
	put(ETC, DEV);
	struct conf *conf = load_sources(&sources, true, 0);

	ck_assert(conf->disabled);
	ck_assert_uint_eq(conf->device_count, 1);
	assert_described(
		conf, "# Disabled by uzswap=off on the kernel command line.\n# Read: ");
	conf_free(conf);
}
END_TEST

START_TEST(missing_command_line_is_a_warning)
{
	struct conf_sources sources = {.root = root, .ram_bytes = RAM};

	sources.cmdline_path = below("nothing");
	conf_free(load_sources(&sources, false, 0));
	ASSERT_FINDING("warning ", "going on as without uzswap=off");
	ASSERT_COUNT(1);
}
END_TEST

START_TEST(real_sources_work)
{
	const struct conf_sources sources = {.root = root};
	struct conf *conf = load_sources(&sources, false, 0);

	ck_assert(conf->disabled || conf->devices[0].size_bytes >= 16 * UZ_MIB);
	conf_free(conf);
}
END_TEST

/* ---- description and difference ---- */

static void count_change(void *context, const struct conf_change *change)
{
	char *text = context;

	snprintf(text + strlen(text), 1024 - strlen(text), "%s.%s:%s>%s ",
		 change->section, change->key ? change->key : "",
		 change->old_value ? change->old_value : "",
		 change->new_value ? change->new_value : "");
}

static const char *const described_texts[] = {
	"[Daemon]\n",
	"[Daemon]\nLogLevel=debug\nStatsGroup=adm\nReliefReserve=0\nWatermarkBoostFactor="
	"keep\n"
	"MinFree=64M\n",
	"[Daemon]\nReliefReserve=1G\nWatermarkBoostFactor=15000\nMinFree=keep\n"
	"[Defaults]\nLevel=5\nCodec=zstd\nMemoryLimit=size / 3\n"
	"[Device a]\nSize=1G + "
	"4K\nTransport=fuse\nPriority=-1\nSwapOn=no\nHonestFree=yes\n"
	"ExpectedRatio=1.001\nPollTime=1234567ns\n"
	"[Device b]\nSize=0\n[Device "
	"c]\nEnabled=no\nCodec=lz4\nHonestFree=no\nPollTime=0\n",
};

/* Loading what conf_describe wrote gives the same configuration. */
START_TEST(description_is_a_configuration)
{
	struct conf *conf = load_good(described_texts[_i]), *again;
	char changes[1024] = "";
	UZ_AUTO_FREE char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	ck_assert_int_eq(conf_describe(conf, stream), 0);
	fclose(stream);
	again = load_bytes(text, length, true, 0);
	ASSERT_COUNT(0);
	ck_assert_msg(conf_diff(conf, again, count_change, changes) == 0, "%s", changes);
	conf_free(conf);
	conf_free(again);
}
END_TEST

START_TEST(description_names_origins)
{
	struct conf *conf =
		load_good("[Defaults]\nSize=min(ram, 4G)\n[Device a]\nCodec=zstd\n");
	UZ_AUTO_FREE char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	ck_assert_int_eq(conf_describe(conf, stream), 0);
	fclose(stream);
	ck_assert_ptr_nonnull(strstr(text, "# Read: f.conf\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "\n# f.conf:2: min(ram, 4G) = 4294967296 bytes (4096 MiB)\n"
			     "Size=4294967296\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n# f.conf:4: zstd\nCodec=zstd\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n# default: 100\nPriority=100\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n# default: the codec's default\nLevel="));
	ck_assert_ptr_nonnull(strstr(text, "\n[Device a]\n"));
	conf_free(conf);
	stream = fopen("/dev/full", "w");
	ck_assert_ptr_nonnull(stream);
	setvbuf(stream, NULL, _IONBF, 0);
	conf = load_good("[Daemon]\n");
	ck_assert_int_eq(conf_describe(conf, stream), -EIO);
	fclose(stream);
	conf_free(conf);
}
END_TEST

/* H37: each key changed alone is that key's difference and no other's. */
static const struct {
	const char *text, *changes;
} changed[] = {
	{"[Daemon]\nLogLevel=debug\n", "Daemon.LogLevel:info>debug "},
	{"[Daemon]\nStatsGroup=adm\n", "Daemon.StatsGroup:>adm "},
	{"[Daemon]\nReliefReserve=0\n", "Daemon.ReliefReserve:33554432>0 "},
	{"[Daemon]\nWatermarkBoostFactor=keep\n", "Daemon.WatermarkBoostFactor:0>keep "},
	{"[Daemon]\nMinFree=1M\n", "Daemon.MinFree:keep>1048576 "},
	{DEV "Enabled=no\n", "Device swap0.Enabled:yes>no "},
	{DEV "Transport=fuse\n", "Device swap0.Transport:auto>fuse "},
	{DEV "Size=4G\n", "Device swap0.Size:8589934592>4294967296 "},
	{DEV "MemoryLimit=3G\n", "Device swap0.MemoryLimit:4294967296>3221225472 "},
	{DEV "Codec=zstd\n", "Device swap0.Codec:lz4>zstd Device swap0.Level:1>3 "},
	{DEV "Level=2\n", "Device swap0.Level:1>2 "},
	{DEV "Priority=1\n", "Device swap0.Priority:100>1 "},
	{DEV "SwapOn=no\n", "Device swap0.SwapOn:yes>no "},
	{DEV "HonestFree=no\n", "Device swap0.HonestFree:auto>no "},
	{DEV "ExpectedRatio=2\n", "Device swap0.ExpectedRatio:3.000>2.000 "},
	{DEV "PollTime=0\n", "Device swap0.PollTime:50us>0 "},
	{DEV "[Device b]\nSize=1G\n", "Device b.:>Device b "},
	{"[Device b]\nSize=1G\n", "Device swap0.:Device swap0> Device b.:>Device b "},
	{DEV "Size=100%\nPollTime=50000ns\n", ""}, /* written otherwise, the same */
};

START_TEST(each_change_is_told)
{
	struct conf *before = load_good("[Daemon]\n"),
		    *after = load_good(changed[_i].text);
	char changes[1024] = "";
	unsigned expected = 0, count = conf_diff(before, after, count_change, changes);

	ck_assert_str_eq(changes, changed[_i].changes);
	for (const char *at = changed[_i].changes; (at = strchr(at, '>')); at++)
		expected++;
	ck_assert_uint_eq(count, expected);
	conf_free(before);
	conf_free(after);
}
END_TEST

/* ---- manual page and example ---- */

static char *read_source(const char *name)
{
	const char *directory = getenv("srcdir");
	char path[4096], *text = NULL;
	size_t capacity = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory ? directory : ".", name);
	file = fopen(path, "r");
	ck_assert_msg(file, "%s: %s", path, strerror(errno));
	ck_assert_int_gt(getdelim(&text, &capacity, '\0', file), 0);
	fclose(file);
	return text;
}

/* Keys in the order of a document; "[Daemon]" and so on between them. */
static void note(char *list, size_t size, const char *word, size_t length)
{
	snprintf(list + strlen(list), size - strlen(list), "%.*s ", (int)length, word);
}

static void parser_keys(char *list, size_t size)
{
	for (size_t i = 0; i < CONF_DAEMON_KEY_COUNT; i++)
		note(list, size, conf_daemon_keys[i].name,
		     strlen(conf_daemon_keys[i].name));
	note(list, size, "|", 1);
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++)
		note(list, size, conf_device_keys[i].name,
		     strlen(conf_device_keys[i].name));
}

static void assert_default(const char *document, const struct conf_key *key)
{
	char item[64], stated[128];
	const char *start, *end, *at;

	snprintf(item, sizeof(item), "\n.It Ic %s= ", key->name);
	start = strstr(document, item);
	ck_assert_msg(start, "%s", key->name);
	end = strstr(start, "\n.El");
	at = strstr(start + 1, "\n.It ");
	if (at && at < end)
		end = at;
	if (!key->default_text)
		snprintf(stated, sizeof(stated), "\nDefault: that of the codec, ");
	else if (!*key->default_text)
		snprintf(stated, sizeof(stated), "\nDefault: empty\n");
	else
		snprintf(stated, sizeof(stated), "\nDefault:\n.Ql %s\n",
			 key->default_text);
	at = strstr(start, stated);
	ck_assert_msg(at && at < end, "the manual page does not state %s's default %s",
		      key->name, key->default_text);
}

START_TEST(manual_page_has_the_keys)
{
	UZ_AUTO_FREE char *page = read_source("man/uzswapd.conf.5");
	char documented[1024] = "", known[1024] = "", range[64];

	for (const char *at = page; (at = strchr(at, '\n'));) {
		at++;
		if (strncmp(at, ".It Ic ", 7) == 0)
			note(documented, sizeof(documented), at + 7,
			     strcspn(at + 7, "="));
		else if (strncmp(at, ".Sh [Device", 11) == 0)
			note(documented, sizeof(documented), "|", 1);
	}
	parser_keys(known, sizeof(known));
	ck_assert_str_eq(documented, known);
	for (size_t i = 0; i < CONF_DAEMON_KEY_COUNT; i++)
		assert_default(page, &conf_daemon_keys[i]);
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++)
		assert_default(page, &conf_device_keys[i]);
	/* The codecs' ranges: "\-7 to 22". */
	for (int id = CODEC_RAW; id < CODEC_COUNT; id++) {
		const struct codec_info *info = codec_info_by_id((enum codec_id)id);

		if (!info)
			continue;
		snprintf(range, sizeof(range), "For %s it is the %s, %s%d to %d",
			 info->name, info->level_meaning, info->level_min < 0 ? "\\" : "",
			 info->level_min, info->level_max);
		ck_assert_msg(strstr(page, range), "the manual page does not say '%s'",
			      range);
		snprintf(range, sizeof(range), "%d for %s", info->level_default,
			 info->name);
		ck_assert_msg(strstr(page, range), "the manual page does not say '%s'",
			      range);
	}
}
END_TEST

START_TEST(example_has_the_keys)
{
	UZ_AUTO_FREE char *example = read_source("contrib/uzswapd.conf.example");
	struct conf *built_in = load_good("[Daemon]\n"), *conf;
	char shown[1024] = "", known[1024] = "", changes[1024] = "";

	/* As it is: right, and it changes nothing. */
	conf = load_bytes(example, strlen(example), true, 0);
	ASSERT_COUNT(0);
	ck_assert_uint_eq(conf_diff(built_in, conf, count_change, changes), 0);
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++)
		ck_assert_ptr_null(conf->devices[0].origins[i].file);
	conf_free(conf);
	/* With every key in force: all keys, with their defaults. */
	for (char *at = example; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		if (at[0] == '#' && at[1] >= 'A' && at[1] <= 'Z') {
			*at = ' ';
			note(shown, sizeof(shown), at + 1, strcspn(at + 1, "="));
		} else if (strncmp(at, "[Device", 7) == 0) {
			note(shown, sizeof(shown), "|", 1);
		}
	}
	parser_keys(known, sizeof(known));
	ck_assert_str_eq(shown, known);
	conf = load_bytes(example, strlen(example), true, 0);
	ASSERT_COUNT(0);
	ck_assert_msg(conf_diff(built_in, conf, count_change, changes) == 0, "%s",
		      changes);
	for (size_t i = 0; i < CONF_DEVICE_KEY_COUNT; i++)
		ck_assert_ptr_nonnull(conf->devices[0].origins[i].file);
	conf_free(conf);
	conf_free(built_in);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf_files");
	TCase *files = tcase_create("files"), *cmdline = tcase_create("cmdline");
	TCase *describe = tcase_create("describe"),
	      *documents = tcase_create("documents");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_unchecked_fixture(files, make_base, remove_base);
	tcase_add_checked_fixture(files, make_root, NULL);
	tcase_add_unchecked_fixture(cmdline, make_base, remove_base);
	tcase_add_checked_fixture(cmdline, make_root, NULL);
	tcase_add_test(files, no_file_is_fine);
	tcase_add_test(files, first_main_file_counts);
	tcase_add_test(files, drop_ins_are_merged_by_name);
	tcase_add_test(files, main_file_is_switched_off_by_dev_null);
	tcase_add_test(files, same_key_in_two_files_is_no_repetition);
	tcase_add_test(files, named_file_stands_alone);
	tcase_add_test(files, errors_of_all_files_are_reported);
	tcase_add_test(files, findings_are_limited_per_file);
	tcase_add_test(files, unreadable_file_is_an_error);
	tcase_add_test(files, unreadable_directory_is_an_error);
	tcase_add_test(files, things_that_are_no_files_are_errors);
	tcase_add_test(files, huge_file_is_refused);
	tcase_add_test(files, failed_load_changes_nothing);
	tcase_add_loop_test(cmdline, kernel_command_line_switches_off, 0,
			    UZ_ARRAY_SIZE(cmdlines));
	tcase_add_test(cmdline, switch_comes_before_broken_files);
	tcase_add_test(cmdline, missing_command_line_is_a_warning);
	tcase_add_test(cmdline, real_sources_work);
	tcase_add_loop_test(describe, description_is_a_configuration, 0,
			    UZ_ARRAY_SIZE(described_texts));
	tcase_add_test(describe, description_names_origins);
	tcase_add_loop_test(describe, each_change_is_told, 0, UZ_ARRAY_SIZE(changed));
	tcase_add_test(documents, manual_page_has_the_keys);
	tcase_add_test(documents, example_has_the_keys);
	suite_add_tcase(suite, files);
	suite_add_tcase(suite, cmdline);
	suite_add_tcase(suite, describe);
	suite_add_tcase(suite, documents);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
