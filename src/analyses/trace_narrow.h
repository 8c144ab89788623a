/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters --time and --step on rows of other tools' traces: before views are made of them.
 *
 * --time: device work that starts in it, as in recordings, with the calls that launched it and the
 * rows around these. --step: device work that was launched in these steps, ProfilerStep#N; what has
 * no launch counts where it starts. Of threads both leave what overlaps, cut to what lies inside;
 * steps are not cut. A rank without such a step has the time of the others' steps.
 */
#pragma once

#include "analyses/selection.h"
#include "model/model.h"

/*
 * Leaves in model->traces what the filters choose, if any is given. Times stay those since the
 * first row of all. Returns 0 or a negative errno with a sentence; -ENODATA: there is no such step.
 */
int trace_narrow(const struct selection *selection, struct model *model, struct errmsg *err);
