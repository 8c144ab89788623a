/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a code object's record, a str object, a line table and debug offsets, of any
 * version. */
#include <stdlib.h>
#include <string.h>

#include "symbols/python_code.h"
#include "target.h"
#include "unwind/python_tables.h"

static void try_record(const struct python_layout *layout, const uint8_t *bytes, size_t length)
{
	struct wire_python_code *record = calloc(1, sizeof(*record) + length);
	struct python_code code;

	if (!record)
		return;
	memcpy(record, bytes, length);
	record->record.length_bytes = (uint32_t)MIN(length, (size_t)UINT32_MAX);
	if (python_code_is_whole(record) && python_code_from_record(layout, record, &code) == 0) {
		for (int32_t offset = -2; offset < 64; offset += 2)
			python_code_line(layout, &code, offset);
		python_code_done(&code);
	}
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	for (uint32_t version = 0x0308; version <= 0x030f; version++) {
		const struct python_layout *known = python_table(version);
		struct python_layout layout = *known;
		struct strbuf text = {0};
		bool cut;

		try_record(known, bytes, length);
		python_text(known, bytes, length, &text, &cut);
		for (int32_t offset = -2; offset < 4096; offset += 34) {
			int64_t line = python_line(known, bytes, length, 7, offset);

			if (line < -1 || line > UINT32_MAX)
				abort();
		}
		python_debug_offsets(&layout, 0, bytes, length);
		strbuf_done(&text);
	}
	return 0;
}
