/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Chakra execution trace, for simulators. Of a capture or of Kineto's trace alone: with an
 * execution trace of PyTorch, `sonde chakra link` knows more, tensors above all.
 */
#include <errno.h>

#include "chakra/convert/convert.h"
#include "chakra/convert/from_trace.h"
#include "exporters/exporters.h"

static void note_left_out(uint64_t left_out, const struct export_options *options)
{
	if (left_out && options && options->notes)
		strbuf_addf(options->notes,
			"%llu kernels, copies and fills have neither a launch nor an operator in "
			"the trace, and are left out\n",
			(unsigned long long)left_out);
}

static int convert(const struct trace *trace, const struct export_options *wanted,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_execution_trace_ struct execution_trace *linked = NULL;
	_cleanup_chakra_graph_ struct chakra_graph *graph = NULL;
	struct chakra_convert_options options = {.size = sizeof(options),
		.has_rank = trace->rank != MODEL_NONE,
		.rank = trace->rank};
	struct chakra_convert_result result;
	struct chakra_link_result link_result;
	struct et_writer *writer = NULL;
	int r = chakra_from_trace(&linked, trace, &link_result, err);

	if (r == 0)
		options.left_out = link_result.device_rows - link_result.linked;
	note_left_out(options.left_out, wanted);
	r = r ?: chakra_convert(&graph, linked, &options, &result, err);
	r = r ?: et_writer_open_memory(&writer, out);
	r = r ?: chakra_write(graph, &options, writer);
	if (r < 0) {
		et_writer_free(writer);
		return r;
	}
	return et_writer_close(writer, NULL, err);
}

static int chakra_export(const struct model *model, const struct selection *selection _unused_,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	return export_result(
		convert(model->traces.items[0], options, out, err), out, "chakra", err);
}

const struct exporter chakra_exporter = {
	.name = "chakra",
	.description = "an execution trace for simulators (MLCommons Chakra)",
	.extension = ".et",
	.takes_traces = true,
	.needs_rows = true,
	.shows = SELECTION_TRACES,
	.is_binary = true,
	.export = chakra_export,
};
