/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/stalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REASON_PREFIX "smsp__pcsamp_warps_issue_stalled_"

typedef int compare_pcs(const struct model_pc *a, const struct model_pc *b);

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_kernels(const struct model_pc *a, const struct model_pc *b)
{
	return strcmp(a->function, b->function);
}

static int compare_reasons(const struct model_pc *a, const struct model_pc *b)
{
	return strcmp(a->reason, b->reason);
}

static int compare_lines(const struct model_pc *a, const struct model_pc *b)
{
	int by_file = strcmp(a->file ? a->file : "", b->file ? b->file : "");

	return by_file ? by_file : compare_u64(a->line, b->line);
}

static int compare_places(const struct model_pc *a, const struct model_pc *b)
{
	int by_cubin = compare_u64(a->cubin, b->cubin);

	return by_cubin ? by_cubin : compare_u64(a->pc_offset, b->pc_offset);
}

static compare_pcs *const comparisons[] = {
	[STALL_BY_REASON] = compare_reasons,
	[STALL_BY_LINE] = compare_lines,
	[STALL_BY_PC] = compare_places,
};

/* By kernel, then by what groups have in common, then by reason. */
static int compare_within(const void *one, const void *other, void *context)
{
	const struct model_pc *a = *(const struct model_pc *const *)one,
			      *b = *(const struct model_pc *const *)other;
	enum stall_by by = *(const enum stall_by *)context;
	int order = compare_kernels(a, b);

	if (!order)
		order = comparisons[by](a, b);
	return order ? order : compare_reasons(a, b);
}

static bool is_same_group(const struct model_pc *a, const struct model_pc *b, enum stall_by by)
{
	return compare_kernels(a, b) == 0 && comparisons[by](a, b) == 0;
}

struct run {
	const struct model_pc **pcs; /* sorted */
	size_t count;
};

/* The group that begins at `at`; where the next one does. */
static size_t take_group(
	const struct run *run, size_t at, enum stall_by by, struct stall_group *ret_group)
{
	struct stall_group group = {.first = run->pcs[at], .reason = run->pcs[at]->reason};
	uint64_t of_reason = 0;

	for (size_t i = at; i < run->count && is_same_group(group.first, run->pcs[i], by); i++) {
		const struct model_pc *pc = run->pcs[i];
		bool goes_on = i > at && compare_reasons(run->pcs[i - 1], pc) == 0;

		group.samples += pc->samples;
		group.not_issued += pc->not_issued;
		of_reason = (goes_on ? of_reason : 0) + pc->samples;
		if (of_reason > group.reason_samples) {
			group.reason_samples = of_reason;
			group.reason = pc->reason;
		}
		at = i + 1;
	}
	*ret_group = group;
	return at;
}

static void sum_kernels(struct stall_groups *groups)
{
	size_t begin = 0;

	for (size_t i = 0; i < groups->items.count; i++) {
		struct stall_group *items = groups->items.items;
		uint64_t sum = 0;

		if (i + 1 < groups->items.count &&
			compare_kernels(items[i].first, items[i + 1].first) == 0)
			continue;
		for (size_t k = begin; k <= i; k++)
			sum += items[k].samples;
		for (size_t k = begin; k <= i; k++)
			items[k].kernel_samples = sum;
		begin = i + 1;
	}
}

static int most_first(const void *one, const void *other, void *context)
{
	const struct stall_group *a = one, *b = other;
	bool by_kernel = *(const enum stall_by *)context == STALL_BY_REASON;
	int order = by_kernel ? compare_u64(b->kernel_samples, a->kernel_samples) : 0;

	if (!order && by_kernel)
		order = compare_kernels(a->first, b->first);
	if (!order)
		order = compare_u64(b->samples, a->samples);
	if (!order)
		order = compare_kernels(a->first, b->first);
	return order ? order : comparisons[*(const enum stall_by *)context](a->first, b->first);
}

static int group_all(struct stall_groups *groups, const struct run *run, enum stall_by by)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < run->count;) {
		struct stall_group group;

		at = take_group(run, at, by, &group);
		groups->samples += group.samples;
		groups->not_issued += group.not_issued;
		r = array_append(&groups->items, group);
	}
	if (r < 0 || !groups->items.count)
		return r;
	sum_kernels(groups);
	qsort_r(groups->items.items, groups->items.count, sizeof(*groups->items.items), most_first,
		&by);
	return 0;
}

int stall_groups_init(struct stall_groups *groups, const struct model *model, enum stall_by by)
{
	struct run run = {0};
	int r;

	*groups = (struct stall_groups){0};
	if (!model->pcs.count)
		return 0;
	run.pcs = malloc(model->pcs.count * sizeof(*run.pcs));
	if (!run.pcs)
		return -ENOMEM;
	array_foreach (&model->pcs, pc) {
		if (by != STALL_BY_LINE || pc->file)
			run.pcs[run.count++] = pc;
	}
	if (run.count)
		qsort_r(run.pcs, run.count, sizeof(*run.pcs), compare_within, &by);
	r = group_all(groups, &run, by);
	free(run.pcs);
	if (r < 0)
		stall_groups_done(groups);
	return r;
}

void stall_groups_done(struct stall_groups *groups)
{
	array_done(&groups->items);
}

const char *stall_reason_name(const char *reason)
{
	size_t length = sizeof(REASON_PREFIX) - 1;

	return strncmp(reason, REASON_PREFIX, length) == 0 && reason[length] ? reason + length
									     : reason;
}
