/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file store and its thread, over the libraries that this test itself has mapped. Run under
 * ThreadSanitizer, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "collect/pipeline/files.h"
#include "gated-sampler.h"
#include "unwind/build.h"

#define MAX_LIBRARIES 64
#define PATIENCE_NS   (120 * NS_PER_S)

struct library {
	const char *path;
	uint64_t bias, text_start, text_offset; /* of its first executable segment */
};

static struct library libraries[MAX_LIBRARIES];
static uint32_t library_count;

static int note_library(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) ||
			access(path, R_OK) < 0 || library_count == MAX_LIBRARIES)
			continue;
		libraries[library_count++] = (struct library){
			.path = realpath(path, NULL), /* as the kernel has it */
			.bias = info->dlpi_addr,
			.text_start = info->dlpi_addr + (header->p_vaddr & ~4095ULL),
			.text_offset = header->p_offset & ~4095ULL,
		};
		return 0;
	}
	return 0;
}

static int set_up_group(void **state)
{
	dl_iterate_phdr(note_library, NULL);
	return library_count >= 3 ? make_own_cache(state) : -1;
}

static int tear_down_group(void **state)
{
	for (uint32_t i = 0; i < library_count; i++)
		free((char *)libraries[i].path);
	return remove_own_cache(state);
}

struct fixture {
	struct gated_sampler gate;
	struct file_store *store;
	uint32_t count;
};

static void open_store(struct fixture *fixture, bool gate_open)
{
	const struct source_unwinder unwinder = gated_sampler_unwinder(&fixture->gate);
	struct errmsg err;

	*fixture = (struct fixture){0};
	gated_sampler_init(&fixture->gate, gate_open);
	assert_int_equal(file_store_new(&fixture->store, &unwinder, &err), 0);
}

static void close_store(struct fixture *fixture)
{
	file_store_free(fixture->store);
	gated_sampler_done(&fixture->gate);
}

static uint32_t add_file(struct fixture *fixture, const char *path, enum mapping_kind kind)
{
	struct mapped_file file = {
		.index = fixture->count,
		.path = (char *)path,
		.kind = kind,
		.pid = (uint32_t)getpid(),
	};
	struct stat status;

	if (stat(path, &status) == 0) {
		file.device = status.st_dev;
		file.inode = status.st_ino;
	}
	assert_int_equal(file_store_add(fixture->store, &file), 0);
	return fixture->count++;
}

static void add_libraries(struct fixture *fixture)
{
	for (uint32_t i = 0; i < library_count; i++)
		add_file(fixture, libraries[i].path, MAPPING_FILE);
}

static enum file_readiness table_of(struct fixture *fixture, uint32_t file)
{
	const uint64_t *words = NULL;
	uint64_t word_count = 0;
	enum file_readiness readiness = file_store_table(fixture->store, file, &words, &word_count);

	if (readiness == FILE_READY)
		assert_true(unwind_table_is_valid(words, word_count));
	return readiness;
}

static enum file_readiness symbols_of(struct fixture *fixture, uint32_t file)
{
	const struct symbol_table *symbols = NULL;
	enum file_readiness readiness = file_store_symbols(fixture->store, file, &symbols);

	if (readiness == FILE_READY)
		assert_non_null(symbols);
	return readiness;
}

/* As the collector does it: sleeps until something was announced, then asks again, every file. */
static void wait_for_all(struct fixture *fixture)
{
	struct pollfd ready = {.fd = file_store_descriptor(fixture->store), .events = POLLIN};
	uint64_t deadline_ns = monotonic_now_ns() + PATIENCE_NS;
	unsigned pending;

	do {
		assert_true(monotonic_now_ns() < deadline_ns);
		poll(&ready, 1, 1000);
		file_store_acknowledge(fixture->store);
		pending = 0;
		for (uint32_t i = 0; i < fixture->count; i++) {
			pending += table_of(fixture, i) == FILE_PENDING;
			pending += symbols_of(fixture, i) == FILE_PENDING;
		}
	} while (pending);
}

/* ---- work ---- */

static void check_every_library(struct fixture *fixture)
{
	for (uint32_t i = 0; i < fixture->count; i++) {
		assert_int_equal(table_of(fixture, i), FILE_READY);
		assert_int_equal(symbols_of(fixture, i), FILE_READY);
		assert_int_equal(fixture->gate.tables[i], 1); /* asked often, built once */
	}
}

