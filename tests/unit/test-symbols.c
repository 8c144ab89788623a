/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol tables of a fixture library and of what is made of it: stripped, with separate debug
 * files, with .gnu_debugdata; the cache and its damage; names that no compiler would give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../support/elf_path.h"
#include "base/array.h"
#include "base/demangle.h"
#include "base/file.h"
#include "symbols/debug_file.h"
#include "symbols/symbol_image.h"
#include "symbols/symbols.h"

static char folder[] = "/tmp/sonde-test-symbols-XXXXXX";

/* ---- Helpers ---- */

static char *in_folder(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void _printf_(1, 2) run(const char *format, ...)
{
	char command[4096];
	va_list arguments;

	va_start(arguments, format);
	assert_in_range(
		vsnprintf(command, sizeof(command), format, arguments), 1, sizeof(command) - 1);
	va_end(arguments);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;
	struct errmsg err;

	if (open_elf(&file, path, path, &err) < 0)
		fail_msg("%s", err.text);
	return file;
}

static struct symbol_table *open_symbols(const char *path, const char *root, const char *cache)
{
	_cleanup_elf_file_ struct elf_file *file = open_file(path);
	struct symbol_table *table = NULL;
	struct errmsg err = {""};
	const char *inside = path;

	if (*root && strncmp(path, root, strlen(root)) == 0)
		inside = path + strlen(root);
	if (symbol_table_open(&table, file, inside, root, cache, &err) < 0)
		fail_msg("%s", err.text);
	return table;
}

struct nm_symbol {
	uint64_t start, size;
	char type, name[200];
};

struct nm_symbols { /* as ARRAY_OF() */
	struct nm_symbol *items;
	size_t count, capacity;
};

/* What nm says: the truth to compare with. */
static struct nm_symbols run_nm(const char *options, const char *path)
{
	struct nm_symbols symbols = {0};
	char command[1024], line[4096];
	FILE *output;

	snprintf(command, sizeof(command), NM " -S %s '%s'", options, path);
	output = popen(command, "r");
	assert_non_null(output);
	while (fgets(line, sizeof(line), output)) {
		struct nm_symbol symbol = {0};

		if (sscanf(line, "%lx %lx %c %199s", &symbol.start, &symbol.size, &symbol.type,
			    symbol.name) != 4 &&
			sscanf(line, "%lx %c %199s", &symbol.start, &symbol.type, symbol.name) != 3)
			continue;
		assert_int_equal(array_append(&symbols, symbol), 0);
	}
	assert_int_equal(pclose(output), 0);
	return symbols;
}

static struct nm_symbols fixture_symbols;

static uint64_t address_of(const char *name)
{
	array_foreach (&fixture_symbols, symbol)
		if (strcmp(symbol->name, name) == 0)
			return symbol->start;
	fail_msg("the fixture has no %s", name);
	return 0;
}

/* The name at an offset from a symbol of the fixture; NULL for none. */
static const char *name_at(const struct symbol_table *table, const char *symbol, uint64_t offset)
{
	struct symbol found;

	return symbol_table_find(table, address_of(symbol) + offset, &found) ? found.name : NULL;
}

static void assert_named(const struct symbol_table *table, const char *symbol, const char *name)
{
	const char *found = name_at(table, symbol, 1);

	if (name)
		assert_string_equal(found ? found : "(none)", name);
	else
		assert_null(found);
}

static void debug_path(char *ret_path, size_t size, const char *root)
{
	_cleanup_elf_file_ struct elf_file *file = open_file(FIXTURE);
	char hex[2 * BUILD_ID_MAX_BYTES + 1];

	build_id_to_hex(elf_file_build_id(file), hex);
	snprintf(ret_path, size, "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, hex, hex + 2);
}

/* A root folder whose build-id directory has the fixture's debug file. */
static void make_debug_root(const char *root)
{
	char path[512];

	debug_path(path, sizeof(path), root);
	run("mkdir -p $(dirname '%s') && cp '%s' '%s'", path, in_folder("only.debug"), path);
}

/* ---- Sources ---- */

static void test_full_table(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table = open_symbols(FIXTURE, "", NULL);
	struct symbol found;

	assert_named(table, "fixture_local", "fixture_local");
	assert_named(table, "fixture_caller", "fixture_caller");
	assert_named(table, "fixture_outer", "fixture_outer"); /* before _fixture_weak_alias */
	assert_true(symbol_table_find(table, address_of("fixture_caller") + 3, &found));
	assert_int_equal(found.vaddr, address_of("fixture_caller"));
	assert_false(symbol_table_find(table, 0, &found));
	assert_false(symbol_table_find(table, UINT64_MAX, &found));
}

static void test_nested_symbols(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table = open_symbols(FIXTURE, "", NULL);

	assert_string_equal(name_at(table, "fixture_sized", 0), "fixture_sized");
	assert_string_equal(name_at(table, "fixture_sized", 12), "fixture_sized");
	assert_string_equal(name_at(table, "fixture_sized", 16), "fixture_nested");
	assert_string_equal(name_at(table, "fixture_sized", 31), "fixture_nested");
	assert_string_equal(name_at(table, "fixture_sized", 32), "fixture_sized");
	assert_string_equal(name_at(table, "fixture_sized", 63), "fixture_sized");
	assert_string_equal(name_at(table, "fixture_kernel", 0), "fixture_kernel");
	assert_string_equal(name_at(table, "fixture_kernel", 40), "fixture_kernel");
	assert_string_equal(name_at(table, "fixture_kernel", 63), "fixture_kernel");
	assert_string_equal(name_at(table, "fixture_after", 15), "fixture_after");
	assert_null(name_at(table, "fixture_after", 16));
}

static void test_plt_names(void **state)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	_cleanup_symbol_table_ struct symbol_table *table = open_symbols(FIXTURE, "", NULL);
	_cleanup_elf_file_ struct elf_file *file = open_file(FIXTURE);
	bool found_import = false;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		struct elf_bytes bytes;
		struct symbol symbol;

		if (!elf_file_section(file, sections[i], &bytes))
			continue;
		for (uint64_t at = 0; at < bytes.length; at += 4)
			if (symbol_table_find(table, bytes.vaddr + at, &symbol) &&
				strstr(symbol.name, "fixture_import@plt") == symbol.name)
				found_import = true;
	}
	assert_true(found_import);
}

