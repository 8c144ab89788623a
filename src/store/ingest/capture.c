/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ingest/capture.h"

#include <errno.h>

#include "analyses/program/trace_programs.h"
#include "load/load.h"

static const struct selection everything = {0};
static const struct shown_options shown = {0};

static int make_rows(struct capture *capture, struct errmsg *err)
{
	static const struct trace_view_options options = {0};
	int r;

	if (model_make_rows(capture->model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making rows");
	if (!capture->model->traces.count)
		return 0;
	r = trace_report_init(&capture->rows, capture->model, &options, UINT64_MAX, err);
	if (r < 0)
		return r;
	capture->rows.choice.instance = UINT64_MAX;
	if (model_is_foreign(capture->model) &&
		trace_programs_fill(capture->model, capture->rows.views, capture->rows.count) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making steps");
	return 0;
}

static int load(struct capture *capture, struct errmsg *err)
{
	const struct load_options options = {.shown = &shown, .selection = &everything};
	int r = load_model(&capture->model, &capture->path, 1, &options, err);

	if (r == 0)
		r = selection_apply(&everything, capture->model, &capture->selected, err);
	if (r == 0)
		r = charge_energy(capture->model, &everything, &capture->energy, err);
	return r < 0 ? r : make_rows(capture, err);
}

int capture_open(struct capture *capture, const char *path, struct errmsg *err)
{
	int r;

	capture->path = path;
	r = load(capture, err);
	if (r < 0)
		return r;
	capture->view = (struct report_view){
		.model = capture->model,
		.selection = &everything,
		.selected = &capture->selected,
		.energy = &capture->energy,
		.rates = ENERGY_RATES_NONE,
		.capture = path,
		.by = BREAKDOWN_FUNCTION,
		.weight = MODEL_WEIGHT_CPU,
	};
	r = report_counts_init(&capture->counts, &capture->view);
	return r < 0 ? errmsg_set(err, r, "memory ran out while making the report of %s", path) : 0;
}

void capture_done(struct capture *capture)
{
	report_counts_done(&capture->counts);
	trace_report_done(&capture->rows);
	selected_done(&capture->selected);
	energy_use_done(&capture->energy);
	model_free(capture->model);
}

int capture_write(
	struct capture_writer *writer, enum store_table_id table, const struct store_value *values)
{
	int r = writer->store->ops->insert(writer->store, table, values, writer->err);

	writer->rows += r == 0;
	return r;
}

struct store_value capture_time(const struct model *model, uint64_t time_ns)
{
	return time_ns ? store_u64(model_since_start_ns(model, time_ns)) : store_null();
}