static void test_several_files(void **state)
{
	struct file_store_account account;
	struct fixture fixture;

	open_store(&fixture, true);
	add_libraries(&fixture);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < fixture.count; i++) {
			assert_int_not_equal(table_of(&fixture, i), FILE_ABSENT);
			assert_int_not_equal(symbols_of(&fixture, i), FILE_ABSENT);
		}
	}
	wait_for_all(&fixture);
	check_every_library(&fixture);
	file_store_account(fixture.store, &account);
	assert_int_equal(account.tables_built, library_count);
	assert_int_equal(account.tables_from_cache, 0);
	assert_true(account.table_build_ns > 0);
	assert_int_equal(account.unreadable, 0);
	close_store(&fixture);
}

static void test_tables_come_from_the_cache(void **state)
{
	struct file_store_account account;
	struct fixture fixture;

	open_store(&fixture, true);
	add_libraries(&fixture);
	wait_for_all(&fixture);
	check_every_library(&fixture);
	file_store_account(fixture.store, &account);
	assert_int_equal(account.tables_built, 0);
	assert_int_equal(account.tables_from_cache, library_count);
	close_store(&fixture);
}

/* While the thread is in the sampler: tables are there, names are not, requests queue up. */
static void test_requests_during_work(void **state)
{
	struct fixture fixture;

	open_store(&fixture, false);
	add_libraries(&fixture);
	assert_int_equal(table_of(&fixture, 0), FILE_PENDING);
	gated_sampler_await(&fixture.gate);
	assert_int_equal(table_of(&fixture, 0), FILE_READY);
	assert_int_equal(symbols_of(&fixture, 0), FILE_PENDING);
	for (uint32_t i = 1; i < fixture.count; i++) {
		assert_int_equal(symbols_of(&fixture, i), FILE_PENDING);
		assert_int_equal(table_of(&fixture, i), FILE_PENDING);
	}
	gated_sampler_open(&fixture.gate);
	wait_for_all(&fixture);
	check_every_library(&fixture);
	close_store(&fixture);
}

/* More than the thread takes at once; files are added while it works. */
static void test_many_files(void **state)
{
	struct fixture fixture;

	open_store(&fixture, true);
	for (int i = 0; i < 100; i++) {
		uint32_t file = add_file(&fixture, libraries[i % 3].path, MAPPING_FILE);

		assert_int_not_equal(
			i % 2 ? table_of(&fixture, file) : symbols_of(&fixture, file), FILE_ABSENT);
	}
	wait_for_all(&fixture);
	check_every_library(&fixture);
	assert_true(fixture.gate.calls > 3);
	close_store(&fixture);
}

/* ---- the end ---- */

static void *open_gate_later(void *argument)
{
	usleep(50000);
	gated_sampler_open(argument);
	return NULL;
}

static void test_ends_in_the_middle_of_work(void **state)
{
	struct fixture fixture;
	pthread_t opener;

	open_store(&fixture, false);
	for (int i = 0; i < 100; i++)
		table_of(&fixture, add_file(&fixture, libraries[i % 3].path, MAPPING_FILE));
	gated_sampler_await(&fixture.gate);
	assert_int_equal(pthread_create(&opener, NULL, open_gate_later, &fixture.gate), 0);
	fixture.store = file_store_free(fixture.store); /* waits for the thread, which is held */
	assert_null(fixture.store);
	pthread_join(opener, NULL);
	assert_int_equal(fixture.gate.waiting, 0);
	assert_true(fixture.gate.calls < 4); /* what was queued is left alone */
	close_store(&fixture);
}

static void test_ends_at_once(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct fixture fixture;

		open_store(&fixture, true);
		add_libraries(&fixture);
		for (uint32_t file = 0; file < fixture.count && i % 2; file++)
			table_of(&fixture, file);
		close_store(&fixture);
	}
}

/* ---- files without tables ---- */

static void test_absent_files(void **state)
{
	char text[] = "/tmp/sonde-test-files-XXXXXX";
	_cleanup_close_ int fd = mkostemp(text, O_CLOEXEC);
	struct file_store_account account;
	struct fixture fixture;

	assert_int_equal(write_all(fd, "\177ELF, or not", 11), 0);
	open_store(&fixture, true);
	add_file(&fixture, "//anon", MAPPING_ANONYMOUS);
	add_file(&fixture, text, MAPPING_FILE);
	add_file(&fixture, "/nonexistent/library.so", MAPPING_FILE);
	add_file(&fixture, "/nonexistent/other.so", MAPPING_FILE); /* no sample asks for it */
	unlink(text);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(table_of(&fixture, i), FILE_ABSENT);
		assert_int_equal(symbols_of(&fixture, i), FILE_ABSENT);
	}
	assert_int_equal(table_of(&fixture, 99), FILE_ABSENT); /* never added */
	assert_int_equal(symbols_of(&fixture, 99), FILE_ABSENT);
	assert_int_equal(file_store_build_id(fixture.store, 99)->length, 0);
	file_store_account(fixture.store, &account);
	assert_int_equal(account.unreadable, 1);
	assert_non_null(strstr(account.unreadable_example.text, "/nonexistent/library.so"));
	assert_int_equal(fixture.gate.calls, 0);
	close_store(&fixture);
}

