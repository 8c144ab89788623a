/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An importer for tests alone, which reads what no tool writes. It was added by the steps of
 * importers/importer.h: this file, its declaration in toy-importer.h, and a line in the table of
 * test-importers.c.
 */
#include "toy-importer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "importers/rows.h"

static const char first_line[] = "TOY\n";

static bool knows(const char *head, size_t length)
{
	return length >= strlen(first_line) && memcmp(head, first_line, strlen(first_line)) == 0;
}

static int add_row(struct trace *trace, const char *name, int64_t start_ns, int64_t duration_ns)
{
	struct trace_event event = {
		.start_ns = start_ns,
		.duration_ns = duration_ns,
		.external_id = TRACE_NO_ID,
		.category = TRACE_USER_ANNOTATION,
		.detail = MODEL_NONE,
		.file_index = (uint32_t)trace->events.count,
	};
	int r = intern_add(&trace->strings, name, strlen(name), &event.name);

	return r < 0 ? r : array_append(&trace->events, event);
}

static int read_line(struct trace *trace, const char *line)
{
	char name[64];
	long long start_ns, duration_ns;

	if (sscanf(line, "rank %u", &trace->rank) == 1)
		return 0;
	if (sscanf(line, "%63s %lld %lld", name, &start_ns, &duration_ns) != 3) {
		trace->damage.skipped_events++;
		return 0;
	}
	return add_row(trace, name, start_ns, duration_ns);
}

static int toy_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_trace_ struct trace *trace = trace_new(path);
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct trace_track track = {.pid = 1, .tid = 2};
	char *line, *rest = NULL;
	int r = trace ? import_read_file(path, options, &text, &trace->damage.truncated, err)
		      : -ENOMEM;

	if (r == 0)
		r = array_append(&trace->tracks, track);
	line = r == 0 ? strtok_r(text.data + strlen(first_line), "\n", &rest) : NULL;
	for (; r == 0 && line; line = strtok_r(NULL, "\n", &rest))
		r = read_line(trace, line);
	if (r == 0)
		r = trace_finish(trace);
	if (r == 0)
		*ret_trace = TAKE_PTR(trace);
	return r;
}

static const char *const endings[] = {".toy", NULL};

const struct importer toy_importer = {
	.name = "toy",
	.description = "rows of a toy",
	.endings = endings,
	.knows = knows,
	.read = toy_read,
};
