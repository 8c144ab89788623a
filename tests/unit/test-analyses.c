/* SPDX-License-Identifier: Apache-2.0 */
/* Filters, tables, completeness and the call tree, against counts done by hand. */
#include "model-example.h"

#include "analyses/cpu/breakdown.h"
#include "analyses/cpu/call_tree.h"
#include "analyses/cpu/completeness.h"
#include "analyses/cpu/timeline.h"

static const struct selection everything = {0};

/*
 * main → work ×3 samples, main → work → work (recursion) ×2, main → idle, cut off ×4, no stack ×1.
 * Process 7 "alpha": threads 7 and 8; process 9 "beta": thread 9.
 */
static struct model *sample_model(void)
{
	struct example example;
	capture_id app, lib, entry, work, work_again, idle;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	app = example_mapping(&example, "/bin/app");
	lib = example_mapping(&example, "/lib/lib.so");
	entry = example_frame(&example, "main", app, 1);
	work = example_frame(&example, "work", lib, 2);
	work_again = example_frame(&example, "work", lib, 3);
	idle = example_frame(&example, NULL, lib, 4);
	example_frames(&example, WIRE_STOP_COMPLETE, entry, work);
	example_frames(&example, WIRE_STOP_COMPLETE, entry, work, work_again);
	example_frames(&example, WIRE_STOP_NO_RULE, entry, idle);
	example_process(&example, 7, "alpha", 100);
	example_thread(&example, 7, 7, "main");
	example_thread(&example, 7, 8, "worker");
	example_process(&example, 9, "beta", 100);
	example_samples(&example, 7, 7, 1, 1000, 3);
	example_samples(&example, 7, 8, 2, 1000, 2);
	example_samples(&example, 9, 9, 3, 1000, 4);
	example_samples(&example, 9, 9, 0, 1000 + 50 * EXAMPLE_PERIOD_NS, 1);
	return example_end(&example);
}

static struct breakdown break_down(const struct model *model, enum breakdown_by by)
{
	struct selected selected;
	struct breakdown breakdown;

	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(breakdown_init(&breakdown, model, &selected, by, BREAKDOWN_SORT_SELF), 0);
	selected_done(&selected);
	return breakdown;
}

static const struct breakdown_row *row_of(const struct breakdown *breakdown, uint32_t key)
{
	array_foreach (&breakdown->rows, row) {
		if (row->key == key)
			return row;
	}
	fail_msg("there is no row with key %u", key);
	return NULL;
}

static void check_row(
	const struct breakdown *breakdown, uint32_t key, uint64_t self, uint64_t total)
{
	const struct breakdown_row *row = row_of(breakdown, key);

	assert_int_equal(row->self_samples, self);
	assert_int_equal(row->total_samples, total);
}

static void test_functions_count_recursion_once(void **state)
{
	struct model *model = sample_model();
	struct breakdown functions = break_down(model, BREAKDOWN_FUNCTION);

	assert_int_equal(functions.samples, 10);
	assert_int_equal(functions.rows.count, 4);
	check_row(&functions, example_function(model, "main"), 0, 9);
	check_row(&functions, example_function(model, "work"), 5, 5);
	check_row(&functions, example_function(model, "[unknown] lib.so"), 4, 4);
	check_row(&functions, MODEL_NONE, 1, 1);
	assert_int_equal(functions.rows.items[0].key, example_function(model, "work"));
	breakdown_done(&functions);
	model_free(model);
}

static void test_self_adds_up_in_every_table(void **state)
{
	struct model *model = sample_model();

	for (int by = 0; by < BREAKDOWN_MAX; by++) {
		struct breakdown breakdown = break_down(model, (enum breakdown_by)by);
		uint64_t sum = 0;

		array_foreach (&breakdown.rows, row)
			sum += row->self_samples;
		assert_int_equal(sum, 10);
		assert_int_equal(
			breakdown_by_from_string(breakdown_by_to_string((enum breakdown_by)by)),
			by);
		breakdown_done(&breakdown);
	}
	assert_int_equal(breakdown_by_from_string("nonsense"), BREAKDOWN_INVALID);
	model_free(model);
}