/* The file was replaced on disk; a later process maps it where it can be read. */
static void test_a_file_becomes_readable(void **state)
{
	struct fixture fixture;
	struct stat status;
	struct mapped_file file = {.path = (char *)libraries[1].path, .kind = MAPPING_FILE};

	assert_int_equal(stat(file.path, &status), 0);
	open_store(&fixture, true);
	file.pid = 8u << 20; /* beyond every pid */
	file.inode = status.st_ino + 1;
	assert_int_equal(file_store_add(fixture.store, &file), 0);
	fixture.count = 1;
	assert_int_equal(table_of(&fixture, 0), FILE_ABSENT);
	close_store(&fixture);

	/* Gone for one process, there for another. */
	open_store(&fixture, true);
	file.inode = status.st_ino;
	file.device = status.st_dev;
	file.path = (char *)"/nonexistent/library.so";
	assert_int_equal(file_store_add(fixture.store, &file), 0);
	fixture.count = 1;
	assert_int_equal(table_of(&fixture, 0), FILE_ABSENT);
	file.pid = (uint32_t)getpid();
	file.start = libraries[1].text_start;
	file.end = file.start + 4096;
	assert_int_equal(file_store_see(fixture.store, &file), 0);
	assert_int_equal(file_store_see(fixture.store, &file), 0);
	close_store(&fixture);
}

/* ---- what is known at once ---- */

static void test_biases(void **state)
{
	struct fixture fixture;

	open_store(&fixture, true);
	add_libraries(&fixture);
	for (uint32_t i = 0; i < fixture.count; i++) {
		struct mapping mapping = {
			.start = libraries[i].text_start,
			.end = libraries[i].text_start + 4096,
			.file_offset = libraries[i].text_offset,
			.file = i,
		};
		uint64_t bias = 1;

		assert_true(file_store_bias(fixture.store, &mapping, &bias));
		assert_true(bias == libraries[i].bias);
		mapping.file_offset = 1ULL << 40; /* beyond every segment */
		assert_false(file_store_bias(fixture.store, &mapping, &bias));
		mapping.file = 99;
		assert_false(file_store_bias(fixture.store, &mapping, &bias));
	}
	close_store(&fixture);
}

static void test_paths_and_build_ids(void **state)
{
	char copy[] = "/tmp/sonde-test-files-XXXXXX", command[256];
	_cleanup_close_ int fd = mkostemp(copy, O_CLOEXEC);
	struct fixture fixture;
	const char *root, *path;
	uint32_t file;

	snprintf(command, sizeof(command), "cp %s %s", libraries[1].path, copy);
	assert_int_equal(system(command), 0);
	open_store(&fixture, true);
	file = add_file(&fixture, copy, MAPPING_FILE);
	assert_true(file_store_build_id(fixture.store, file)->length > 0);
	path = file_store_path(fixture.store, file, &root);
	assert_string_equal(path, copy);
	unlink(copy); /* the descriptor was kept */
	path = file_store_path(fixture.store, file, &root);
	assert_non_null(strstr(path, "/proc/self/fd/"));
	assert_int_equal(access(path, R_OK), 0);
	assert_null(file_store_path(fixture.store, 99, &root));
	wait_for_all(&fixture);
	assert_int_equal(table_of(&fixture, file), FILE_READY);
	close_store(&fixture);
}

static unsigned open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void test_no_descriptor_stays_open(void **state)
{
	unsigned before = open_descriptors();
	struct fixture fixture;

	open_store(&fixture, true);
	add_libraries(&fixture);
	wait_for_all(&fixture);
	assert_true(open_descriptors() > before);
	close_store(&fixture);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_files),
		cmocka_unit_test(test_tables_come_from_the_cache),
		cmocka_unit_test(test_requests_during_work),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_ends_in_the_middle_of_work),
		cmocka_unit_test(test_ends_at_once),
		cmocka_unit_test(test_absent_files),
		cmocka_unit_test(test_a_file_becomes_readable),
		cmocka_unit_test(test_biases),
		cmocka_unit_test(test_paths_and_build_ids),
		cmocka_unit_test(test_no_descriptor_stays_open),
	};

	return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
