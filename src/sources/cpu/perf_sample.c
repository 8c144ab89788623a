/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/cpu/perf_sample.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include ARCH_HEADER(perf)
#include "base/macros.h"

/* Where a register in DWARF order is in the dump. */
static const uint8_t dump_position[ARCH_REGISTERS] = ARCH_PERF_POSITIONS;

/* Reads a record's fields one after another; `ok` becomes false at the first that is not there. */
struct field_reader {
	const uint8_t *bytes;
	size_t left;
	bool ok;
};

static const void *take_bytes(struct field_reader *reader, uint64_t length)
{
	const uint8_t *bytes = reader->bytes;

	if (!reader->ok || length > reader->left) {
		reader->ok = false;
		return NULL;
	}
	reader->bytes += length;
	reader->left -= length;
	return bytes;
}

static uint64_t take_u64(struct field_reader *reader)
{
	const void *bytes = take_bytes(reader, sizeof(uint64_t));
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The chain is { nr, ips[nr] }, with context markers among the addresses. */
static void take_kernel_frames(struct field_reader *reader, struct wire_sample *sample)
{
	uint64_t count = take_u64(reader);
	const uint8_t *bytes = NULL;

	if (count <= UINT16_MAX)
		bytes = take_bytes(reader, count * sizeof(uint64_t));
	else
		reader->ok = false;
	for (uint64_t i = 0; bytes && i < count; i++) {
		uint64_t address;

		memcpy(&address, bytes + i * sizeof(address), sizeof(address));
		if (address < (uint64_t)PERF_CONTEXT_MAX &&
			sample->kernel_frame_count < WIRE_MAX_KERNEL_FRAMES)
			sample->frames[sample->kernel_frame_count++] = address;
	}
}

static void copy_registers(struct wire_stack_copy *copy, const uint8_t *dump)
{
	uint64_t registers[ARCH_PERF_COUNT];

	memcpy(registers, dump, sizeof(registers));
	copy->pc = registers[ARCH_PERF_PC];
	copy->sp = registers[ARCH_PERF_SP];
	copy->fp = registers[ARCH_PERF_FP];
	copy->second = registers[ARCH_PERF_SECOND];
	for (size_t i = 0; i < ARRAY_SIZE(dump_position); i++)
		copy->leaf[i] = registers[dump_position[i]];
}

/*
 * { abi, regs[] when abi } { size, bytes[size], dynamic_size when size }: the dynamic size is what
 * was really copied. Returns the bytes used behind the frames.
 */
static size_t take_user_part(struct field_reader *reader, struct wire_sample *sample)
{
	struct wire_stack_copy *copy = (void *)&sample->frames[sample->kernel_frame_count];
	uint64_t abi = take_u64(reader), size, copied;
	const uint8_t *registers = NULL, *stack;

	if (abi != PERF_SAMPLE_REGS_ABI_NONE)
		registers = take_bytes(reader, ARCH_PERF_COUNT * sizeof(uint64_t));
	size = take_u64(reader);
	stack = take_bytes(reader, size);
	copied = size ? take_u64(reader) : 0;
	if (!registers || abi != PERF_SAMPLE_REGS_ABI_64) {
		sample->stop = registers ? WIRE_STOP_COMPAT : WIRE_STOP_NO_USER_STACK;
		return 0;
	}
	if (!reader->ok)
		return 0;
	copy_registers(copy, registers);
	if (!copy->pc) { /* in the middle of exec, or at a thread's very end */
		sample->stop = WIRE_STOP_NO_USER_STACK;
		return 0;
	}
	copied = MIN(copied, size);
	copy->stack_bytes = MIN(copied, (uint64_t)WIRE_MAX_STACK_COPY_BYTES) & ~7ULL;
	memcpy(copy + 1, stack, copy->stack_bytes);
	sample->stop = WIRE_STOP_NO_TABLE; /* until the collector has unwound the copy */
	sample->flags |= WIRE_SAMPLE_STACK_COPY;
	return sizeof(*copy) + copy->stack_bytes;
}

/* The kernel's order of fields: ip, pid and tid, time, cpu, chain, registers, stack. */
bool perf_sample_convert(
	const struct perf_event_header *header, __u64 sample_type, struct wire_sample *sample)
{
	struct field_reader reader = {.bytes = (const uint8_t *)(header + 1),
		.left = header->size - sizeof(*header),
		.ok = true};
	uint64_t who;
	size_t length;

	*sample = (struct wire_sample){.record.type = WIRE_RECORD_SAMPLE};
	take_u64(&reader); /* ip: the registers have it */
	who = take_u64(&reader);
	sample->pid = (uint32_t)who;
	sample->tid = (uint32_t)(who >> 32);
	sample->time_ns = take_u64(&reader);
	sample->cpu = (uint32_t)take_u64(&reader);
	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		sample->flags |= WIRE_SAMPLE_KERNEL_MODE;
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		take_kernel_frames(&reader, sample);
	length = sizeof(*sample) + sample->kernel_frame_count * sizeof(uint64_t);
	length += take_user_part(&reader, sample);
	sample->record.length_bytes = (uint32_t)length;
	return reader.ok;
}
