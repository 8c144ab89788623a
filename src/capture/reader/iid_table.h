/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning ids of a sequence → ids of this read. Writers count iids up from 1, which an array
 * serves best; iids far beyond the number of entries go to a hash map, so that a hostile file
 * cannot buy memory with one big number.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"

struct iid_table {
	ARRAY_OF(uint32_t) dense;
	struct map_u64 sparse;
	size_t entries;
};

/* Stores iid → id; a later id replaces an earlier one. Returns 0 or -ENOMEM. */
int iid_table_set(struct iid_table *table, uint64_t iid, uint32_t id);
void iid_table_clear(struct iid_table *table);
void iid_table_done(struct iid_table *table);

uint32_t iid_table_get_sparse(const struct iid_table *table, uint64_t iid);

/* The id, 0 when the iid is not there. */
static inline uint32_t iid_table_get(const struct iid_table *table, uint64_t iid)
{
	if (iid < table->dense.count && table->dense.items[iid])
		return table->dense.items[iid];
	return table->sparse.count ? iid_table_get_sparse(table, iid) : 0;
}
