/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/launch/copy.h"

#include <string.h>

#include "arch/launch.h"
#include "inject/inject.h"

/* Copies leave room for the records of work. */
static bool has_room(void)
{
	return inject_room() > WIRE_RING_AT_FIRST / 4;
}

/* Before the first stack with them, so that they are there; false when there is no room. */
static bool send_codes(const struct launch_copy *copy, struct launch_copy_memory *memory,
	const struct wire_python_frame *frames, uint32_t count)
{
	struct wire_python_code *record = (struct wire_python_code *)memory->code;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t hash = python_mix(frames[i].code, frames[i].check) | 1;
		uint64_t *sent = &memory->sent_codes[hash >> 40 & (LAUNCH_SENT_CODES - 1)];

		if (*sent == hash)
			continue;
		launch_python_code(copy->python, &frames[i], copy->time_ns, record);
		if (!has_room() || !inject_write(&record->record))
			return false;
		*sent = hash;
	}
	return true;
}

bool launch_copy_write(const struct launch_copy *copy, struct launch_copy_memory *memory)
{
	struct wire_sample *sample = (struct wire_sample *)memory->record;
	struct wire_python_frame *frames = (struct wire_python_frame *)(sample + 1);
	uint64_t registers[ARCH_REGISTERS] = {0}, pc, bytes;
	enum wire_python python = copy->python_reason;
	struct wire_stack_copy *stack;

	*sample = (struct wire_sample){
		.record = {.type = WIRE_RECORD_SAMPLE},
		.time_ns = copy->time_ns,
		.tid = inject_tid(),
		.correlation = copy->correlation,
	};
	if (copy->python && copy->python_frame) {
		sample->python_frame_count =
			launch_python_frames(copy->python, copy->python_frame, frames, &python);
		sample->python_interpreter = copy->python->interpreter;
		if (!send_codes(copy, memory, frames, sample->python_frame_count))
			return false;
	}
	sample->python = (uint8_t)python;
	pc = arch_launch_registers(registers);
	bytes = copy->stack_end - registers[ARCH_DWARF_SP];
	if (bytes > WIRE_LAUNCH_COPY_BYTES)
		bytes = WIRE_LAUNCH_COPY_BYTES;
	stack = (struct wire_stack_copy *)(frames + sample->python_frame_count);
	*stack = (struct wire_stack_copy){
		.pc = pc,
		.sp = registers[ARCH_DWARF_SP],
		.fp = registers[ARCH_DWARF_FP],
		.second = registers[ARCH_DWARF_SECOND],
		.stack_bytes = bytes & ~7ULL,
	};
	memcpy(stack->leaf, registers, sizeof(stack->leaf));
	memcpy(stack + 1, (const void *)(uintptr_t)stack->sp, stack->stack_bytes);
	sample->record.length_bytes =
		(uint32_t)((unsigned char *)(stack + 1) + stack->stack_bytes - memory->record);
	return has_room() && inject_write(&sample->record);
}
