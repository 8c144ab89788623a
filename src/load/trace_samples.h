/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another tool's trace where samples and stacks are asked for: flame graphs and tables of functions
 * by --weight gpu, wall, cpu+gpu, gpu-idle and gpu-bytes. Only then they are made.
 */
#pragma once

#include "analyses/trace_view.h"
#include "load/capture.h"

/*
 * Fills stacks into the model of other tools' traces (analyses/program/trace_programs.h), of one
 * view of each rank, with what the weight is made of, and shows frames as asked for. Then come
 * selection_narrow() and weigh_capture(), which gets `ret_spans`. What a trace knows of time on a
 * CPU is how long threads were in its rows, running or waiting: cpu becomes wall in `shown`. `path`
 * names the traces. Returns 0 or a negative errno with a sentence; -ENODATA: the traces do not have
 * what the weight is made of, and it says what they have.
 */
int fill_trace_samples(struct model *model, const struct trace_view *views, size_t count,
	struct shown_options *shown, const char *path, struct weight_spans *ret_spans,
	struct errmsg *err);
