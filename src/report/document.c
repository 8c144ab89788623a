/* SPDX-License-Identifier: Apache-2.0 */
#include "report/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/trace_capture.h"
#include "report/rows.h"
#include "report/view.h"

bool report_is_foreign(const struct report_input *input)
{
	return model_is_foreign(input->view->model);
}

size_t report_rows_wanted(const struct report_input *input, size_t count)
{
	return input->limit ? MIN(input->limit, count) : count;
}

size_t report_rows_shown(const struct report_input *input, size_t alone, size_t otherwise)
{
	if (input->limit)
		return input->limit;
	return input->is_alone ? alone : otherwise;
}

size_t report_rows_of_rank(
	const struct report_input *input, size_t count, size_t alone, size_t otherwise)
{
	size_t ranks = input->trace->count;

	if (input->is_json)
		return report_rows_wanted(input, count);
	return MIN((report_rows_shown(input, alone, otherwise) + ranks - 1) / ranks, count);
}

int report_nothing(struct result *result, const struct report_input *input, const char *why)
{
	bool narrowed = input->view->model->is_narrowed;

	if (input->is_alone)
		result_sentence(
			result, 0, narrowed ? "Nothing of this is left: widen the filters." : why);
	return 0;
}

static bool fits(const struct report_section *section, unsigned kinds)
{
	return !section->needs || (section->needs & kinds);
}

/* Does --by mean it, of what there is? */
static bool is_named(const struct report_section *section, const char *by, unsigned kinds)
{
	for (const struct report_name *name = section->also; name && name->by; name++) {
		if (strcmp(name->by, by) == 0)
			return !name->needs || (name->needs & kinds);
	}
	return section->by && strcmp(section->by, by) == 0;
}

const struct report_section *report_section_find(const char *by, unsigned kinds)
{
	const struct report_section *found = NULL;

	for (const struct report_section *const *section = report_sections; *section; section++) {
		if (!is_named(*section, by, kinds) || !fits(*section, kinds))
			continue;
		if (!(*section)->comes_along)
			return *section;
		if (!found)
			found = *section;
	}
	return found;
}

unsigned report_sections_need(const char *by, unsigned kinds)
{
	unsigned needs = 0;

	for (const struct report_section *const *section = report_sections; *section; section++) {
		if (is_named(*section, by, kinds) && fits(*section, kinds))
			needs |= (*section)->needs;
	}
	return needs;
}

/* ---- which sections ---- */

static unsigned kinds_of(const struct report_input *input)
{
	unsigned kinds = report_is_foreign(input) ? REPORT_OF_FOREIGN : REPORT_OF_RECORDING;

	return input->trace ? kinds : kinds & ~(unsigned)REPORT_NEEDS_ROWS;
}

/* Does --by name it? One of a name is meant, with those that come along. */
static bool is_asked_for(
	const struct report_document *document, const struct report_section *section)
{
	if (!document->by || !is_named(section, document->by, kinds_of(&document->input)))
		return false;
	return section->comes_along ||
	       section == report_section_find(document->by, kinds_of(&document->input));
}

static bool is_wanted(const struct report_document *document, const struct report_section *section)
{
	if (!fits(section, kinds_of(&document->input)))
		return false;
	if (section->is_head)
		return true;
	if (document->by)
		return is_asked_for(document, section);
	return !section->is_extra &&
	       !(report_is_foreign(&document->input) ? section->is_extra_of_foreign
						     : section->is_extra_of_recordings);
}

static struct report_input input_of(
	const struct report_document *document, const struct report_section *section)
{
	struct report_input input = document->input;

	input.by = document->by;
	input.is_alone = is_asked_for(document, section);
	return input;
}

static int make(const struct report_document *document, const struct report_section *section,
	struct result *result)
{
	const struct report_input input = input_of(document, section);
	int r;

	result->column = &section->value;
	r = section->make(result, &input);
	return r < 0 ? r : result_status(result);
}

static int weigh(const struct report_document *document)
{
	return document->weigh ? document->weigh(document->context) : 0;
}

static size_t count_sections(void)
{
	size_t count = 0;

	while (report_sections[count])
		count++;
	return count;
}

/* ---- results, by place in report_sections ---- */

struct results {
	struct result *items;
	size_t count;
};

static void results_done(struct results *results)
{
	for (size_t i = 0; results->items && i < results->count; i++)
		result_done(&results->items[i]);
	free(results->items);
}

/* Those that are weighed, or those that are not. */
static int make_all(const struct report_document *document, struct results *results, bool weighed)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < results->count; i++) {
		const struct report_section *section = report_sections[i];

		if (section->make && section->is_weighed == weighed && is_wanted(document, section))
			r = make(document, section, &results->items[i]);
	}
	return r;
}

/* ---- the terminal ---- */

static int print(const struct report_document *document, const struct report_section *section,
	const struct result *result, const struct terminal *terminal, struct strbuf *out)
{
	const struct report_input input = input_of(document, section);

	if (!is_wanted(document, section))
		return 0;
	if (section->make)
		return report_render_terminal(result, terminal, out);
	return section->print ? section->print(&input) : 0;
}

static int document_print(
	const struct report_document *document, const struct terminal *terminal, struct strbuf *out)
{
	_cleanup_(results_done) struct results results = {.count = count_sections()};
	int r;

	results.items = calloc(results.count + 1, sizeof(*results.items));
	if (!results.items)
		return -ENOMEM;
	r = make_all(document, &results, false);
	if (r < 0)
		return r;
	r = weigh(document);
	if (r < 0)
		return r;
	r = make_all(document, &results, true);
	for (size_t i = 0; r == 0 && i < results.count; i++)
		r = print(document, report_sections[i], &results.items[i], terminal, out);
	return r < 0 ? r : strbuf_status(out);
}