static void test_stripped(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table =
		open_symbols(in_folder("stripped.so"), in_folder("nothing"), NULL);

	assert_named(table, "fixture_caller", "fixture_caller");
	assert_named(table, "fixture_local", NULL);
}

/* Names of .dynsym without a size: what lies behind may be another function. */
static void test_guessed_ends(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *whole = open_symbols(FIXTURE, "", NULL),
						   *stripped =
							   open_symbols(in_folder("stripped.so"),
								   in_folder("nothing"), NULL);
	struct symbol found;

	assert_true(symbol_table_find(whole, address_of("fixture_kernel") + 20, &found));
	assert_false(found.end_is_guess);
	assert_true(symbol_table_find(stripped, address_of("fixture_kernel") + 20, &found));
	assert_string_equal(found.name, "fixture_kernel");
	assert_int_equal(found.size, 64);
	assert_true(found.end_is_guess);
	assert_true(symbol_table_find(stripped, address_of("fixture_after"), &found));
	assert_false(found.end_is_guess);
}

static void test_build_id_directory(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table = NULL;

	make_debug_root(in_folder("root"));
	table = open_symbols(in_folder("stripped.so"), in_folder("root"), NULL);
	assert_named(table, "fixture_local", "fixture_local");
	assert_named(table, "fixture_nested", "fixture_nested");
}

