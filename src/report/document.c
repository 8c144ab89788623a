/* SPDX-License-Identifier: Apache-2.0 */
#include "report/document.h"

#include <errno.h>
#include <string.h>

#include "base/parallel.h"
#include "model/trace_capture.h"
#include "report/rows.h"
#include "report/view.h"

bool report_is_foreign(const struct report_input *input)
{
	return model_is_foreign(input->view->model);
}

bool report_is_own(const struct report_input *input)
{
	return !input->trace || trace_report_is_own(input->trace);
}

static size_t fill(struct result *result, size_t count, size_t most)
{
	size_t wanted = MIN(count, most);

	result_leave_out(result, count - wanted);
	return wanted;
}

/* Are rows of several ranks joined, which takes all of them? */
static bool are_joined(const struct report_input *input)
{
	return !input->is_json && input->trace && input->trace->count > 1 && report_is_own(input);
}

size_t report_rows_wanted(struct result *result, const struct report_input *input, size_t count)
{
	return fill(result, count, input->limit && !are_joined(input) ? input->limit : count);
}

size_t report_rows_of_page(const struct report_input *input, size_t shown)
{
	return input->is_page && !input->limit ? MAX(shown, REPORT_PAGE_ROWS) : shown;
}

size_t report_rows_filled(
	struct result *result, const struct report_input *input, size_t count, size_t shown)
{
	if (input->is_json)
		return report_rows_wanted(result, input, count);
	return fill(result, count, report_rows_of_page(input, shown));
}

size_t report_rows_shown(const struct report_input *input, size_t alone, size_t otherwise)
{
	if (input->limit)
		return input->limit;
	return input->is_alone ? alone : otherwise;
}

size_t report_rows_shown_of_ranks(const struct report_input *input, size_t alone, size_t otherwise)
{
	return are_joined(input) ? report_rows_shown(input, alone, otherwise) : 0;
}

