/* SPDX-License-Identifier: Apache-2.0 */
#include "elf/inflate.h"

#include <stdlib.h>
#include <zlib.h>

/* deflate cannot do better than 1032 to 1; a header that promises more is not worth the memory. */
#define DEFLATE_MAX_RATIO 1032

uint8_t *inflate_bytes(const uint8_t *deflated, size_t deflated_length, size_t inflated_length)
{
	uLongf length = inflated_length;
	uint8_t *inflated;

	if (inflated_length == 0 || inflated_length / DEFLATE_MAX_RATIO > deflated_length)
		return NULL;
	inflated = malloc(inflated_length);
	if (!inflated)
		return NULL;
	if (uncompress(inflated, &length, deflated, deflated_length) != Z_OK ||
		length != inflated_length) {
		free(inflated);
		return NULL;
	}
	return inflated;
}