static void test_debug_link_places(void **state)
{
	static const char *const places[] = {
		"app/linked.debug", "app/.debug/linked.debug", "usr/lib/debug/app/linked.debug"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_symbol_table_ struct symbol_table *table = NULL, *wrong = NULL;
		const char *root = in_folder("linkroot");

		run("rm -rf '%s' && mkdir -p '%s/app/.debug' '%s/usr/lib/debug/app'", root, root,
			root);
		run("cp '%s' '%s/app/linked.so'", in_folder("linked.so"), root);
		run("cp '%s' '%s/%s'", in_folder("linked.debug"), root, places[i]);
		table = open_symbols(in_folder("linkroot/app/linked.so"), root, NULL);
		assert_named(table, "fixture_local", "fixture_local");
		run("echo >> '%s/%s'", root, places[i]); /* the checksum is another now */
		wrong = open_symbols(in_folder("linkroot/app/linked.so"), root, NULL);
		assert_named(wrong, "fixture_local", NULL);
	}
}

/* A .gnu_debuglink to anything but a regular file; inotify would see it opened. */
static void test_debug_link_to_no_file(void **state)
{
	_cleanup_close_ int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char events[4096], root[512], linked[600];

	snprintf(root, sizeof(root), "%s/linkroot", folder);
	snprintf(linked, sizeof(linked), "%s/app/linked.debug", root);
	run("rm -rf '%s' && mkdir -p '%s/app'", root, root);
	run("cp '%s' '%s/app/linked.so'", in_folder("linked.so"), root);
	assert_true(inotify_add_watch(watch, in_folder("linkroot/app"), IN_OPEN) >= 0);
	for (int i = 0; i < 3; i++) {
		_cleanup_symbol_table_ struct symbol_table *table = NULL;

		unlink(linked);
		if (i == 0)
			assert_int_equal(mkfifo(linked, 0600), 0);
		else if (i == 1)
			assert_int_equal(symlink(in_folder("linked.debug"), linked), 0);
		else if (mknod(linked, S_IFCHR | 0600, makedev(1, 3)) < 0)
			continue; /* only root makes devices */
		while (read(watch, events, sizeof(events)) > 0)
			continue;
		table = open_symbols(in_folder("linkroot/app/linked.so"), root, NULL);
		assert_named(table, "fixture_local", NULL);
		for (ssize_t got; (got = read(watch, events, sizeof(events))) > 0;)
			assert_null(memmem(events, (size_t)got, "linked.debug", 12));
	}
}

/* The owner of a program names its functions, and the system does; nobody else. */
static void test_debug_files_of_others(void **state)
{
	static const struct {
		unsigned program, debug, mode;
		bool named;
	} cases[] = {
		{0, 0, 0600, true},
		{0, 4711, 0644, false},
		{4711, 4711, 0600, true},
		{4711, 0, 0644, true},
		{4711, 0, 0600, false},
		{4711, 4712, 0644, false},
	};
	char root[512], program[600];

	if (getuid() != 0)
		skip();
	snprintf(root, sizeof(root), "%s/linkroot", folder);
	snprintf(program, sizeof(program), "%s/app/linked.so", root);
	run("rm -rf '%s' && mkdir -p '%s/app' && chmod 755 '%s'", root, root, folder);
	run("cp '%s' '%s' '%s/app'", in_folder("linked.so"), in_folder("linked.debug"), root);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_symbol_table_ struct symbol_table *table = NULL;
		char debug[600];

		snprintf(debug, sizeof(debug), "%s/app/linked.debug", root);
		assert_int_equal(chown(program, cases[i].program, 0), 0);
		assert_int_equal(chown(debug, cases[i].debug, 0), 0);
		assert_int_equal(chmod(debug, cases[i].mode), 0);
		table = open_symbols(program, root, NULL);
		assert_named(table, "fixture_local", cases[i].named ? "fixture_local" : NULL);
	}
}

