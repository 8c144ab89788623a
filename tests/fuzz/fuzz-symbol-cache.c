/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a symbol cache file; any candidates as a symbol table; and, since a checksum keeps a
 * fuzzer out, any bytes written over the tables of a good image before it is searched.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/symbol_image.h"
#include "target.h"

#define RECORD_BYTES 8

static void search(const struct symbol_image *image)
{
	struct symbol found;
	volatile size_t sink = 0;

	for (uint64_t address = 0; address < 600; address++)
		if (symbol_image_find(image, address, &found) > 0)
			sink += strlen(found.name);
	for (uint64_t address = 1; address; address <<= 1)
		if (symbol_image_find(image, address, &found) > 0)
			sink += strlen(found.name);
	(void)sink;
}

static void view_bytes(const uint8_t *bytes, size_t length)
{
	_cleanup_free_ void *aligned = malloc(length ? length : 1);
	struct symbol_image image;

	if (!aligned)
		return;
	memcpy(aligned, bytes, length);
	if (symbol_image_view(&image, aligned, length) == 0)
		search(&image);
}

static int read_candidates(
	struct symbol_candidates *candidates, const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {"a", "_Zb", "", "long name; with\nthings"};
	int result = 0;

	for (size_t at = 0; at + RECORD_BYTES <= length && result == 0; at += RECORD_BYTES) {
		const uint8_t *record = bytes + at;
		struct symbol_candidate candidate = {
			.start = record[0] | (uint64_t)(record[1] & 1) << 8,
			.name = names[record[2] % ARRAY_SIZE(names)],
			.rank = record[3],
			.sized = record[4] & 1,
			.label = (record[4] & 3) == 2,
			.exported = record[4] & 4,
		};

		candidate.end = candidate.start + 1 + record[5];
		if (record[6] == 0xff)
			candidate.end = UINT64_MAX;
		result = array_append(candidates, candidate);
	}
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct symbol_image_key key = {.identity = 1};
	struct symbol_candidates candidates = {0};
	struct symbol_image image;
	void *built = NULL;
	size_t built_length;

	view_bytes(bytes, length);
	if (read_candidates(&candidates, bytes, length) == 0 &&
		symbol_image_build(&built, &built_length, &candidates, &key) == 0) {
		if (symbol_image_view(&image, built, built_length) < 0)
			abort();
		search(&image);
		memcpy((uint64_t *)image.starts, bytes,
			MIN(length, (size_t)((char *)built + built_length - (char *)image.starts)));
		((char *)built)[built_length - 1] = '\0';
		search(&image);
	}
	free(built);
	array_done(&candidates);
	return 0;
}
