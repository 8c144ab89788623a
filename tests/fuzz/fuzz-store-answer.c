/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the answer of a ClickHouse server. The first says in what parts they come. */
#include <stdlib.h>
#include <string.h>

#include "store/clickhouse/internal.h"
#include "target.h"

struct taken {
	size_t columns, rows;
};

static int take(void *context, const struct store_value *values, size_t count)
{
	struct taken *taken = context;
	size_t texts = 0;

	if (count > CLICKHOUSE_COLUMNS_MOST || (taken->columns && taken->columns != count))
		abort();
	taken->columns = count;
	taken->rows++;
	for (size_t i = 0; i < count; i++)
		texts += values[i].type == STORE_TEXT ? strlen(values[i].text) : 0;
	return texts > ((size_t)8 << 20) ? abort(), 0 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct taken taken = {0};
	_cleanup_clickhouse_answer_ struct clickhouse_answer answer = {
		.take = take, .context = &taken};
	size_t part = length ? (size_t)*bytes + 1 : 1;
	int r = 0;

	for (size_t at = 1; r == 0 && at < length; at += part)
		r = clickhouse_answer_read(
			&answer, (const char *)bytes + at, part < length - at ? part : length - at);
	if (r == 0 && clickhouse_answer_end(&answer) == 0 && answer.rows != taken.rows)
		abort();
	return 0;
}
