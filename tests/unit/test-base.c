/* SPDX-License-Identifier: Apache-2.0 */
/* The base library: strings, arrays, maps, interning, JSON, messages, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cache_limit.h"
#include "base/cpu_list.h"
#include "base/errmsg.h"
#include "base/file.h"
#include "base/id_map.h"
#include "base/json.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/strbuf.h"

/* ---- lists of processors ---- */

static void test_cpu_lists(void **state)
{
	static const char *const valid[] = {"0", "0-3,8", "7,9-9", "65535"};
	static const char *const invalid[] = {"", "a", "0,", "3-1", "1,0", "0-3,2", "65536",
		"0-99999999999999999999", "1 ", "-1"};
	struct cpu_set set;

	for (size_t i = 0; i < ARRAY_SIZE(valid); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		assert_true(cpu_list_is_valid(valid[i]));
		cpu_set_parse(&set, valid[i]);
		cpu_set_format(&set, &text);
		assert_string_equal(strbuf_cstr(&text), i == 2 ? "7,9" : valid[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		assert_false(cpu_list_is_valid(invalid[i]));
	cpu_set_parse(&set, "1-2,5,4,7"); /* up to what is not in order */
	for (unsigned cpu = 0; cpu < 9; cpu++)
		assert_true(cpu_set_has(&set, cpu) == (cpu == 1 || cpu == 2 || cpu == 5));
	assert_false(cpu_set_has(&set, CPU_NUMBERS));
	cpu_set_add(&set, CPU_NUMBERS);
}

/* ---- strbuf ---- */

static void test_strbuf(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	char expected[3001];

	assert_string_equal(strbuf_cstr(&text), "");
	strbuf_add_bytes(&text, NULL, 0);
	strbuf_add(&text, "a");
	strbuf_add_char(&text, 'b');
	strbuf_addf(&text, "%d%s", 12, "c");
	strbuf_add_bytes(&text, "\0d", 2);
	assert_int_equal(text.length, 7);
	assert_memory_equal(text.data, "ab12c\0d", 8);
	strbuf_clear(&text);
	assert_string_equal(strbuf_cstr(&text), "");

	memset(expected, 'x', sizeof(expected) - 1);
	expected[sizeof(expected) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&text, "%s", "xxx");
	assert_string_equal(strbuf_cstr(&text), expected);
	strbuf_clear(&text);
	strbuf_addf(&text, "%s", expected); /* longer than any buffer on the way */
	assert_string_equal(strbuf_cstr(&text), expected);
	assert_int_equal(strbuf_status(&text), 0);
}

static void test_strbuf_extend(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	char *room = strbuf_extend(&text, 3);

	assert_non_null(room);
	memcpy(room, "abc", 3);
	assert_string_equal(strbuf_cstr(&text), "abc");
	assert_non_null(strbuf_extend(&text, 0));
	assert_string_equal(strbuf_cstr(&text), "abc");
}

/* A lost write stays lost until the next clear; what was there stays readable. */
static void test_strbuf_remembers_failure(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "kept");
	assert_null(strbuf_extend(&text, SIZE_MAX));
	strbuf_add(&text, "lost");
	assert_int_equal(strbuf_status(&text), -ENOMEM);
	assert_string_equal(strbuf_cstr(&text), "kept");
	strbuf_clear(&text);
	strbuf_add(&text, "new");
	assert_int_equal(strbuf_status(&text), 0);
	assert_string_equal(strbuf_cstr(&text), "new");
}

/* ---- array ---- */

static void test_array(void **state)
{
	ARRAY_OF(uint64_t) numbers = {0};
	uint64_t sum = 0;
	size_t capacity;

	array_foreach (&numbers, number)
		sum += *number;
	assert_int_equal(sum, 0);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(array_append(&numbers, i), 0);
	array_foreach (&numbers, number)
		sum += *number;
	assert_int_equal(sum, 999 * 1000 / 2);
	capacity = numbers.capacity;
	array_clear(&numbers);
	assert_int_equal(array_reserve(&numbers, capacity), 0);
	assert_int_equal(numbers.capacity, capacity);
	array_done(&numbers);
	assert_null(numbers.items);
	assert_int_equal(numbers.capacity, 0);
}

static void test_array_refuses_overflow(void **state)
{
	ARRAY_OF(uint64_t) numbers = {0};

	assert_int_equal(array_append(&numbers, 7), 0);
	assert_int_equal(array_reserve(&numbers, SIZE_MAX - 1), -ENOMEM);
	assert_int_equal(array_reserve(&numbers, SIZE_MAX), -ENOMEM); /* count + extra wraps */
	assert_int_equal(array_reserve(&numbers, SIZE_MAX / 8), -ENOMEM);
	assert_int_equal(numbers.count, 1);
	assert_int_equal(numbers.items[0], 7);
	array_done(&numbers);
}

/* ---- map ---- */

static void test_map(void **state)
{
	struct map_u64 map = {0};
	uint64_t value = 5;

	assert_false(map_u64_get(&map, 0, &value));
	assert_false(map_u64_remove(&map, 0));
	assert_int_equal(value, 5);
	assert_int_equal(map_u64_set(&map, 0, 1), 0);
	assert_int_equal(map_u64_set(&map, UINT64_MAX, 2), 0);
	assert_int_equal(map_u64_set(&map, 0, 3), 0);
	assert_int_equal(map.count, 2);
	assert_true(map_u64_get(&map, 0, &value));
	assert_int_equal(value, 3);
	assert_true(map_u64_get(&map, UINT64_MAX, NULL));
	assert_true(map_u64_remove(&map, 0));
	assert_false(map_u64_remove(&map, 0));
	assert_false(map_u64_get(&map, 0, NULL));
	map_u64_clear(&map);
	assert_false(map_u64_get(&map, UINT64_MAX, NULL));
	map_u64_done(&map);
	map_u64_clear(&map);
}

/* The examples of FIPS 180-4, and a million letters in pieces. */
static void test_sha256(void **state _unused_)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned char digest[SHA256_BYTES], letters[77];
		char text[2 * SHA256_BYTES + 1];
		struct sha256 hash;

		sha256_init(&hash);
		memset(letters, 'a', sizeof(letters));
		if (cases[i].text)
			sha256_add(&hash, cases[i].text, strlen(cases[i].text));
		for (size_t left = cases[i].text ? 0 : 1000000; left;) {
			size_t part = MIN(left, sizeof(letters));

			sha256_add(&hash, letters, part);
			left -= part;
		}
		sha256_finish(&hash, digest);
		for (size_t b = 0; b < SHA256_BYTES; b++)
			snprintf(text + 2 * b, 3, "%02x", digest[b]);
		assert_string_equal(text, cases[i].digest);
	}
}

