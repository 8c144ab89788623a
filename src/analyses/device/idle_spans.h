/* SPDX-License-Identifier: Apache-2.0 */
/* The idle time of a recording's devices as what samples are weighed by: --weight gpu-idle. */
#pragma once

#include "analyses/weight_spans.h"

/* Before model_weigh(), which changes samples. By device, then by time. Returns 0 or -ENOMEM. */
int idle_spans_init(struct weight_spans *spans, const struct model *model);
