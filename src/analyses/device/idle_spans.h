/* SPDX-License-Identifier: Apache-2.0 */
/* The idle time of a recording's devices as what samples are weighed by: --weight gpu-idle. */
#pragma once

#include "base/array.h"
#include "model/weigh.h"

struct idle_spans {
	ARRAY_OF(struct model_span) items; /* of one device after the other, by time */
};

/* Before model_weigh(), which changes samples. Returns 0 or -ENOMEM. */
int idle_spans_init(struct idle_spans *spans, const struct model *model);
void idle_spans_done(struct idle_spans *spans);
#define _cleanup_idle_spans_ _cleanup_(idle_spans_done)
