/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of NCCL move, of a recording, in the rows of trace_capture.c. */
#include "model/trace_capture_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes a rank puts in and gets out. NCCL counts those of one rank's share where ranks
 * gather or scatter. */
static void set_sizes(const struct model_collective *from, struct trace_collective *out)
{
	static const struct {
		const char *name;
		bool in_all, out_all;
	} shares[] = {
		{"ncclAllGather", false, true},
		{"ncclGather", false, true},
		{"ncclReduceScatter", true, false},
		{"ncclScatter", true, false},
		{"ncclAlltoAll", true, true},
	};
	int64_t bytes = (int64_t)from->bytes, all;

	out->in_elements = out->out_elements = bytes;
	if (__builtin_mul_overflow(bytes, (int64_t)from->ranks, &all) || !from->ranks)
		all = TRACE_NO_NUMBER;
	if (strcmp(from->name, MODEL_ALL_TO_ALL) == 0 || strcmp(from->name, MODEL_SEND_RECV) == 0)
		out->out_elements = (int64_t)from->received;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		if (strcmp(shares[i].name, from->name) != 0)
			continue;
		if (shares[i].in_all)
			out->in_elements = all;
		if (shares[i].out_all)
			out->out_elements = all;
	}
}

static int add_collective(
	struct capture_rows *rows, const struct model_collective *from, uint32_t *ret_collective)
{
	struct trace_collective out = {
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = from->ranks ? from->ranks : TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
		.sequence = from->sequence ? from->sequence : TRACE_NO_NUMBER,
		.communicator = from->communicator,
	};
	char group[24];
	int r = 0;

	if (*from->name)
		r = capture_rows_text(rows->trace, from->name, &out.name);
	if (from->communicator) {
		snprintf(group, sizeof(group), "0x%" PRIx64, from->communicator);
		r = r ?: capture_rows_text(rows->trace, group, &out.group_name);
	}
	/* NCCL says bytes, and of what type they are not. */
	if (!from->unknown) {
		r = r ?: capture_rows_text(rows->trace, "Byte", &out.dtype);
		set_sizes(from, &out);
	}
	*ret_collective = (uint32_t)rows->trace->collectives.count;
	return r ?: array_append(&rows->trace->collectives, out);
}

int capture_rows_collective(
	struct capture_rows *rows, const struct model_device_work *work, uint32_t *ret_collective)
{
	const struct model_collective *from;
	uint32_t *known;
	int r = 0;

	if (!work->collective)
		return 0;
	if (!rows->collectives)
		rows->collectives =
			calloc(rows->model->collectives.count, sizeof(*rows->collectives));
	if (!rows->collectives)
		return -ENOMEM;
	from = &rows->model->collectives.items[work->collective - 1];
	if (!*from->name && !from->communicator)
		return 0;
	known = &rows->collectives[work->collective - 1];
	if (!*known) {
		r = add_collective(rows, from, known);
		++*known;
	}
	*ret_collective = *known - 1;
	return r;
}
