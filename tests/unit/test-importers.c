/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of importers: one that was added by its steps, from the file to the analyses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "analyses/program/ranks.h"
#include "analyses/program/trace_programs.h"
#include "load/load.h"
#include "toy-importer.h"

static bool knows_blank(const char *head, size_t length)
{
	return length && head[0] == ' ';
}

/* A format without times: it is known in order to be refused. */
static const struct importer blank_importer = {
	.name = "blank",
	.knows = knows_blank,
	.refusal = "is blank",
	.instead = "write something",
};

/* In place of the table in importers.c. */
const struct importer *const importers[] = {&toy_importer, &blank_importer, NULL};

static char folder[64], paths[3][96];

static int make_folder(void **state _unused_)
{
	static const char *const names[] = {"a.toy", "b.toy", "c.toy"};

	snprintf(folder, sizeof(folder), "/tmp/test-importers.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
	return 0;
}

static int remove_folder(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		unlink(paths[i]);
	return rmdir(folder);
}

static const char *write_file(size_t index, const char *text)
{
	FILE *file = fopen(paths[index], "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return paths[index];
}

static struct model *load(const char *path)
{
	struct model *model;
	struct errmsg err = {{0}};

	if (load_model(&model, &path, 1, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(model_is_foreign(model));
	return model;
}

static void a_file_becomes_a_model(void **state _unused_)
{
	const char *path = write_file(0, "TOY\nrank 3\nforward 10 20\nodd\nbackward 40 50\n");
	_cleanup_model_ struct model *model = load(path);
	const struct trace *trace = model->traces.items[0];

	assert_int_equal(model->traces.count, 1);
	assert_int_equal(trace->rank, 3);
	assert_int_equal(trace->events.count, 2);
	assert_int_equal(trace->damage.skipped_events, 1);
	assert_string_equal(trace_text(trace, trace->events.items[1].name), "backward");
	unlink(path);
}

static void a_packed_file_is_read(void **state _unused_)
{
	gzFile file = gzopen(paths[0], "w");
	_cleanup_model_ struct model *model = NULL;

	assert_true(gzputs(file, "TOY\nforward 10 20\n") > 0);
	assert_int_equal(gzclose(file), Z_OK);
	model = load(paths[0]);
	assert_int_equal(model->traces.items[0]->events.count, 1);
	unlink(paths[0]);
}

static void a_folder_becomes_one_model(void **state _unused_)
{
	static const struct trace_view_options options = {0};
	_cleanup_model_ struct model *model = NULL;
	_cleanup_ranks_ struct ranks ranks = {0};
	struct trace_view views[2];

	write_file(0, "TOY\nrank 1\nProfilerStep#1 0 300\n");
	write_file(1, "TOY\nrank 0\nProfilerStep#1 0 100\n");
	write_file(2, " ");
	model = load(folder);
	assert_int_equal(model->traces.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(model->traces.items[i]->rank, i);
		assert_int_equal(
			trace_view_init(&views[i], model->traces.items[i], i, &options), 0);
	}
	assert_int_equal(trace_programs_fill(model, views, 2), 0);
	assert_int_equal(ranks_init(&ranks, &(struct rank_input){.model = model}), 0);
	assert_int_equal(rank_row_spread_ns(&ranks, &ranks.rows.items[0]), 200);
	for (uint32_t i = 0; i < 2; i++)
		trace_view_done(&views[i]);
}

static void a_refusal_says_why(void **state _unused_)
{
	const char *path = write_file(2, " ");
	struct errmsg err = {{0}};
	struct model *model;

	assert_int_equal(load_model(&model, &path, 1, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "c.toy is blank: write something"));
}

static void names_and_beginnings(void **state _unused_)
{
	assert_ptr_equal(importer_find("toy"), &toy_importer);
	assert_null(importer_find("kineto"));
	assert_ptr_equal(importer_of(" x", 2), &blank_importer);
	assert_null(importer_of("TO", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_model),
		cmocka_unit_test(a_packed_file_is_read),
		cmocka_unit_test(a_folder_becomes_one_model),
		cmocka_unit_test(a_refusal_says_why),
		cmocka_unit_test(names_and_beginnings),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
