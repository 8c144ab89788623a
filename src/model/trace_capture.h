/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a model: those of another tool's trace, as its file had them; of a recording its
 * ranges, device work, launches and allocations, as Kineto would tell them.
 */
#pragma once

#include "model/trace.h"

/*
 * Makes model->traces where there are none: the rows of the recording, of what its filters have
 * left. They are not made again when the model changes. Returns 0 or -ENOMEM.
 */
int model_make_rows(struct model *model);
/* The same rows, apart from the model: the caller's, for trace_free(). */
int trace_of_recording(struct trace **ret_trace, const struct model *model);

/*
 * Is it another tool's trace, of which the rows are all that there is? False of a recording, and of
 * a capture that another program recorded.
 */
bool model_is_foreign(const struct model *model);

/*
 * Does this file begin as a capture that traces were imported into? False, too, of what cannot be
 * read.
 */
bool capture_holds_traces(const char *path);
