/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked traces as JSON: PyTorch's layout since schema 1.0.2 with the fields that Chakra's linker
 * adds, which its converter reads, and more: docs/chakra.md lists them.
 * importers/pytorch_et/pytorch_et.h reads them back.
 */
#pragma once

#include "base/output_file.h"
#include "model/execution_trace.h"

struct linked_json_options {
	bool is_plain; /* the fields of chakra_trace_link 1.0.0, and no others */
};

/* Appends to the file, which the caller closes: failures are found there. */
void linked_json_write(const struct execution_trace *trace,
	const struct linked_json_options *options, struct output_file *file);
