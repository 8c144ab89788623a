/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as Kineto writes it: read by HolisticTraceAnalysis, Chakra, Perfetto and sonde. */
#pragma once

#include "base/strbuf.h"
#include "exporters/chrome/time.h"
#include "model/trace.h"

/* Appends the whole document. Returns 0 or -ENOMEM. */
int kineto_write_document(struct strbuf *out, const struct trace *trace);
/* Appends the events alone, each after a comma; `clock` NULL: at the trace's times. Returns 0 or
 * -ENOMEM. */
int kineto_write_events(
	struct strbuf *out, const struct trace *trace, const struct chrome_clock *clock);
