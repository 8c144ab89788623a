/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the reasons why warps stand, which CUPTI gives for each kind of GPU. */
#include <string.h>

#include "inject/cuda/pc.h"

/*
 * "smsp__pcsamp_warps_issue_stalled_barrier_not_issued" is the part of "…_stalled_barrier" in which
 * the scheduler issued no instruction of any warp.
 */
#define NOT_ISSUED "_not_issued"

struct pc_reason cuda_pc_reasons[PC_MAX_NUMBERS];
char cuda_pc_slots[PC_MAX_SLOTS][CUPTI_PC_REASON_BYTES];

static char names[PC_MAX_NUMBERS][CUPTI_PC_REASON_BYTES];
static uint32_t numbers[PC_MAX_NUMBERS];
static size_t slot_count;

/* The length of the whole reason's name; 0: it is no part of one. */
static size_t whole_length(const char *name)
{
	size_t length = strlen(name), ending = sizeof(NOT_ISSUED) - 1;

	return length > ending && strcmp(name + length - ending, NOT_ISSUED) == 0 ? length - ending
										  : 0;
}

static uint8_t slot_of(const char *name, size_t length)
{
	for (size_t i = 0; i < slot_count; i++)
		if (strlen(cuda_pc_slots[i]) == length &&
			memcmp(cuda_pc_slots[i], name, length) == 0)
			return (uint8_t)i;
	return PC_NO_SLOT;
}

static uint8_t add_slot(const char *name)
{
	if (slot_count == PC_MAX_SLOTS)
		return PC_NO_SLOT;
	memcpy(cuda_pc_slots[slot_count], name, strlen(name) + 1);
	return (uint8_t)slot_count++;
}

/* Whole reasons first; a part without its whole is a reason of its own. */
static void take_names(size_t count)
{
	for (size_t i = 0; i < PC_MAX_NUMBERS; i++)
		cuda_pc_reasons[i] = (struct pc_reason){.slot = PC_NO_SLOT};
	for (size_t i = 0; i < count; i++) {
		names[i][CUPTI_PC_REASON_BYTES - 1] = '\0';
		if (numbers[i] < PC_MAX_NUMBERS && !whole_length(names[i]))
			cuda_pc_reasons[numbers[i]].slot = add_slot(names[i]);
	}
	for (size_t i = 0; i < count; i++) {
		size_t length = whole_length(names[i]);
		struct pc_reason *reason = &cuda_pc_reasons[numbers[i] % PC_MAX_NUMBERS];

		if (numbers[i] >= PC_MAX_NUMBERS || !length)
			continue;
		reason->slot = slot_of(names[i], length);
		reason->is_not_issued = reason->slot != PC_NO_SLOT;
		if (reason->slot == PC_NO_SLOT)
			reason->slot = add_slot(names[i]);
	}
}

cupti_result cuda_pc_read_reasons(cupti_handle context, size_t *ret_count)
{
	static size_t known_count;
	char *places[PC_MAX_NUMBERS];
	struct cupti_pc_reason_count_params count = {
		.bytes = sizeof(count), .context = context, .count = ret_count};
	struct cupti_pc_reasons_params params = {
		.bytes = sizeof(params), .context = context, .indices = numbers, .names = places};
	cupti_result result;

	*ret_count = known_count;
	if (known_count)
		return CUPTI_OK;
	if (!cuda.cupti.call.pc_count_reasons || !cuda.cupti.call.pc_get_reasons)
		return CUPTI_E_NOT_SUPPORTED;
	result = cuda.cupti.call.pc_count_reasons(&count);
	if (result != CUPTI_OK)
		return result;
	if (!*ret_count || *ret_count > PC_MAX_NUMBERS)
		return CUPTI_E_NOT_SUPPORTED;
	for (size_t i = 0; i < *ret_count; i++)
		places[i] = names[i];
	params.count = *ret_count;
	result = cuda.cupti.call.pc_get_reasons(&params);
	if (result != CUPTI_OK)
		return result;
	take_names(*ret_count);
	known_count = *ret_count;
	return CUPTI_OK;
}
