/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps as JITs write them: broken lines, reused addresses, files that grow, shrink, are
 * planted or replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "symbols/perf_map.h"

static int read_to_the_end(struct perf_map *map)
{
	int result;

	do
		result = perf_map_read(map, SIZE_MAX);
	while (result == 1);
	return result;
}

static char folder[] = "/tmp/sonde-test-perf-map-XXXXXX";
static char path[256];

static void write_text(const char *text, int flags)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static void assert_named(const struct perf_map *map, uint64_t address, const char *name)
{
	const char *found = "(none)";

	perf_map_find(map, address, &found);
	assert_string_equal(found, name);
}

static void add(struct perf_map *map, const char *text)
{
	assert_int_equal(perf_map_add_text(map, text, strlen(text)), 0);
}

static void test_lines(void **state)
{
	struct perf_map *map = perf_map_new();

	add(map, "7f0000001000 20 py::forward:/a b/model.py\n"
		 "0x7f0000002000 0x10 LazyCompile:*run app.js:1\r\n"
		 "7f0000003000\t40\tname;with \"quotes\"\n"
		 "7F0000004000 1 X\n");
	assert_named(map, 0x7f0000000fff, "(none)");
	assert_named(map, 0x7f0000001000, "py::forward:/a b/model.py");
	assert_named(map, 0x7f000000101f, "py::forward:/a b/model.py");
	assert_named(map, 0x7f0000001020, "(none)");
	assert_named(map, 0x7f0000002000, "LazyCompile:*run app.js:1");
	assert_named(map, 0x7f0000003001, "name;with \"quotes\"");
	assert_named(map, 0x7f0000004000, "X");
	perf_map_free(map);
	assert_null(perf_map_free(NULL));
}

static void test_broken_lines(void **state)
{
	static const char *const broken[] = {"\n", "hello\n", "1000\n", "1000 20\n", "1000 20 \n",
		"1000 0 empty\n", "xyz 20 name\n", "1000 g name\n", "11111111111111111 20 wide\n",
		"ffffffffffffffff 20 wraps\n", " 1000 20 name\n", "-1 20 name\n", "1000,20,name\n",
		"0x 20 name\n"};
	struct perf_map *map = perf_map_new();

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		add(map, broken[i]);
		assert_named(map, 0x1000, "(none)");
		assert_named(map, UINT64_MAX - 1, "(none)");
	}
	assert_int_equal(perf_map_add_text(map, "1000 20 a\0b\n", 12), 0);
	assert_named(map, 0x1000, "(none)");
	add(map, "1000 20 good\n");
	assert_named(map, 0x1000, "good");
	perf_map_free(map);
}

static void test_pieces_of_lines(void **state)
{
	static const char text[] = "1000 20 first\n2000 20 second name\n3000 20 third\n";

	for (size_t step = 1; step < sizeof(text); step++) {
		struct perf_map *map = perf_map_new();

		for (size_t at = 0; at < sizeof(text) - 1; at += step)
			assert_int_equal(
				perf_map_add_text(map, text + at, MIN(step, sizeof(text) - 1 - at)),
				0);
		assert_named(map, 0x1010, "first");
		assert_named(map, 0x2010, "second name");
		assert_named(map, 0x3010, "third");
		perf_map_free(map);
	}
}

static void test_long_names(void **state)
{
	struct perf_map *map = perf_map_new();
	_cleanup_strbuf_ struct strbuf name = {0};

	add(map, "1000 10 ");
	for (int i = 0; i < 60000; i++)
		strbuf_add_char(&name, 'x');
	add(map, strbuf_cstr(&name));
	add(map, "\n2000 10 ");
	add(map, strbuf_cstr(&name));
	add(map, strbuf_cstr(&name)); /* 120,000: no name any more */
	add(map, "\n3000 10 after\n");
	assert_named(map, 0x1000, name.data);
	assert_named(map, 0x2000, "(none)");
	assert_named(map, 0x3000, "after");
	perf_map_free(map);
}

static void test_later_entries_win(void **state)
{
	struct perf_map *map = perf_map_new();

	add(map, "1000 100 big\n1040 20 inner\n1000 10 begin\n");
	assert_named(map, 0x1000, "begin");
	assert_named(map, 0x1010, "big");
	assert_named(map, 0x1040, "inner");
	assert_named(map, 0x1060, "big");
	add(map, "1030 1000 over\n");
	assert_named(map, 0x102f, "big");
	assert_named(map, 0x1040, "over");
	assert_named(map, 0x10ff, "over");
	assert_named(map, 0x202f, "over");
	add(map, "1040 20 again\n");
	assert_named(map, 0x1040, "again");
	assert_named(map, 0x1060, "over");
	perf_map_free(map);
}

/* Random entries in several portions, compared with writing each over an array. */
static void test_overlaps_against_array(void **state)
{
	static uint16_t truth[4096];
	unsigned seed = 21;

	for (int round = 0; round < 20; round++) {
		struct perf_map *map = perf_map_new();

		memset(truth, 0, sizeof(truth));
		for (uint16_t i = 1; i <= 400; i++) {
			unsigned start = (unsigned)rand_r(&seed) % 4000;
			unsigned size = 1 + (unsigned)rand_r(&seed) % (i % 20 ? 40 : 1500);
			_cleanup_strbuf_ struct strbuf line = {0};

			strbuf_addf(&line, "%x %x n%u\n", 0x1000 + start, size, i);
			if (i % 7)
				strbuf_addf(&line, "broken\n");
			add(map, line.data);
			for (unsigned at = start; at < start + size && at < 4096; at++)
				truth[at] = i;
		}
		for (unsigned at = 0; at < 4096; at++) {
			char name[16] = "(none)";

			if (truth[at])
				snprintf(name, sizeof(name), "n%u", truth[at]);
			assert_named(map, 0x1000 + at, name);
		}
		perf_map_free(map);
	}
}

