/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/et/stat.h"

#include <errno.h>
#include <stdlib.h>

#define TYPE(name) CHAKRA_PROTO_MSG__NODE_TYPE__##name

static bool communicates(int32_t type)
{
	return type == TYPE(COMM_SEND_NODE) || type == TYPE(COMM_RECV_NODE) ||
	       type == TYPE(COMM_COLL_NODE);
}

const char *et_stat_kind(const struct et_collectives *collectives)
{
	if (collectives->node_type == TYPE(COMM_SEND_NODE))
		return "send";
	if (collectives->node_type == TYPE(COMM_RECV_NODE))
		return "receive";
	return et_collective_to_string(collectives->comm_type) ?: "unknown";
}

static int add_collective(struct et_stat *stat, struct map_u64 *index, const struct et_row *row)
{
	uint64_t kind = row->comm_type == ET_NO_NUMBER ? 0xff : (uint64_t)row->comm_type & 0xff;
	uint64_t key = (uint64_t)row->group << 16 | (uint64_t)(row->type & 0xff) << 8 | kind, at;
	struct et_collectives *collectives;
	int r = 0;

	if (!map_u64_get(index, key, &at)) {
		at = stat->collectives.count;
		r = map_u64_set(index, key, at);
		if (r == 0)
			r = array_append(
				&stat->collectives, (struct et_collectives){.node_type = row->type,
							    .comm_type = row->comm_type,
							    .group = row->group});
	}
	if (r < 0)
		return r;
	collectives = &stat->collectives.items[at];
	collectives->count++;
	collectives->duration_us += row->duration_us;
	if (row->comm_size != ET_NO_NUMBER)
		collectives->bytes += (uint64_t)row->comm_size;
	return 0;
}

static int compare_collectives(const void *a_item, const void *b_item)
{
	const struct et_collectives *a = a_item, *b = b_item;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return (a->group > b->group) - (a->group < b->group);
}

static int add_rows(struct et_stat *stat)
{
	_cleanup_(map_u64_done) struct map_u64 index = {0};
	uint64_t first = UINT64_MAX, last = 0;
	int r = 0;

	array_foreach (&stat->table->rows, row) {
		bool known = row->type >= 0 && row->type < ET_TYPES - 1;

		stat->types[known ? row->type : ET_TYPES - 1]++;
		stat->ctrl_deps += row->ctrl_deps;
		stat->data_deps += row->data_deps;
		*(row->is_cpu_op ? &stat->host_us : &stat->device_us) += row->duration_us;
		if (row->start_us > 0) {
			first = MIN(first, row->start_us);
			last = MAX(last, row->start_us + row->duration_us);
		}
		if (r == 0 && communicates(row->type))
			r = add_collective(stat, &index, row);
	}
	stat->span_us = last > first ? last - first : 0;
	if (r == 0 && stat->collectives.count > 0)
		qsort(stat->collectives.items, stat->collectives.count,
			sizeof(*stat->collectives.items), compare_collectives);
	return r;
}

/* Rows such that what one waits for comes before: components are numbered in that order. */
static uint32_t *in_order(const struct components *components, uint32_t count)
{
	uint32_t *order = malloc(((size_t)count + 1) * sizeof(*order));

	for (uint32_t i = 0; order && i < count; i++)
		order[components->of[i]] = i; /* without cycles, each has one */
	return order;
}

static void follow_chains(struct et_stat *stat, const struct waits *waits, const uint32_t *order,
	uint64_t *ends_us, uint32_t *depths)
{
	for (uint32_t i = 0; i < waits->count; i++) {
		uint32_t node = order[i], depth = 0;
		uint64_t begin_us = 0;

		for (uint32_t w = waits->first[node]; w < waits->first[node + 1]; w++) {
			begin_us = MAX(begin_us, ends_us[waits->on[w]]);
			depth = MAX(depth, depths[waits->on[w]]);
		}
		ends_us[node] = begin_us + stat->table->rows.items[node].duration_us;
		depths[node] = depth + 1;
		stat->critical_us = MAX(stat->critical_us, ends_us[node]);
		stat->depth = MAX(stat->depth, (uint64_t)depths[node]);
	}
}

static int find_critical_path(struct et_stat *stat)
{
	_cleanup_et_waits_ struct et_waits waits = {0};
	_cleanup_components_ struct components components = {0};
	_cleanup_free_ uint32_t *order = NULL, *depths = NULL;
	_cleanup_free_ uint64_t *ends_us = NULL;
	uint32_t count;
	int r = et_table_waits(stat->table, &waits);

	r = r ?: components_find(&waits.waits, &components);
	if (r < 0)
		return r;
	count = waits.waits.count;
	stat->has_cycle = components.count < count;
	if (stat->has_cycle)
		return 0;
	order = in_order(&components, count);
	depths = calloc((size_t)count + 1, sizeof(*depths));
	ends_us = calloc((size_t)count + 1, sizeof(*ends_us));
	if (!order || !depths || !ends_us)
		return -ENOMEM;
	follow_chains(stat, &waits.waits, order, ends_us, depths);
	return 0;
}

int et_stat_read(struct et_stat **ret_stat, const char *path, struct errmsg *err)
{
	_cleanup_et_stat_ struct et_stat *stat = calloc(1, sizeof(*stat));
	int r = stat ? et_table_read(&stat->table, path, NULL, NULL, err) : -ENOMEM;

	if (r < 0 && r != -ENOMEM)
		return r;
	r = r ?: add_rows(stat);
	r = r ?: find_critical_path(stat);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while reading %s", path);
	*ret_stat = TAKE_PTR(stat);
	return 0;
}

struct et_stat *et_stat_free(struct et_stat *stat)
{
	if (!stat)
		return NULL;
	et_table_free(stat->table);
	array_done(&stat->collectives);
	free(stat);
	return NULL;
}

void et_stat_freep(struct et_stat **stat)
{
	et_stat_free(*stat);
}
