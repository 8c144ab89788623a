/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inline chains of the fixture library, compared with addr2line; separate debug files;
 * damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../support/elf_path.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "symbols/lines.h"

static char folder[] = "/tmp/sonde-test-lines-XXXXXX";

static void _printf_(1, 2) run(const char *format, ...)
{
	char command[4096];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

struct nm_range {
	uint64_t start, size;
};

static struct nm_range range_of(const char *name)
{
	char command[1024], line[1024], found[512];
	struct nm_range range = {0}, read;
	FILE *output;

	snprintf(command, sizeof(command), NM " -S '%s'", FIXTURE);
	output = popen(command, "r");
	assert_non_null(output);
	while (fgets(line, sizeof(line), output))
		if (sscanf(line, "%lx %lx %*c %511s", &read.start, &read.size, found) == 3 &&
			strcmp(found, name) == 0)
			range = read;
	pclose(output);
	assert_int_not_equal(range.size, 0);
	return range;
}

static struct line_table *open_lines(const char *path, const char *root)
{
	struct line_table *table = NULL;
	struct errmsg err = {""};

	if (line_table_open(&table, path, root, &err) < 0)
		fail_msg("%s", err.text);
	return table;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void chomp(char *line)
{
	line[strcspn(line, "\n")] = '\0';
}

/* Writes our answer as addr2line -a -i -f -s writes its own. */
static void print_chain(FILE *out, struct line_table *table, uint64_t address)
{
	struct source_line lines[16];
	size_t count = line_table_find(table, address, lines, 16);

	fprintf(out, "0x%016lx\n", address);
	if (count == 0)
		fputs("??\n??:?\n", out);
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "%s\n", lines[i].function ? lines[i].function : "??");
		fprintf(out, "%s:", lines[i].file ? base_name(lines[i].file) : "??");
		if (lines[i].line)
			fprintf(out, "%u\n", lines[i].line);
		else
			fputs("?\n", out);
	}
}

static void test_agrees_with_addr2line(void **state)
{
	static const char *const functions[] = {"fixture_outer", "fixture_local", "fixture_caller"};
	struct line_table *table = open_lines(FIXTURE, "");
	char theirs[512], ours[512], command[2048], line[2][1024];
	FILE *list, *answer;
	size_t compared = 0;

	snprintf(ours, sizeof(ours), "%s/ours", folder);
	snprintf(theirs, sizeof(theirs), "%s/addresses", folder);
	list = fopen(theirs, "w");
	answer = fopen(ours, "w");
	assert_true(list && answer);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		struct nm_range range = range_of(functions[i]);

		for (uint64_t at = range.start; at < range.start + range.size; at++) {
			fprintf(list, "%#lx\n", at);
			print_chain(answer, table, at);
		}
	}
	fclose(list);
	fclose(answer);
	line_table_free(table);

	snprintf(command, sizeof(command),
		ADDR2LINE " -a -i -f -s -e '%s' < '%s' | sed 's/ (discriminator.*//'", FIXTURE,
		theirs);
	list = popen(command, "r");
	answer = fopen(ours, "r");
	assert_true(list && answer);
	while (fgets(line[0], sizeof(line[0]), list)) {
		assert_non_null(fgets(line[1], sizeof(line[1]), answer));
		chomp(line[0]);
		chomp(line[1]);
		assert_string_equal(line[1], line[0]);
		compared++;
	}
	assert_null(fgets(line[1], sizeof(line[1]), answer));
	assert_true(compared > 300);
	pclose(list);
	fclose(answer);
}

/* The address in fixture_outer with the longest chain. */
static uint64_t deepest_address(struct line_table *table, size_t *ret_depth)
{
	struct nm_range range = range_of("fixture_outer");
	struct source_line lines[16];
	uint64_t best = 0;

	*ret_depth = 0;
	for (uint64_t at = range.start; at < range.start + range.size; at++) {
		size_t count = line_table_find(table, at, lines, 16);

		if (count > *ret_depth) {
			*ret_depth = count;
			best = at;
		}
	}
	return best;
}

