/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines of code objects against what Python says of them itself, on every CPython that is
 * found: in the user's pyenv, in /usr/bin. And interpreters: their files, their living state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/elf_path.h"
#include "base/array.h"
#include "symbols/python_code.h"
#include "unwind/python_find.h"
#include "unwind/python_tables.h"

#define LONGEST_LINE (1 << 20)

struct python {
	char path[256];
	pid_t pid;
	FILE *in, *out; /* what it reads; what it says */
};

static glob_t pythons;

static bool is_interpreter(const char *path)
{
	const char *version = strrchr(path, '/') + strlen("/python3.");
	unsigned minor = (unsigned)strtoul(version, NULL, 10);

	return minor >= 8 && minor <= 13 && version[strspn(version, "0123456789")] == '\0' &&
	       access(path, X_OK) == 0;
}

static int find_pythons(void **state)
{
	char pattern[512];

	glob("/usr/bin/python3.*", 0, NULL, &pythons);
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.*/bin/python3.*",
		getenv("HOME") ?: "");
	glob(pattern, GLOB_APPEND, NULL, &pythons);
	return 0;
}

static int forget_pythons(void **state)
{
	globfree(&pythons);
	return 0;
}

static void start(struct python *python, const char *path)
{
	int in[2], out[2];

	snprintf(python->path, sizeof(python->path), "%s", path);
	assert_int_equal(pipe(in) | pipe(out), 0);
	python->pid = fork();
	if (python->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(path, path, "-X", "utf8", SCRIPT, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	python->in = fdopen(in[1], "w");
	python->out = fdopen(out[0], "r");
}

static void stop(struct python *python)
{
	int status;

	fputs("\n", python->in);
	fclose(python->in);
	fclose(python->out);
	assert_int_equal(waitpid(python->pid, &status, 0), python->pid);
	assert_int_equal(status, 0);
}

/* ---- hexadecimal ---- */

static unsigned char *from_hex(const char *hex, size_t *ret_length)
{
	size_t length = hex[0] == '-' ? 0 : strlen(hex) / 2;
	unsigned char *bytes = malloc(length + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes[i] = (unsigned char)byte;
	}
	bytes[length] = '\0';
	*ret_length = length;
	return bytes;
}

/* ---- code objects ---- */

struct said {
	unsigned long long address;
	unsigned version, first_line;
	char *name, *file;
	unsigned char *table;
	size_t table_length;
};

static void said_done(struct said *said)
{
	free(said->name);
	free(said->file);
	free(said->table);
}

static bool read_said(struct python *python, char *line, struct said *ret_said)
{
	char *fields[7], *rest = line;
	size_t unused;

	assert_non_null(fgets(line, LONGEST_LINE, python->out));
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "done") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		assert_non_null(fields[i] = strsep(&rest, " "));
	ret_said->address = strtoull(fields[1], NULL, 10);
	ret_said->version = (unsigned)strtoul(fields[2], NULL, 10);
	ret_said->first_line = (unsigned)strtoul(fields[3], NULL, 10);
	ret_said->name = (char *)from_hex(fields[4], &unused);
	ret_said->file = (char *)from_hex(fields[5], &unused);
	ret_said->table = from_hex(fields[6], &ret_said->table_length);
	return true;
}

/* Every instruction's line, by the table alone and by a code object. */
static unsigned check_lines(struct python *python, char *line, const struct said *said,
	const struct python_layout *layout)
{
	unsigned count = 0;
	int offset, wanted;

	for (;;) {
		int64_t got;

		assert_non_null(fgets(line, LONGEST_LINE, python->out));
		if (strcmp(line, "end\n") == 0)
			return count;
		assert_int_equal(sscanf(line, "%d %d", &offset, &wanted), 2);
		got = python_line(
			layout, said->table, said->table_length, said->first_line, offset);
		if (got != wanted)
			fail_msg("%s: %s at %d: line %lld, not %d", python->path, said->name,
				offset, (long long)got, wanted);
		count++;
	}
}

static void check_living(
	struct python *python, const struct said *said, const struct python_layout *layout)
{
	struct python_code code;

	assert_int_equal(
		python_code_read(layout, (uint32_t)python->pid, said->address, 0, &code), 0);
	assert_string_equal(code.name, said->name);
	assert_string_equal(code.file_name, said->file);
	assert_int_equal(code.first_line, said->first_line);
	assert_int_equal(code.line_table_length, said->table_length);
	assert_memory_equal(code.line_table, said->table, said->table_length);
	assert_false(code.cut);
	assert_int_equal(python_code_line(layout, &code, -1), said->first_line);
	python_code_done(&code);
	assert_int_equal(
		python_code_read(layout, (uint32_t)python->pid, said->address, 12345, &code),
		-ESTALE);
}

static void check_codes(struct python *python)
{
	char *line = malloc(LONGEST_LINE);
	unsigned instructions = 0, codes = 0;
	struct said said = {0};

	assert_non_null(line);
	while (read_said(python, line, &said)) {
		const struct python_layout *layout = python_table(said.version);

		assert_non_null(layout);
		instructions += check_lines(python, line, &said, layout);
		if (codes++ < 40 && said.table_length) /* the others are the dis module's */
			check_living(python, &said, layout);
		said_done(&said);
	}
	print_message("%s: %u code objects, %u instructions\n", python->path, codes, instructions);
	assert_true(codes > 20 && instructions > 1000);
	free(line);
}

/* ---- interpreters ---- */

static int read_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = {buffer, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(*(pid_t *)context, &local, 1, &remote, 1, 0) == (ssize_t)length
		       ? 0
		       : -1;
}

/* The first mapping of a file: where its first byte is. */
static uint64_t first_mapping(pid_t pid, const char *path)
{
	char name[64], line[1024];
	uint64_t start = 0;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "r");
	assert_non_null(maps);
	while (!start && fgets(line, sizeof(line), maps)) {
		if (strstr(line, path))
			start = strtoull(line, NULL, 16);
	}
	fclose(maps);
	return start;
}

