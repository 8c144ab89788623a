/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel symbols from texts like /proc/kallsyms, and the changes that PERF_RECORD_KSYMBOL tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "symbols/kernel.h"

static const char kallsyms[] = "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T startup_64\n"
			       "ffffffff81000100 t local_function\n"
			       "ffffffff81000100 W weak_function\n"
			       "ffffffff81000180 T __pi_memcpy\n"
			       "ffffffff81000180 T memcpy\n"
			       "ffffffff81000200 D some_data\n"
			       "ffffffff81000280 b some_bss\n"
			       "ffffffff81000300 w odd.cold\n"
			       "\n"
			       "garbage\n"
			       "ffffffff81000400\n"
			       "ffffffff81000400 T\n"
			       "ffffffff81000400 T \n"
			       "ffffffff8100040000000 T too_wide\n"
			       "ffffffffc0200000 t nv_open\t[nvidia]\n"
			       "ffffffffc0100000 t ext4_read\t[ext4]\n"
			       "ffffffffc0200100 t nv_ioctl\t[nvidia]\n"
			       "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sampler\t[bpf]\n"
			       "ffffffffc0300100 t last_one\t[ext4]";

static struct kernel_symbols *parse(const char *text)
{
	struct kernel_symbols *symbols = NULL;
	struct errmsg err = {""};

	if (kernel_symbols_parse(&symbols, text, strlen(text), "kallsyms", &err) < 0)
		fail_msg("%s", err.text);
	return symbols;
}

static void assert_named(const struct kernel_symbols *symbols, uint64_t address, const char *name,
	const char *module)
{
	const char *found_name = "(none)", *found_module = "";

	kernel_symbols_find(symbols, address, &found_name, &found_module);
	assert_string_equal(found_name, name);
	assert_string_equal(found_module, module);
}

static void test_names_and_modules(void **state)
{
	struct kernel_symbols *symbols = parse(kallsyms);

	assert_named(symbols, 0xffffffff80ffffff, "(none)", "");
	assert_named(symbols, 0x401000, "(none)", "");
	assert_named(symbols, 0xffffffff81000000, "startup_64", "");
	assert_named(symbols, 0xffffffff810000ff, "startup_64", "");
	assert_named(symbols, 0xffffffff81000100, "local_function", "");
	assert_named(symbols, 0xffffffff81000190, "memcpy", "");
	assert_named(symbols, 0xffffffff81000280, "memcpy", "");
	assert_named(symbols, 0xffffffff81000301, "odd.cold", "");
	assert_named(symbols, 0xffffffffc0100010, "ext4_read", "ext4");
	assert_named(symbols, 0xffffffffc0200010, "nv_open", "nvidia");
	assert_named(symbols, 0xffffffffc0200110, "nv_ioctl", "nvidia");
	assert_named(symbols, 0xffffffffc0300010, "bpf_prog_6deef7357e7b4530_sampler", "bpf");
	assert_named(symbols, UINT64_MAX, "last_one", "ext4");
	kernel_symbols_free(symbols);
}

static void test_hidden_addresses(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t foo\t[ext4]\n";
	struct kernel_symbols *symbols = NULL;
	struct errmsg err = {""};

	assert_int_equal(
		kernel_symbols_parse(&symbols, hidden, strlen(hidden), "kallsyms", &err), -EACCES);
	assert_non_null(strstr(err.text, "kptr_restrict"));
	assert_null(symbols);
}