size_t report_rows_of_rank(struct result *result, const struct report_input *input, size_t count,
	size_t alone, size_t otherwise)
{
	size_t ranks = input->trace->count, shown = report_rows_shown(input, alone, otherwise);

	if (are_joined(input))
		return count;
	return report_rows_filled(result, input, count, (shown + ranks - 1) / ranks);
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

/* ---- which sections, and what they say ---- */

static unsigned kinds_of(const struct report_input *input)
{
	unsigned kinds = report_is_foreign(input) ? REPORT_OF_FOREIGN : REPORT_OF_RECORDING;

	return input->trace ? kinds : kinds & ~(unsigned)REPORT_NEEDS_ROWS;
}

/* Does --by name it? One of a name is meant, with those that come along. */
static bool is_asked_for(const struct report_document *document,
	const struct report_section *section, const struct report_section *meant)
{
	return section == meant ||
	       (meant && section->comes_along &&
		       is_named(section, document->by, kinds_of(&document->input)));
}

static bool is_wanted(
	const struct report_document *document, const struct report_section *section, bool is_asked)
{
	if (section->is_head || document->by)
		return section->is_head || is_asked;
	return document->is_complete ||
	       (!section->is_extra &&
		       !(report_is_foreign(&document->input) ? section->is_extra_of_foreign
							     : section->is_extra_of_recordings));
}

/* A section of the document. */
struct part {
	const struct report_section *section;
	bool is_asked;
	int status; /* of make() */
	struct result result;
};

struct parts {
	ARRAY_OF(struct part) items;
	const struct report_section *meant; /* by --by; NULL: none is */
};

static void parts_done(struct parts *parts)
{
	array_foreach (&parts->items, part)
		result_done(&part->result);
	array_done(&parts->items);
}

static int parts_init(struct parts *parts, const struct report_document *document)
{
	unsigned kinds = kinds_of(&document->input);
	int r = 0;

	parts->meant = document->by ? report_section_find(document->by, kinds) : NULL;
	for (size_t i = 0; r == 0 && report_sections[i]; i++) {
		struct part part = {.section = report_sections[i]};

		part.is_asked = is_asked_for(document, part.section, parts->meant);
		if (fits(part.section, kinds) && is_wanted(document, part.section, part.is_asked))
			r = array_append(&parts->items, part);
	}
	return r;
}

static int make(const struct report_document *document, struct part *part)
{
	struct report_input input = document->input;
	int r;

	input.by = document->by;
	input.is_alone = part->is_asked;
	part->result.column = &part->section->value;
	r = part->section->make(&part->result, &input);
	return r < 0 ? r : result_status(&part->result);
}

static int weigh(const struct report_document *document)
{
	return document->weigh ? document->weigh(document->context) : 0;
}

/* With fewer rows the threads cost more than they save. */
#define ROWS_FOR_THREADS 100000

/* Sections read what was loaded; what they make of it together is trace_results.h's. */
static bool is_for_threads(const struct report_input *input)
{
	size_t rows = 0;

	if (!input->trace || !report_is_foreign(input))
		return false;
	for (size_t i = 0; i < input->trace->count; i++)
		rows += input->trace->views[i].trace->events.count;
	return rows >= ROWS_FOR_THREADS;
}

struct making {
	const struct report_document *document;
	struct parts *parts;
	bool is_weighed;
};

static void make_one(size_t index, void *context)
{
	struct making *making = context;
	struct part *part = &making->parts->items.items[index];

	if (part->section->is_weighed == making->is_weighed)
		part->status = make(making->document, part);
}

/* Those that are weighed, or those that are not. */
static int make_those(const struct report_document *document, struct parts *parts, bool is_weighed)
{
	struct making making = {document, parts, is_weighed};
	int r = 0;

	if (is_for_threads(&document->input)) {
		parallel_each(parts->items.count, make_one, &making);
		array_foreach (&parts->items, part)
			r = r ? r : part->status;
		return r;
	}
	for (size_t i = 0; r == 0 && i < parts->items.count; i++) {
		make_one(i, &making);
		r = parts->items.items[i].status;
	}
	return r;
}

/* More than a reader would follow. What is not known to save time, such as advice on the recording
 * itself, does not count. */
#define ADVICE_MAX 5

static bool drop_least_advice(struct parts *parts)
{
	struct result *least = NULL;
	size_t count = 0, index = 0;

	array_foreach (&parts->items, part) {
		for (size_t i = 0; i < part->result.advice.count; i++) {
			uint64_t saves_ns = part->result.advice.items[i].saves_ns;

			if (saves_ns == REPORT_SAVES_UNKNOWN)
				continue;
			count++;
			if (least && saves_ns > least->advice.items[index].saves_ns)
				continue;
			least = &part->result;
			index = i;
		}
	}
	if (count <= ADVICE_MAX)
		return false;
	result_drop_advice(least, index);
	return true;
}

static int make_all(const struct report_document *document, struct parts *parts)
{
	int r = parts_init(parts, document);

	if (r == 0)
		r = make_those(document, parts, false);
	if (r == 0)
		r = weigh(document);
	if (r == 0)
		r = make_those(document, parts, true);
	while (r == 0 && drop_least_advice(parts))
		;
	return r;
}

/* ---- its forms ---- */

/* The answer comes first, then how it was recorded. */
static int print_account(
	const struct parts *parts, const struct terminal *terminal, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < parts->items.count; i++)
		r = report_render_blocks(&parts->items.items[i].result, true, terminal, &text);
	if (r < 0 || !text.length)
		return r < 0 ? r : strbuf_status(out);
	strbuf_addf(
		out, "\n%sThe recording%s\n", terminal_bold(terminal), terminal_plain(terminal));
	strbuf_add(out, strbuf_cstr(&text));
	strbuf_inherit_status(out, &text);
	return strbuf_status(out);
}

static int document_print(
	const struct report_document *document, const struct terminal *terminal, struct strbuf *out)
{
	_cleanup_(parts_done) struct parts parts = {0};
	int r = make_all(document, &parts);

	for (size_t i = 0; r == 0 && i < parts.items.count; i++)
		r = report_render_blocks(&parts.items.items[i].result, false, terminal, out);
	return r < 0 ? r : print_account(&parts, terminal, out);
}

static void write_head(struct json_writer *json, const char *format)
{
	json_member_text(json, "format", format);
	json_member_u64(json, "version", REPORT_VERSION);
	json_member_text(json, "sonde_version", SONDE_VERSION);
}

