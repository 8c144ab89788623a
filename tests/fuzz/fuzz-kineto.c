/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a Kineto trace, which come in windows, and in parts for threads; how large ones, the
 * first byte says. Where no event is lost neither must matter (how a lost one ends is told by what
 * is seen behind it), and what analyses index by must be in range.
 */
#include <stdlib.h>

#include "../unit/kineto-text.h"
#include "analyses/collectives/collectives.h"
#include "analyses/program/modules.h"
#include "importers/importer.h"
#include "rows.h"
#include "target.h"

#define WINDOWS_MAX 512

/* Two ranks of such rows: all waiting was caused by somebody. */
static void check_collectives(const struct trace *trace)
{
	const struct trace_view_options options = {0};
	struct trace_view views[2] = {0};
	_cleanup_collectives_ struct collectives found = {0};
	uint64_t caused_ns = 0;

	if (trace_view_init(&views[0], trace, 0, &options) == 0 &&
		trace_view_init(&views[1], trace, 1, &options) == 0 &&
		collectives_init(&found, views, 2) == 0) {
		array_foreach (&found.ranks, rank)
			caused_ns += rank->caused_ns;
		rows_must(caused_ns == collectives_waited_ns(&found));
	}
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

/* Modules have all work between them, once. */
static void check_modules(const struct trace *trace)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_modules_ struct modules found = {0};
	uint64_t works_ns = 0, works = 0, self_ns = 0;

	if (trace_view_init(&view, trace, 0, &options) < 0 || modules_init(&found, &view, 1) < 0 ||
		!found.has_modules)
		return;
	array_foreach (&view.works, work) {
		works_ns += (uint64_t)trace_view_work_ns(work);
		works++;
	}
	for (size_t i = 0; i < found.rows.count; i++) {
		const struct module_row *row = &found.rows.items[i];

		rows_must(row->parent == MODEL_NONE || row->parent < i);
		self_ns += (uint64_t)module_device_ns(&row->self);
	}
	rows_must(self_ns == works_ns && (uint64_t)module_device_ns(&found.all) == works_ns);
	rows_must(found.all.works[MODULE_FORWARD] + found.all.works[MODULE_BACKWARD] == works);
}

static void check_same(const struct trace *a, const struct trace *b)
{
	_cleanup_strbuf_ struct strbuf left = {0}, right = {0};

	rows_check(b);
	if (a->damage.skipped_events || b->damage.skipped_events)
		return;
	kineto_describe(a, &left);
	kineto_describe(b, &right);
	rows_must(strcmp(strbuf_cstr(&left), strbuf_cstr(&right)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_trace_ struct trace *trace = NULL, *windows = NULL, *parts = NULL;
	const char *text = (const char *)bytes + 1;
	size_t step;

	if (!length--)
		return 0;
	importer_of(text, MIN(length, (size_t)IMPORT_HEAD_BYTES));
	/* An event is begun again with each window until it is whole: not many windows of a long
	 * text. */
	step = MAX((size_t)bytes[0] * 2 + 1, length / WINDOWS_MAX);
	if (kineto_parse_text(&trace, text, length, length, SIZE_MAX, true) < 0)
		return 0;
	rows_check(trace);
	rows_check_stacks(trace);
	check_collectives(trace);
	check_modules(trace);
	if (kineto_parse_text(&windows, text, length, step, SIZE_MAX, true) == 0)
		check_same(trace, windows);
	if (kineto_parse_parts(&parts, text, length, step, true) == 0)
		check_same(trace, parts);
	return 0;
}
