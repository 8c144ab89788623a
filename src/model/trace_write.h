/* SPDX-License-Identifier: Apache-2.0 */
/* Writing traces into a capture, from which trace_capture.h gives them back as they were. */
#pragma once

#include "capture/writer/writer.h"
#include "model/trace.h"

/*
 * Writes a session that says where they are from, and the traces. The writer flushes now and then.
 * Returns 0 or a negative errno with a sentence.
 */
int trace_write(struct capture_writer *writer, struct trace *const *traces, size_t count,
	struct errmsg *err);
