/* SPDX-License-Identifier: Apache-2.0 */
/* How exports spell frame kinds ("native", "kernel", "interpreted", "jit") and build ids. */
#pragma once

#include <stdio.h>

#include "model/model.h"

static inline const char *kind_name(enum capture_frame_kind kind)
{
	static const char *const names[] = {
		[CAPTURE_FRAME_NATIVE] = "native",
		[CAPTURE_FRAME_KERNEL] = "kernel",
		[CAPTURE_FRAME_INTERPRETED] = "interpreted",
		[CAPTURE_FRAME_JIT] = "jit",
	};

	return kind >= CAPTURE_FRAME_NATIVE && kind <= CAPTURE_FRAME_JIT ? names[kind] : "native";
}

#define BUILD_ID_HEX_SIZE (2 * sizeof(((struct model_module *)0)->build_id.bytes) + 1)

/* Hexadecimal digits, "" without a build id. Returns `hex`. */
static inline const char *build_id_hex(const struct model_module *module, char *hex)
{
	hex[0] = '\0';
	for (unsigned i = 0; i < module->build_id.length; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", module->build_id.bytes[i]);
	return hex;
}
