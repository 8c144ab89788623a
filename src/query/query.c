/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "load/load.h"
#include "model/trace_capture.h"
#include "query/answer.h"
#include "report/section.h"

static int load(struct query *query, const char *window, bool rows_only, struct errmsg *err)
{
	/* What is hidden depends on the question. */
	static const struct shown_options all = {.interpreter = true};
	const struct selection windows = {.window = window};
	const struct load_options options = {
		.shown = &all, .selection = &windows, .rows_only = rows_only};
	int r = load_model(&query->model, query->paths, query->count, &options, err);

	query->has_samples = r == 0 && !rows_only && !model_is_foreign(query->model);
	query->window = window;
	return r;
}

int query_open(struct query *query, const char *const *paths, size_t count,
	const struct query_options *options, struct errmsg *err)
{
	query->paths = paths;
	query->count = count;
	return load(query, options ? options->selection.window : NULL,
		options && query_wants_rows_only(options), err);
}

void query_close(struct query *query)
{
	query->model = model_free(query->model);
}

static bool is_same_text(const char *left, const char *right)
{
	return left == right || (left && right && strcmp(left, right) == 0);
}

static bool is_loaded_for(const struct query *query, const struct query_options *options)
{
	if (!query->has_samples)
		return true;
	return !query_wants_rows_only(options) &&
	       is_same_text(query->window, options->selection.window);
}

int query_begin(struct query *query, const struct query_options *options, struct errmsg *err)
{
	int r = 0;

	assert(!query->is_used_up);
	query->is_used_up = true;
	if (!is_loaded_for(query, options)) {
		query_close(query);
		r = load(query, options->selection.window, query_wants_rows_only(options), err);
	}
	if (r == 0 && query->has_samples && show_as_asked(query->model, &options->shown) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking at stacks");
	return r;
}

int query_sections(const struct query *query, struct strbuf *out)
{
	struct json_writer json = {.out = out};
	unsigned kinds = model_is_foreign(query->model) ? REPORT_OF_FOREIGN : REPORT_OF_RECORDING;
	struct report_name names[REPORT_NAMES_MAX];
	size_t count = report_section_names_of(kinds, names, ARRAY_SIZE(names));

	json_begin_array(&json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&json);
		json_member_text(&json, "name", names[i].by);
		json_member_text(&json, "summary", names[i].summary);
		json_end_object(&json);
	}
	json_end_array(&json);
	return strbuf_status(out);
}
