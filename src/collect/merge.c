/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/merge.h"

#include "base/macros.h"

static size_t count_evaluations(const struct merge_input *input)
{
	size_t count = 0;

	for (size_t i = 0; i < input->native_count; i++)
		count += input->is_eval(input->context, input->native[i]);
	return count;
}

/* Runs of Python frames, each of which one native evaluation made. */
static size_t count_groups(const struct merge_input *input)
{
	size_t count = 0;

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
};

static void put(struct merge *merge, size_t index, bool is_python)
{
	merge->out[merge->count++] =
		(struct merged_frame){.index = (uint32_t)index, .is_python = is_python};
}

/* The outermost group that is left. */
static void put_group(struct merge *merge)
{
	do {
		if (!merge->python_left)
			return;
		put(merge, --merge->python_left, true);
	} while (merge->python_left &&
		 !(merge->input->python[merge->python_left - 1].flags & WIRE_PYTHON_ENTRY));
}

enum wire_python merge_stacks(const struct merge_input *input, struct merged_frame *ret_frames)
{
	size_t evaluations = count_evaluations(input), groups = count_groups(input);
	bool from_outside = input->native_complete && input->python_complete;
	struct merge merge = {
		.input = input, .out = ret_frames, .python_left = input->python_count};
	size_t without_group = 0; /* outermost evaluations whose Python frames are not there */

	if (!from_outside) {
		without_group = evaluations > groups ? evaluations - groups : 0;
		for (size_t i = groups; i > evaluations; i--)
			put_group(&merge);
	}
	for (size_t i = input->native_count; i-- > 0;) {
		put(&merge, i, false);
		if (!input->is_eval(input->context, input->native[i]))
			continue;
		if (without_group)
			without_group--;
		else
			put_group(&merge);
	}
	/* The innermost evaluation was not recognised as one. */
	while (merge.python_left)
		put_group(&merge);
	if (from_outside)
		return evaluations == groups || evaluations == groups + 1 ? WIRE_PYTHON_FRAMES
									  : WIRE_PYTHON_NOT_MERGED;
	return input->python_complete && evaluations > groups + 1 ? WIRE_PYTHON_NOT_MERGED
								  : WIRE_PYTHON_FRAMES;
}
