/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces of XLA (JAX, TensorFlow), whose events have no category: see xla_names.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importers/kineto/parser.h"
#include "importers/xla_names.h"

struct xla {
	struct kineto_parser *parser;
	struct xla_track *tracks;
	uint32_t kernel, copy, fill, annotation, driver, python; /* strings: categories */
};

static struct xla_track read_track(const struct trace *trace, const struct trace_track *track)
{
	return xla_track_of(trace_text(trace, track->process_name),
		trace_text(trace, track->thread_name), track->tid);
}

static int set_device_row(struct xla *xla, struct trace_event *event, const struct xla_track *track)
{
	struct trace *trace = xla->parser->trace;
	enum trace_category kind = xla_work_category(trace_text(trace, event->name));
	struct trace_work work = trace_no_work;

	work.device = track->device;
	work.stream = track->stream;
	event->category_name = xla->kernel;
	if (track->kind == XLA_SUM)
		event->category_name = xla->annotation;
	else if (kind == TRACE_MEMCPY)
		event->category_name = xla->copy;
	else if (kind == TRACE_MEMSET)
		event->category_name = xla->fill;
	if (event->detail != MODEL_NONE)
		work.others = trace->ops.items[event->detail].others;
	event->detail = (uint32_t)trace->works.count;
	trace->tracks.items[event->track].is_device = true;
	return array_append(&trace->works, work);
}

static void set_host_row(const struct xla *xla, struct trace_event *event)
{
	const char *name = trace_text(xla->parser->trace, event->name);
	enum trace_category kind = xla_host_category(name, event->correlation);

	if (kind == TRACE_DRIVER)
		event->category_name = xla->driver;
	else if (kind == TRACE_PYTHON_FUNCTION)
		event->category_name = xla->python;
}

static int find_category(struct xla *xla, const char *name, uint32_t *ret_string)
{
	int r = intern_add(&xla->parser->trace->strings, name, strlen(name), ret_string);

	return r < 0 ? r : 0;
}

static int find_categories(struct xla *xla)
{
	int r = find_category(xla, "kernel", &xla->kernel);

	if (r == 0)
		r = find_category(xla, "gpu_memcpy", &xla->copy);
	if (r == 0)
		r = find_category(xla, "gpu_memset", &xla->fill);
	if (r == 0)
		r = find_category(xla, "gpu_user_annotation", &xla->annotation);
	if (r == 0)
		r = find_category(xla, "cuda_driver", &xla->driver);
	if (r == 0)
		r = find_category(xla, "python_function", &xla->python);
	return r;
}

static int set_rows(struct xla *xla)
{
	struct trace *trace = xla->parser->trace;
	int r = find_categories(xla);

	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		struct trace_event *event = &trace->events.items[i];
		const struct xla_track *track = &xla->tracks[event->track];

		if (event->category_name || event->duration_ns == TRACE_NO_DURATION)
			continue;
		if (track->kind == XLA_NOT)
			set_host_row(xla, event);
		else
			r = set_device_row(xla, event, track);
		event->category = (uint8_t)kineto_category(xla->parser, event->category_name);
	}
	return r;
}

int kineto_find_xla(struct kineto_parser *parser)
{
	const struct trace *trace = parser->trace;
	struct xla xla = {
		.parser = parser,
		.tracks = calloc(trace->tracks.count + 1, sizeof(*xla.tracks)),
	};
	bool is_xla = false;
	int r = xla.tracks ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < trace->tracks.count; i++) {
		xla.tracks[i] = read_track(trace, &trace->tracks.items[i]);
		is_xla |= xla.tracks[i].kind != XLA_NOT;
	}
	if (r == 0 && is_xla)
		r = set_rows(&xla);
	free(xla.tracks);
	return r;
}