static void test_texts_without_symbols(void **state)
{
	static const char *const texts[] = {"", "\n\n", "ffffffff81000000 D data\n", "\xff\xfe"};
	struct kernel_symbols *symbols = NULL;
	struct errmsg err;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(kernel_symbols_parse(
					 &symbols, texts[i], strlen(texts[i]), "kallsyms", &err),
			-ENODATA);
		assert_non_null(strstr(err.text, "CONFIG_KALLSYMS"));
	}
	assert_int_equal(kernel_symbols_open(&symbols, "/no/such/file", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/file"));
}

static void test_bytes_that_are_no_text(void **state)
{
	static const char text[] = "ffffffff81000000 \0 nul\nffffffff81000000 T a\0b\n"
				   "ffffffff81000010 T good\n";
	struct kernel_symbols *symbols = NULL;

	assert_int_equal(
		kernel_symbols_parse(&symbols, text, sizeof(text) - 1, "kallsyms", NULL), 0);
	assert_named(symbols, 0xffffffff8100000f, "(none)", "");
	assert_named(symbols, 0xffffffff81000010, "good", "");
	kernel_symbols_free(symbols);
}

static void test_updates(void **state)
{
	struct kernel_symbols *symbols = parse(kallsyms);
	const uint64_t at = 0xffffffffc0280000;

	assert_int_equal(kernel_symbols_update(symbols, at, 0x80, "bpf_prog_1_one"), 0);
	assert_int_equal(kernel_symbols_update(symbols, at + 0x100, 0x80, "bpf_prog_2_two"), 0);
	assert_named(symbols, at + 0x7f, "bpf_prog_1_one", "bpf");
	assert_named(symbols, at + 0x80, "nv_ioctl", "nvidia"); /* between: as before */
	assert_named(symbols, at + 0x100, "bpf_prog_2_two", "bpf");

	/* A trampoline in the room of both. */
	assert_int_equal(kernel_symbols_update(symbols, at + 0x40, 0x100, "ftrace_trampoline"), 0);
	assert_named(symbols, at + 0x10, "nv_ioctl", "nvidia");
	assert_named(symbols, at + 0x40, "ftrace_trampoline", "");
	assert_named(symbols, at + 0x13f, "ftrace_trampoline", "");
	assert_named(symbols, at + 0x140, "nv_ioctl", "nvidia");

	assert_int_equal(kernel_symbols_update(symbols, at + 0x40, 0, "ftrace_trampoline"), 0);
	assert_named(symbols, at + 0x40, "nv_ioctl", "nvidia");
	assert_int_equal(kernel_symbols_update(symbols, at + 0x40, 0, "ftrace_trampoline"), 0);

	/* One that was there at the start goes. */
	assert_int_equal(kernel_symbols_update(symbols, 0xffffffffc0300000, 0, ""), 0);
	assert_named(symbols, 0xffffffffc0300010, "(none)", "");
	assert_int_equal(kernel_symbols_update(symbols, UINT64_MAX - 1, 100, "top"), 0);
	assert_named(symbols, UINT64_MAX - 1, "top", "");
	kernel_symbols_free(symbols);
	assert_null(kernel_symbols_free(NULL));
}

/* Adds and removes at random, compared with a plain array. */
static void test_many_updates(void **state)
{
	struct kernel_symbols *symbols = parse("1000 T base\n");
	uint8_t present[500] = {0};
	unsigned seed = 5;

	for (int round = 0; round < 20000; round++) {
		unsigned i = (unsigned)rand_r(&seed) % ARRAY_SIZE(present);
		char name[32];

		snprintf(name, sizeof(name), "prog%u", i);
		present[i] = rand_r(&seed) & 1;
		assert_int_equal(
			kernel_symbols_update(symbols, 0x2000 + 16 * i, present[i] ? 16 : 0, name),
			0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(present); i++) {
		char name[32];

		snprintf(name, sizeof(name), present[i] ? "prog%u" : "base", i);
		assert_named(symbols, 0x2000 + 16 * i + 7, name, "");
	}
	kernel_symbols_free(symbols);
}

static void test_this_kernel(void **state)
{
	struct kernel_symbols *symbols = NULL;
	struct errmsg err = {""};
	const char *name, *module;
	int result = kernel_symbols_open(&symbols, "/proc/kallsyms", &err);

	if (result == -EACCES || result == -ENOENT) {
		print_message("%s\n", err.text);
		skip();
	}
	assert_int_equal(result, 0);
	assert_true(kernel_symbols_find(symbols, UINT64_MAX, &name, &module));
	assert_true(*name);
	kernel_symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_modules),
		cmocka_unit_test(test_hidden_addresses),
		cmocka_unit_test(test_texts_without_symbols),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_many_updates),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