static void test_map_reserve(void **state _unused_)
{
	struct map_u64 map = {0};
	size_t capacity;
	uint64_t value;

	assert_int_equal(map_u64_set(&map, 7, 70), 0);
	for (size_t count = 1; count < 100; count++) {
		assert_int_equal(map_u64_reserve(&map, count), 0);
		capacity = map.capacity;
		for (uint64_t key = 7; map.count < count; key++)
			assert_int_equal(map_u64_set(&map, key, 10 * key), 0);
		assert_int_equal(map.capacity, capacity);
		assert_true(map_u64_get(&map, 7, &value));
		assert_int_equal(value, 70);
	}
	assert_int_equal(map_u64_reserve(&map, SIZE_MAX), -ENOMEM);
	map_u64_done(&map);
}

static uint64_t sum_of(const struct map_u64 *map, size_t *ret_count)
{
	uint64_t key, value, sum = 0;
	size_t position = 0;

	*ret_count = 0;
	while (map_u64_next(map, &position, &key, &value)) {
		assert_int_equal(value, key + 1);
		sum += key;
		(*ret_count)++;
	}
	return sum;
}

static void test_map_of_many(void **state)
{
	struct map_u64 map = {0};
	size_t count;

	for (uint64_t key = 0; key < 5000; key++)
		assert_int_equal(map_u64_set(&map, key, key + 1), 0);
	for (uint64_t key = 0; key < 5000; key += 2)
		assert_true(map_u64_remove(&map, key));
	for (uint64_t key = 0; key < 5000; key++)
		assert_int_equal(map_u64_get(&map, key, NULL), key % 2);
	assert_int_equal(sum_of(&map, &count), 2500 * 2500);
	assert_int_equal(count, 2500);
	map_u64_done(&map);
}

