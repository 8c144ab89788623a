/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/merge.h"

#include "base/macros.h"

static size_t count_evaluations(const struct merge_input *input)
{
	size_t count = input->native_gap.groups;

	for (size_t i = 0; i < input->native_count; i++)
		count += input->is_eval(input->context, input->native[i]);
	return count;
}

/* Runs of Python frames, each of which one native evaluation made. */
static size_t count_groups(const struct merge_input *input)
{
	size_t count = input->python_gap.groups;

	for (size_t i = 0; i < input->python_count; i++)
		count += (input->python[i].flags & WIRE_PYTHON_ENTRY) != 0;
	/* The outermost one is there in part only. */
	if (input->python_count &&
		!(input->python[input->python_count - 1].flags & WIRE_PYTHON_ENTRY))
		count++;
	return count;
}

struct merge {
	const struct merge_input *input;
	struct merged_frame *out;
	size_t count;
	size_t python_left; /* frames not put out yet: the outermost of them is python_left - 1 */
	size_t in_gap;      /* groups that begin in the gap of the Python frames, not passed yet */
};

static void put(struct merge *merge, enum merged_kind kind, size_t index)
{
	merge->out[merge->count++] = (struct merged_frame){.index = (uint32_t)index, .kind = kind};
}

static bool is_entry(const struct merge *merge)
{
	return merge->input->python[merge->python_left - 1].flags & WIRE_PYTHON_ENTRY;
}

static bool is_before_python_gap(const struct merge *merge)
{
	const struct stack_gap *gap = &merge->input->python_gap;

	return gap->left_out && merge->python_left > gap->at;
}

/* The outermost group that is left. Of those that begin in the gap the innermost may end within. */
static void put_group(struct merge *merge)
{
	const struct stack_gap *gap = &merge->input->python_gap;

	if (merge->in_gap && (--merge->in_gap || (merge->python_left && is_entry(merge))))
		return;
	while (merge->python_left) {
		put(merge, MERGED_PYTHON, --merge->python_left);
		if (gap->left_out && merge->python_left == gap->at) {
			put(merge, MERGED_LEFT_OUT, gap->left_out);
			merge->in_gap = gap->groups;
			if (merge->in_gap)
				return;
		}
		if (merge->python_left && is_entry(merge))
			return;
	}
}

/* An outermost group whose evaluation is beyond the end of the native stack that was cut. */
static void put_group_without_evaluation(struct merge *merge)
{
	size_t before = merge->count;

	put_group(merge);
	if (merge->count > before && !merge->input->native_complete &&
		merge->out[merge->count - 1].kind == MERGED_PYTHON)
		put(merge, MERGED_LEFT_OUT, 0);
}

/* The Python frames of native frames that were left out are there, or have their gap here, too. */
static void put_native_gap(struct merge *merge, size_t without_group)
{
	const struct stack_gap *gap = &merge->input->native_gap;
	bool python_first = is_before_python_gap(merge);
	size_t at = merge->count;

	if (!python_first)
		put(merge, MERGED_LEFT_OUT, gap->left_out);
	for (size_t i = without_group; i < gap->groups; i++)
		put_group(merge);
	if (!python_first)
		return;
	for (; at < merge->count; at++) {
		if (merge->out[at].kind == MERGED_LEFT_OUT) {
			merge->out[at].index += (uint32_t)gap->left_out;
			return;
		}
	}
	put(merge, MERGED_LEFT_OUT, gap->left_out);
}

enum wire_python merge_stacks(
	const struct merge_input *input, struct merged_frame *ret_frames, size_t *ret_count)
{
	size_t evaluations = count_evaluations(input), groups = count_groups(input);
	bool from_outside = input->native_complete && input->python_complete;
	struct merge merge = {
		.input = input, .out = ret_frames, .python_left = input->python_count};
	size_t without_group = 0; /* outermost evaluations whose Python frames are not there */

	if (!from_outside) {
		without_group = evaluations > groups ? evaluations - groups : 0;
		for (size_t i = groups; i > evaluations; i--)
			put_group_without_evaluation(&merge);
	}
	for (size_t i = input->native_count; i-- > 0;) {
		put(&merge, MERGED_NATIVE, i);
		if (input->is_eval(input->context, input->native[i])) {
			if (without_group)
				without_group--;
			else
				put_group(&merge);
		}
		if (input->native_gap.left_out && i == input->native_gap.at) {
			put_native_gap(&merge, MIN(without_group, input->native_gap.groups));
			without_group -= MIN(without_group, input->native_gap.groups);
		}
	}
	/* The innermost evaluation was not recognised as one. */
	while (merge.python_left)
		put_group(&merge);
	*ret_count = merge.count;
	if (from_outside)
		return evaluations == groups || evaluations == groups + 1 ? WIRE_PYTHON_FRAMES
									  : WIRE_PYTHON_NOT_MERGED;
	return input->python_complete && evaluations > groups + 1 ? WIRE_PYTHON_NOT_MERGED
								  : WIRE_PYTHON_FRAMES;
}
