/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome traces of XLA (JAX, TensorFlow), whose events have no category: work of a device is told
 * by the names of its process, "/device:GPU:0", and thread, "Stream #13(Compute)", of a TPU "XLA
 * Ops". Other rows of a device are sums of these, which count as annotations of the device.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importers/kineto/parser.h"

enum xla_kind {
	XLA_NOT,    /* a thread of the host, or another tool's */
	XLA_STREAM, /* its rows are kernels, copies and fills */
	XLA_SUM,    /* of work: modules, steps, operators of the framework */
};

struct xla_track {
	enum xla_kind kind;
	int64_t device, stream;
};

struct xla {
	struct kineto_parser *parser;
	struct xla_track *tracks;
	uint32_t kernel, copy, fill, annotation, driver, python; /* strings: categories */
};

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The number at the end of "/device:GPU:0"; false: it is no device that works by itself. */
static bool read_device(const char *process, int64_t *ret_number, bool *ret_tpu)
{
	const char *number = strrchr(process, ':');
	char *end;

	if (!begins_with(process, "/device:GPU:") && !begins_with(process, "/device:TPU:"))
		return false;
	errno = 0;
	*ret_number = strtoll(number + 1, &end, 10);
	*ret_tpu = begins_with(process, "/device:TPU:");
	return !errno && isdigit((unsigned char)number[1]) && *ret_number >= 0;
}

/* "Stream #13(Compute)" */
static bool read_stream(const char *thread, int64_t *ret_number)
{
	static const char beginning[] = "Stream #";

	if (!begins_with(thread, beginning) ||
		!isdigit((unsigned char)thread[sizeof(beginning) - 1]))
		return false;
	errno = 0;
	*ret_number = strtoll(thread + sizeof(beginning) - 1, NULL, 10);
	return errno == 0;
}

static struct xla_track read_track(const struct trace *trace, const struct trace_track *track)
{
	const char *thread = trace_text(trace, track->thread_name);
	struct xla_track known = {.stream = track->tid};
	bool is_tpu;

	if (!read_device(trace_text(trace, track->process_name), &known.device, &is_tpu))
		return known;
	if (is_tpu ? strcmp(thread, "XLA Ops") == 0 : read_stream(thread, &known.stream))
		known.kind = XLA_STREAM;
	else
		known.kind = XLA_SUM;
	return known;
}

static int set_device_row(struct xla *xla, struct trace_event *event, const struct xla_track *track)
{
	struct trace *trace = xla->parser->trace;
	const char *name = trace_text(trace, event->name);
	struct trace_work work = {
		.device = track->device,
		.context = TRACE_NO_NUMBER,
		.stream = track->stream,
		.queued_ns = TRACE_NO_NUMBER,
		.wait_stream = TRACE_NO_NUMBER,
		.wait_event = TRACE_NO_NUMBER,
		.collective = MODEL_NONE,
	};

	event->category_name = xla->kernel;
	if (track->kind == XLA_SUM)
		event->category_name = xla->annotation;
	else if (begins_with(name, "Memcpy"))
		event->category_name = xla->copy;
	else if (begins_with(name, "Memset"))
		event->category_name = xla->fill;
	if (event->detail != MODEL_NONE)
		work.others = trace->ops.items[event->detail].others;
	event->detail = (uint32_t)trace->works.count;
	trace->tracks.items[event->track].is_device = true;
	return array_append(&trace->works, work);
}

/* Calls of the driver are told by their name, "cuLaunchKernel", and functions of Python by "$". */
static void set_host_row(const struct xla *xla, struct trace_event *event)
{
	const char *name = trace_text(xla->parser->trace, event->name);
	const char *rest = begins_with(name, "cu")    ? name + 2
			   : begins_with(name, "hip") ? name + 3
						      : "";

	if (event->correlation && isupper((unsigned char)*rest))
		event->category_name = xla->driver;
	else if (*name == '$')
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
