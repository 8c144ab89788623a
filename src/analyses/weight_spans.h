/* SPDX-License-Identifier: Apache-2.0 */
/* What samples are made of for weights that are found before a model is weighed: the time that
 * devices were idle (device/idle_spans.h), and what was in use of their memory at their peaks
 * (memory/held_spans.h). */
#pragma once

#include "base/array.h"
#include "model/weigh.h"

struct weight_spans {
	ARRAY_OF(struct model_span) items; /* of one device after the other */
};

void weight_spans_done(struct weight_spans *spans);
#define _cleanup_weight_spans_ _cleanup_(weight_spans_done)
