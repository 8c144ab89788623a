/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target defines; libFuzzer's main() or corpus-main.c calls it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Must survive any bytes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
