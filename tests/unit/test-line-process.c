/* SPDX-License-Identifier: Apache-2.0 */
/* Reading source lines in a child process, whatever becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "collect/pipeline/line_process.h"

#define MEMORY_BYTES ((uint64_t)256 << 20)
#define PATIENCE_NS  (120 * NS_PER_S)

/* What happens when a file is opened in the child. */
enum conduct {
	CONDUCT_SOUND,
	CONDUCT_NO_LINES,
	CONDUCT_ABORTS,
	CONDUCT_ENDS,
	CONDUCT_TAKES_MEMORY,
	CONDUCT_HANGS,
	CONDUCT_IS_CUT,
};

struct fixture {
	const enum conduct *conducts;
	char copy[64];
	unsigned found[8]; /* chains by file */
	bool wrong;
};

enum { FILE_ADDRESSES = 8 };

static uint64_t code_start(void)
{
	static uint64_t start;
	char line[256];
	FILE *names;

	if (start)
		return start;
	names = popen(NM " '" FIXTURE "'", "r");
	assert_non_null(names);
	while (fgets(line, sizeof(line), names))
		if (strstr(line, " fixture_outer\n"))
			start = strtoull(line, NULL, 16);
	pclose(names);
	assert_true(start != 0);
	return start;
}

static void make_copy(const char *path)
{
	_cleanup_strbuf_ struct strbuf bytes = {0};

	assert_int_equal(read_whole_file(FIXTURE, 64 << 20, &bytes), 0);
	assert_int_equal(write_file_atomically(path, bytes.data, bytes.length), 0);
}

static struct line_table *open_file(void *context, uint32_t file)
{
	struct fixture *fixture = context;
	enum conduct conduct = fixture->conducts[file];
	const char *path = conduct == CONDUCT_IS_CUT ? fixture->copy : FIXTURE;
	struct line_table *table = NULL;
	struct source_line lines[1];

	switch (conduct) {
	case CONDUCT_NO_LINES:
		return NULL;
	case CONDUCT_ABORTS:
		abort();
	case CONDUCT_ENDS:
		_exit(0);
	case CONDUCT_TAKES_MEMORY:
		for (;;) {
			volatile char *piece = malloc(1 << 20);

			if (!piece)
				abort();
			piece[0] = 1;
		}
	case CONDUCT_HANGS:
		for (;;)
			pause();
	default:
		break;
	}
	if (line_table_open(&table, path, "", NULL) < 0)
		_exit(3);
	/* libdw has mapped it by then. */
	line_table_find(table, 0, lines, 1);
	if (conduct == CONDUCT_IS_CUT && truncate(path, 0) < 0)
		_exit(3);
	return table;
}

static void take(void *context, size_t index, const struct source_line *lines, size_t count)
{
	struct fixture *fixture = context;

	fixture->found[index / FILE_ADDRESSES]++;
	fixture->wrong |= count == 0 || !lines[0].file || !strstr(lines[0].file, "symbols.c") ||
			  !lines[count - 1].function ||
			  strcmp(lines[count - 1].function, "fixture_outer") != 0;
}

static const char *name_of(void *context, uint32_t file)
{
	static char name[16];

	snprintf(name, sizeof(name), "file-%u", file);
	return name;
}

/* Runs a request over files of these conducts, all with the same addresses. */
static struct line_account read_lines(struct fixture *fixture, const enum conduct *conducts,
	size_t count, uint64_t time_ns, bool (*given_up)(void *context))
{
	struct line_file files[8];
	uint64_t addresses[8 * FILE_ADDRESSES];
	struct line_request request = {
		.files = files,
		.file_count = count,
		.addresses = addresses,
		.open = open_file,
		.found = take,
		.name = name_of,
		.context = fixture,
		.memory_bytes = MEMORY_BYTES,
		.deadline_ns = monotonic_now_ns() + time_ns,
		.given_up = given_up,
	};
	struct line_account account;

	*fixture = (struct fixture){.conducts = conducts};
	snprintf(fixture->copy, sizeof(fixture->copy), "/tmp/sonde-lines-%d", getpid());
	make_copy(fixture->copy);
	for (size_t i = 0; i < count; i++) {
		files[i] = (struct line_file){
			.file = (uint32_t)i, .first = i * FILE_ADDRESSES, .count = FILE_ADDRESSES};
		for (uint64_t j = 0; j < FILE_ADDRESSES; j++)
			addresses[i * FILE_ADDRESSES + j] = code_start() + j;
	}
	assert_int_equal(line_process_run(&request, &account), 0);
	assert_false(fixture->wrong);
	unlink(fixture->copy);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left behind */
	return account;
}

