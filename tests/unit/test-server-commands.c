/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's file of commands, and the command lines that requests make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "server/jobs/commands.h"
#include "server/jobs/files.h"

static struct job_commands *commands;
static struct errmsg err;

static int parse(const char *text)
{
	commands = commands_free(commands);
	*err.text = '\0';
	return commands_parse(&commands, text, strlen(text), "commands.json", &err);
}

static int teardown(void **state)
{
	commands = commands_free(commands);
	return 0;
}

/* The words of the first command with these parameters, with '|' between them; NULL: refused. */
static const char *line(const char *values)
{
	static char text[1000];
	const struct json_text object = {values, values ? strlen(values) : 0, false};
	struct command_words words = {{0}};
	size_t used = 0;

	*err.text = '\0';
	if (command_line(&commands->items.items[0], values ? &object : NULL, &words, &err) < 0)
		return NULL;
	array_foreach (&words.list, word)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", used ? "|" : "", *word);
	command_words_done(&words);
	return text;
}

#define COMMAND(rest) "{\"commands\":[{\"name\":\"a\"," rest "}]}"

static const char all[] =
	"{\"jobs\":2,\"commands\":[{\"name\":\"a\",\"description\":\"D\","
	"\"argv\":[\"run\",\"--batch={batch}\",\"{model}\",\"{text}\",\"{\\\"x\\\":1}\"],"
	"\"parameters\":[{\"name\":\"batch\",\"type\":\"integer\",\"minimum\":1,\"maximum\":64,"
	"\"default\":8},{\"name\":\"model\",\"type\":\"choice\",\"choices\":[\"small\",\"-l\"],"
	"\"default\":\"small\"},{\"name\":\"text\",\"type\":\"string\",\"maximum\":10}],"
	"\"cwd\":\"/srv\",\"environment\":{\"A\":\"b=c\"},\"record\":[\"--window\",\"manual\"],"
	"\"seconds\":5,\"keep\":3}]}";

static void test_all_members(void **state)
{
	const struct job_command *command;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text};

	assert_int_equal(parse(all), 0);
	assert_int_equal(commands->jobs, 2);
	command = commands_find(commands, "a");
	assert_non_null(command);
	assert_null(commands_find(commands, "b"));
	assert_null(commands_find(NULL, "a"));
	assert_string_equal(command->cwd, "/srv");
	assert_string_equal(command->environment.list.items[0], "A=b=c");
	assert_true(command->has_windows && command->seconds == 5 && command->keep == 3);
	commands_write(commands, &json);
	assert_string_equal(strbuf_cstr(&text),
		"{\"commands\":[{\"name\":\"a\",\"description\":\"D\",\"parameters\":["
		"{\"name\":\"batch\",\"type\":\"integer\",\"default\":8,\"choices\":[],"
		"\"minimum\":1,\"maximum\":64},"
		"{\"name\":\"model\",\"type\":\"choice\",\"default\":\"small\","
		"\"choices\":[\"small\",\"-l\"],\"minimum\":null,\"maximum\":null},"
		"{\"name\":\"text\",\"type\":\"string\",\"default\":null,\"choices\":[],"
		"\"minimum\":null,\"maximum\":10}]}]}");
}

static void test_command_lines(void **state)
{
	assert_int_equal(parse(all), 0);
	assert_string_equal(line("{\"text\":\"x\"}"), "run|--batch=8|small|x|{\"x\":1}");
	/* No shell, no second argument, no parameter in a value. */
	assert_string_equal(line("{\"text\":\"; a {x}\",\"batch\":64,\"model\":\"-l\"}"),
		"run|--batch=64|-l|; a {x}|{\"x\":1}");
	assert_string_equal(line("{\"text\":\"\"}"), "run|--batch=8|small||{\"x\":1}");
}

static void test_values_that_are_refused(void **state)
{
	static const char *const wrong[][2] = {{"{}", "text"}, {"{\"text\":1}", "text"},
		{"{\"text\":\"-rf\"}", "text"}, {"{\"text\":\"12345678901\"}", "text"},
		{"{\"text\":\"a\\nb\"}", "text"}, {"{\"text\":\"\\u0000\"}", "text"},
		{"{\"text\":\"\xff\"}", "text"}, {"{\"text\":\"a\",\"batch\":0}", "batch"},
		{"{\"text\":\"a\",\"batch\":65}", "batch"},
		{"{\"text\":\"a\",\"batch\":1.5}", "batch"},
		{"{\"text\":\"a\",\"batch\":\"8\"}", "batch"},
		{"{\"text\":\"a\",\"batch\":null}", "batch"},
		{"{\"text\":\"a\",\"model\":\"other\"}", "model"},
		{"{\"text\":\"a\",\"text\":\"b\"}", "text"},
		{"{\"text\":\"a\",\"other\":1}", "other"}};

	assert_int_equal(parse(all), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_null(line(wrong[i][0]));
		assert_non_null(strstr(err.text, wrong[i][1]));
	}
}