static void assert_chain(struct line_table *table)
{
	struct source_line lines[16];
	size_t depth;
	uint64_t address = deepest_address(table, &depth);

	assert_int_equal(depth, 3);
	assert_int_equal(line_table_find(table, address, lines, 16), 3);
	assert_string_equal(lines[0].function, "fixture_inner");
	assert_string_equal(lines[1].function, "fixture_middle");
	assert_string_equal(lines[2].function, "fixture_outer");
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(base_name(lines[i].file), "symbols.c");
		assert_in_range(lines[i].line, 10, 60);
	}
	/* Call sites lie after the function that is called. */
	assert_true(lines[0].line < lines[1].line && lines[1].line < lines[2].line);

	assert_int_equal(line_table_find(table, address, lines, 2), 2);
	assert_string_equal(lines[1].function, "fixture_middle");
	assert_int_equal(line_table_find(table, address, lines, 0), 0);
	assert_int_equal(line_table_find(table, 0, lines, 16), 0);
	assert_int_equal(line_table_find(table, UINT64_MAX, lines, 16), 0);
}

static void test_inline_chain(void **state)
{
	struct line_table *table = open_lines(FIXTURE, "");

	assert_chain(table);
	line_table_free(table);
	line_table_free(NULL);
}

static void test_separate_debug_file(void **state)
{
	struct elf_file *file = NULL;
	struct line_table *table = NULL;
	char root[300], stripped[400], hex[2 * BUILD_ID_MAX_BYTES + 1];
	struct errmsg err = {""};

	snprintf(root, sizeof(root), "%s/root", folder);
	snprintf(stripped, sizeof(stripped), "%s/lib/stripped.so", root);
	run("mkdir -p '%s/lib' && " OBJCOPY " -S '%s' '%s'", root, FIXTURE, stripped);
	assert_int_equal(line_table_open(&table, stripped, root, &err), -ENOENT);
	assert_non_null(strstr(err.text, "debug symbols"));

	assert_int_equal(open_elf(&file, FIXTURE, FIXTURE, NULL), 0);
	build_id_to_hex(elf_file_build_id(file), hex);
	elf_file_free(file);
	run("mkdir -p '%s/usr/lib/debug/.build-id/%.2s'", root, hex);
	run(OBJCOPY " --only-keep-debug '%s' '%s/usr/lib/debug/.build-id/%.2s/%s.debug'", FIXTURE,
		root, hex, hex + 2);
	table = open_lines(stripped, root);
	assert_chain(table);
	line_table_free(table);
}

static void test_compressed_sections(void **state)
{
	struct line_table *table;
	char path[300];

	snprintf(path, sizeof(path), "%s/compressed.so", folder);
	run(OBJCOPY " --compress-debug-sections '%s' '%s'", FIXTURE, path);
	table = open_lines(path, "");
	assert_chain(table);
	line_table_free(table);
}

/* DWARF with bytes changed at random gives some answer or none, and ends. */
static void test_damaged_dwarf(void **state)
{
	struct nm_range range = range_of("fixture_outer");
	_cleanup_strbuf_ struct strbuf whole = {0};
	struct elf_file *file = NULL;
	struct elf_bytes info, lines;
	unsigned seed = 3;
	char path[300];

	snprintf(path, sizeof(path), "%s/damaged.so", folder);
	assert_int_equal(read_whole_file(FIXTURE, 16 << 20, &whole), 0);
	assert_int_equal(elf_file_open_memory(&file, whole.data, whole.length, "fixture", NULL), 0);
	assert_true(elf_file_section(file, ".debug_info", &info));
	assert_true(elf_file_section(file, ".debug_line", &lines));
	for (size_t round = 0; round < 300; round++) {
		const struct elf_bytes *target = round % 2 ? &info : &lines;
		uint8_t *byte = (uint8_t *)target->bytes + (size_t)rand_r(&seed) % target->length;
		uint8_t before = *byte;
		struct line_table *table = NULL;
		struct source_line found[16];

		*byte = (uint8_t)rand_r(&seed);
		assert_int_equal(write_file_atomically(path, whole.data, whole.length), 0);
		if (line_table_open(&table, path, "", NULL) == 0)
			for (uint64_t at = 0; at < range.size; at += 5)
				line_table_find(table, range.start + at, found, 16);
		line_table_free(table);
		*byte = before;
	}
	elf_file_free(file);
}

static void test_files_without_lines(void **state)
{
	struct line_table *table = NULL;
	struct errmsg err = {""};

	assert_int_equal(line_table_open(&table, "/no/such/file", "", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/file"));
	assert_true(line_table_open(&table, "/proc/self/status", "", &err) < 0);
	assert_null(table);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	run("rm -rf '%s'", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_addr2line),
		cmocka_unit_test(test_inline_chain),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_compressed_sections),
		cmocka_unit_test(test_damaged_dwarf),
		cmocka_unit_test(test_files_without_lines),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