/* A build-id is what a file says of itself: another file with the same one has its own names. */
static void test_one_build_id_of_two_files(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *one = NULL, *other = NULL, *again = NULL;
	char cache[512], copy[512];

	snprintf(cache, sizeof(cache), "%s/twocache", folder);
	snprintf(copy, sizeof(copy), "%s/renamed.so", folder);
	assert_int_equal(mkdir(cache, 0700), 0);
	run(OBJCOPY " --redefine-sym fixture_local=other_name '%s' '%s'", FIXTURE, copy);
	other = open_symbols(copy, "", cache);
	one = open_symbols(FIXTURE, "", cache);
	again = open_symbols(copy, "", cache);
	assert_named(other, "fixture_local", "other_name");
	assert_named(one, "fixture_local", "fixture_local");
	assert_named(again, "fixture_local", "other_name");
}

static void test_mini_debug_data(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table = NULL, *damaged = NULL;
	_cleanup_strbuf_ struct strbuf plain = {0}, packed = {0};
	size_t length = 0;

	assert_int_equal(read_whole_file(in_folder("names-only"), 16 << 20, &plain), 0);
	assert_non_null(strbuf_extend(&packed, lzma_stream_buffer_bound(plain.length)));
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (uint8_t *)plain.data,
				 plain.length, (uint8_t *)packed.data, &length, packed.length),
		LZMA_OK);
	assert_int_equal(write_file_atomically(in_folder("packed"), packed.data, length), 0);
	run(OBJCOPY " --add-section .gnu_debugdata='%s' '%s' '%s'", in_folder("packed"),
		in_folder("stripped.so"), in_folder("mini.so"));
	table = open_symbols(in_folder("mini.so"), in_folder("nothing"), NULL);
	assert_named(table, "fixture_local", "fixture_local");
	assert_named(table, "fixture_caller", "fixture_caller");

	packed.data[length / 2] ^= 0x55;
	assert_int_equal(write_file_atomically(in_folder("packed"), packed.data, length), 0);
	run(OBJCOPY " --add-section .gnu_debugdata='%s' '%s' '%s'", in_folder("packed"),
		in_folder("stripped.so"), in_folder("damaged.so"));
	damaged = open_symbols(in_folder("damaged.so"), in_folder("nothing"), NULL);
	assert_named(damaged, "fixture_local", NULL);
	assert_named(damaged, "fixture_caller", "fixture_caller");
}

static void test_no_symbols(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table = NULL;
	_cleanup_strbuf_ struct strbuf image = {0};
	struct symbol found;

	/* Section headers are what symbol tables are found by: e_shoff, e_shnum, e_shstrndx become
	 * 0. */
	assert_int_equal(read_whole_file(FIXTURE, 16 << 20, &image), 0);
	memset(image.data + 40, 0, 8);
	memset(image.data + 60, 0, 4);
	assert_int_equal(write_file_atomically(in_folder("bare.so"), image.data, image.length), 0);
	table = open_symbols(in_folder("bare.so"), in_folder("nothing"), NULL);
	for (uint64_t vaddr = 0; vaddr < image.length; vaddr++)
		assert_false(symbol_table_find(table, vaddr, &found));
}

/* Of 20,000 addresses of this very program, each has the name that nm's list gives it. */
static void test_agrees_with_nm(void **state)
{
	_cleanup_symbol_table_ struct symbol_table *table =
		open_symbols("/proc/self/exe", "", NULL);
	struct nm_symbols symbols;
	size_t named = 0;
	unsigned seed = 7;
	uint64_t low = UINT64_MAX, high = 0;
	char self[512] = "";

	assert_in_range(readlink("/proc/self/exe", self, sizeof(self) - 1), 1, sizeof(self) - 1);
	symbols = run_nm("", self);
	array_foreach (&symbols, symbol) {
		if (!strchr("tTwWi", symbol->type) || symbol->size == 0)
			continue;
		low = MIN(low, symbol->start);
		high = MAX(high, symbol->start + symbol->size);
	}
	for (size_t i = 0; i < 20000; i++) {
		uint64_t address =
			low + (((uint64_t)rand_r(&seed) << 16) ^ rand_r(&seed)) % (high - low);
		uint64_t start = 0;
		bool matches = false;
		struct symbol found;

		array_foreach (&symbols, symbol)
			if (strchr("tTwWi", symbol->type) && symbol->start >= start &&
				address - symbol->start < symbol->size)
				start = symbol->start;
		if (start == 0)
			continue;
		named++;
		assert_true(symbol_table_find(table, address, &found));
		assert_int_equal(found.vaddr, start);
		array_foreach (&symbols, symbol)
			matches |= symbol->start == start && strcmp(symbol->name, found.name) == 0;
		if (!matches)
			fail_msg("%#lx is not %s", address, found.name);
	}
	assert_true(named > 10000);
	array_done(&symbols);
}

