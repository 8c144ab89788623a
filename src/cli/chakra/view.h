/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of `sonde chakra` say of their results, on standard error. */
#pragma once

#include "chakra/convert/convert.h"

/* What reading an execution trace lost. */
struct chakra_read_result {
	uint64_t skipped_nodes, skipped_bytes, repeated_ids;
	bool truncated;
};

struct chakra_read_result chakra_read_result_of(const struct execution_trace *trace);

/* What is in the file, and a line for each thing that was lost or is not known. */
void chakra_say_converted(const char *input, const char *output,
	const struct chakra_read_result *read, const struct chakra_convert_result *result);
