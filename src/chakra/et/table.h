/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Chakra trace in memory, as far as statistics and checks need it: of each node what it is, when
 * it ran and what it waits for; texts only by name.
 */
#pragma once

#include "base/map.h"
#include "chakra/convert/components.h"
#include "chakra/et/file.h"

#define ET_NO_NUMBER INT64_MIN

struct et_row {
	uint64_t id, offset; /* offset: of its message in the file */
	uint64_t start_us, duration_us;
	int64_t comm_type, comm_size; /* ET_NO_NUMBER: not there, or of another type of value */
	uint32_t name, group;         /* strings; group: its pg_name, 0: none */
	uint32_t first_dep, ctrl_deps, data_deps; /* ids: the calls first */
	int32_t type;
	bool is_cpu_op;
};

struct et_group {
	uint32_t name, ranks; /* ranks "[0, 1]" or "" */
	int64_t size;         /* ET_NO_NUMBER: not known */
};

struct et_table {
	char *path;
	ARRAY_OF(struct et_row) rows; /* in the file's order */
	ARRAY_OF(uint64_t) deps;
	ARRAY_OF(struct et_group) groups; /* by first collective of each */
	struct map_u64 group_of;          /* string of the name → index */
	struct map_u64 index;             /* id → row: the first of its kind */
	struct intern strings;            /* 0: "" */
	int64_t rank;                     /* ET_NO_NUMBER: not known */
	uint64_t bytes;                   /* of the file when not compressed */
};

/* Sees each node as it is read, before its row is added. */
typedef void (*et_visit)(const et_node *node, struct et_place place, void *context);

/*
 * `visit` may be NULL. Returns 0 or a negative errno with a sentence; the table then has what came
 * before the damage, and *ret_table is set all the same, unless memory ran out.
 */
int et_table_read(struct et_table **ret_table, const char *path, et_visit visit, void *context,
	struct errmsg *err);
struct et_table *et_table_free(struct et_table *table);
void et_table_freep(struct et_table **table);
#define _cleanup_et_table_ _cleanup_(et_table_freep)

static inline const char *et_table_text(const struct et_table *table, uint32_t string)
{
	return intern_get(&table->strings, string);
}

/* What waits for what, by rows; dependencies on what is not there are left out. */
struct et_waits {
	struct waits waits;
	uint32_t *first, *on;
};

int et_table_waits(const struct et_table *table, struct et_waits *ret_waits);
void et_waits_done(struct et_waits *waits);
#define _cleanup_et_waits_ _cleanup_(et_waits_done)
