/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a line of exported runs. */
#include <stdlib.h>
#include <string.h>

#include "store/exchange.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_store_line_ struct store_line line = {0};
	struct errmsg reason;
	size_t texts = 0;

	/* Twice, since a line is used again. */
	for (int i = 0; i < 2; i++) {
		if (store_line_parse(&line, (const char *)bytes, length, &reason) < 0)
			return 0;
	}
	for (size_t i = 0; line.table != STORE_TABLE_MAX && i < store_tables[line.table].count;
		i++) {
		const struct store_value *value = &line.values[i];

		if (value->type != STORE_NULL &&
			value->type != store_tables[line.table].columns[i].type)
			abort();
		texts += value->type == STORE_TEXT ? strlen(value->text) : 0;
	}
	return texts > line.texts.length ? abort(), 0 : 0;
}