/* The file that holds the interpreter: libpython where there is one. */
static void find_file(pid_t pid, char *path, size_t size)
{
	char name[64], line[1024];
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	path[readlink(name, path, size - 1)] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/libpython3."))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, size, "%s", strchr(line, '/'));
		break;
	}
	fclose(maps);
}

static void check_interpreter(struct python *python)
{
	struct python_interpreter found;
	struct elf_file *elf;
	struct errmsg err = {0};
	uint64_t runtime, start;
	uint32_t key;
	char path[512] = "";

	find_file(python->pid, path, sizeof(path));
	assert_int_equal(open_elf(&elf, path, path, &err), 0);
	if (python_find(&found, elf, path, &err) != 1)
		fail_msg("%s: %s", path, err.text);
	/* Position independent files begin at 0. */
	start = first_mapping(python->pid, path);
	runtime = found.runtime + (elf_file_segment(elf, 0)->vaddr ? 0 : start);
	assert_true(found.eval_count >= 1);
	assert_true(found.eval[0].end - found.eval[0].start > 4096);
	if (python_validate(&found.layout, runtime, python->pid, read_memory, &python->pid, &err) !=
		1)
		fail_msg("%s: %s", path, err.text);
	key = python_find_key(&found.layout, runtime, read_memory, &python->pid);
	assert_true(key > 0);
	if (found.layout.runtime_tss_key != PYTHON_ABSENT) {
		uint32_t said;

		assert_int_equal(read_memory(&python->pid, runtime + found.layout.runtime_tss_key,
					 &said, sizeof(said)),
			0);
		assert_int_equal(key, said + 1);
	}
	/* What does not fit is noticed. */
	found.layout.thread_interpreter += 8;
	assert_int_equal(python_validate(&found.layout, runtime, python->pid, read_memory,
				 &python->pid, &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "without Python frames"));
	print_message(
		"%s: Python %s, %u ranges of evaluation\n", path, found.version, found.eval_count);
	elf_file_free(elf);
}

static void test_every_python(void **state)
{
	unsigned tried = 0;

	for (size_t i = 0; i < pythons.gl_pathc; i++) {
		struct python python;

		if (!is_interpreter(pythons.gl_pathv[i]))
			continue;
		start(&python, pythons.gl_pathv[i]);
		check_codes(&python);
		check_interpreter(&python);
		stop(&python);
		tried++;
	}
	if (!tried) {
		print_message("skipped: no CPython 3.8 to 3.13 was found\n");
		skip();
	}
}

static void test_other_files(void **state)
{
	struct python_interpreter found;
	struct elf_file *elf;
	struct errmsg err;

	assert_int_equal(open_elf(&elf, "/proc/self/exe", "this test", &err), 0);
	assert_int_equal(python_find(&found, elf, "this test", &err), 0);
	elf_file_free(elf);
}

#define COOKIE 0x7970677562656478 /* "xdebugpy" */

