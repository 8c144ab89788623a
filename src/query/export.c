/* SPDX-License-Identifier: Apache-2.0 */
#include "query/export.h"

#include <assert.h>
#include <errno.h>

#include "analyses/trace_narrow.h"
#include "load/load.h"
#include "model/trace_capture.h"
#include "query/weigh.h"

/* Formats of which every figure is a weight, or has its own. */
int query_export_check(const struct query_export *asked, struct errmsg *err)
{
	if (asked->peak_text && asked->exporter != exporter_find("roofline"))
		return errmsg_set(err, -EINVAL,
			"--peak is for the format roofline, not for %s: leave it out",
			asked->exporter->name);
	if (asked->exporter->is_weighed || shown_weight(&asked->shown) == MODEL_WEIGHT_CPU)
		return 0;
	return errmsg_set(err, -EINVAL,
		"--weight %s is not for the format %s: use it with flamegraph, folded, speedscope, firefox "
		"or pprof; the report has %s in a table of its own",
		asked->shown.weight, asked->exporter->name,
		shown_weight(&asked->shown) == MODEL_WEIGHT_GPU_BYTES ? "memory" : "waiting");
}

static int check_foreign(const char *path, const struct query_export *asked, struct errmsg *err)
{
	const struct exporter *exporter = asked->exporter;

	if (exporter->is_weighed && asked->selection.window)
		return errmsg_set(err, -EINVAL,
			"--window: %s is another tool's trace and has no windows: choose a time "
			"with --time",
			path);
	if (exporter->is_weighed)
		return 0;
	if (!exporter->takes_traces)
		return errmsg_set(err, -EINVAL,
			"%s holds the trace of another tool, without samples, and -f %s is for "
			"recordings: use -f flamegraph, folded, speedscope or pprof for its "
			"stacks, -f chrome, pftrace or chakra for its rows, or sonde report",
			path, exporter->name);
	if (asked->selection.window || selection_refused(&asked->selection, SELECTION_FOREIGN_ROWS))
		return errmsg_set(err, -EINVAL,
			"filters select samples, and -f %s writes the rows of %s, which is another "
			"tool's trace: leave out all but --time and --step",
			exporter->name, path);
	return 0;
}

/* Its rows are narrowed for good: nothing is left to choose. */
static int narrow_rows(struct model *model, struct query_export *asked,
	struct energy_use *ret_energy, struct errmsg *err)
{
	int r = trace_narrow(&asked->selection, model, err);

	if (r < 0)
		return r;
	asked->selection = (struct selection){0};
	return select_and_weigh(model, &asked->shown, &asked->selection, ret_energy, err);
}

/* With what the filters leave of it. */
static int load(const char *const *paths, size_t count, struct query_export *asked,
	struct model **ret_model, struct energy_use *ret_energy, struct strbuf *notes,
	struct errmsg *err)
{
	const struct exporter *exporter = asked->exporter;
	const struct load_options options = {
		.shown = &asked->shown,
		.selection = &asked->selection,
		.keep_arguments = !exporter->is_weighed,
	};
	bool is_foreign = load_is_foreign(paths, count);
	int r = is_foreign ? check_foreign(paths[0], asked, err) : 0;

	if (r == 0)
		r = load_model(ret_model, paths, count, &options, err);
	if (r == 0 && is_foreign && !exporter->is_weighed)
		r = narrow_rows(*ret_model, asked, ret_energy, err);
	else if (r == 0)
		r = query_weigh(*ret_model, paths[0], &asked->shown, &asked->selection, ret_energy,
			notes, err);
	if (r == 0 && exporter->needs_rows && model_make_rows(*ret_model) < 0)
		r = errmsg_set(err, -ENOMEM, "memory ran out while making rows");
	asked->selection.weight = shown_weight(&asked->shown);
	return r;
}

int query_export(const char *const *paths, size_t count, struct query_export *asked,
	struct strbuf *out, struct strbuf *notes, struct export_files *files, struct errmsg *err)
{
	_cleanup_model_ struct model *model = NULL;
	_cleanup_energy_use_ struct energy_use energy = {0};
	const struct exporter *exporter = asked->exporter;
	struct peaks peaks = {0};
	const struct export_options options = {
		.size = sizeof(options),
		.title = asked->title,
		.capture = paths[0],
		.output = asked->output,
		.roots = call_tree_roots_from_string(asked->roots),
		.minimum_width_px = asked->minimum_width_px,
		.notes = notes,
		.energy = &energy,
		.peaks = asked->peak_text ? &peaks : NULL,
	};
	int r = query_export_check(asked, err);

	if (r == 0 && asked->peak_text)
		r = peaks_parse(&peaks, asked->peak_text, err);
	if (r < 0 || (!load_is_foreign(paths, count) &&
			     selection_check(&asked->selection, exporter->shows, err) < 0))
		return -EINVAL;
	r = load(paths, count, asked, &model, &energy, notes, err);
	if (r < 0)
		return r;
	if (exporter->has_events)
		selection_describe_left_out(&asked->selection, model, notes);
	if (notes->length)
		strbuf_add_char(notes, '\n');
	if (exporter->export_files)
		return exporter->export_files(model, &asked->selection, &options, files, err);
	return exporter->export(model, &asked->selection, &options, out, err);
}

int query_plot(struct query *query, const struct query_options *asked,
	const struct exporter *exporter, struct strbuf *out, struct errmsg *err)
{
	struct model *model = query->model;
	const struct query_export export = {.exporter = exporter, .selection = asked->selection};
	const struct export_options options = {.size = sizeof(options),
		.capture = query->paths[0],
		.peaks = asked->peak_text ? &asked->peaks : NULL};
	int r;

	assert(!query->is_used_up);
	query->is_used_up = true;
	if (model_is_foreign(model)) {
		r = check_foreign(query->paths[0], &export, err);
		if (r == 0)
			r = trace_narrow(&asked->selection, model, err);
	} else {
		r = selection_check(&asked->selection, exporter->shows, err) < 0 ? -EINVAL : 0;
	}
	if (r == 0 && model_make_rows(model) < 0)
		r = errmsg_set(err, -ENOMEM, "memory ran out while making rows");
	return r < 0 ? r : exporter->export(model, &asked->selection, &options, out, err);
}
