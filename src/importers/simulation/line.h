/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of astra-sim's log: "issue,sys->id=0, tick=12, node->id=3, node->name=…, node->type=4",
 * or the same with "callback", behind what its logger puts before a message. Older releases write
 * no spaces, no type, or it as node->node_type.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chakra's types of nodes; 0: the line has none, or another. */
enum astra_node_type {
	ASTRA_UNKNOWN = 0,
	ASTRA_METADATA = 1,
	ASTRA_MEM_LOAD = 2,
	ASTRA_MEM_STORE = 3,
	ASTRA_COMP = 4,
	ASTRA_COMM_SEND = 5,
	ASTRA_COMM_RECV = 6,
	ASTRA_COMM_COLL = 7,
	ASTRA_TYPE_MAX,
};

struct astra_line {
	bool is_end; /* of the node: a callback */
	uint32_t system;
	int64_t tick; /* ns */
	uint64_t node;
	const char *name; /* in the line */
	size_t name_length;
	enum astra_node_type type;
};

/* False: the line reports something else. */
bool astra_line_parse(const char *line, size_t length, struct astra_line *ret_line);
