/* SPDX-License-Identifier: Apache-2.0 */
/* Decompressing a section of a foreign file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the `inflated_length` bytes that the zlib stream holds, to be freed by the caller. NULL
 * when the stream is damaged, holds another number of bytes or cannot hold so many, or memory is
 * short.
 */
uint8_t *inflate_bytes(const uint8_t *deflated, size_t deflated_length, size_t inflated_length);
