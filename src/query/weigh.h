/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks for a call tree, or an export: selected and weighed as asked for. */
#pragma once

#include "analyses/selection.h"
#include "load/capture.h"

/*
 * Once, of a model of load_model(): leaves what the filters select, and weighs its samples; of
 * another tool's trace, which has none, the stacks of its rows, where cpu becomes wall in `shown`.
 * `path` names it. `ret_energy` is of a recording; `notes` gets sentences. Returns 0 or a negative
 * errno with a sentence.
 */
int query_weigh(struct model *model, const char *path, struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy, struct strbuf *notes,
	struct errmsg *err);
