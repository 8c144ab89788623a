/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diff.h"

#include <errno.h>

#include "analyses/trace_narrow.h"
#include "base/warn.h"
#include "compat/hta/diff.h"
#include "compat/hta/hta.h"
#include "load/load.h"
#include "report/diff/diff.h"

static void side_done(struct query_diff_side *side)
{
	trace_report_done(&side->rows);
	selected_done(&side->selected);
	model_freep(&side->model);
}

void query_diff_done(struct query_diff *diff)
{
	row_diff_done(&diff->rows);
	tree_diff_done(&diff->tree);
	diff_done(&diff->samples);
	side_done(&diff->sides[0]);
	side_done(&diff->sides[1]);
}

/* ---- options ---- */

/* The first option that was given and is of recordings; NULL: none. */
static const char *option_of_recordings(const struct query_diff_options *options)
{
	if (options->sort[0] != 's')
		return "--sort";
	if (options->per_second)
		return "--per-second";
	if (options->by && options->by[0] != 'w')
		return "--by";
	if (options->selection.window)
		return "--window";
	if (shown_weight(&options->shown) != MODEL_WEIGHT_CPU)
		return "--weight";
	return selection_refused(&options->selection, SELECTION_FOREIGN_ROWS);
}

int query_diff_check(struct query_diff *diff, const char *before, const char *after,
	const struct query_diff_options *options, struct errmsg *err)
{
	const char *const paths[] = {before, after};
	struct query_diff_side *sides = diff->sides;

	if (shown_weight(&options->shown) == MODEL_WEIGHT_GPU_BYTES)
		return errmsg_set(err, -EINVAL,
			"--weight gpu-bytes: tables of two runs compare time or energy: compare "
			"memory as flame graphs, in the page");
	for (int i = 0; i < 2; i++) {
		sides[i].path = paths[i];
		sides[i].is_trace = options->hta_compatible || load_is_foreign(&paths[i], 1);
	}
	diff->has_samples =
		!sides[0].is_trace && !sides[1].is_trace && !(options->by && options->by[0] == 'w');
	if ((sides[0].is_trace || sides[1].is_trace) && option_of_recordings(options))
		return errmsg_set(err, -EINVAL,
			"%s is for recordings, not for traces such as %s: leave it out",
			option_of_recordings(options), sides[sides[0].is_trace ? 0 : 1].path);
	if (!diff->has_samples && shown_weight(&options->shown) != MODEL_WEIGHT_CPU)
		return errmsg_set(
			err, -EINVAL, "--weight is for samples, not for --by work: leave it out");
	if (!diff->has_samples && options->sort[0] != 's')
		return errmsg_set(
			err, -EINVAL, "--sort is for samples, not for --by work: leave it out");
	return 0;
}

/* ---- loading ---- */

static int weigh(
	struct query_diff_side *side, const struct query_diff_options *options, struct errmsg *err)
{
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct selection weighed = options->selection;
	int r = select_and_weigh(side->model, &options->shown, &options->selection, &energy, err);

	if (r < 0)
		return r;
	weighed.weight = shown_weight(&options->shown);
	return selection_apply(&weighed, side->model, &side->selected, err);
}

static int load(
	struct query_diff_side *side, const struct query_diff_options *options, struct errmsg *err)
{
	const struct load_options loading = {
		.shown = &options->shown,
		.selection = &options->selection,
		.rows_only = side->is_trace,
	};
	int r = load_model(&side->model, &side->path, 1, &loading, err);

