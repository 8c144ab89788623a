/* SPDX-License-Identifier: Apache-2.0 */
/* What report, export, diff and top share: reading a capture with a progress bar, what is shown of
 * it, and what its samples are weighed by. */
#pragma once

#include "analyses/energy/use.h"
#include "analyses/selection.h"
#include "analyses/weight_spans.h"
#include "base/errmsg.h"
#include "model/model.h"
#include "model/shown.h"

/* Which frames of stacks are shown. */
struct shown_options {
	bool interpreter;
	const char *stacks;         /* of stack_choices; NULL: "all" */
	const char *fold_libraries; /* "yes", "no"; NULL: as the command likes */
	const char *weight;         /* of weight_choices; NULL: "cpu" */
};

enum model_weight shown_weight(const struct shown_options *shown);
enum model_side shown_side(const struct shown_options *shown);

/* Hides the interpreter's frames, and folds libraries and leaves out a side where that was asked
 * for. Once, before weighing. Returns 0 or -ENOMEM. */
int show_as_asked(struct model *model, const struct shown_options *shown);

/*
 * model_load() of the windows of the selection, with a bar. Warns when the file is cut off or holds
 * several recordings. Shows frames as asked for.
 */
int load_capture(const char *path, const struct shown_options *shown,
	const struct selection *selection, struct model **ret_model, struct errmsg *err);

/*
 * Charges what was recorded with its energy, of the time that is selected. Before the model is
 * narrowed.
 */
int charge_energy(struct model *model, const struct selection *selection,
	struct energy_use *ret_energy, struct errmsg *err);
/* The same, and narrows the model. Where samples are weighed by the time that devices were idle, or
 * by their memory, finds that: idle time before it narrows, memory after. */
int charge_and_narrow(struct model *model, const struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy,
	struct weight_spans *ret_spans, struct errmsg *err);
/*
 * Weighs samples as asked for: once, after load_capture(). `spans` and `energy` are those of
 * charge_and_narrow().
 */
int weigh_capture(struct model *model, const struct shown_options *shown,
	const struct weight_spans *spans, const struct energy_use *energy, struct errmsg *err);
/* The same, after charge_and_narrow(). */
int select_and_weigh(struct model *model, const struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy, struct errmsg *err);