/* ---- The cache ---- */

static char *only_cache_file(const char *cache)
{
	char pattern[512];
	glob_t found;
	char *path;

	snprintf(pattern, sizeof(pattern), "%s/*", cache);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	path = strdup(found.gl_pathv[0]);
	globfree(&found);
	assert_non_null(path);
	assert_non_null(strstr(path, ".symbols"));
	return path;
}

static char *new_cache(const char *name)
{
	char *path = in_folder(name);

	run("rm -rf '%s' && mkdir '%s'", path, path);
	return path;
}

static void open_and_check(const char *file, const char *cache)
{
	_cleanup_symbol_table_ struct symbol_table *table = open_symbols(file, "", cache);

	assert_named(table, "fixture_local", "fixture_local");
	assert_named(table, "fixture_caller", "fixture_caller");
}

static void test_cache_is_used(void **state)
{
	char *cache = new_cache("cache");
	_cleanup_free_ char *path = NULL;
	struct stat first, second;

	open_and_check(FIXTURE, cache);
	path = only_cache_file(cache);
	assert_int_equal(stat(path, &first), 0);
	open_and_check(FIXTURE, cache);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino); /* not written again */
}

static void test_cut_cache_is_rebuilt(void **state)
{
	char *cache = new_cache("cut");
	_cleanup_free_ char *path = NULL;
	struct stat whole, now;

	open_and_check(FIXTURE, cache);
	path = only_cache_file(cache);
	assert_int_equal(stat(path, &whole), 0);
	for (off_t length = 0; length < whole.st_size; length += 1 + whole.st_size / 20) {
		assert_int_equal(truncate(path, length), 0);
		open_and_check(FIXTURE, cache);
		assert_int_equal(stat(path, &now), 0);
		assert_int_equal(now.st_size, whole.st_size);
	}
}

/* Whatever byte of the cache is changed: no wrong name, and the opening after that is right again.
 */
static void test_damaged_cache(void **state)
{
	char *cache = new_cache("damaged");
	_cleanup_free_ char *path = NULL;
	uint64_t local = address_of("fixture_local");
	struct stat whole;

	open_and_check(FIXTURE, cache);
	path = only_cache_file(cache);
	assert_int_equal(stat(path, &whole), 0);
	for (off_t at = 0; at < whole.st_size; at += 1 + whole.st_size / 150) {
		_cleanup_symbol_table_ struct symbol_table *table = NULL;
		_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
		struct symbol found;
		char byte;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x41;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		table = open_symbols(FIXTURE, "", cache);
		if (symbol_table_find(table, local, &found)) {
			assert_string_equal(found.name, "fixture_local");
		} else {
			_cleanup_symbol_table_ struct symbol_table *again =
				open_symbols(FIXTURE, "", cache);

			assert_true(symbol_table_find(again, local, &found));
			assert_string_equal(found.name, "fixture_local");
		}
		unlink(path);
		symbol_table_free(open_symbols(FIXTURE, "", cache));
	}
}

