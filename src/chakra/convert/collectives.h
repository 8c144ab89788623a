/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node communicates: kind, bytes, group and peers, by the kernel's name, by what the device
 * trace says of it, and by what PyTorch says of its operator ("record_param_comms" and its
 * attributes), in this order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/execution_trace.h"

enum { COLLECTIVE_SEND = -2, COLLECTIVE_RECEIVE = -3, COLLECTIVE_NONE = -1 };

struct chakra_collective {
	int8_t kind;    /* the schema's CollectiveCommType, or one of the above */
	uint64_t bytes; /* of this rank's input; of a receive, what comes */
	bool has_bytes; /* false: not known */
	/* Texts as in the trace, strings in quotes or without; empty: not known. */
	struct execution_text group, description, ranks;
	int64_t group_size;          /* TRACE_NO_NUMBER: not known, as the next two */
	int64_t source, destination; /* ranks in the world */
};

/* Groups of "process_group:init" nodes, by name. Zero-initialise. */
struct chakra_groups {
	ARRAY_OF(struct chakra_group) items;
	struct strbuf text; /* that theirs are in */
};

struct chakra_group {
	struct execution_text name, description, ranks; /* ranks "[]": all */
	int64_t size;
};

/* Returns 0 or -ENOMEM. */
int chakra_groups_read(struct chakra_groups *groups, const struct execution_trace *trace);
void chakra_groups_done(struct chakra_groups *groups);

/* Of a kernel by its name, whatever it does for communication. */
bool chakra_is_communication(struct execution_text kernel);
/*
 * Of a device node, or a host node that no device node hangs on. False when it does not
 * communicate; kind is COLLECTIVE_NONE when it does and nothing says what.
 */
bool chakra_collective_of(const struct execution_trace *trace, const struct chakra_groups *groups,
	const struct execution_node *node, struct chakra_collective *ret_collective);
