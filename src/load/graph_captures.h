/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines capture their graphs once and replay them later: traces of the two are two files. A trace
 * that has the captures of the graphs that another one of its rank and process replays goes into
 * that one, as what its nodes come from (model/trace_graphs.h).
 */
#pragma once

#include "model/model.h"

/* Those files have no rows of their own any more, and a warning says so. Returns 0 or -ENOMEM. */
int join_graph_captures(struct model *model);
