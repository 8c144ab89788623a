/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frames of a stack are shown. A Python stack as it is recorded has the interpreter's own
 * functions between the program's; and its innermost frames are mostly a library's, which the user
 * can only change through the line that called it.
 */
#pragma once

#include "model/model.h"

#define MODEL_SONDE_FRAME "[sonde]" /* what sonde's hooks cost a program */

/*
 * Takes the interpreter's frames out of stacks that have Python frames, and what started the thread
 * before the first of them. Other stacks stay. Once per model.
 */
void model_hide_interpreter(struct model *model);

/* Python's import of a module, which runs the module's top level. */
bool model_is_import(const struct model_function *function);

/*
 * Takes sonde's own frames out of stacks of the program: a hook that calls on leaves no frame, and
 * what a hook costs is one frame "[sonde]". Once per model, before weighing. Returns 0 or -ENOMEM.
 */
int model_hide_sonde(struct model *model);

/*
 * The position of a stack's innermost frame of the user's own code; -1: it has none. In a forked
 * child of multiprocessing the lines that its parent was in do not count.
 */
int64_t model_own_frame(const struct model *model, const struct model_stack *stack);

/*
 * Cuts each stack after its innermost frame of the user's own code, so that its cost is charged
 * there, or with `fold` false brings it back. Stacks without such a frame stay whole.
 */
void model_fold_libraries(struct model *model, bool fold);

/* Which frames of a stack: the program's, the kernel's, or both. */
enum model_side {
	MODEL_SIDE_BOTH,
	MODEL_SIDE_USER,
	MODEL_SIDE_KERNEL,
	MODEL_SIDE_MODULES, /* neither: modules of a model, operators, annotations */
};

/* What frames of those are in, in stacks of other tools' traces. */
#define MODEL_FRAMES_MODULE     "[nn.Module]"
#define MODEL_FRAMES_OPERATOR   "[operator]"
#define MODEL_FRAMES_ANNOTATION "[annotation]"

/*
 * Leaves the frames of one side of each stack. A stack that has none there is one frame, "[kernel]"
 * or "[user]" for the other side, so that totals stay. Of modules: those of other tools' traces,
 * and of recordings the Python functions Class.forward and PyTorch's operators
 * ("at::_ops::mm::call"); what has none is "[no module]". Once per model, before weighing. Returns
 * 0 or -ENOMEM.
 */
int model_show_side(struct model *model, enum model_side side);