static void test_sound_files(void **state)
{
	const enum conduct conducts[] = {CONDUCT_SOUND, CONDUCT_NO_LINES, CONDUCT_SOUND};
	struct fixture fixture;
	struct line_account account = read_lines(&fixture, conducts, 3, PATIENCE_NS, NULL);

	assert_int_equal(account.files_left_out, 0);
	assert_int_equal(account.addresses_left_out, 0);
	assert_int_equal(fixture.found[0], FILE_ADDRESSES);
	assert_int_equal(fixture.found[1], 0);
	assert_int_equal(fixture.found[2], FILE_ADDRESSES);
}

/* One bad file between two good ones: it alone is left out, and the reason is given. */
static void check_bad_file(enum conduct bad, const char *reason)
{
	const enum conduct conducts[] = {CONDUCT_SOUND, bad, CONDUCT_SOUND};
	struct fixture fixture;
	struct line_account account = read_lines(&fixture, conducts, 3, PATIENCE_NS, NULL);

	assert_int_equal(account.files_left_out, 1);
	assert_int_equal(account.addresses_left_out, FILE_ADDRESSES);
	assert_non_null(strstr(account.example.text, "source lines of file-1 were left out"));
	if (!strstr(account.example.text, reason))
		fail_msg("%s", account.example.text);
	assert_int_equal(fixture.found[0], FILE_ADDRESSES);
	assert_int_equal(fixture.found[2], FILE_ADDRESSES);
}

static void test_library_crashes(void **state)
{
	check_bad_file(CONDUCT_ABORTS, "failed, or took more than 256 MB");
}

/* What has no answer is left out, also if the child says that all is well. */
static void test_child_ends_early(void **state)
{
	check_bad_file(CONDUCT_ENDS, "failed, or took more than 256 MB");
}

#ifdef __SANITIZE_ADDRESS__
/* Out of memory, malloc() fails as it does without the sanitizer, whose report would not end
 * either. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
#endif

static void test_file_takes_memory(void **state)
{
	struct rusage usage;

	check_bad_file(CONDUCT_TAKES_MEMORY, "failed, or took more than 256 MB");
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	assert_true((uint64_t)usage.ru_maxrss << 10 < 2 * MEMORY_BYTES);
}

/* Mapped by libdw, and cut: the child dies of it. */
static void test_file_is_cut(void **state)
{
	check_bad_file(CONDUCT_IS_CUT, "the file was truncated while it was read");
}

static void test_file_takes_time(void **state)
{
	const enum conduct conducts[] = {CONDUCT_HANGS, CONDUCT_SOUND};
	struct fixture fixture;
	struct line_account account = read_lines(&fixture, conducts, 2, 4 * NS_PER_S, NULL);

	assert_int_equal(account.files_left_out, 1);
	assert_non_null(strstr(account.example.text, "takes too long"));
	assert_int_equal(fixture.found[1], FILE_ADDRESSES);
}

static bool give_up(void *context)
{
	return true;
}

static void test_given_up(void **state)
{
	const enum conduct conducts[] = {CONDUCT_HANGS, CONDUCT_SOUND};
	struct fixture fixture;
	uint64_t start_ns = monotonic_now_ns();
	struct line_account account = read_lines(&fixture, conducts, 2, PATIENCE_NS, give_up);

	assert_true(monotonic_now_ns() - start_ns < PATIENCE_NS / 2);
	assert_int_equal(account.addresses_left_out, 2 * FILE_ADDRESSES);
	assert_int_equal(account.files_left_out, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_files),
		cmocka_unit_test(test_library_crashes),
		cmocka_unit_test(test_child_ends_early),
		cmocka_unit_test(test_file_takes_memory),
		cmocka_unit_test(test_file_is_cut),
		cmocka_unit_test(test_file_takes_time),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