/* Keys that come and go must not fill the table with deleted slots: it would never end a search. */
/* Ids that lie close together, and those that do not, at both ends of what an id can be. */
static void test_id_map(void **state)
{
	static const uint64_t steps[] = {1, 3, 15, 1000, UINT64_MAX / 100};

	for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
		for (unsigned is_low = 0; is_low < 2; is_low++) {
			uint64_t last = is_low ? 99 * steps[s] : UINT64_MAX, place;
			uint64_t first = last - 99 * steps[s];
			struct id_map map = {0};

			assert_false(id_map_get(&map, first, &place));
			assert_int_equal(id_map_init(&map, first, last, 100), 0);
			for (uint32_t i = 0; i < 100; i += 2)
				assert_int_equal(id_map_set(&map, first + i * steps[s], i), 0);
			assert_int_equal(id_map_set(&map, first, 7), 0);
			for (uint64_t i = 0; i < 100; i++) {
				bool is_there = id_map_get(&map, first + i * steps[s], &place);

				assert_int_equal(is_there, i % 2 == 0);
				if (is_there)
					assert_int_equal(place, i ? i : 7);
			}
			assert_false(id_map_get(&map, first - 1, NULL));
			assert_false(id_map_get(&map, last + 1, NULL));
			id_map_done(&map);
			assert_false(id_map_get(&map, first, NULL));
		}
	}
}

static void test_map_reuses_deleted_slots(void **state)
{
	struct map_u64 map = {0};

	for (uint64_t key = 0; key < 100000; key++) {
		assert_int_equal(map_u64_set(&map, key, key), 0);
		if (key >= 4)
			assert_true(map_u64_remove(&map, key - 4));
	}
	assert_int_equal(map.count, 4);
	assert_true(map.capacity <= 16);
	map_u64_done(&map);
}

/* ---- interning ---- */

static void test_intern(void **state)
{
	struct intern intern = {0};
	uint32_t id = 9;

	assert_false(intern_find(&intern, "a", 1, &id));
	assert_int_equal(id, 9);
	assert_int_equal(intern_add(&intern, "a", 1, &id), 1);
	assert_int_equal(id, 0);
	assert_int_equal(intern_add(&intern, "a\0b", 3, &id), 1);
	assert_int_equal(id, 1);
	assert_int_equal(intern_add(&intern, "a", 1, &id), 0);
	assert_int_equal(id, 0);
	assert_true(intern_find(&intern, "a\0b", 3, &id));
	assert_int_equal(id, 1);
	assert_string_equal(intern_get(&intern, 0), "a");
	assert_int_equal(intern.entries.items[1].length, 3);
	intern_done(&intern);
	intern_done(&intern);
}

static void test_intern_of_nothing(void **state)
{
	struct intern intern = {0};
	uint32_t id;

	assert_int_equal(intern_add(&intern, NULL, 0, &id), 1);
	assert_int_equal(intern_add(&intern, NULL, 0, &id), 0);
	assert_int_equal(intern_add(&intern, "", 0, &id), 0);
	assert_int_equal(id, 0);
	assert_true(intern_find(&intern, NULL, 0, &id));
	assert_string_equal(intern_get(&intern, 0), "");
	intern_done(&intern);
}

static void test_intern_of_many(void **state)
{
	static char large[200000];
	struct intern intern = {0};
	const char *first;
	char name[32];
	uint32_t id;

	assert_int_equal(intern_add(&intern, "first", 5, &id), 1);
	first = intern_get(&intern, id);
	memset(large, 'l', sizeof(large));
	assert_int_equal(intern_add(&intern, large, sizeof(large), &id), 1);
	for (uint32_t i = 0; i < 20000; i++) {
		int length = snprintf(name, sizeof(name), "name %u", i);

		assert_int_equal(intern_add(&intern, name, (size_t)length, &id), 1);
		assert_int_equal(id, i + 2);
	}
	assert_true(intern_find(&intern, "name 19999", 10, &id));
	assert_int_equal(id, 20001);
	assert_true(intern_find(&intern, large, sizeof(large), &id));
	assert_ptr_equal(intern_get(&intern, 0), first); /* copies do not move */
	intern_done(&intern);
}

static void test_hashes(void **state)
{
	assert_true(hash_bytes("a", 1, 0) != hash_bytes("b", 1, 0));
	assert_true(hash_bytes("a", 1, 0) != hash_bytes("a", 1, 1));
	assert_true(hash_bytes("a\0", 2, 0) != hash_bytes("a", 1, 0));
	assert_int_equal(hash_bytes(NULL, 0, 3), hash_bytes("", 0, 3));
	assert_true(hash_u64(1) != hash_u64(2));
}

