/* SPDX-License-Identifier: Apache-2.0 */
#include "model/unified.h"

#include "base/macros.h"

static const struct {
	const char *name, *title;
} types[WIRE_UNIFIED_MAX] = {
	[WIRE_UNIFIED_UNKNOWN] = {"unknown", "Unified memory"},
	[WIRE_UNIFIED_TO_DEVICE] = {"to_device", "Migration to device"},
	[WIRE_UNIFIED_TO_HOST] = {"to_host", "Migration to host"},
	[WIRE_UNIFIED_HOST_FAULT] = {"host_fault", "Page fault of the host"},
	[WIRE_UNIFIED_DEVICE_FAULT] = {"device_fault", "Page faults of the device"},
	[WIRE_UNIFIED_THRASHING] = {"thrashing", "Thrashing"},
	[WIRE_UNIFIED_THROTTLING] = {"throttling", "Throttling"},
	[WIRE_UNIFIED_REMOTE_MAP] = {"remote_map", "Remote map"},
	[WIRE_UNIFIED_BETWEEN_DEVICES] = {"between_devices", "Migration between devices"},
};

static const char *const migrations[WIRE_MIGRATION_MAX] = {
	[WIRE_MIGRATION_USER] = "user",
	[WIRE_MIGRATION_COHERENCE] = "access",
	[WIRE_MIGRATION_PREFETCH] = "driver_prefetch",
	[WIRE_MIGRATION_EVICTION] = "eviction",
	[WIRE_MIGRATION_ACCESS_COUNTERS] = "access_counters",
};

static const char *const accesses[WIRE_ACCESS_MAX] = {
	[WIRE_ACCESS_READ] = "read",
	[WIRE_ACCESS_WRITE] = "write",
	[WIRE_ACCESS_ATOMIC] = "atomic",
	[WIRE_ACCESS_PREFETCH] = "prefetch",
};

static const char *const maps[WIRE_MAP_MAX] = {
	[WIRE_MAP_COHERENCE] = "coherence",
	[WIRE_MAP_THRASHING] = "thrashing",
	[WIRE_MAP_POLICY] = "policy",
	[WIRE_MAP_OUT_OF_MEMORY] = "out_of_memory",
	[WIRE_MAP_EVICTION] = "eviction",
};

const char *model_unified_name(uint32_t type)
{
	return types[type < WIRE_UNIFIED_MAX ? type : WIRE_UNIFIED_UNKNOWN].name;
}

const char *model_unified_title(uint32_t type)
{
	return types[type < WIRE_UNIFIED_MAX ? type : WIRE_UNIFIED_UNKNOWN].title;
}

const char *model_unified_cause(const struct capture_unified_memory *unified)
{
	if (model_unified_is_migration(unified->type))
		return unified->cause < ARRAY_SIZE(migrations) ? migrations[unified->cause] : NULL;
	if (unified->type == WIRE_UNIFIED_DEVICE_FAULT)
		return unified->cause < ARRAY_SIZE(accesses) ? accesses[unified->cause] : NULL;
	if (unified->type == WIRE_UNIFIED_REMOTE_MAP)
		return unified->cause < ARRAY_SIZE(maps) ? maps[unified->cause] : NULL;
	return NULL;
}
