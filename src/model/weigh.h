/* SPDX-License-Identifier: Apache-2.0 */
/* Making waiting count: every sample then stands for the time that it ran or waited. */
#pragma once

#include "model/model.h"

/*
 * With MODEL_WEIGHT_WAIT or WALL, samples count in units of MODEL_UNIT_NS in place of sampling
 * periods (model_sample_weight_ns()), and the stacks of waiting samples end in "[waiting: lock]".
 * With MODEL_WEIGHT_CPU nothing changes. Once per model. Returns 0 or -ENOMEM.
 */
#define MODEL_UNIT_NS 10000
/*
 * With MODEL_WEIGHT_GPU the samples are replaced: one for each piece of device work, with the stack
 * of its launch, which ends in "[gpu] kernel", below "[unattributed: …]" where there is none.
 */
#define MODEL_GPU_UNIT_NS 100

int model_weigh(struct model *model, enum model_weight weight);
