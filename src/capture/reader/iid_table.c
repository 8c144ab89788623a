/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/reader/iid_table.h"

#define DENSE_SLACK 64

static int grow_dense(struct iid_table *table, size_t count)
{
	size_t extra = count - table->dense.count;

	if (array_reserve(&table->dense, extra) < 0)
		return -ENOMEM;
	memset(table->dense.items + table->dense.count, 0, extra * sizeof(*table->dense.items));
	table->dense.count = count;
	return 0;
}

int iid_table_set(struct iid_table *table, uint64_t iid, uint32_t id)
{
	table->entries++;
	if (iid >= table->dense.count) {
		if (iid >= 2 * table->entries + DENSE_SLACK)
			return map_u64_set(&table->sparse, iid, id);
		if (grow_dense(table, (size_t)iid + 1) < 0)
			return -ENOMEM;
	}
	table->dense.items[iid] = id;
	return 0;
}

uint32_t iid_table_get_sparse(const struct iid_table *table, uint64_t iid)
{
	uint64_t id;

	return map_u64_get(&table->sparse, iid, &id) ? (uint32_t)id : 0;
}

void iid_table_clear(struct iid_table *table)
{
	array_clear(&table->dense);
	map_u64_clear(&table->sparse);
	table->entries = 0;
}

void iid_table_done(struct iid_table *table)
{
	array_done(&table->dense);
	map_u64_done(&table->sparse);
}