static void test_debug_file_that_comes_later(void **state)
{
	const char *file = in_folder("stripped.so"), *cache = new_cache("later");
	char root[512], path[600];
	struct symbol_table *table;

	snprintf(root, sizeof(root), "%s/laterroot", folder);
	table = open_symbols(file, root, cache);
	assert_named(table, "fixture_local", NULL);
	symbol_table_free(table);

	make_debug_root(root);
	table = open_symbols(file, root, cache);
	assert_named(table, "fixture_local", "fixture_local");
	symbol_table_free(table);

	debug_path(path, sizeof(path), root); /* replaced by one that knows less */
	run(OBJCOPY " --strip-symbol fixture_local '%s' '%s.new' && mv '%s.new' '%s'", path, path,
		path, path);
	table = open_symbols(file, root, cache);
	assert_named(table, "fixture_local", NULL);
	assert_named(table, "fixture_nested", "fixture_nested");
	symbol_table_free(table);

	run("rm '%s'", path); /* what is known stays known */
	table = open_symbols(file, root, cache);
	assert_named(table, "fixture_nested", "fixture_nested");
	symbol_table_free(table);
}

static void test_unstripped_file_is_not_hidden(void **state)
{
	char *cache = new_cache("unstripped");

	symbol_table_free(open_symbols(in_folder("stripped.so"), in_folder("nothing"), cache));
	open_and_check(FIXTURE, cache); /* same build-id */
}

static void test_unusable_cache_directory(void **state)
{
	open_and_check(FIXTURE, in_folder("no/such/folder"));
	open_and_check(FIXTURE, FIXTURE);
}

/* ---- Images of candidates ---- */

static void build(struct symbol_image *ret_image, void **ret_bytes, size_t *ret_length,
	const struct symbol_candidate *items, size_t count)
{
	struct symbol_image_key key = {.identity = 1};
	struct symbol_candidates candidates = {0};

	for (size_t i = 0; i < count; i++)
		assert_int_equal(array_append(&candidates, items[i]), 0);
	assert_int_equal(symbol_image_build(ret_bytes, ret_length, &candidates, &key), 0);
	assert_int_equal(symbol_image_view(ret_image, *ret_bytes, *ret_length), 0);
	array_done(&candidates);
}

static void test_hostile_names(void **state)
{
	static char long_name[65537];
	const char *const names[] = {"a;b c\td", "\"quoted' \\", "\x01\x02\x1b[31m\x7f\xff\xfe",
		"_Z\xff\n", "<script>", "%s%n", long_name};
	struct symbol_candidate items[ARRAY_SIZE(names)];
	_cleanup_free_ void *bytes = NULL;
	struct symbol_image image;
	size_t length;

	memset(long_name, 'x', sizeof(long_name) - 1);
	memcpy(long_name, "_Z", 2);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		items[i] = (struct symbol_candidate){
			.start = 100 * i + 1, .end = 100 * i + 51, .name = names[i], .sized = true};
	build(&image, &bytes, &length, items, ARRAY_SIZE(items));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};
		struct symbol found;

		assert_int_equal(symbol_image_find(&image, 100 * i + 30, &found), 1);
		assert_string_equal(found.name, names[i]);
		assert_int_equal(symbol_image_find(&image, 100 * i + 51, &found), 0);
		demangle_symbol(found.name, &text);
		assert_string_equal(strbuf_cstr(&text), names[i]);
	}
}

/* Random overlapping ranges: the answer is the latest start among those that cover the address. */
static void test_overlaps_against_search(void **state)
{
	struct symbol_candidate items[300];
	_cleanup_free_ void *bytes = NULL;
	struct symbol_image image;
	char names[300][16];
	unsigned seed = 11;
	size_t length;

	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		items[i] = (struct symbol_candidate){
			.start = 10 + 7 * (uint64_t)i, .name = names[i], .sized = true};
		items[i].end = items[i].start + 1 + (uint64_t)(rand_r(&seed) % (i % 9 ? 12 : 400));
	}
	build(&image, &bytes, &length, items, ARRAY_SIZE(items));
	for (uint64_t address = 0; address < 3000; address++) {
		const struct symbol_candidate *best = NULL;
		struct symbol found;

		for (size_t i = 0; i < ARRAY_SIZE(items); i++)
			if (items[i].start <= address && address < items[i].end)
				best = &items[i];
		assert_int_equal(symbol_image_find(&image, address, &found), best != NULL);
		if (best)
			assert_string_equal(found.name, best->name);
	}
}

