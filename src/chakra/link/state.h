/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the linker share. Rows are events of the device trace; nodes are those of the
 * host trace: as read until link_assemble(), whose ids are their places afterwards.
 */
#pragma once

#include "chakra/link/link.h"

/* Device work that becomes a node. */
struct link_work {
	uint32_t row;    /* of the work */
	uint32_t launch; /* row of the call; MODEL_NONE: not in the trace */
	uint32_t host;   /* node, as read */
	uint32_t node;   /* after link_assemble() */
	uint32_t stream; /* streams are numbered by link_order_init() */
	uint32_t before; /* row of the operator before the launch, for children of threads */
	int64_t start_ns, end_ns, launch_ns;
};

struct link {
	struct execution_trace *host;
	const struct trace *device;
	struct chakra_link_options options;
	struct chakra_link_result *result;
	int64_t base_ns;       /* is added to times */
	bool keeps_lost_ids;   /* another tool's: forward parents as read, ids for lost parents */
	uint64_t names_agree;  /* of pairs with one id, by the last rule of ids */
	uint32_t *row_of_node; /* as read; MODEL_NONE: not matched */
	uint32_t *node_of_row; /* of matched operators, then of linked work, too; or MODEL_NONE */
	uint32_t *operators; /* row → innermost operator around it, matched or not; or MODEL_NONE */
	uint32_t *new_index;              /* node as read → after link_assemble() */
	size_t host_count;                /* nodes as read */
	ARRAY_OF(struct link_work) works; /* by start */
};

static inline const struct trace_event *link_event(const struct link *link, uint32_t row)
{
	return &link->device->events.items[row];
}

/* Operators and annotations with a duration: what nodes are matched with. */
static inline bool link_is_operator(const struct trace_event *event)
{
	return (event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION) &&
	       event->duration_ns != TRACE_NO_DURATION;
}

static inline bool link_is_call(const struct trace_event *event)
{
	return event->category == TRACE_RUNTIME || event->category == TRACE_DRIVER;
}

/* The nodes that the observer adds for the process and its threads. */
bool link_is_process_or_thread(const struct execution_node *node);
/* Kineto changes some characters of names. */
bool link_names_agree(const struct link *link, const struct execution_node *node, uint32_t row);
void link_match(struct link *link, uint32_t node, uint32_t row, enum execution_match match);

/* match.c, tree.c: return 0 or -ENOMEM; without matches when the rule does not hold. */
int link_match_by_rf_id(struct link *link);
int link_match_by_offset(struct link *link);
int link_match_by_tree(struct link *link);

/* Of all rules. */
uint64_t link_matched_count(const struct link *link);

/*
 * evidence.c: -ENODATA with a sentence where traces are of two processes; where most ids of
 * record functions that both have are of different names, before another rule is tried; where less
 * than half of the operators of the time that both tell is matched.
 */
int link_check_process(const struct link *link, struct errmsg *err);
int link_check_ids(const struct link *link, struct errmsg *err);
int link_check_matched(const struct link *link, struct errmsg *err);

/* attach.c: fills `works`. */
int link_attach(struct link *link);
/* assemble.c: gives host->nodes their final order and ids, and makes nodes of works. */
int link_assemble(struct link *link);

/* deps.c, order.c: what waits for what, after link_assemble(). */
int link_thread_deps(struct link *link);
int link_device_deps(struct link *link);
