/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics as an ExportMetricsServiceRequest of OTLP. Names are those of Prometheus without the unit
 * and "_total", which the message has in fields of their own: "sonde_energy_joules_total" is
 * "sonde.energy" in "J". Counters are cumulative sums since the recording's begin.
 */
#pragma once

#include "base/strbuf.h"
#include "push/metrics.h"

/* Appends the message. `time_realtime_ns` is that of the figures; `host` may be NULL. */
void otlp_metrics_write(const struct metric_figures *figures, uint64_t time_realtime_ns,
	const char *host, struct strbuf *out);