/* The first words of 3.14.7's _PyRuntime, built with --disable-gil. */
static void test_offsets_without_the_interpreter_lock(void **state)
{
	uint64_t words[] = {COOKIE, 0x030e07f0, 1, /* header */
		362368, 784, 808,                  /* runtime */
		246720, 7280, 7272, 7344, 7360, 7408, 7712, 7696, 7704, 16, 7808, 0, 7832, 7824,
		8024, 17628,                                          /* interpreter */
		832, 0, 8, 16, 72, 152, 160, 232, 32,                 /* thread */
		88, 8, 0, 56, 80, 78, 64, 72,                         /* frame */
		240, 128, 136, 144, 152, 84, 68, 112, 120, 232, 224}; /* code */
	struct python_layout layout = *python_table(0x030e);

	assert_null(python_debug_offsets(&layout, 0x030e07f0, (void *)words, sizeof(words)));
	assert_int_equal(layout.object_shift_bytes, 16);
	assert_int_equal(layout.text_kind_bit, 8);
	assert_int_equal(layout.gil_enabled, 0);
	assert_int_equal(layout.gil_locked, 24);
	assert_int_equal(layout.frame_bytecode_index, 72);
	assert_int_equal(layout.code_bytecodes, 224);
	/* As in builds with the lock: their heads' difference is taken off. */
	assert_int_equal(layout.code_file_name, 112);
	assert_int_equal(layout.code_line_table, 136);
	assert_int_equal(layout.code_first_line, 68);
	words[40] = 8; /* a file name in the object's head */
	assert_string_equal(python_debug_offsets(&layout, 0x030e07f0, (void *)words, sizeof(words)),
		"code_object");
}

/* Of Debian's 3.15.2, which has more words of threads. */
static void test_offsets_of_3_15(void **state)
{
	uint64_t words[] = {COOKIE, 0x030f02f0, 0, /* header */
		346568, 912, 936,                  /* runtime */
		226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0, 7752, 7744,
		7944, 0, /* interpreter */
		888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136, 288, 0, /* thread */
		88, 8, 0, 56, 80, 74, 64, 0,                                           /* frame */
		216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0};                     /* code */
	struct python_layout layout = *python_table(0x030f);

	assert_null(python_debug_offsets(&layout, 0x030f02f0, (void *)words, sizeof(words)));
	assert_int_equal(layout.object_shift_bytes, 0);
	assert_int_equal(layout.gil_enabled, PYTHON_ABSENT);
	assert_int_equal(layout.thread_native_id, 184);
	assert_int_equal(layout.frame_owner, 74);
	assert_int_equal(layout.code_line_table, 136);
}

/* A file of a known version whose structs lie elsewhere, and one of an unknown version. */
static void test_debug_offsets(void **state)
{
	struct python_layout layout = *python_table(0x030d);
	uint64_t words[80] = {0};

	assert_string_equal(
		python_debug_offsets(&layout, 0x030d00f0, (void *)words, sizeof(words)), "cookie");
	words[0] = COOKIE;
	assert_string_equal(
		python_debug_offsets(&layout, 0x030d00f0, (void *)words, sizeof(words)), "version");
	assert_null(python_table(0x0307));
	assert_null(python_table(0x0310));
}

/* ---- texts ---- */

static void test_texts(void **state)
{
	struct python_layout layout = *python_table(0x030b);
	unsigned char object[128] = {0};
	uint64_t length = 3;
	_cleanup_strbuf_ struct strbuf text = {0};
	bool cut;

	memcpy(object + 16, &length, 8);
	object[32] = 1 << 2 | 1 << 5 | 1 << 6; /* kind 1, compact, ASCII */
	memcpy(object + 48, "abc", 3);
	assert_int_equal(python_text(&layout, object, sizeof(object), &text, &cut), 0);
	assert_string_equal(strbuf_cstr(&text), "abc");
	assert_false(cut);
	strbuf_clear(&text);
	assert_int_equal(python_text(&layout, object, 50, &text, &cut), 0);
	assert_string_equal(strbuf_cstr(&text), "ab");
	assert_true(cut);
	strbuf_clear(&text);
	object[32] = 2 << 2 | 1 << 5; /* kind 2 */
	memcpy(object + 72, "\x41\x00\x00\xd8\xe9\x00", 6);
	assert_int_equal(python_text(&layout, object, sizeof(object), &text, &cut), 0);
	assert_string_equal(strbuf_cstr(&text), "A\xef\xbf\xbd\xc3\xa9");
	object[32] = 3 << 2 | 1 << 5;
	assert_int_equal(python_text(&layout, object, sizeof(object), &text, &cut), -EINVAL);
	/* As Debian's 3.14.8 had it: what follows the bits is padding, with any contents. */
	layout = *python_table(0x030e);
	memcpy(object + 32,
		"d\x00\xf1\x02\x03\x05\x08\xf0"
		"abc",
		11);
	strbuf_clear(&text);
	assert_int_equal(python_text(&layout, object, sizeof(object), &text, &cut), 0);
	assert_string_equal(strbuf_cstr(&text), "abc");
	assert_int_equal(python_text(&layout, object, 20, &text, &cut), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_python),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_debug_offsets),
		cmocka_unit_test(test_offsets_without_the_interpreter_lock),
		cmocka_unit_test(test_offsets_of_3_15),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, find_pythons, forget_pythons);
}
