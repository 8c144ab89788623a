/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say of their Python hooks: the last line counts, the worst state shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/hooks/hook_table.h"
#include "collect/hooks/python_hooks.h"

static void add(struct hook_table *table, const char *text)
{
	assert_int_equal(hook_table_add(table, text, strlen(text)), 0);
}

static const struct hook_status *hook_at(const struct hook_table *table, size_t index)
{
	assert_true(index < table->hooks.count);
	return &table->hooks.items[index];
}

static void test_last_line_of_a_process_counts(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "torch\tm\tf\twaiting\t\ntorch\tm\tf\tapplied\t\n");
	add(&table, "torch\tm\tf\twaiting\t\n");
	assert_int_equal(table.hooks.count, 1);
	assert_int_equal(hook_at(&table, 0)->processes[HOOK_APPLIED], 1);
	assert_int_equal(hook_at(&table, 0)->processes[HOOK_WAITING], 1);
	assert_int_equal(hook_status_state(hook_at(&table, 0)), HOOK_APPLIED);
	hook_table_done(&table);
}

static void test_what_failed_in_one_process_shows(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "vllm\tm\tC.f\tapplied\t\n");
	add(&table, "vllm\tm\tC.f\tnot found\tthere is no C.f\n");
	add(&table, "vllm\tm\tC.f\twaiting\t\n");
	assert_int_equal(hook_status_state(hook_at(&table, 0)), HOOK_NOT_FOUND);
	assert_string_equal(hook_at(&table, 0)->detail, "there is no C.f");
	assert_string_equal(hook_state_to_string(HOOK_NOT_FOUND), "not found");
	hook_table_done(&table);
}

static void test_what_a_hook_found_is_kept_unless_something_failed(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "t\tLlama\tlayer\tapplied\t16 layers\n");
	add(&table, "t\tLlama\tlayer\tapplied\t\n");
	assert_string_equal(hook_at(&table, 0)->detail, "16 layers");
	add(&table, "t\tLlama\tlayer\tnot found\tno layers\n");
	add(&table, "t\tLlama\tlayer\tapplied\t16 layers\n");
	assert_string_equal(hook_at(&table, 0)->detail, "no layers");
	hook_table_done(&table);
}

static void test_hooks_of_a_group_lie_together(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "a\tm\tf\tapplied\t\nb\tm\tf\tapplied\t\na\tm\tg\tapplied\t\n");
	assert_int_equal(table.hooks.count, 3);
	assert_string_equal(hook_at(&table, 1)->group, "a");
	assert_string_equal(hook_at(&table, 1)->attribute, "g");
	assert_string_equal(hook_at(&table, 2)->group, "b");
	hook_table_done(&table);
}

static void test_damaged_lines_are_counted(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "a\tm\tf\tapplied\n");      /* four fields */
	add(&table, "a\tm\tf\tapplied\t\tx\n"); /* six */
	add(&table, "a\tm\tf\tunheard-of\t\n");
	add(&table, "a\tm\tf\tapplied\t"); /* cut off */
	add(&table, "\n");
	assert_int_equal(table.malformed, 5);
	assert_int_equal(table.hooks.count, 0);
	hook_table_done(&table);
}

static void test_control_characters_are_no_part_of_a_text(void **state _unused_)
{
	struct hook_table table = {0};

	add(&table, "a\tm\tf\terror\tred \033[31m text\n");
	assert_string_equal(hook_at(&table, 0)->detail, "red  [31m text");
	hook_table_done(&table);
}

static void test_a_folder_is_read(void **state _unused_)
{
	static const char line[] = "a\tm\tf\tapplied\t\n";
	char folder[] = "/tmp/sonde-test-hooks-XXXXXX", path[sizeof(folder) + 16];
	struct hook_table table = {0};
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/hooks.1", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
	snprintf(path, sizeof(path), "%s/hooks.2", folder);
	assert_int_equal(symlink("hooks.1", path), 0); /* no file of a process's own */
	assert_int_equal(hook_table_read(&table, folder), 0);
	assert_int_equal(table.hooks.count, 1);
	assert_int_equal(table.processes, 1);
	assert_int_equal(table.malformed, 1);
	unlink(path);
	snprintf(path, sizeof(path), "%s/hooks.1", folder);
	unlink(path);
	rmdir(folder);
	assert_int_equal(hook_table_read(&table, folder), 0); /* removed meanwhile */
	hook_table_done(&table);
}

static void test_lists_of_groups(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf all = {0}, some = {0};
	struct errmsg err;

	assert_int_equal(python_hooks_check("auto", &err), 0);
	assert_int_equal(python_hooks_check("none", &err), 0);
	assert_int_equal(python_hooks_check("torch", &err), 0);
	assert_int_equal(python_hooks_check("torch,vllm", &err), 0);
	assert_int_equal(python_hooks_check("torch,", &err), -EINVAL);
	assert_int_equal(python_hooks_check("", &err), -EINVAL);
	assert_int_equal(python_hooks_check("jax", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'jax'"));
	assert_int_equal(python_hooks_check("transformers:layer", &err), 0);
	assert_int_equal(python_hooks_check("torch,transformers:stats:every=8,vllm", &err), 0);
	assert_int_equal(python_hooks_check("transformers:every=100:component", &err), 0);
	assert_int_equal(python_hooks_check("transformers:", &err), -EINVAL);
	assert_int_equal(python_hooks_check("transformers:layers", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'layers'"));
	assert_int_equal(python_hooks_check("transformers:every=0", &err), -EINVAL);
	assert_int_equal(python_hooks_check("transformers:every=", &err), -EINVAL);
	assert_int_equal(python_hooks_check("transformers:every=9999999999", &err), -EINVAL);
	assert_int_equal(python_hooks_check("transformers:layer,", &err), -EINVAL);
	assert_int_equal(python_hooks_check("torch:layer", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'layer' is no option of it"));
	assert_int_equal(python_hooks_check("torch:gradients:every=10", &err), 0);
	assert_int_equal(python_hooks_check("vllm:layer", &err), -EINVAL);
	assert_non_null(strstr(err.text, "vllm is given 'layer'"));
	assert_int_equal(python_hooks_groups("auto", &all), 0);
	assert_string_equal(strbuf_cstr(&all), "torch,transformers,vllm");
	assert_int_equal(python_hooks_groups("vllm,torch", &some), 0);
	assert_string_equal(strbuf_cstr(&some), "vllm,torch");
}

static void test_python_path_keeps_what_was_there(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf alone = {0}, before = {0};

	setenv("PYTHONPATH", "", 1);
	assert_int_equal(python_hooks_path("/p/sonde", &alone), 0);
	assert_string_equal(strbuf_cstr(&alone), "/p/sonde/hooks/bootstrap");
	setenv("PYTHONPATH", "/a:/b", 1);
	assert_int_equal(python_hooks_path("/p/sonde", &before), 0);
	assert_string_equal(strbuf_cstr(&before), "/p/sonde/hooks/bootstrap:/a:/b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_line_of_a_process_counts),
		cmocka_unit_test(test_what_failed_in_one_process_shows),
		cmocka_unit_test(test_what_a_hook_found_is_kept_unless_something_failed),
		cmocka_unit_test(test_hooks_of_a_group_lie_together),
		cmocka_unit_test(test_damaged_lines_are_counted),
		cmocka_unit_test(test_control_characters_are_no_part_of_a_text),
		cmocka_unit_test(test_a_folder_is_read),
		cmocka_unit_test(test_lists_of_groups),
		cmocka_unit_test(test_python_path_keeps_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
