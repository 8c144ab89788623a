/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an execution trace, which is written as JSON and read again. */
#include <stdlib.h>
#include <unistd.h>

#include "chakra/link/linked_json.h"
#include "importers/pytorch_et/pytorch_et.h"
#include "target.h"

static struct execution_trace *parse(const char *bytes, size_t length)
{
	struct execution_trace *trace = execution_trace_new("fuzz");

	if (!trace)
		return NULL;
	trace->bytes = bytes;
	trace->length = length;
	return pytorch_et_parse(trace, NULL) < 0 ? execution_trace_free(trace) : trace;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct execution_trace *trace = parse((const char *)bytes, length), *again;
	struct linked_json_options options = {0};
	struct output_file file = {0};

	if (!trace)
		return 0;
	linked_json_write(trace, &options, &file);
	/* What was mended is passed on as it was; more than a megabyte is written away. */
	if (file.bytes == 0 && !trace->mended && !trace->skipped_nodes) {
		again = parse(file.out.data, file.out.length);
		if (!again || again->nodes.count != trace->nodes.count || again->skipped_nodes ||
			again->works.count != trace->works.count)
			abort();
		execution_trace_free(again);
	}
	output_file_done(&file);
	execution_trace_free(trace);
	return 0;
}
