/* SPDX-License-Identifier: Apache-2.0 */
/* A part of model/model.h: what the nodes of graphs come from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is it known which call captured a node of a graph? */
enum model_capture {
	MODEL_CAPTURE_NONE, /* it is no node, or its graph is timed as a whole */
	MODEL_CAPTURE_KNOWN,
	MODEL_CAPTURE_UNSEEN,  /* the graph was made before the recording began */
	MODEL_CAPTURE_NO_CALL, /* between windows; or the record of the call was lost */
	MODEL_CAPTURE_MAX,
};

/* The call that captured nodes of a graph which are in device_works: it launched nothing. */
struct model_captured_call {
	uint64_t start_ns, end_ns;
	uint64_t correlation;
	uint32_t process, thread; /* indices */
	uint8_t kind;             /* enum wire_device_kind */
	bool is_elsewhere; /* at a time, or of a thread, that is not shown: here for its nodes */
};