static void test_other_tables(void **state)
{
	struct model *model = sample_model();
	struct breakdown modules = break_down(model, BREAKDOWN_MODULE);
	struct breakdown threads = break_down(model, BREAKDOWN_THREAD);
	struct breakdown stacks = break_down(model, BREAKDOWN_STACK);
	struct breakdown cpus = break_down(model, BREAKDOWN_CPU);
	struct breakdown groups = break_down(model, BREAKDOWN_CGROUP);

	check_row(&modules, 0, 0, 9);
	check_row(&modules, 1, 9, 9);
	check_row(&threads, 0, 3, 3);
	check_row(&threads, 1, 2, 2);
	check_row(&stacks, 2, 4, 4);
	check_row(&stacks, MODEL_NONE, 1, 1);
	check_row(&cpus, 0, 2 + 1 + 2 + 1, 6);
	assert_int_equal(groups.rows.count, 1);
	assert_string_equal(groups.cgroups.items[groups.rows.items[0].key], "/group");
	breakdown_done(&modules);
	breakdown_done(&threads);
	breakdown_done(&stacks);
	breakdown_done(&cpus);
	breakdown_done(&groups);
	model_free(model);
}

/* Recursive and plain stacks of the same functions are different; same functions at other addresses
 * are not. */
static void test_stacks_merge_by_function(void **state)
{
	struct breakdown stacks;
	struct example example;
	struct model *model;
	capture_id app;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	app = example_mapping(&example, "/bin/app");
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, "f", app, 1));
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, "f", app, 2));
	example_samples(&example, 1, 1, 1, 1000, 2);
	example_samples(&example, 1, 1, 2, 1000, 3);
	model = example_end(&example);
	stacks = break_down(model, BREAKDOWN_STACK);
	assert_int_equal(stacks.rows.count, 1);
	assert_int_equal(stacks.rows.items[0].self_samples, 5);
	breakdown_done(&stacks);
	model_free(model);
}

static uint64_t count_selected(const struct model *model, const struct selection *selection)
{
	struct selected selected;
	struct errmsg err = {0};
	uint64_t count;

	if (selection_apply(selection, model, &selected, &err) < 0)
		fail_msg("%s", err.text);
	count = selected.count;
	selected_done(&selected);
	return count;
}