/* ---- JSON ---- */

/* Some are for the terminal alone. */
static bool has_json(const struct report_section *section)
{
	const struct report_shape *shape = section->value.shape;

	if (!section->make)
		return section->write != NULL;
	if (section->value.key)
		return true;
	for (size_t i = 0; shape && i < shape->count; i++) {
		if (shape->columns[i].key)
			return true;
	}
	return false;
}

static int write_section(const struct report_document *document,
	const struct report_section *section, struct result *result, struct json_writer *json)
{
	const struct report_input input = input_of(document, section);
	int r;

	if (section->value.key)
		json_key(json, section->value.key);
	if (!section->make)
		return section->write(&input, json);
	r = make(document, section, result);
	if (r < 0)
		return r;
	return section->value.key ? report_render_json(result, json)
				  : report_render_members(result, json);
}

static int write_sections(const struct report_document *document, struct results *results,
	bool weighed, struct json_writer *json)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < results->count; i++) {
		const struct report_section *section = report_sections[i];

		if (has_json(section) && section->is_weighed == weighed &&
			is_wanted(document, section))
			r = write_section(document, section, &results->items[i], json);
	}
	return r;
}

static void write_advice(const struct results *results, struct json_writer *json)
{
	json_key(json, "advice");
	json_begin_array(json);
	for (size_t i = 0; i < results->count; i++)
		report_render_advice_json(&results->items[i], json);
	json_end_array(json);
}

static int document_json(const struct report_document *document, struct strbuf *out)
{
	_cleanup_(results_done) struct results results = {.count = count_sections()};
	struct json_writer json = {.out = out, .pretty = true};
	int r;

	results.items = calloc(results.count + 1, sizeof(*results.items));
	if (!results.items)
		return -ENOMEM;
	json_begin_object(&json);
	json_key(&json, "format");
	json_string(&json, "sonde-report");
	json_key(&json, "version");
	json_u64(&json, REPORT_VERSION);
	json_key(&json, "sonde_version");
	json_string(&json, SONDE_VERSION);
	r = write_sections(document, &results, false, &json);
	if (r < 0)
		return r;
	r = weigh(document);
	if (r < 0)
		return r;
	r = write_sections(document, &results, true, &json);
	write_advice(&results, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return r < 0 ? r : strbuf_status(out);
}

/* ---- CSV ---- */

static int document_csv(const struct report_document *document, struct strbuf *out)
{
	const struct report_section *section =
		report_section_find(document->by, kinds_of(&document->input));
	_cleanup_result_ struct result result = {0};
	int r;

	if (!section || !section->make)
		return -ENOMSG;
	r = section->is_weighed ? weigh(document) : 0;
	if (r < 0)
		return r;
	r = make(document, section, &result);
	if (r < 0)
		return r;
	r = report_render_csv(&result, out);
	return r == -ENODATA ? -ENOMSG : r;
}

int report_document_write(const struct report_document *document, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err)
{
	int r = form == REPORT_FORM_CSV    ? document_csv(document, out)
		: form == REPORT_FORM_JSON ? document_json(document, out)
					   : document_print(document, terminal, out);

	if (r == -ENOMSG)
		return errmsg_set(err, r,
			"--by %s has no rows here: leave out --csv to see why, or see its figures "
			"with --json",
			document->by);
	if (r < 0 && r != -ENODATA)
		return errmsg_set(err, r, "memory ran out while writing the report");
	return r;
}

/* ---- the schema ---- */

static const struct report_column evidence_columns[] = {
	{.key = "figure", .kind = REPORT_TEXT},
	{.key = "value", .kind = REPORT_NUMBER},
};
static const struct report_shape evidence_shape = REPORT_SHAPE(evidence_columns);

static const struct report_column advice_columns[] = {
	{.key = "section", .kind = REPORT_TEXT},
	{.key = "id", .kind = REPORT_TEXT},
	{.key = "sentence", .kind = REPORT_TEXT},
	{.key = "evidence",
		.kind = REPORT_MAP,
		.shape = &evidence_shape,
		.help = "the figures that it rests on"},
	{.key = "saves_ns", .kind = REPORT_NS, .help = "at most"},
};
static const struct report_shape advice_shape = REPORT_SHAPE(advice_columns);

static const struct report_column document_columns[] = {
	{.key = "format", .kind = REPORT_TEXT, .help = "sonde-report"},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "sonde_version", .kind = REPORT_TEXT, .help = "of the program that wrote it"},
	{.key = "advice",
		.kind = REPORT_ROWS,
		.shape = &advice_shape,
		.help = "what would help, over all sections"},
};
static const struct report_shape document_shape = REPORT_SHAPE(document_columns);

int report_document_schema(struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};

	report_render_schema_head("sonde report --json", &json);
	json_key(&json, "properties");
	json_begin_object(&json);
	report_render_schema_members(&document_shape, &json);
	for (const struct report_section *const *section = report_sections; *section; section++) {
		if (!(*section)->make)
			continue;
		if ((*section)->value.key) {
			json_key(&json, (*section)->value.key);
			report_render_schema(&(*section)->value, &json);
		} else if ((*section)->value.shape) {
			report_render_schema_members((*section)->value.shape, &json);
		}
	}
	json_end_object(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