static void test_files_that_are_refused(void **state)
{
	static const char *const wrong[][2] = {{"", "object"}, {"[]", "object"},
		{"{\"commands\":{}}", "array"}, {"{\"jobs\":0}", "jobs"}, {"{\"jobs\":17}", "jobs"},
		{"{\"command\":[]}", "unknown"}, {"{} {}", "follows"}, {"{\"jobs\":1,}", "comma"},
		{"{\"commands\":[{\"argv\":[\"x\"]}]}", "name"}, {COMMAND("\"argv\":[]"), "argv"},
		{COMMAND("\"argv\":\"x\""), "argv"}, {COMMAND("\"argv\":[1]"), "argv"},
		{COMMAND("\"argv\":[\"x\"],\"argv\":[\"y\"]"), "twice"},
		{"{\"commands\":[{\"name\":\"../a\",\"argv\":[\"x\"]}]}", "name"},
		{"{\"commands\":[{\"name\":\".a\",\"argv\":[\"x\"]}]}", "name"},
		{"{\"commands\":[{\"name\":\"a\",\"argv\":[\"x\"]},"
		 "{\"name\":\"a\",\"argv\":[\"x\"]}]}",
			"twice"},
		{COMMAND("\"argv\":[\"x\"],\"cwd\":\"relative\""), "cwd"},
		{COMMAND("\"argv\":[\"x\"],\"seconds\":0"), "second"},
		{COMMAND("\"argv\":[\"x\"],\"seconds\":-1"), "seconds"},
		{COMMAND("\"argv\":[\"x\"],\"record\":[\"-o\",\"/etc/x\"]"), "-o"},
		{COMMAND("\"argv\":[\"x\"],\"record\":[\"-ofile\"]"), "-ofile"},
		{COMMAND("\"argv\":[\"x\"],\"record\":[\"--output=x\"]"), "--output"},
		{COMMAND("\"argv\":[\"x\"],\"record\":[\"--\"]"), "--"},
		{COMMAND("\"argv\":[\"x\",\"{p}\"]"), "{p}"},
		{COMMAND("\"argv\":[\"x\",\"{p}y\"],\"parameters\":[{\"name\":\"p\","
			 "\"type\":\"string\"}]"),
			"{p}y"},
		{COMMAND("\"argv\":[\"{p}\"],\"parameters\":[{\"name\":\"p\","
			 "\"type\":\"string\"}]"),
			"program"},
		{COMMAND("\"argv\":[\"x\"],\"parameters\":[{\"name\":\"p\","
			 "\"type\":\"string\"}]"),
			"{p}"},
		{COMMAND("\"argv\":[\"x\",\"{p}\"],\"parameters\":[{\"name\":\"p\"}]"), "type"},
		{COMMAND("\"argv\":[\"x\",\"{p}\"],\"parameters\":[{\"name\":\"p\","
			 "\"type\":\"choice\"}]"),
			"choices"},
		{COMMAND("\"argv\":[\"x\",\"{p}\"],\"parameters\":[{\"name\":\"p\","
			 "\"type\":\"integer\",\"maximum\":1,\"default\":2}]"),
			"default"}};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(wrong[i][0]) != -EINVAL)
			fail_msg("accepted: %s", wrong[i][0]);
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("%s: no '%s' in: %s", wrong[i][0], wrong[i][1], err.text);
	}
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_whose_file_it_is(void **state)
{
	char path[] = "/tmp/sonde-commands-XXXXXX";

	close(mkstemp(path));
	write_file(path, all, 0644);
	assert_int_equal(commands_read(&commands, path, &err), 0);
	commands = commands_free(commands);
	for (mode_t mode = 02; mode <= 020; mode <<= 3) {
		write_file(path, all, 0600 | mode);
		assert_int_equal(commands_read(&commands, path, &err), -EPERM);
		assert_non_null(strstr(err.text, "chmod go-w"));
	}
	unlink(path);
	assert_int_equal(commands_read(&commands, path, &err), -ENOENT);
	assert_int_equal(commands_read(&commands, "/tmp", &err), -EPERM);
}

static void touch(const char *folder, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	write_file(path, "", 0600);
}

static bool is_there(const char *folder, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void remove_all(const char *folder)
{
	DIR *directory = opendir(folder);
	const struct dirent *entry;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	assert_int_equal(rmdir(folder), 0);
}

static void test_captures_of_commands(void **state)
{
	static const char *const others[] = {"a.pftrace", "a-1.pftrace",
		"ab-20261124-120000.pftrace", "a-b-20261124-120000.pftrace",
		"a-20261124-120000.json", "a-20261124-120000-x.pftrace"};
	char folder[] = "/tmp/sonde-files-XXXXXX", name[JOB_FILE_BYTES];

	assert_non_null(mkdtemp(folder));
	assert_int_equal(job_file_name(folder, "a", 1795524915, name), 0);
	assert_string_equal(name, "a-20261124-125515.pftrace");
	touch(folder, name);
	touch(folder, "a-20261124-125515.pftrace.windows.json");
	assert_int_equal(job_file_name(folder, "a", 1795524915, name), 0);
	assert_string_equal(name, "a-20261124-125515-2.pftrace");
	/* Later, also where clocks are coarse. */
	usleep(20000);
	touch(folder, name);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		touch(folder, others[i]);
	job_files_trim(folder, "a", 1);
	assert_true(is_there(folder, name));
	assert_false(is_there(folder, "a-20261124-125515.pftrace"));
	assert_false(is_there(folder, "a-20261124-125515.pftrace.windows.json"));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(is_there(folder, others[i]));
	assert_int_equal(job_file_name("/nowhere", "a", 0, name), -ENOENT);
	remove_all(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_all_members, teardown),
		cmocka_unit_test_teardown(test_command_lines, teardown),
		cmocka_unit_test_teardown(test_values_that_are_refused, teardown),
		cmocka_unit_test_teardown(test_files_that_are_refused, teardown),
		cmocka_unit_test_teardown(test_whose_file_it_is, teardown),
		cmocka_unit_test(test_captures_of_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