static void test_filters(void **state)
{
	struct model *model = sample_model();
	static const struct {
		struct selection selection;
		uint64_t count;
	} cases[] = {
		{{.process = "7"}, 5},
		{{.process = "^al"}, 5},
		{{.process = "a$"}, 10},
		{{.thread = "8"}, 2},
		{{.thread = "work|main"}, 5},
		{{.thread = "beta"}, 5}, /* a main thread is called as its process */
		{{.symbol = "^work$"}, 5},
		{{.symbol = "main"}, 9}, /* not the sample without a stack */
		{{.time = ".."}, 10},
		{{.time = "0.01.."}, 1},
		{{.time = "..0.0015"}, 6},
		{{.time = "0.001..0.0015"}, 3},
		{{.process = "beta", .symbol = "work"}, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(count_selected(model, &cases[i].selection), cases[i].count);
	model_free(model);
}

static void test_bad_filters_are_sentences(void **state)
{
	struct model *model = sample_model();
	static const struct {
		struct selection selection;
		const char *option;
	} cases[] = {
		{{.symbol = "["}, "--symbol"},
		{{.process = "("}, "--process"},
		{{.thread = "*("}, "--thread"},
		{{.time = "5"}, "--time"},
		{{.time = "3..2"}, "--time"},
		{{.time = "a..b"}, "--time"},
		{{.time = "1..2x"}, "--time"},
		{{.time = "-1..2"}, "--time"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct selected selected;
		struct errmsg err = {0};

		assert_int_equal(
			selection_apply(&cases[i].selection, model, &selected, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].option));
	}
	model_free(model);
}

static void test_completeness(void **state)
{
	struct model *model = sample_model();
	struct completeness completeness;
	struct selected selected;

	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(completeness_init(&completeness, model, &selected), 0);
	assert_int_equal(completeness.no_stack, 1);
	assert_int_equal(completeness.user_stacks, 9);
	assert_int_equal(completeness.complete_stacks, 5);
	assert_int_equal(completeness_worst_stop(&completeness), WIRE_STOP_NO_RULE);
	assert_int_equal(completeness.unnamed_leaves, 4);
	assert_int_equal(completeness.worst_unnamed_module, 1);
	assert_false(completeness.losses_known);
	for (int stop = 0; stop < WIRE_STOP_MAX; stop++)
		assert_non_null(completeness_advice((enum wire_stop)stop, false));
	/* Who records as root already is not told to. */
	for (int stop = 0; stop < WIRE_STOP_MAX; stop++)
		assert_null(strstr(completeness_advice((enum wire_stop)stop, true), "root"));
	assert_null(strstr(completeness_advice(WIRE_STOP_NEW_MAPPING, true), "frame pointers"));
	selected_done(&selected);
	model_free(model);
}

static void test_timeline_keeps_every_sample(void **state)
{
	struct model *model = sample_model();
	struct timeline timeline;
	struct selected selected;
	uint64_t sum = 0;

	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(timeline_init(&timeline, model, &selected, 5), 0);
	for (size_t i = 0; i < timeline.count; i++)
		sum += timeline.samples[i];
	assert_int_equal(sum, 10);
	assert_int_equal(timeline.samples[0], 9);
	assert_int_equal(timeline.samples[4], 1);
	timeline_done(&timeline);
	selected_done(&selected);
	model_free(model);
}

static uint32_t find_child(const struct call_tree *tree, uint32_t parent, const char *name)
{
	const struct call_tree_node *node = &tree->nodes.items[parent];

	for (uint32_t i = 0; i < node->child_count; i++) {
		uint32_t child = call_tree_child(tree, node, i);

		if (strcmp(call_tree_label(tree, child)->name, name) == 0)
			return child;
	}
	fail_msg("%s has no child %s", call_tree_label(tree, parent)->name, name);
	return 0;
}

static void test_call_tree(void **state)
{
	struct model *model = sample_model();
	struct selected selected;
	struct call_tree tree;
	uint32_t alpha, entry, work;

	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(call_tree_init(&tree), 0);
	assert_int_equal(call_tree_add(&tree, 0, model, &selected, CALL_TREE_ROOTS_PROCESS), 0);
	assert_int_equal(call_tree_finish(&tree), 0);
	assert_int_equal(tree.nodes.items[0].total[0], 10);
	alpha = find_child(&tree, 0, "alpha");
	entry = find_child(&tree, alpha, "main");
	work = find_child(&tree, entry, "work");
	assert_int_equal(tree.nodes.items[alpha].total[0], 5);
	assert_int_equal(tree.nodes.items[work].total[0], 5);
	assert_int_equal(tree.nodes.items[work].self[0], 3);
	assert_int_equal(tree.nodes.items[find_child(&tree, work, "work")].self[0], 2);
	find_child(&tree, find_child(&tree, 0, "beta"), "[no stack]");
	assert_int_equal(tree.max_depth, 4);
	call_tree_done(&tree);
	selected_done(&selected);
	model_free(model);
}

/* 20 compilers of a moment each, two ranks of one name that live on, and a lone linker. */
static void test_short_processes_are_one_row(void **state)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	_cleanup_(selected_done) struct selected selected = {0};
	struct example example;
	struct model *model;
	struct errmsg err;
	capture_id stack;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	stack = example_frames(&example, WIRE_STOP_COMPLETE,
		example_frame(&example, "main", example_mapping(&example, "/x"), 1));
	for (uint32_t i = 0; i < 20; i++) {
		example_process(&example, 100 + i, "cc1", 1000);
		example_samples(&example, 100 + i, 100 + i, stack, 1000 + i * 100, i ? 1 : 2);
	}
	for (uint32_t pid = 10; pid < 12; pid++) {
		example_process(&example, pid, "python3", 1000);
		example_samples(&example, pid, pid, stack, 1000, 21);
	}
	example_process(&example, 9, "ld", 1000);
	example_samples(&example, 9, 9, stack, 3000, 3);
	model = example_end(&example);
	assert_int_equal(selection_apply(&everything, model, &selected, &err), 0);
	assert_int_equal(breakdown_init(&breakdown, model, &selected, BREAKDOWN_PROCESS,
				 BREAKDOWN_SORT_SELF),
		0);
	assert_int_equal(breakdown.rows.count, 23);
	assert_int_equal(breakdown_merge_processes(&breakdown, model), 0);
	assert_int_equal(breakdown.rows.count, 4);
	assert_int_equal(breakdown.rows.items[0].self_samples, 21);
	for (size_t i = 0; i < 4; i++) {
		const struct breakdown_row *row = &breakdown.rows.items[i];
		const struct model_process *process = &model->processes.items[row->key];
		bool is_compiler = strcmp(process->name, "cc1") == 0;

		assert_int_equal(row->merged, is_compiler ? 19 : 0);
		assert_int_equal(row->self_samples, process->pid == 9 ? 3 : 21);
		assert_true(!is_compiler || process->pid == 100); /* that with most samples */
	}
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_processes_are_one_row),
		cmocka_unit_test(test_functions_count_recursion_once),
		cmocka_unit_test(test_self_adds_up_in_every_table),
		cmocka_unit_test(test_other_tables),
		cmocka_unit_test(test_stacks_merge_by_function),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_bad_filters_are_sentences),
		cmocka_unit_test(test_completeness),
		cmocka_unit_test(test_timeline_keeps_every_sample),
		cmocka_unit_test(test_call_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
