/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of capture a model, or a file by what comes first in it, is: a recording, whose rows
 * are yet to be made, or traces of other tools. */
#include <errno.h>

#include "model/trace_capture.h"

int model_make_rows(struct model *model)
{
	_cleanup_trace_ struct trace *trace = NULL;
	int r = model->traces.count ? 0 : trace_of_recording(&trace, model);

	if (r < 0 || !trace)
		return r;
	r = array_append(&model->traces, trace);
	if (r == 0)
		trace = NULL;
	return r;
}

bool model_is_foreign(const struct model *model)
{
	return model->traces.count && !model->traces.items[0]->recorded;
}

/* Any of these ends the reading: a trace comes before all else, or not at all. */
enum { FOUND_TRACE = -EEXIST, FOUND_OTHER = -ENOENT };

static int find_trace(void *context _unused_, const struct capture_trace *trace _unused_)
{
	return FOUND_TRACE;
}

static int find_sample(void *context _unused_, const struct capture_sample *sample _unused_)
{
	return FOUND_OTHER;
}

static int find_process(void *context _unused_, const struct capture_process *process _unused_)
{
	return FOUND_OTHER;
}

static int find_thread_named(void *context _unused_, const struct capture_thread *thread _unused_)
{
	return FOUND_OTHER;
}

static int find_stats(void *context _unused_, const struct capture_stats *stats _unused_)
{
	return FOUND_OTHER;
}

bool capture_holds_traces(const char *path)
{
	static const struct capture_visitor visitor = {
		.trace = find_trace,
		.sample = find_sample,
		.process = find_process,
		.thread = find_thread_named,
		.stats = find_stats,
	};
	struct errmsg err;

	return capture_read(path, &visitor, NULL, NULL, &err) == FOUND_TRACE;
}
