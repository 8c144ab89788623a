/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of CPython's structs by version: what python_find.c starts from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/python_layout.h"

/* NULL when this version (0x030b) is not known. */
const struct python_layout *python_table(uint32_t version);

/*
 * Replaces what _Py_DebugOffsets (the first bytes of _PyRuntime, 3.13 and later) says of the
 * layout. NULL when it fits what the table says of this version; else which member does not, a text
 * to show.
 */
const char *python_debug_offsets(
	struct python_layout *layout, uint32_t full_version, const uint8_t *bytes, size_t length);
