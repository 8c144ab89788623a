/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a Kineto trace, which come in windows; how large ones, the first byte says. Where no
 * event is lost the windows must not matter (how a lost one ends is told by what is seen behind
 * it), and what analyses index by must be in range.
 */
#include <stdlib.h>

#include "../unit/kineto-text.h"
#include "target.h"

static void check(int must_hold)
{
	if (!must_hold)
		abort();
}

static void check_trace(const struct trace *trace)
{
	uint32_t *parents = trace_parents(trace, true);

	check(trace->rows.count == trace->events.count);
	array_foreach (&trace->events, event) {
		check(event->track < trace->tracks.count);
		check(event->name < trace->strings.entries.count);
		check(event->duration_ns == TRACE_NO_DURATION || event->duration_ns >= 0);
		check(trace_end_ns(event) >= event->start_ns);
	}
	array_foreach (&trace->tracks, track) {
		check(track->first + track->count <= trace->rows.count);
		for (uint32_t i = 1; i < track->count; i++) {
			const uint32_t *rows = &trace->rows.items[track->first + i];

			check(trace->events.items[rows[-1]].start_ns <=
				trace->events.items[rows[0]].start_ns);
		}
	}
	for (size_t i = 0; parents && i < trace->events.count; i++)
		check(parents[i] == MODEL_NONE || parents[i] < trace->events.count);
	free(parents);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_strbuf_ struct strbuf whole = {0}, pieces = {0};
	_cleanup_trace_ struct trace *trace = NULL, *same = NULL;
	const char *text = (const char *)bytes;
	size_t step;
	int r;

	if (!length)
		return 0;
	step = (size_t)bytes[0] * 2 + 1;
	r = kineto_parse_text(&trace, text + 1, length - 1, length, SIZE_MAX, true);
	if (kineto_parse_text(&same, text + 1, length - 1, step, SIZE_MAX, true) < 0 || r < 0)
		return 0;
	check_trace(trace);
	check_trace(same);
	if (trace->damage.skipped_events || same->damage.skipped_events)
		return 0;
	kineto_describe(trace, &whole);
	kineto_describe(same, &pieces);
	check(strcmp(strbuf_cstr(&whole), strbuf_cstr(&pieces)) == 0);
	return 0;
}
