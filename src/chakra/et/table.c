/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/et/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VALUE(kind) CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind

/* Numbers are taken from the kinds of value that writers use. */
static int64_t number_of(const et_attribute *attribute)
{
	if (!attribute)
		return ET_NO_NUMBER;
	switch (attribute->value_case) {
	case VALUE(INT64_VAL):
		return attribute->int64_val;
	case VALUE(UINT64_VAL):
		return (int64_t)attribute->uint64_val;
	case VALUE(INT32_VAL):
		return attribute->int32_val;
	case VALUE(UINT32_VAL):
		return attribute->uint32_val;
	default:
		return ET_NO_NUMBER;
	}
}

static int add_string(struct et_table *table, const char *text, uint32_t *ret_id)
{
	return MIN(intern_add(&table->strings, text, strlen(text), ret_id), 0);
}

/* "[0, 1]", "" where it has no ranks. */
static int add_ranks(struct et_table *table, const et_node *node, uint32_t *ret_id)
{
	const et_attribute *ranks = et_find_attribute(node, "pg_ranks");
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!ranks || ranks->value_case != VALUE(INT64_LIST))
		return add_string(table, "", ret_id);
	for (size_t i = 0; i < ranks->int64_list->n_values; i++)
		strbuf_addf(
			&text, "%s%lld", i ? ", " : "[", (long long)ranks->int64_list->values[i]);
	strbuf_add(&text, text.length > 0 ? "]" : "[]");
	return strbuf_status(&text) ?: add_string(table, text.data, ret_id);
}

static int add_group(struct et_table *table, const et_node *node, uint32_t name)
{
	struct et_group group = {
		.name = name, .size = number_of(et_find_attribute(node, "pg_size"))};
	int r;

	if (map_u64_get(&table->group_of, name, NULL))
		return 0;
	r = add_ranks(table, node, &group.ranks);
	r = r ?: map_u64_set(&table->group_of, name, table->groups.count);
	return r ?: array_append(&table->groups, group);
}

static bool communicates(int type)
{
	return type >= CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE &&
	       type <= CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE;
}

static int set_communication(struct et_table *table, const et_node *node, struct et_row *row)
{
	const et_attribute *group = et_find_attribute(node, "pg_name");
	int r = 0;

	row->comm_type = number_of(et_find_attribute(node, "comm_type"));
	row->comm_size = number_of(et_find_attribute(node, "comm_size"));
	if (group && group->value_case == VALUE(STRING_VAL))
		r = add_string(table, group->string_val, &row->group);
	return r ?: add_group(table, node, row->group);
}

static int add_deps(struct et_table *table, const uint64_t *ids, size_t count)
{
	if (count == 0)
		return 0;
	if (array_reserve(&table->deps, count) < 0)
		return -ENOMEM;
	memcpy(table->deps.items + table->deps.count, ids, count * sizeof(*ids));
	table->deps.count += count;
	return table->deps.count > UINT32_MAX ? -ENOMEM : 0;
}

static int add_row(struct et_table *table, const et_node *node, struct et_place place)
{
	const et_attribute *cpu = et_find_attribute(node, "is_cpu_op");
	struct et_row row = {
		.id = node->id,
		.offset = place.offset,
		.start_us = node->start_time_micros,
		.duration_us = node->duration_micros,
		.comm_type = ET_NO_NUMBER,
		.comm_size = ET_NO_NUMBER,
		.first_dep = (uint32_t)table->deps.count,
		.ctrl_deps = (uint32_t)node->n_ctrl_deps,
		.data_deps = (uint32_t)node->n_data_deps,
		.type = (int32_t)node->type,
		.is_cpu_op = cpu && cpu->value_case == VALUE(BOOL_VAL) && cpu->bool_val,
	};
	int r = add_string(table, node->name, &row.name);

	if (r == 0 && communicates(row.type))
		r = set_communication(table, node, &row);
	r = r ?: add_deps(table, node->ctrl_deps, node->n_ctrl_deps);
	r = r ?: add_deps(table, node->data_deps, node->n_data_deps);
	if (r == 0 && !map_u64_get(&table->index, row.id, NULL))
		r = map_u64_set(&table->index, row.id, table->rows.count);
	return r ?: array_append(&table->rows, row);
}

static void set_rank(struct et_table *table, const et_metadata *metadata)
{
	table->rank = ET_NO_NUMBER;
	for (size_t i = 0; i < metadata->n_attr; i++) {
		if (strcmp(metadata->attr[i]->name, "rank") == 0)
			table->rank = number_of(metadata->attr[i]);
	}
}

static int read_rows(struct et_table *table, struct et_reader *reader, et_visit visit,
	void *context, struct errmsg *err)
{
	const et_node *node;
	int r;

	set_rank(table, et_reader_metadata(reader));
	while ((r = et_reader_next(reader, &node, err)) == 1) {
		struct et_place place = et_reader_place(reader);

		if (visit)
			visit(node, place, context);
		if (add_row(table, node, place) < 0)
			return errmsg_set(
				err, -ENOMEM, "memory ran out while reading %s", table->path);
		table->bytes = place.offset + place.length;
	}
	return r;
}

int et_table_read(struct et_table **ret_table, const char *path, et_visit visit, void *context,
	struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	_cleanup_et_table_ struct et_table *table = calloc(1, sizeof(*table));
	uint32_t empty;
	int r = et_reader_open(&reader, path, err);

	if (r < 0)
		return r;
	if (table)
		table->path = strdup(path);
	if (!table || !table->path || add_string(table, "", &empty) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	r = read_rows(table, reader, visit, context, err);
	if (r != -ENOMEM)
		*ret_table = TAKE_PTR(table);
	return r;
}

struct et_table *et_table_free(struct et_table *table)
{
	if (!table)
		return NULL;
	free(table->path);
	array_done(&table->rows);
	array_done(&table->deps);
	array_done(&table->groups);
	map_u64_done(&table->group_of);
	map_u64_done(&table->index);
	intern_done(&table->strings);
	free(table);
	return NULL;
}

void et_table_freep(struct et_table **table)
{
	et_table_free(*table);
}

int et_table_waits(const struct et_table *table, struct et_waits *ret_waits)
{
	struct et_waits waits = {
		.first = malloc((table->rows.count + 1) * sizeof(uint32_t)),
		.on = malloc((table->deps.count + 1) * sizeof(uint32_t)),
	};
	uint32_t count = 0;

	if (!waits.first || !waits.on) {
		et_waits_done(&waits);
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct et_row *row = &table->rows.items[i];
		uint64_t on;

		waits.first[i] = count;
		for (uint32_t d = 0; d < row->ctrl_deps + row->data_deps; d++) {
			if (map_u64_get(&table->index, table->deps.items[row->first_dep + d], &on))
				waits.on[count++] = (uint32_t)on;
		}
	}
	waits.first[table->rows.count] = count;
	waits.waits = (struct waits){(uint32_t)table->rows.count, waits.first, waits.on};
	*ret_waits = waits;
	return 0;
}

void et_waits_done(struct et_waits *waits)
{
	free(waits->first);
	free(waits->on);
	*waits = (struct et_waits){0};
}
