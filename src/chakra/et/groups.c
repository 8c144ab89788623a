/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process groups over the traces of a run: each has the same ranks in all, and its ranks begin the
 * same collectives in the same order, or a simulation of them all waits for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chakra/et/check.h"
#include "chakra/json_piece.h"

#define COLLECTIVE(name) CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__##name

/* The collectives of one group, in the file's order. */
struct sequence {
	const struct et_table *table;
	const struct et_group *group;
	size_t at;
};

static const struct et_row *next_collective(struct sequence *sequence)
{
	while (sequence->at < sequence->table->rows.count) {
		const struct et_row *row = &sequence->table->rows.items[sequence->at++];

		if (row->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE &&
			row->group == sequence->group->name)
			return row;
	}
	return NULL;
}

static const struct et_group *find_group(const struct et_table *table, const char *name)
{
	uint32_t string;
	uint64_t index;

	if (!intern_find(&table->strings, name, strlen(name), &string) ||
		!map_u64_get(&table->group_of, string, &index))
		return NULL;
	return &table->groups.items[index];
}

/* Of these, all ranks bring the same number of bytes. */
static bool has_one_size(int64_t kind)
{
	return kind == COLLECTIVE(ALL_REDUCE) || kind == COLLECTIVE(BROADCAST) ||
	       kind == COLLECTIVE(REDUCE);
}

static const char *kind_of(const struct et_row *row)
{
	return et_collective_to_string(row->comm_type) ?: "no kind";
}

static void compare_collectives(struct et_check *check, struct sequence own, struct sequence other)
{
	const struct et_row *mine, *theirs;
	unsigned long long number = 0;
	const char *name = et_table_text(own.table, own.group->name);

	do {
		mine = next_collective(&own);
		theirs = next_collective(&other);
		number++;
	} while (mine && theirs && mine->comm_type == theirs->comm_type &&
		 (!has_one_size(mine->comm_type) || mine->comm_size == theirs->comm_size));
	if (!mine && !theirs)
		return;
	if (!mine || !theirs)
		et_check_add(check, ET_FAULT_GROUP,
			"process group \"%.60s\" has %s collectives than in %s, from number %llu "
			"on",
			name, mine ? "more" : "fewer", other.table->path, number);
	else
		et_check_add(check, ET_FAULT_GROUP,
			"collective %llu of process group \"%.60s\" is node %llu, %s of %lld "
			"bytes, and in %s %s of %lld bytes",
			number, name, (unsigned long long)mine->id, kind_of(mine),
			(long long)mine->comm_size, other.table->path, kind_of(theirs),
			(long long)theirs->comm_size);
}

static void compare_group(struct et_check *check, const struct et_group *group,
	const struct et_table *other, const struct et_group *others)
{
	const struct et_table *table = check->table;
	const char *ranks = et_table_text(table, group->ranks);
	const char *other_ranks = et_table_text(other, others->ranks);

	if (*ranks && *other_ranks && strcmp(ranks, other_ranks) != 0) {
		et_check_add(check, ET_FAULT_GROUP,
			"process group \"%.60s\" has the ranks %.200s, and in %s %.200s",
			et_table_text(table, group->name), ranks, other->path, other_ranks);
		return;
	}
	if (group->size != ET_NO_NUMBER && others->size != ET_NO_NUMBER &&
		group->size != others->size) {
		et_check_add(check, ET_FAULT_GROUP,
			"process group \"%.60s\" has %lld ranks, and in %s %lld",
			et_table_text(table, group->name), (long long)group->size, other->path,
			(long long)others->size);
		return;
	}
	compare_collectives(
		check, (struct sequence){table, group, 0}, (struct sequence){other, others, 0});
}

static bool has_file(struct et_check **checks, size_t count, int64_t rank)
{
	for (size_t i = 0; i < count; i++) {
		if (checks[i]->table->rank == rank)
			return true;
	}
	return false;
}

/* Its own rank is in a group that a trace takes part in; the others have files, too. */
static void check_members(struct et_check *check, const struct et_group *group,
	struct et_check **checks, size_t count)
{
	const char *name = et_table_text(check->table, group->name);
	const char *ranks = et_table_text(check->table, group->ranks);
	struct json_piece list =
		json_piece_list((struct execution_text){ranks, (uint32_t)strlen(ranks)});
	_cleanup_strbuf_ struct strbuf missing = {0};
	struct execution_text element;
	bool has_own = false, has_any = false;
	int64_t rank;

	while (json_piece_next(&list, &element) && json_piece_i64(element, &rank)) {
		has_any = true;
		has_own = has_own || rank == check->table->rank;
		if (!has_file(checks, count, rank))
			strbuf_addf(&missing, " %lld", (long long)rank);
	}
	if (has_any && !has_own && check->table->rank != ET_NO_NUMBER)
		et_check_add(check, ET_FAULT_GROUP,
			"process group \"%.60s\" has the ranks %.200s, and the trace is of rank "
			"%lld",
			name, ranks, (long long)check->table->rank);
	if (missing.length > 0)
		et_check_add(check, ET_NOTE_RANKS,
			"these ranks of process group \"%.60s\" have no file here:%.200s", name,
			strbuf_cstr(&missing));
}

int et_check_groups(struct et_check **checks, size_t count, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		array_foreach (&checks[i]->table->groups, group) {
			const char *name = et_table_text(checks[i]->table, group->name);
			const struct et_group *others = NULL;

			check_members(checks[i], group, checks, count);
			/* With the first that has it: all are compared with that one. */
			for (size_t k = 0; k < i && !others; k++) {
				others = find_group(checks[k]->table, name);
				if (others)
					compare_group(checks[i], group, checks[k]->table, others);
			}
		}
		r = r ?: checks[i]->error;
	}
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing process groups") : 0;
}
