/* SPDX-License-Identifier: Apache-2.0 */
/* What the ids in a process's device records stand for: kernels, devices, queues. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "wire/device.h"

struct device_names {
	struct intern texts;
	struct map_u64 definitions; /* pid, type and id → id in texts */
	uint64_t part_bytes;        /* of names that came in parts */
};

void device_names_done(struct device_names *names);
/*
 * A definition, or with WIRE_RECORD_DEVICE_NAME_PART more text of a name. Returns 1, 0 when it is
 * none that an honest process writes, or -ENOMEM.
 */
int device_names_add(
	struct device_names *names, uint32_t pid, const struct wire_device_definition *definition);
/* NULL: unknown, or not yet known. `type` is that of the definition. */
const char *device_names_get(
	const struct device_names *names, uint32_t pid, uint32_t type, uint32_t id);
/* Copies the text of a whole definition, of at most WIRE_DEVICE_TEXT_BYTES; false: it is not. */
bool device_definition_text(const struct wire_device_definition *definition, char *ret_text);
