/* SPDX-License-Identifier: Apache-2.0 */
/* Every exporter, each defined at the bottom of its own file, and what their files share. */
#pragma once

#include "base/json.h"
#include "exporters/exporter.h"

struct trace_report; /* report/rows.h */

extern const struct exporter chakra_exporter;
extern const struct exporter chrome_exporter;
extern const struct exporter csv_exporter;
extern const struct exporter firefox_exporter;
extern const struct exporter flamegraph_exporter;
extern const struct exporter folded_exporter;
extern const struct exporter json_exporter;
extern const struct exporter jsonl_exporter;
extern const struct exporter otlp_exporter;
extern const struct exporter perf_script_exporter;
extern const struct exporter pftrace_exporter;
extern const struct exporter pprof_exporter;
extern const struct exporter memory_exporter, roofline_exporter, collectives_exporter;
extern const struct exporter speedscope_exporter;
extern const struct exporter tables_exporter;
extern const struct exporter vllm_csv_exporter;

/* Never NULL: `options`, or the defaults. */
const struct export_options *export_options_or_default(const struct export_options *options);
/* The title to show: the option's, the recorded command line, or a plain word. */
const char *export_title(const struct model *model, const struct export_options *options);
/* What samples weigh, by time, energy or bytes, as pprof and OpenTelemetry call it; or with
 * `counts` what their number is. */
struct export_unit {
	const char *type, *unit;
};
struct export_unit export_unit_of(const struct model *model, bool counts);
/* Have they such a weight, beside their number? */
bool export_has_weight(const struct model *model);
/* What a range or mark carries, as members under their own names. */
void export_range_fields(
	struct json_writer *json, const struct model *model, const struct model_range *range);
/* How many frames are inlined where this one is: they follow it, innermost last. */
uint32_t export_inlined_after(const struct model *model, uint32_t frame);
/* The end of an export: `r`, or -ENOMEM when `out` lost a write; -ENOMEM with a sentence. */
int export_result(int r, const struct strbuf *out, const char *format, struct errmsg *err);
/* An export of rows alone: `write` gets those of all ranks, and options that are never NULL. */
int export_rows(const struct model *model, const struct export_options *options, struct strbuf *out,
	const char *format,
	int (*write)(const struct trace_report *trace, const struct export_options *options,
		struct strbuf *out, struct errmsg *err),
	struct errmsg *err);
