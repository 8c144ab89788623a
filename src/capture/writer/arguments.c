/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/arguments.h"

#include <stddef.h>

#include "base/macros.h"

static const char *const names[] = {
	[ROW_EXTERNAL_ID] = "External id",
	[ROW_RF_ID] = "Record function id",
	[ROW_EV_IDX] = "Ev Idx",
	[ROW_CORRELATION] = "correlation",
	[ROW_OTHERS] = "other arguments",
	[ROW_INPUT_TYPES] = "Input type",
	[ROW_CONCRETE_INPUTS] = "Concrete Inputs",
	[ROW_INPUT_DIMS] = "Input Dims",
	[ROW_INPUT_STRIDES] = "Input Strides",
	[ROW_SEQUENCE] = "Sequence number",
	[ROW_FORWARD_THREAD] = "Fwd thread id",
	[ROW_PYTHON_ID] = "Python id",
	[ROW_PYTHON_PARENT_ID] = "Python parent id",
	[ROW_PYTHON_MODULE_ID] = "Python module id",
	[ROW_CALL_STACK] = "Call stack",
	[ROW_MODULE_HIERARCHY] = "Module Hierarchy",
	[ROW_DEVICE] = "device",
	[ROW_CONTEXT] = "context",
	[ROW_STREAM] = "stream",
	[ROW_BYTES] = "bytes",
	[ROW_REGISTERS] = "registers per thread",
	[ROW_SHARED_BYTES] = "shared memory",
	[ROW_GRAPH] = "graph id",
	[ROW_GRAPH_NODE] = "graph node id",
	[ROW_SYNC_KIND] = "cuda_sync_kind",
	[ROW_WAIT_STREAM] = "wait_on_stream",
	[ROW_WAIT_EVENT] = "wait_on_cuda_event_id",
	[ROW_WAIT_CORRELATION] = "wait_on_cuda_event_record_corr_id",
	[ROW_ADDRESS] = "Addr",
	[ROW_MEMORY_BYTES] = "Bytes",
	[ROW_TOTAL_ALLOCATED] = "Total Allocated",
	[ROW_TOTAL_RESERVED] = "Total Reserved",
	[ROW_DEVICE_TYPE] = "Device Type",
	[ROW_DEVICE_ID] = "Device Id",
	[ROW_COLLECTIVE_NAME] = "Collective name",
	[ROW_DTYPE] = "dtype",
	[ROW_IN_ELEMENTS] = "In msg nelems",
	[ROW_OUT_ELEMENTS] = "Out msg nelems",
	[ROW_GROUP_SIZE] = "Group size",
	[ROW_GROUP_NAME] = "Process Group Name",
	[ROW_GROUP_DESCRIPTION] = "Process Group Description",
	[ROW_GROUP_RANKS] = "Process Group Ranks",
	[ROW_IN_SPLIT] = "In split size",
	[ROW_OUT_SPLIT] = "Out split size",
	[ROW_SOURCE] = "Src Rank",
	[ROW_DESTINATION] = "Dst Rank",
	[ROW_COLLECTIVE_SEQUENCE] = "Seq",
};

const char *row_argument_name(unsigned field)
{
	return field < ARRAY_SIZE(names) ? names[field] : NULL;
}

uint64_t row_arguments(const struct capture_trace_row *row)
{
	uint64_t fields = 0;

	for (unsigned field = 0; field < ARRAY_SIZE(names); field++) {
		if (names[field])
			fields |= ROW_BIT(field);
	}
	return row->layout & fields & ROW_VALUES;
}
