/* SPDX-License-Identifier: Apache-2.0 */
/* What there is much of in a run: readings of power, requests, tokens, layers. */
#include <errno.h>

#include "model/energy.h"
#include "store/ingest/capture.h"

/* ---- power ---- */

static int write_rail(struct capture_writer *writer, const struct capture *capture, size_t index)
{
	const struct model_energy_domain *domain = &capture->model->energy_domains.items[index];
	const struct energy_domain_use *use = index < capture->energy.domains.count
						      ? &capture->energy.domains.items[index]
						      : NULL;
	const struct store_value values[] = {
		store_integer(writer->run),
		store_u64(index),
		store_text(domain->name),
		store_text(model_energy_part_name(domain->part)),
		store_text(domain->device),
		store_text(domain->host),
		store_text(domain->source),
		store_text(model_energy_quality_name(domain->quality)),
		domain->parent == MODEL_NONE ? store_null() : store_integer(domain->parent),
		store_number(domain->idle_w),
		store_number(domain->limit_w),
		use ? store_number(use->measured_j) : store_null(),
		use ? store_number(use->uncertainty_j) : store_null(),
	};

	return capture_write(writer, STORE_RAILS, values);
}

static int write_power(struct capture_writer *writer, const struct model *model)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->energy_intervals.count; i++) {
		const struct model_energy_interval *interval = &model->energy_intervals.items[i];
		const struct store_value values[] = {
			store_integer(writer->run),
			store_integer(interval->domain),
			store_u64(model_since_start_ns(model, interval->start_ns)),
			store_u64(model_since_start_ns(model, interval->end_ns)),
			interval->gap ? store_null() : store_number(interval->energy_j),
			interval->gap ? store_text(model_energy_gap_name(interval->gap))
				      : store_null(),
		};

		/* Before the recording's begin there is one of each rail at most. */
		if (i && interval->domain == interval[-1].domain &&
			values[2].integer ==
				(int64_t)model_since_start_ns(model, interval[-1].start_ns))
			continue;
		r = capture_write(writer, STORE_POWER, values);
	}
	return r;
}

/* ---- requests and tokens ---- */

static int write_request(struct capture_writer *writer, const struct capture *capture, size_t index)
{
	const struct model *model = capture->model;
	const struct inference_request *request = &capture->view.inference->requests.items[index];
	const struct joules *joules = index < capture->view.joules->requests.count
					      ? &capture->view.joules->requests.items[index]
					      : NULL;
	const struct store_value values[] = {
		store_integer(writer->run),
		store_u64(index),
		store_text(request->id),
		store_integer(model->processes.items[request->process].pid),
		capture_time(model, request->arrival_ns),
		capture_time(model, request->prefill_ns),
		capture_time(model, request->first_ns),
		capture_time(model, request->last_ns),
		request->prompt_known ? store_u64(request->prompt_tokens) : store_null(),
		request->prompt_known ? store_u64(request->cached_tokens) : store_null(),
		request->tokens_known ? store_u64(request->output_tokens) : store_null(),
		store_known(request->batch),
		store_u64(request->preemptions),
		store_text(request->end_reason),
		joules ? store_number(joules->full_j) : store_null(),
		joules ? store_number(joules->uncertainty_j) : store_null(),
		joules ? store_integer(joules->is_allocated) : store_null(),
	};

	return capture_write(writer, STORE_REQUESTS, values);
}

/* The first, and then after each gap. */
static int write_tokens(struct capture_writer *writer, const struct capture *capture, size_t index)
{
	const struct inference *inference = capture->view.inference;
	const struct inference_request *request = &inference->requests.items[index];
	uint64_t time = request->first_ns;
	int r = 0;

	for (size_t i = 0; r == 0 && time && i <= request->gap_count; i++) {
		uint64_t gap = i ? inference->gaps.items[request->first_gap + i - 1] : 0;

		time += gap;
		r = capture_write(writer, STORE_TOKENS,
			STORE_PARAMETERS(store_integer(writer->run), store_u64(index), store_u64(i),
				capture_time(capture->model, time),
				i ? store_u64(gap) : store_null()));
	}
	return r;
}

/* ---- layers ---- */

static int write_layer(struct capture_writer *writer, const struct capture *capture, size_t index,
	const struct joules *joules)
{
	const struct layer_row *row = &capture->view.layers->rows.items[index];
	const struct store_value values[] = {
		store_integer(writer->run),
		store_u64(index),
		row->layer == LAYER_NONE ? store_null() : store_u64(row->layer),
		store_text(row->role),
		store_integer(capture->model->processes.items[row->process].pid),
		store_integer(row->is_rest),
		store_u64(row->calls),
		store_u64(row->total_ns),
		store_u64(row->own_ns),
		store_u64(row->own.samples),
		store_u64(row->own.device_busy_ns),
		joules ? store_number(joules->full_j) : store_null(),
		joules ? store_number(joules->uncertainty_j) : store_null(),
	};

	return capture_write(writer, STORE_LAYERS, values);
}

static int write_layers(struct capture_writer *writer, const struct capture *capture)
{
	const struct layer_use *layers = capture->view.layers;
	_cleanup_free_ struct joules *joules = NULL;
	int r = 0;

	if (capture->view.span_energy && layers->rows.count) {
		joules = calloc(layers->rows.count, sizeof(*joules));
		r = joules ? joules_of_rows(capture->view.span_energy, &layers->spans, NULL,
				     layers->rows.count, joules)
			   : -ENOMEM;
		if (r < 0)
			return errmsg_set(writer->err, r, "memory ran out while adding layers");
	}
	for (size_t i = 0; r == 0 && i < layers->rows.count; i++)
		r = write_layer(writer, capture, i, joules ? &joules[i] : NULL);
	return r;
}

int capture_write_details(struct capture_writer *writer, const struct capture *capture)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < capture->model->energy_domains.count; i++)
		r = write_rail(writer, capture, i);
	if (r == 0)
		r = write_power(writer, capture->model);
	for (size_t i = 0; r == 0 && i < capture->view.inference->requests.count; i++) {
		r = write_request(writer, capture, i);
		if (r == 0)
			r = write_tokens(writer, capture, i);
	}
	return r < 0 ? r : write_layers(writer, capture);
}