static void write_advice(const struct parts *parts, struct json_writer *json)
{
	json_key(json, "advice");
	json_begin_array(json);
	array_foreach (&parts->items, part)
		report_render_advice_json(&part->result, json);
	json_end_array(json);
}

static int document_json(const struct report_document *document, struct strbuf *out)
{
	_cleanup_(parts_done) struct parts parts = {0};
	struct json_writer json = {.out = out, .pretty = true};
	int r = make_all(document, &parts);

	if (r < 0)
		return r;
	json_begin_object(&json);
	write_head(&json, "sonde-report");
	array_foreach (&parts.items, part) {
		r = report_render_member(&part->result, &json);
		if (r < 0)
			return r;
	}
	write_advice(&parts, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}

/* What the section is called: what --by takes, what it is about, and what may be asked for. */
static void write_section_head(const struct part *part, struct json_writer *json)
{
	const struct report_section *section = part->section;

	json_member_text(json, "key", section->value.key);
	json_member_text(json, "by", section->by);
	json_member_text(json, "title", section->value.title);
	json_member_text(json, "summary", section->summary);
}

/* All that --by takes for what was loaded. */
static void write_names(const struct report_document *document, struct json_writer *json)
{
	struct report_name names[REPORT_NAMES_MAX];
	size_t count =
		report_section_names_of(kinds_of(&document->input), names, ARRAY_SIZE(names));

	json_key(json, "names");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		json_member_text(json, "by", names[i].by);
		json_member_text(json, "summary", names[i].summary);
		json_end_object(json);
	}
	json_end_array(json);
}

static int document_page(const struct report_document *document, struct strbuf *out)
{
	_cleanup_(parts_done) struct parts parts = {0};
	struct json_writer json = {.out = out};
	int r = make_all(document, &parts);

	if (r < 0)
		return r;
	json_begin_object(&json);
	write_head(&json, "sonde-page");
	json_key(&json, "sections");
	json_begin_array(&json);
	array_foreach (&parts.items, part) {
		json_begin_object(&json);
		write_section_head(part, &json);
		r = report_render_page(&part->result, &json);
		if (r < 0)
			return r;
		json_end_object(&json);
	}
	json_end_array(&json);
	write_names(document, &json);
	json_end_object(&json);
	return strbuf_status(out);
}

static int document_csv(const struct report_document *document, struct strbuf *out)
{
	_cleanup_(parts_done) struct parts parts = {0};
	int r = parts_init(&parts, document);

	if (r < 0)
		return r;
	array_foreach (&parts.items, part) {
		if (part->section != parts.meant)
			continue;
		r = part->section->is_weighed ? weigh(document) : 0;
		if (r == 0)
			r = make(document, part);
		if (r < 0)
			return r;
		r = report_render_csv(&part->result, out);
		return r == -ENODATA ? -ENOMSG : r;
	}
	return -ENOMSG;
}

int report_document_write(const struct report_document *document, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err)
{
	int r = form == REPORT_FORM_CSV    ? document_csv(document, out)
		: form == REPORT_FORM_JSON ? document_json(document, out)
		: form == REPORT_FORM_PAGE ? document_page(document, out)
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

int report_document_visit(const struct report_document *document, report_take_function *take,
	void *context, struct errmsg *err)
{
	_cleanup_(parts_done) struct parts parts = {0};
	int r = make_all(document, &parts);

	if (r < 0)
		return r == -ENODATA ? r
				     : errmsg_set(err, r, "memory ran out while making the report");
	for (size_t i = 0; r == 0 && i < parts.items.count; i++)
		r = take(context, parts.items.items[i].section, &parts.items.items[i].result);
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
	{.key = "docs", .kind = REPORT_TEXT, .help = "the page that says more"},
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

/* The document's own members are always there; which sections are, --by and the input say. */
int report_document_schema(struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};

	report_render_schema_head("sonde report --json", &json);
	json_key(&json, "properties");
	json_begin_object(&json);
	report_render_schema_members(&document_shape, &json);
	for (const struct report_section *const *section = report_sections; *section; section++)
		report_render_schema_section(&(*section)->value, &json);
	json_end_object(&json);
	report_render_schema_closed(&document_shape, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