static void test_growing_file(void **state)
{
	struct process_view own = process_view_own();
	struct perf_map *map = NULL;

	write_text("1000 10 one\n2000 10 tw", O_TRUNC);
	assert_int_equal(perf_map_open_path(&map, &own, path, NULL), 0);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x1000, "one");
	assert_named(map, 0x2000, "(none)");
	write_text("o\n3000 10 three\n", O_APPEND);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x2000, "two");
	assert_named(map, 0x3000, "three");
	assert_int_equal(read_to_the_end(map), 0);

	write_text("4000 10 four\n", O_TRUNC); /* written anew, shorter */
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x1000, "(none)");
	assert_named(map, 0x4000, "four");

	assert_int_equal(write_file_atomically(path, "5000 10 five, a new file\n", 25), 0);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x4000, "(none)");
	assert_named(map, 0x5000, "five, a new file");

	assert_int_equal(unlink(path), 0); /* what is known stays */
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x5000, "five, a new file");
	perf_map_free(map);
}

/* A file that another user makes large is read a piece at a time, and not beyond a limit. */
static void test_large_file(void **state)
{
	struct process_view own = process_view_own();
	struct perf_map *map = NULL;
	int pieces = 0, result;

	write_text("1000 10 one\n", O_TRUNC);
	assert_int_equal(truncate(path, (off_t)1 << 30), 0); /* the rest is a hole */
	assert_int_equal(perf_map_open_path(&map, &own, path, NULL), 0);
	for (; (result = perf_map_read(map, (size_t)32 << 20)) == 1; pieces++)
		assert_true(perf_map_memory(map) < 1 << 20);
	assert_int_equal(result, -EFBIG);
	assert_int_equal(pieces, 3); /* and the last: 128 MiB */
	assert_named(map, 0x1000, "one");
	assert_int_equal(perf_map_read(map, SIZE_MAX), -EFBIG); /* nothing new */
	perf_map_free(map);
	unlink(path);
}

static void assert_refused(const struct process_view *view, int error, const char *reason)
{
	struct perf_map *map = NULL;
	struct errmsg err = {""};

	assert_int_equal(perf_map_open_path(&map, view, path, &err), error);
	assert_null(map);
	assert_non_null(strstr(err.text, reason));
}

static void test_refused_files(void **state)
{
	struct process_view own = process_view_own();

	unlink(path);
	assert_refused(&own, -ENOENT, path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_refused(&own, -ELOOP, "symbolic link");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
	assert_refused(&own, -EINVAL, "not a regular file");
	unlink(path);
}

/* Root's files stay root's, whoever's process has them at the path of its map. */
static void test_files_of_others(void **state)
{
	struct process_view somebody = process_view_nobody();
	_cleanup_strbuf_ struct strbuf second = {0};
	struct perf_map *map = NULL;

	if (getuid() != 0)
		skip();
	somebody.user = 4711;
	assert_int_equal(chmod(folder, 0755), 0);
	write_text("1000 10 planted\n", O_TRUNC);
	assert_refused(&somebody, -EPERM, "4711");
	assert_int_equal(chmod(path, 0644), 0);
	assert_refused(&somebody, -EPERM, "4711");
	assert_int_equal(chown(path, 4711, 4711), 0);
	assert_int_equal(chmod(path, 0), 0);
	assert_refused(&somebody, -EACCES, "4711");
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(perf_map_open_path(&map, &somebody, path, NULL), 0);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x1000, "planted");
	perf_map_free(map);
	strbuf_addf(&second, "%s.second", path);
	assert_int_equal(link(path, strbuf_cstr(&second)), 0);
	assert_refused(&somebody, -EPERM, "hard links");
	unlink(second.data);
	unlink(path);
}

static void test_map_of_a_process(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct process_view view;
	struct perf_map *map = NULL;
	struct errmsg err = {""};
	char saved[sizeof(path)];

	memcpy(saved, path, sizeof(path));
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	unlink(path);
	assert_int_equal(process_view_open(&view, pid), 0);
	assert_int_equal(perf_map_open(&map, &view, pid, &err), -ENOENT);
	write_text("1000 10 mine\n", O_EXCL);
	assert_int_equal(perf_map_open(&map, &view, pid, &err), 0);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x1000, "mine");
	perf_map_free(map);

	map = NULL;
	view.inner_pid = 0x7fffffff; /* as in a container that shares our /tmp */
	assert_int_equal(perf_map_open(&map, &view, pid, &err), 0);
	assert_int_equal(read_to_the_end(map), 0);
	assert_named(map, 0x1000, "mine");
	perf_map_free(map);
	process_view_done(&view);
	unlink(path);
	memcpy(path, saved, sizeof(path));
}

static int make_folder(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/perf-1.map", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_broken_lines),
		cmocka_unit_test(test_pieces_of_lines),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_later_entries_win),
		cmocka_unit_test(test_overlaps_against_array),
		cmocka_unit_test(test_growing_file),
		cmocka_unit_test(test_large_file),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_files_of_others),
		cmocka_unit_test(test_map_of_a_process),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
