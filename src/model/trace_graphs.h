/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call captured the nodes of a graph's replay. A replay's work has the correlation of the
 * call that launched the graph; the operators, modules and lines that it belongs to are around the
 * calls between StreamBeginCapture and StreamEndCapture, which have no work of their own. Those
 * calls are in the same trace, or in one that was written while the graphs were captured.
 *
 * A replay belongs to a capture that ended before it, in the same process, and whose calls are its
 * nodes in their order: by the kernels that calls name (ROCm's do), else by kinds and number.
 * Where several captures fit, the ids of graphs, then the replays before and after decide, then
 * whether they are alike: the same operators with the same inputs. What is not decided has no
 * origin, and is counted with the reason (trace.replays).
 */
#pragma once

#include "model/trace.h"

/*
 * Fills trace_work.captured_by of the trace's replays from the calls of `captured`: the trace
 * itself, or another one, the rows of which are added (trace_event.is_capture) where any fits.
 * After trace_finish(), and not of rows that were narrowed. Returns how many nodes got their call,
 * or -ENOMEM.
 */
int64_t trace_join_graphs(struct trace *trace, const struct trace *captured);

/* Does it launch a graph? By the name of a call. */
bool trace_is_graph_launch(const char *call);
