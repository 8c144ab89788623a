/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../support/elf_path.h"
#include "base/file.h"
#include "unwind/build.h"

struct fixture {
	char directory[64];
	struct strbuf path; /* of the cached table */
	struct elf_file *file;
	struct unwind_table expected;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	strcpy(fixture->directory, "/tmp/sonde-test-cache-XXXXXX");
	if (!mkdtemp(fixture->directory) ||
		open_elf(&fixture->file, "/proc/self/exe", "this test", NULL) < 0 ||
		unwind_table_build(&fixture->expected, fixture->file, NULL, NULL) < 0)
		return -1;
	strbuf_addf(&fixture->path, "%s/", fixture->directory);
	elf_file_cache_name(fixture->file, &fixture->path);
	strbuf_addf(&fixture->path, ".unwind");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	unlink(fixture->path.data);
	rmdir(fixture->directory);
	strbuf_done(&fixture->path);
	elf_file_free(fixture->file);
	unwind_table_done(&fixture->expected);
	free(fixture);
	return 0;
}

static void assert_same_table(const struct unwind_table *one, const struct unwind_table *other)
{
	assert_int_equal(one->word_count, other->word_count);
	assert_memory_equal(one->words, other->words, one->word_count * sizeof(*one->words));
}

/* Opens through the cache; the table must be right wherever it came from. */
static bool open_and_check(struct fixture *fixture)
{
	struct unwind_build_stats stats;
	struct unwind_table table;
	struct errmsg err;

	assert_int_equal(
		unwind_table_open(&table, fixture->file, fixture->directory, &stats, &err), 0);
	assert_same_table(&table, &fixture->expected);
	assert_int_equal(table.mapping != NULL, stats.from_cache);
	assert_true(stats.row_count > 0 && stats.rule_count > 2);
	unwind_table_done(&table);
	return stats.from_cache;
}

static void test_second_open_is_from_cache(void **state)
{
	struct fixture *fixture = *state;
	struct unwind_table table;

	assert_int_equal(
		unwind_table_open_cached(&table, fixture->file, fixture->directory), -ENOENT);
	assert_false(open_and_check(fixture));
	assert_true(open_and_check(fixture));
	assert_int_equal(unwind_table_open_cached(&table, fixture->file, fixture->directory), 0);
	assert_same_table(&table, &fixture->expected);
	unwind_table_done(&table);
	unwind_table_done(&table);
}

/* A copy of the file has the same build-id, and might be any other file with it. */
static void test_copy_is_another_file(void **state)
{
	struct fixture *fixture = *state;
	_cleanup_elf_file_ struct elf_file *copy = NULL;
	_cleanup_strbuf_ struct strbuf bytes = {0}, path = {0};
	struct unwind_table table;

	strbuf_addf(&path, "%s/copy", fixture->directory);
	assert_int_equal(read_whole_file("/proc/self/exe", 1 << 28, &bytes), 0);
	assert_int_equal(write_file_atomically(path.data, bytes.data, bytes.length), 0);
	assert_int_equal(open_elf(&copy, path.data, path.data, NULL), 0);
	assert_true(elf_file_identity(copy) == elf_file_identity(fixture->file));
	assert_false(open_and_check(fixture));
	assert_int_equal(unwind_table_open_cached(&table, copy, fixture->directory), -ENOENT);
	unlink(path.data);
}

static void put(const struct fixture *fixture, const void *bytes, size_t length)
{
	assert_int_equal(write_file_atomically(fixture->path.data, bytes, length), 0);
}

static void test_truncated_file_is_rebuilt(void **state)
{
	struct fixture *fixture = *state;
	size_t length = fixture->expected.word_count * sizeof(uint64_t);
	const size_t lengths[] = {0, 7, 63, 64, length / 2 / 8 * 8, length - 8, length - 1};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		put(fixture, fixture->expected.words, lengths[i]);
		assert_false(open_and_check(fixture));
		assert_true(open_and_check(fixture));
	}
}

static void test_corrupt_word_is_rebuilt(void **state)
{
	struct fixture *fixture = *state;
	uint64_t count = fixture->expected.word_count;
	_cleanup_free_ uint64_t *words = malloc(count * sizeof(*words));

	assert_non_null(words);
	for (uint64_t i = 0; i < count; i += i < 16 ? 1 : count / 16) {
		memcpy(words, fixture->expected.words, count * sizeof(*words));
		words[i] ^= 1ULL << (i % 64);
		put(fixture, words, count * sizeof(*words));
		assert_false(open_and_check(fixture));
	}
}

/* A table of another file, whole and well, under this file's name. */
static void test_foreign_file_is_rebuilt(void **state)
{
	struct fixture *fixture = *state;
	struct unwind_table_header header;
	_cleanup_free_ uint64_t *words = malloc(fixture->expected.word_count * sizeof(*words));

	assert_non_null(words);
	memcpy(words, fixture->expected.words, fixture->expected.word_count * sizeof(*words));
	memcpy(&header, words, sizeof(header));
	header.identity++;
	memcpy(words, &header, sizeof(header));
	assert_true(unwind_table_is_valid(words, fixture->expected.word_count));
	put(fixture, words, fixture->expected.word_count * sizeof(*words));
	assert_false(open_and_check(fixture));
	assert_true(open_and_check(fixture));
}

static void test_no_place_to_cache_is_no_error(void **state)
{
	struct fixture *fixture = *state;
	struct unwind_build_stats stats;
	struct unwind_table table;
	struct errmsg err;
	const char *const places[] = {NULL, "/nonexistent/folder", "/dev/null"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		assert_int_equal(
			unwind_table_open(&table, fixture->file, places[i], &stats, &err), 0);
		assert_false(stats.from_cache);
		assert_same_table(&table, &fixture->expected);
		unwind_table_done(&table);
	}
}

static void test_validity_checks_every_bound(void **state)
{
	struct fixture *fixture = *state;
	uint64_t count = fixture->expected.word_count, words[UNWIND_HEADER_WORDS];
	struct unwind_table_header good, bad;

	memcpy(&good, fixture->expected.words, sizeof(good));
	assert_true(unwind_table_is_valid(fixture->expected.words, count));
	assert_false(unwind_table_is_valid(fixture->expected.words, count - 1));
	assert_false(unwind_table_is_valid(fixture->expected.words, 3));
#define ASSERT_BAD(field, value)                                                                   \
	do {                                                                                       \
		bad = good;                                                                        \
		bad.field = (value);                                                               \
		memcpy(words, &bad, sizeof(bad));                                                  \
		assert_false(unwind_table_is_valid(words, count));                                 \
	} while (0)
	ASSERT_BAD(magic, good.magic + 1);
	ASSERT_BAD(version, UNWIND_TABLE_VERSION + 1);
	ASSERT_BAD(word_count, good.word_count - 1);
	ASSERT_BAD(page_count, UINT32_MAX);
	ASSERT_BAD(pages_at, 0);
	ASSERT_BAD(rules_at, UINT32_MAX);
	ASSERT_BAD(rows_at, UINT32_MAX);
	ASSERT_BAD(row_count, UINT32_MAX);
	ASSERT_BAD(rule_count, UINT32_MAX);
	ASSERT_BAD(rule_count, 0);
#undef ASSERT_BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_second_open_is_from_cache, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copy_is_another_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_truncated_file_is_rebuilt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_corrupt_word_is_rebuilt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign_file_is_rebuilt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_no_place_to_cache_is_no_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_validity_checks_every_bound, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
