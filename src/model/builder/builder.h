/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a model from what a capture's reader says, in any order the file has it: names, lines
 * and inlined functions may come after the frames, descriptors after the samples. One thread at a
 * time.
 */
#pragma once

#include "model/model.h"
#include "model/windows.h"

struct model_builder;

/* Returns 0 or -ENOMEM. */
int model_builder_new(struct model_builder **ret_builder);
struct model_builder *model_builder_free(struct model_builder *builder);
void model_builder_freep(struct model_builder **builder);
#define _cleanup_model_builder_ _cleanup_(model_builder_freep)

/* The callbacks; their context is the builder. They return 0 or -ENOMEM. */
extern const struct capture_visitor model_builder_visitor;
/* Where the visitor's progress callback passes its figures on; NULL for nowhere. */
void model_builder_set_progress(
	struct model_builder *builder, model_progress_function *progress, void *context);

/* Which windows the model is to hold; before it is resolved. Without a call: all. */
void model_builder_choose_windows(
	struct model_builder *builder, const struct window_choice *choice);

/* Leave out what only exporters need of imported traces' rows; before the first is read. */
void model_builder_drop_arguments(struct model_builder *builder, bool drop);

/*
 * Resolves everything and hands the model over. The builder is only good for model_builder_free()
 * then. Returns 0 or -ENOMEM.
 *
 * A symbol line beats the name in the frame. Of several processes with one pid, a sample belongs to
 * the one that started last before it, or to the earliest when none did.
 */
int model_builder_finish(struct model_builder *builder,
	const struct capture_read_result *completeness, struct model **ret_model);

/*
 * For a recording that goes on: the model as it is now, with the samples from `from_ns` (> 0) on.
 * It is the builder's own, and good until the next call of a visitor's function or of one of these;
 * model_hide_interpreter() and the like may change it as if it were new. Session and account are
 * those of now. Returns 0 or -ENOMEM.
 */
int model_builder_snapshot(
	struct model_builder *builder, uint64_t from_ns, struct model **ret_model);
/* While paused, samples are not taken in. */
void model_builder_pause(struct model_builder *builder, bool pause);
/* Drops the samples before this time, and says how many callstacks are kept. */
size_t model_builder_forget_samples(struct model_builder *builder, uint64_t before_ns);
/* Drops all samples and callstacks: see capture_writer_forget_callstacks(). */
void model_builder_forget_callstacks(struct model_builder *builder);