static void test_best_name_of_one_start(void **state)
{
	const struct symbol_candidate items[] = {
		{10, 20, "weak", .rank = 1, .sized = true},
		{10, 20, "best", .rank = 3, .sized = true},
		{10, 90, "label", .rank = 9, .label = true},
		{30, 90, "sizeless", .rank = 3},
		{40, 44, "short", .rank = 3, .sized = true},
	};
	_cleanup_free_ void *bytes = NULL;
	struct symbol_image image;
	struct symbol found;
	size_t length;

	build(&image, &bytes, &length, items, ARRAY_SIZE(items));
	assert_int_equal(symbol_image_find(&image, 15, &found), 1);
	assert_string_equal(found.name, "best");
	assert_int_equal(symbol_image_find(&image, 25, &found), 0);
	assert_int_equal(symbol_image_find(&image, 39, &found), 1);
	assert_string_equal(found.name, "sizeless");
	assert_int_equal(found.size, 10);
	assert_int_equal(symbol_image_find(&image, 44, &found), 0);
}

static void test_empty_image(void **state)
{
	_cleanup_free_ void *bytes = NULL;
	struct symbol_image image;
	struct symbol found;
	size_t length;

	build(&image, &bytes, &length, NULL, 0);
	assert_int_equal(symbol_image_find(&image, 0, &found), 0);
	assert_int_equal(symbol_image_view(&image, bytes, length - 1), -EBADMSG);
	assert_int_equal(symbol_image_view(&image, bytes, 0), -EBADMSG);
}

/* ---- Fixtures ---- */

static int make_fixtures(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	fixture_symbols = run_nm("", FIXTURE);
	run(OBJCOPY " -S '%s' '%s'", FIXTURE, in_folder("stripped.so"));
	run(OBJCOPY " --only-keep-debug '%s' '%s'", FIXTURE, in_folder("only.debug"));
	run(OBJCOPY " --strip-debug --remove-section .comment '%s' '%s'", FIXTURE,
		in_folder("names-only"));
	/* Without a build-id only .gnu_debuglink and its checksum tell. */
	run(OBJCOPY " --only-keep-debug --remove-section .note.gnu.build-id '%s' '%s'", FIXTURE,
		in_folder("linked.debug"));
	run(OBJCOPY " -S --remove-section .note.gnu.build-id --add-gnu-debuglink='%s' '%s' '%s'",
		in_folder("linked.debug"), FIXTURE, in_folder("linked.so"));
	return 0;
}

static int remove_fixtures(void **state)
{
	array_done(&fixture_symbols);
	run("rm -rf '%s'", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_nested_symbols),
		cmocka_unit_test(test_plt_names),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_guessed_ends),
		cmocka_unit_test(test_build_id_directory),
		cmocka_unit_test(test_debug_link_places),
		cmocka_unit_test(test_debug_link_to_no_file),
		cmocka_unit_test(test_debug_files_of_others),
		cmocka_unit_test(test_one_build_id_of_two_files),
		cmocka_unit_test(test_mini_debug_data),
		cmocka_unit_test(test_no_symbols),
		cmocka_unit_test(test_agrees_with_nm),
		cmocka_unit_test(test_cache_is_used),
		cmocka_unit_test(test_cut_cache_is_rebuilt),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_debug_file_that_comes_later),
		cmocka_unit_test(test_unstripped_file_is_not_hidden),
		cmocka_unit_test(test_unusable_cache_directory),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_overlaps_against_search),
		cmocka_unit_test(test_best_name_of_one_start),
		cmocka_unit_test(test_empty_image),
	};

	return cmocka_run_group_tests(tests, make_fixtures, remove_fixtures);
}
