/* SPDX-License-Identifier: Apache-2.0 */
/* Which device nodes chakra_converter 1.0.0 takes for communication, and what it says of them. */
#include "compat/chakra_converter/internal.h"

#include <string.h>

#include "chakra.pb-c.h"
#include "chakra/convert/tensors.h"
#include "chakra/json_piece.h"
#include "model/trace.h"

/* By the kernel's name alone, without "_" and "-". */
static int8_t kind_of(struct execution_text name)
{
	static const struct {
		const char *word;
		int8_t kind;
	} kinds[] = {
		{"allreduce", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE},
		{"alltoall", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL},
		{"allgather", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER},
		{"reducescatter", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER},
		{"broadcast", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST},
	};
	char plain[256];
	size_t length = 0;

	for (uint32_t i = 0; i < name.length && length + 1 < sizeof(plain); i++) {
		char letter = name.bytes[i];

		if (letter != '_' && letter != '-')
			plain[length++] =
				letter >= 'A' && letter <= 'Z' ? (char)(letter | 0x20) : letter;
	}
	plain[length] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strstr(plain, kinds[i].word))
			return kinds[i].kind;
	}
	if (execution_text_contains(name, "ncclDevKernel_SendRecv"))
		return CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL;
	return COLLECTIVE_NONE;
}

static const struct execution_node *parent_of(
	const struct execution_trace *trace, const struct execution_node *node)
{
	return execution_trace_find(trace, node->parent);
}

/* Attributes are set on the object that read the fields before them: they win. */
static struct execution_text group_of(
	const struct execution_trace *trace, const struct execution_node *node)
{
	struct json_piece piece = json_piece_elements(node->other_attrs);
	struct execution_text attribute, name, value, group = {0};

	if (node->work != MODEL_NONE)
		group = trace->works.items[node->work].group_name;
	while (json_piece_next(&piece, &attribute)) {
		if (json_piece_find(attribute, "name", &name) &&
			execution_text_equals(name, "\"pg_name\"") &&
			json_piece_find(attribute, "value", &value))
			group = value;
	}
	return group;
}

/* NCCL's one kernel for sends, receives and exchanges is identified by the operator's name. */
static int8_t exchange_kind(const struct execution_trace *trace, const struct execution_node *node,
	struct chakra_collective *found)
{
	const struct execution_node *parent = parent_of(trace, node), *named = parent;
	bool describes = parent && execution_text_equals(parent->name, "record_param_comms");

	if (describes) {
		struct execution_text group = group_of(trace, parent);

		if (group.length > 0 && !execution_text_equals(group, "\"\""))
			found->group = group;
		named = parent_of(trace, parent);
	}
	if (named && execution_text_contains(named->name, "send"))
		return COLLECTIVE_SEND;
	if (named && execution_text_contains(named->name, "recv"))
		return COLLECTIVE_RECEIVE;
	return kind_of(node->name);
}

bool chakra_converter_collective(const struct chakra_graph *graph,
	const struct execution_node *node, bool of_host _unused_,
	struct chakra_collective *ret_collective)
{
	const struct execution_trace *trace = graph->trace;
	struct chakra_collective found = {.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER};

	if (node->work == MODEL_NONE ||
		(!execution_text_contains(node->name, "ncclKernel") &&
			!execution_text_contains(node->name, "ncclDevKernel")))
		return false;
	found.group = group_of(trace, node);
	found.kind = execution_text_contains(node->name, "ncclDevKernel_SendRecv")
			     ? exchange_kind(trace, node, &found)
			     : kind_of(node->name);
	found.bytes = tensor_sum(&node->inputs).bytes;
	found.has_bytes = true;
	*ret_collective = found;
	return true;
}
