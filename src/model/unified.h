/* SPDX-License-Identifier: Apache-2.0 */
/* What happened to pages of CUDA's unified memory: names, and what a number of it means. */
#pragma once

#include "capture/capture.h"

/* What happened to pages of unified memory. */
struct model_unified_memory {
	uint64_t start_ns, end_ns; /* equal: a moment, or how long is not known */
	uint32_t process;
	const char *from, *to; /* GPUs, as `device` of device_works; "": the host, or of none */
	struct capture_unified_memory unified;
};

/* "to_device" …, for JSON; "unknown" when out of range. For people: "Migration to device". */
const char *model_unified_name(uint32_t type);
const char *model_unified_title(uint32_t type);
/* Why: "prefetch", "read" …; NULL: not known, or the type has none. */
const char *model_unified_cause(const struct capture_unified_memory *unified);

/* Pages moved. */
static inline bool model_unified_is_migration(uint32_t type)
{
	return type == WIRE_UNIFIED_TO_DEVICE || type == WIRE_UNIFIED_TO_HOST ||
	       type == WIRE_UNIFIED_BETWEEN_DEVICES;
}

/* Its value is bytes. */
static inline bool model_unified_has_bytes(uint32_t type)
{
	return model_unified_is_migration(type) || type == WIRE_UNIFIED_THRASHING ||
	       type == WIRE_UNIFIED_REMOTE_MAP;
}

/* The GPU that it belongs to, as of device_works: where pages go, else where they were; "": none.
 */
static inline const char *model_unified_device(const struct model_unified_memory *item)
{
	return *item->to ? item->to : item->from;
}
