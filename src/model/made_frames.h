/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that stand for no code: "[waiting: lock]", "[gpu] scale", "[kernel]". */
#pragma once

#include "model/model.h"

/*
 * Adds a function of this name in `module` (an index) and its one frame. The name is copied.
 * Returns 0 or -ENOMEM.
 */
int model_make_frame(struct model *model, const char *name, uint32_t module,
	enum capture_frame_kind kind, enum model_class class, uint32_t *ret_frame);

/* Adds a module for such frames, named and placed `name`, which lives on. Returns 0 or -ENOMEM. */
int model_make_module(struct model *model, const char *name, uint32_t *ret_module);
