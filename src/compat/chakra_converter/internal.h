/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "compat/chakra_converter/chakra_converter.h"

/* Of device nodes, by the kernel's name. */
bool chakra_converter_collective(const struct chakra_graph *graph,
	const struct execution_node *node, bool of_host, struct chakra_collective *ret_collective);
