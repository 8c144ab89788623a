/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "load/traces.h"
#include "report/tables_json.h"
#include "report/trace/report_json.h"

#define ALONE_LIMIT 20 /* rows of the table of one section */
#define WHOLE_LIMIT 10 /* rows of each table of the whole report */

const struct trace_section *const trace_sections[] = {
	&temporal_section,
	&idle_section,
	&host_section,
	&overlap_section,
	&kernel_section,
	&bandwidth_section,
	&launches_section,
	&queue_section,
	&operators_section,
	&cpu_operators_section,
	&annotations_section,
	&stragglers_section,
	&memory_section,
	&path_section,
	&sequences_section,
	NULL,
};

const struct trace_section *trace_section_find(const char *name)
{
	for (const struct trace_section *const *section = trace_sections; *section; section++) {
		if (strcmp((*section)->name, name) == 0)
			return *section;
	}
	return NULL;
}

/* ---- views ---- */

struct views {
	ARRAY_OF(struct trace_view) items;
};

static void views_done(struct views *views)
{
	array_foreach (&views->items, view)
		trace_view_done(view);
	array_done(&views->items);
}

static int add_view(struct views *views, const struct trace *trace, uint32_t index,
	const struct report_trace_arguments *arguments)
{
	uint32_t rank = trace->rank == MODEL_NONE ? index : trace->rank;
	struct trace_view view;
	int r;

	if (arguments->rank != UINT64_MAX && arguments->rank != rank)
		return 0;
	r = trace_view_init(&view, trace, index, &arguments->view);
	if (r < 0)
		return r;
	r = array_append(&views->items, view);
	if (r < 0)
		trace_view_done(&view);
	return r;
}

static int make_views(struct views *views, const struct trace_list *traces,
	const struct report_trace_arguments *arguments, struct errmsg *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < traces->items.count; i++)
		r = add_view(views, traces->items.items[i], i, arguments);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while looking at the traces");
	if (views->items.count)
		return 0;
	return errmsg_set(err, -ENODATA,
		"there is no trace of rank %llu: leave out --rank to see which there are",
		(unsigned long long)arguments->rank);
}

/* ---- output ---- */

static int print(const struct trace_report *report, const struct trace_section *wanted)
{
	int r = report_trace_answer(report);

	for (const struct trace_section *const *section = trace_sections; r == 0 && *section;
		section++) {
		if (wanted ? *section == wanted : !(*section)->is_extra)
			r = (*section)->print(report);
	}
	return r ?: strbuf_status(report->page.out);
}

/* "critical-path" is the member "critical_path". */
static void write_key(struct json_writer *json, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s", name);
	for (char *cursor = key; *cursor; cursor++) {
		if (*cursor == '-')
			*cursor = '_';
	}
	json_key(json, key);
}

static int write_json(const struct trace_report *report, const struct trace_section *wanted)
{
	struct json_writer json = {.out = report->page.out, .pretty = true};
	int r = 0;

	assert(report->views);
	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-trace-report");
	json_member_u64(&json, "version", TRACE_REPORT_JSON_VERSION);
	json_member_text(&json, "sonde_version", SONDE_VERSION);
	json_key(&json, "hta_compatible");
	json_bool(&json, report->views->options.hta_compatible);
	json_key(&json, "traces");
	json_begin_array(&json);
	for (size_t i = 0; i < report->count; i++)
		trace_json_trace(&json, &report->views[i]);
	json_end_array(&json);
	if (!wanted) {
		r = trace_json_summary(&json, report->results);
		r = r ?: trace_json_cpu_summary(&json, report->results);
	}
	for (const struct trace_section *const *section = trace_sections; r == 0 && *section;
		section++) {
		if (wanted ? *section != wanted : (*section)->is_extra)
			continue;
		write_key(&json, (*section)->name);
		r = (*section)->write(report, &json);
	}
	json_end_object(&json);
	strbuf_add_char(report->page.out, '\n');
	return r ?: strbuf_status(report->page.out);
}

static size_t limit_of(const struct report_trace_arguments *arguments)
{
	if (arguments->limit)
		return (size_t)arguments->limit;
	if (arguments->json)
		return 0;
	return arguments->section ? ALONE_LIMIT : WHOLE_LIMIT;
}

static int report_views(const struct report_trace_arguments *arguments, const struct views *views,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_trace_results_ struct trace_results results = {
		.views = views->items.items, .count = views->items.count};
	const struct trace_report report = {
		.views = views->items.items,
		.count = views->items.count,
		.results = &results,
		.limit = limit_of(arguments),
		.alone = arguments->section != NULL,
		.choice = arguments->choice,
		.page = {.terminal = terminal_of(stdout), .out = out},
	};
	int r = arguments->json ? write_json(&report, arguments->section)
				: print(&report, arguments->section);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while writing the report");
	return 0;
}

int report_traces(
	const struct report_trace_arguments *arguments, const char *const *paths, size_t count)
{
	_cleanup_(views_done) struct views views = {0};
	_cleanup_trace_list_ struct trace_list traces = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = load_traces(paths, count, NULL, &traces, &err);

	r = r ?: make_views(&views, &traces, arguments, &err);
	r = r ?: report_views(arguments, &views, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