	if (r == 0)
		r = side->is_trace ? trace_narrow(&options->selection, side->model, err)
				   : weigh(side, options, err);
	if (r < 0)
		return r;
	if (model_make_rows(side->model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making rows");
	return 0;
}

static int look_at_rows(
	struct query_diff_side *side, const struct query_diff_options *options, struct errmsg *err)
{
	const struct trace_view_options view = {
		.definitions = options->hta_compatible ? &hta_definitions : &own_definitions};

	return trace_report_init(&side->rows, side->model, &view, UINT64_MAX, err);
}

/* ---- simulations ---- */

static bool is_simulated(const struct query_diff_side *side)
{
	return side->model->traces.count && side->model->traces.items[0]->is_simulated;
}

static bool has_rank(const struct model *model, uint32_t rank)
{
	array_foreach (&model->traces, trace) {
		if ((*trace)->rank == rank)
			return true;
	}
	return false;
}

/* Of the systems those of the ranks that were fed; without their ranks all. */
static void keep_ranks(struct query_diff_side *simulated, const struct query_diff_side *fed)
{
	struct model *model = simulated->model;
	size_t kept = 0, systems = model->traces.count;

	array_foreach (&model->traces, trace) {
		if (has_rank(fed->model, (*trace)->rank))
			kept++;
	}
	if (!kept && systems > fed->model->traces.count)
		warn("%s does not say its rank: it is compared with all %zu systems of %s",
			fed->path, systems, simulated->path);
	if (!kept)
		return;
	kept = 0;
	array_foreach (&model->traces, trace) {
		if (has_rank(fed->model, (*trace)->rank))
			model->traces.items[kept++] = *trace;
		else
			trace_free(*trace);
	}
	model->traces.count = kept;
}

/* What a simulator's log does not say the trace that it was fed does. */
static int join_simulation(struct query_diff *diff, struct errmsg *err)
{
	int r = 0;

	for (int i = 0; i < 2; i++) {
		struct query_diff_side *side = &diff->sides[i], *fed = &diff->sides[!i];

		if (!is_simulated(side) || is_simulated(fed))
			continue;
		diff->is_simulated = true;
		keep_ranks(side, fed);
		array_foreach (&side->model->traces, simulated) {
			array_foreach (&fed->model->traces, from)
				r = r < 0 ? r : trace_take_kinds(*simulated, *from);
		}
	}
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing") : 0;
}

/* ---- comparing ---- */

static int compare_samples(
	struct query_diff *diff, const struct query_diff_options *options, struct errmsg *err)
{
	const struct query_diff_side *before = &diff->sides[0], *after = &diff->sides[1];
	const struct diff_options how = {
		.by = options->by ? breakdown_by_from_string(options->by) : BREAKDOWN_FUNCTION,
		.sort = options->sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF,
		.weight = shown_weight(&options->shown),
		.per_second = options->per_second,
	};

	for (int i = 0; i < 2; i++) {
		const struct query_diff_side *side = &diff->sides[i];

		if (!side->selected.count)
			return errmsg_set(err, -ENODATA,
				"%s has no samples%s: there is nothing to compare; --by work "
				"compares device work and ranges",
				side->path,
				side->model->samples.count ? " that pass the filters" : "");
	}
	if (diff_init(&diff->samples, &how, before->model, &before->selected, after->model,
		    &after->selected) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing");
	return 0;
}

static int compare_rows(
	struct query_diff *diff, const struct query_diff_options *options, struct errmsg *err)
{
	const struct trace_view *first[2];
	struct row_diff_input inputs[2];
	int r;

	for (int i = 0; i < 2; i++) {
		const struct query_diff_side *side = &diff->sides[i];

		first[i] = side->rows.views;
		inputs[i] = (struct row_diff_input){
			.views = side->rows.views,
			.count = side->rows.count,
			.duration_ns = options->per_second ? model_duration_ns(side->model) : 0,
		};
	}
	r = options->hta_compatible ? hta_diff_init(&diff->rows, first)
				    : row_diff_init(&diff->rows, inputs);
	if (r == -ENODATA)
		return errmsg_set(err, r,
			"%s or %s has no profiler step, and HTA compares the first ones: leave out "
			"--hta-compatible",
			diff->sides[0].path, diff->sides[1].path);
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing") : 0;
}

/* Another tool and a simulator's log have no trees, and what is per second is not per step. */
static int compare_trees(
	struct query_diff *diff, const struct query_diff_options *options, struct errmsg *err)
{
	struct tree_diff_input inputs[2];

	if (options->hta_compatible || options->per_second || diff->is_simulated)
		return 0;
	for (int i = 0; i < 2; i++)
		inputs[i] = (struct tree_diff_input){
			diff->sides[i].rows.views, diff->sides[i].rows.count};
	diff->has_tree = true;
	if (tree_diff_init(&diff->tree, inputs) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing");
	return 0;
}

int query_diff_make(
	struct query_diff *diff, const struct query_diff_options *options, struct errmsg *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++)
		r = load(&diff->sides[i], options, err);
	if (r == 0)
		r = join_simulation(diff, err);
	for (int i = 0; r == 0 && i < 2; i++)
		r = look_at_rows(&diff->sides[i], options, err);
	if (r == 0 && diff->has_samples)
		r = compare_samples(diff, options, err);
	if (r == 0)
		r = compare_rows(diff, options, err);
	return r < 0 ? r : compare_trees(diff, options, err);
}

/* ---- what is written ---- */

int query_diff_write(const struct query_diff *diff, const struct query_diff_options *options,
	enum report_form form, const struct terminal *terminal, struct strbuf *out)
{
	const struct query_diff_side *sides = diff->sides;
	const struct diff_report report = {
		.paths = {sides[0].path, sides[1].path},
		.ranks = {sides[0].rows.count, sides[1].rows.count},
		.samples = diff->has_samples ? &diff->samples : NULL,
		.rows = &diff->rows,
		.tree = diff->has_tree ? &diff->tree : NULL,
		.per_second = options->per_second,
		.hta_compatible = options->hta_compatible,
		.limit = (size_t)options->limit,
		.is_json = form != REPORT_FORM_TERMINAL,
		.all = options->all,
	};
	_cleanup_result_ struct result result = {0};
	int r = diff_report_make(&result, &report);

	return r < 0 ? r : report_render(&result, form, terminal, out);
}
