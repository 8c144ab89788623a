/* SPDX-License-Identifier: Apache-2.0 */
#include "live/columns.h"

#include "base/json.h"
#include "live/state.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are written as they are");

static void align(struct strbuf *out)
{
	static const char zeros[8];

	strbuf_add_bytes(out, zeros, -out->length % sizeof(zeros));
}

void live_write_rows(
	struct strbuf *out, const struct live_table *table, const void *rows, size_t count)
{
	const uint32_t head[2] = {(uint32_t)count, 0};

	strbuf_add_bytes(out, head, sizeof(head));
	/* Without rows there may be no array that an offset could be into. */
	for (size_t column = 0; count && table->columns[column].bytes; column++) {
		size_t bytes = table->columns[column].bytes;
		const char *from = (const char *)rows + table->columns[column].offset;
		char *to = strbuf_extend(out, count * bytes);

		for (size_t i = 0; to && i < count; i++)
			memcpy(to + i * bytes, from + i * table->row_bytes, bytes);
		align(out);
	}
}

int live_place_text(struct intern *texts, const char *text, uint32_t *ret_place)
{
	if (!*text) {
		*ret_place = LIVE_NO_TEXT;
		return 0;
	}
	return MIN(intern_add(texts, text, live_cut(text), ret_place), 0);
}

void live_write_texts(struct strbuf *out, const struct intern *texts)
{
	struct json_writer json = {.out = out};

	json_begin_array(&json);
	array_foreach (&texts->entries, entry)
		json_string_n(&json, entry->bytes, entry->length);
	json_end_array(&json);
}
