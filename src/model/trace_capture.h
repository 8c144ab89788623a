/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a capture: those of a trace that was imported, as the other tool's file had them; of
 * a recording its ranges, device work, launches and allocations, as Kineto would tell them.
 */
#pragma once

#include "model/trace.h"

/*
 * Of an imported capture its trace, of several (ranks) the first; else what there is in the
 * recording. The caller's, for trace_free(); not to be changed. Returns 0 or a negative errno with
 * a sentence.
 */
int trace_from_model(struct trace **ret_trace, const struct model *model, struct errmsg *err);

/*
 * What the call is called that launched this work, or that waited: recordings know its kind, not
 * its name, which is the usual one for that. Of CUDA a wait may be the synchronisation of a device,
 * a context or a stream.
 */
const char *trace_call_name(const struct model_device_work *work);
const char *trace_wait_name(const struct model *model, const struct model_device_wait *wait);

/* A model of nothing but these traces, which stay the caller's, too. Returns 0 or -ENOMEM. */
int model_from_traces(struct model **ret_model, struct trace *const *traces, size_t count);

/*
 * Does this file begin as a capture that traces were imported into? False, too, of what cannot be
 * read.
 */
bool capture_holds_traces(const char *path);
