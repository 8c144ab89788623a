/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text for Prometheus. */
#pragma once

#include "base/strbuf.h"
#include "push/metrics.h"

/* Appends all of them. */
void prometheus_write(const struct metric_figures *figures, struct strbuf *out);