/* ---- JSON ---- */

static void assert_escaped(const char *bytes, size_t length, const char *expected)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	json_escape(&text, bytes, length);
	assert_string_equal(strbuf_cstr(&text), expected);
}

#define REPLACED "\xef\xbf\xbd"

static void test_json_escapes(void **state)
{
	assert_escaped("", 0, "");
	assert_escaped("a\"b\\c/", 6, "a\\\"b\\\\c/");
	assert_escaped("\n\t\r\0\x1f\x7f", 6, "\\n\\t\\u000d\\u0000\\u001f\\u007f");
	assert_escaped(
		"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb8", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb8");
	assert_escaped("a\xff"
		       "b",
		3, "a" REPLACED "b");
	assert_escaped("\xe2\x82", 2, REPLACED REPLACED); /* cut off */
}

static void test_utf8_sequences(void **state)
{
	assert_int_equal(utf8_sequence_length("", 0), 0);
	assert_int_equal(utf8_sequence_length("a", 1), 1);
	assert_int_equal(utf8_sequence_length("\xc2\x80", 2), 2);
	assert_int_equal(utf8_sequence_length("\xc2\x80", 1), 0);
	assert_int_equal(utf8_sequence_length("\xe0\xa0\x80", 3), 3);
	assert_int_equal(utf8_sequence_length("\xf4\x8f\xbf\xbf", 4), 4);
	assert_int_equal(utf8_sequence_length("\x80", 1), 0);             /* continuation */
	assert_int_equal(utf8_sequence_length("\xc0\xaf", 2), 0);         /* overlong */
	assert_int_equal(utf8_sequence_length("\xc1\xbf", 2), 0);         /* overlong */
	assert_int_equal(utf8_sequence_length("\xe0\x9f\xbf", 3), 0);     /* overlong */
	assert_int_equal(utf8_sequence_length("\xf0\x8f\xbf\xbf", 4), 0); /* overlong */
	assert_int_equal(utf8_sequence_length("\xed\xa0\x80", 3), 0);     /* surrogate */
	assert_int_equal(utf8_sequence_length("\xf4\x90\x80\x80", 4), 0); /* above U+10FFFF */
	assert_int_equal(utf8_sequence_length("\xf5\x80\x80\x80", 4), 0);
	assert_int_equal(utf8_sequence_length("\xc3(", 2), 0);
}

static void write_json(struct json_writer *json)
{
	json_begin_object(json);
	json_key(json, "empty");
	json_begin_array(json);
	json_end_array(json);
	json_key(json, "list");
	json_begin_array(json);
	json_u64(json, UINT64_MAX);
	json_i64(json, INT64_MIN);
	json_bool(json, true);
	json_null(json);
	json_double(json, 0.1, 3);
	json_double(json, NAN, 3);
	json_double(json, -INFINITY, 3);
	json_begin_object(json);
	json_end_object(json);
	json_end_array(json);
	json_key(json, "text \"");
	json_string(json, "x");
	json_end_object(json);
}

static void test_json_document(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text};

	write_json(&json);
	assert_string_equal(strbuf_cstr(&text),
		"{\"empty\":[],\"list\":[18446744073709551615,-9223372036854775808,true,null,0.1,"
		"null,null,{}],\"text \\\"\":\"x\"}");
	strbuf_clear(&text);
	json = (struct json_writer){.out = &text, .pretty = true};
	json_begin_object(&json);
	json_key(&json, "a");
	json_begin_array(&json);
	json_u64(&json, 1);
	json_u64(&json, 2);
	json_end_array(&json);
	json_end_object(&json);
	assert_string_equal(strbuf_cstr(&text), "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
}

/* ---- messages ---- */

static void test_errmsg(void **state)
{
	char longer[2000];
	struct errmsg err;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(errmsg_set(&err, -EIO, "disk %d", 7), -EIO);
	assert_string_equal(err.text, "disk 7");
	assert_int_equal(errmsg_set(&err, -EIO, "%s", longer), -EIO);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(errmsg_set(NULL, -EIO, "unheard"), -EIO);
}

/* ---- files ---- */

struct folder {
	char path[64];
};

static int make_folder(void **state)
{
	static struct folder folder;

	snprintf(folder.path, sizeof(folder.path), "/tmp/sonde-test-base-XXXXXX");
	*state = &folder;
	return mkdtemp(folder.path) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", ((struct folder *)*state)->path);
	return system(command);
}

static const char *in_folder(void **state, const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", ((struct folder *)*state)->path, name);
	return path;
}

static unsigned entries_in(const char *path)
{
	DIR *directory = opendir(path);
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2; /* . and .. */
}

static void test_write_and_read(void **state)
{
	const char *path = in_folder(state, "file");
	_cleanup_strbuf_ struct strbuf text = {0};
	struct stat status;

	assert_int_equal(write_file_atomically(path, "old", 3), 0);
	assert_int_equal(write_file_atomically(path, "newer", 5), 0);
	assert_int_equal(entries_in(((struct folder *)*state)->path), 1); /* nothing temporary */
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(read_whole_file(path, 5, &text), 0);
	assert_string_equal(text.data, "newer");
	strbuf_clear(&text);
	assert_int_equal(read_whole_file(path, 4, &text), -EFBIG);
	strbuf_clear(&text);
	assert_int_equal(read_whole_file("/proc/self/status", 1 << 20, &text), 0);
	assert_non_null(strstr(text.data, "VmHWM"));
}

static void test_file_errors(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(read_whole_file(in_folder(state, "none"), 10, &text), -ENOENT);
	assert_int_equal(read_whole_file(((struct folder *)*state)->path, 10, &text), -EISDIR);
	assert_int_equal(write_file_atomically(in_folder(state, "none/file"), "x", 1), -ENOENT);
	/* The rename fails: the temporary file goes. */
	assert_int_equal(make_directories(in_folder(state, "folder"), 0700), 0);
	assert_int_equal(write_file_atomically(in_folder(state, "folder"), "x", 1), -EISDIR);
	assert_int_equal(entries_in(((struct folder *)*state)->path), 1);
	assert_int_equal(write_all(-1, "x", 1), -EBADF);
}

static void test_make_directories(void **state)
{
	assert_int_equal(make_directories(in_folder(state, "a/b//c/"), 0700), 0);
	assert_int_equal(make_directories(in_folder(state, "a/b/c"), 0700), 0);
	assert_int_equal(access(in_folder(state, "a/b/c"), X_OK), 0);
	assert_int_equal(write_file_atomically(in_folder(state, "file"), "", 0), 0);
	assert_int_equal(make_directories(in_folder(state, "file/d"), 0700), -ENOTDIR);
}

static void test_file_mapping(void **state)
{
	struct file_mapping mapping = {0};
	struct errmsg err;

	assert_int_equal(write_file_atomically(in_folder(state, "file"), "abc", 3), 0);
	assert_int_equal(file_mapping_open(&mapping, in_folder(state, "file"), &err), 0);
	assert_int_equal(mapping.length, 3);
	assert_memory_equal(mapping.bytes, "abc", 3);
	file_mapping_done(&mapping);
	assert_null(mapping.bytes);
	file_mapping_done(&mapping);

	assert_int_equal(write_file_atomically(in_folder(state, "file"), "", 0), 0);
	assert_int_equal(file_mapping_open(&mapping, in_folder(state, "file"), &err), 0);
	assert_null(mapping.bytes);
	assert_int_equal(
		file_mapping_open(&mapping, ((struct folder *)*state)->path, &err), -EISDIR);
	assert_non_null(strstr(err.text, "is a directory"));
	assert_int_equal(file_mapping_open(&mapping, "/dev/null", &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(file_mapping_open(&mapping, in_folder(state, "none"), &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
}

/* Root neither reads nor writes what another user can change. */
static void test_cache_directory_of_another(void **state)
{
	_cleanup_strbuf_ struct strbuf home = {0}, below = {0};
	char *path;

	if (getuid() != 0)
		skip();
	strbuf_add(&home, in_folder(state, "home"));
	strbuf_addf(&below, "%s/below", home.data);
	assert_int_equal(mkdir(home.data, 0700), 0);
	setenv("XDG_CACHE_HOME", below.data, 1);
	assert_int_equal(chown(home.data, 4711, 0), 0);
	assert_null(cache_directory("tables"));
	assert_int_equal(access(below.data, F_OK), -1);
	assert_int_equal(chown(home.data, 0, 0), 0);
	assert_int_equal(chmod(home.data, 0777), 0);
	assert_null(cache_directory("tables"));
	assert_int_equal(chmod(home.data, 01777), 0);
	path = cache_directory("tables");
	assert_non_null(path);
	free(path);
	assert_int_equal(chown(below.data, 4711, 0), 0);
	assert_null(cache_directory("tables"));
	unsetenv("XDG_CACHE_HOME");
}

static void add_cached(void **state, const char *name, size_t bytes, time_t used)
{
	const char *path = in_folder(state, name);
	const struct timespec times[] = {{.tv_sec = used}, {.tv_sec = used}};
	static const char zeros[1000];

	assert_int_equal(write_file_atomically(path, zeros, bytes), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(void **state, const char *name)
{
	struct stat status;

	return lstat(in_folder(state, name), &status) == 0;
}

/* What was not used for the longest goes first, and nothing that is no file. */
static void test_cache_limit(void **state)
{
	const char *path = ((struct folder *)*state)->path;

	add_cached(state, "outside", 1000, 1);
	assert_int_equal(mkdir(in_folder(state, "cache"), 0700), 0);
	assert_int_equal(mkdir(in_folder(state, "cache/folder"), 0700), 0);
	assert_int_equal(symlink("../outside", in_folder(state, "cache/link")), 0);
	add_cached(state, "cache/old", 400, 100);
	add_cached(state, "cache/newest", 300, 300);
	add_cached(state, "cache/new", 300, 200);
	assert_int_equal(cache_limit(in_folder(state, "cache"), 1000), 0);
	assert_true(is_there(state, "cache/old"));
	assert_int_equal(cache_limit(in_folder(state, "cache"), 900), 0);
	assert_false(is_there(state, "cache/old"));
	assert_true(is_there(state, "cache/new") && is_there(state, "cache/newest"));
	assert_int_equal(cache_limit(in_folder(state, "cache"), 500), 0);
	assert_false(is_there(state, "cache/new"));
	assert_true(is_there(state, "cache/newest") && is_there(state, "cache/folder"));
	assert_true(is_there(state, "cache/link") && is_there(state, "outside"));
	assert_int_equal(cache_limit(in_folder(state, "none"), 1000), -ENOENT);
	assert_int_equal(symlink(path, in_folder(state, "to")), 0);
	assert_int_equal(cache_limit(in_folder(state, "to"), 0), -ENOTDIR);
}

static void test_cache_directory(void **state)
{
	const char *home = in_folder(state, "home");
	struct stat status;
	char *path;

	setenv("XDG_CACHE_HOME", home, 1);
	path = cache_directory("tables");
	assert_non_null(path);
	assert_non_null(strstr(path, "/home/sonde/tables"));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	free(path);
	setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says the XDG specification */
	setenv("HOME", home, 1);
	path = cache_directory("tables");
	assert_non_null(path);
	assert_non_null(strstr(path, "/home/.cache/sonde/tables"));
	free(path);
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_null(cache_directory("tables"));
	setenv("HOME", "/proc/none", 1);
	assert_null(cache_directory("tables"));
}

static void test_cleanups(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), taken = TAKE_FD(fd);
	FILE *file = NULL;

	assert_int_equal(fd, -1);
	closep(&fd);
	closep(&taken);
	assert_int_equal(taken, -1);
	fclosep(&file);
	file = fopen("/dev/null", "r");
	fclosep(&file);
	assert_null(file);
	assert_true(monotonic_now_ns() <= monotonic_now_ns());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_strbuf),
		cmocka_unit_test(test_strbuf_extend),
		cmocka_unit_test(test_strbuf_remembers_failure),
		cmocka_unit_test(test_array),
		cmocka_unit_test(test_array_refuses_overflow),
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_map_reserve),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_map_of_many),
		cmocka_unit_test(test_id_map),
		cmocka_unit_test(test_map_reuses_deleted_slots),
		cmocka_unit_test(test_intern),
		cmocka_unit_test(test_intern_of_nothing),
		cmocka_unit_test(test_intern_of_many),
		cmocka_unit_test(test_hashes),
		cmocka_unit_test(test_json_escapes),
		cmocka_unit_test(test_utf8_sequences),
		cmocka_unit_test(test_json_document),
		cmocka_unit_test(test_errmsg),
		cmocka_unit_test_setup_teardown(test_write_and_read, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_file_errors, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_make_directories, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_file_mapping, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_cache_limit, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_cache_directory, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(
			test_cache_directory_of_another, make_folder, remove_folder),
		cmocka_unit_test(test_cleanups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
