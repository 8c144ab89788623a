/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by instruction and reason, from one send to the next. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/cuda/pc.h"

#define ENTRIES 16384 /* a power of two */

static struct pc_entry *table; /* NULL: not mapped yet */
static size_t entry_count;
static struct wire_device_pc_counts counts;

static uint64_t hash_of(const struct cupti_pc *pc)
{
	uint64_t hash = pc->cubin_crc * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ pc->function_index) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ pc->pc_offset) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static bool is_of(const struct pc_entry *entry, const struct cupti_pc *pc)
{
	return entry->cubin == pc->cubin_crc && entry->pc_offset == pc->pc_offset &&
	       entry->function_index == pc->function_index;
}

/* Its place, or a free one; NULL: none is left. */
static struct pc_entry *find(const struct cupti_pc *pc)
{
	size_t at = hash_of(pc) & (ENTRIES - 1);

	for (size_t i = 0; i < ENTRIES; i++, at = (at + 1) & (ENTRIES - 1)) {
		if (table[at].total && is_of(&table[at], pc))
			return &table[at];
		if (table[at].total)
			continue;
		if (entry_count >= ENTRIES / 8 * 7)
			return NULL;
		return &table[at];
	}
	return NULL;
}

static bool has_table(void)
{
	void *memory;

	if (table)
		return true;
	memory = mmap(NULL, ENTRIES * sizeof(*table), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	table = memory;
	return true;
}

/* Of the whole reasons: what was not issued is in them. */
static uint64_t samples_of(const struct cupti_pc *pc)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < pc->stall_count; i++)
		if (pc->stalls[i].reason >= PC_MAX_NUMBERS ||
			!cuda_pc_reasons[pc->stalls[i].reason].is_not_issued)
			sum += pc->stalls[i].samples;
	return sum;
}

static void add_stall(struct pc_entry *entry, const struct cupti_pc_stall *stall)
{
	static const struct pc_reason unknown = {.slot = PC_NO_SLOT};
	const struct pc_reason *reason =
		stall->reason < PC_MAX_NUMBERS ? &cuda_pc_reasons[stall->reason] : &unknown;

	if (reason->slot == PC_NO_SLOT)
		counts.lost += stall->samples;
	else if (reason->is_not_issued)
		entry->not_issued[reason->slot] += stall->samples;
	else
		entry->samples[reason->slot] += stall->samples;
}

static void add_pc(const struct cupti_pc *pc)
{
	uint64_t samples;
	struct pc_entry *entry;

	if (!pc->stalls || pc->stall_count > PC_MAX_NUMBERS)
		return;
	samples = samples_of(pc);
	if (!samples)
		return;
	entry = has_table() ? find(pc) : NULL;
	if (!entry) {
		counts.lost += samples;
		return;
	}
	if (!entry->total) {
		entry->cubin = pc->cubin_crc;
		entry->pc_offset = pc->pc_offset;
		entry->function_index = pc->function_index;
		entry->function = pc->function;
		entry_count++;
	}
	entry->total += samples;
	for (size_t i = 0; i < pc->stall_count; i++)
		add_stall(entry, &pc->stalls[i]);
}

void cuda_pc_add(const struct cupti_pc_data *data)
{
	size_t stride = cupti_pc_bytes(cuda.cupti.version);

	counts.reads++;
	counts.samples += data->samples;
	counts.dropped += data->dropped;
	counts.foreign += data->foreign_samples;
	counts.full_reads += data->is_full != 0;
	for (size_t i = 0; i < data->count && i < data->room; i++)
		add_pc((const void *)((const char *)data->pcs + i * stride));
}

void cuda_pc_count_failed(bool is_full)
{
	counts.reads++;
	if (is_full)
		counts.full_reads++;
	else
		counts.failed_reads++;
}

bool cuda_pc_is_nearly_full(void)
{
	return entry_count > ENTRIES / 2;
}

void cuda_pc_forget(void)
{
	if (table && entry_count)
		madvise(table, ENTRIES * sizeof(*table), MADV_DONTNEED); /* zeros again */
	entry_count = 0;
	counts = (struct wire_device_pc_counts){0};
}

static int most_first(const void *one, const void *other)
{
	const struct pc_entry *a = *(struct pc_entry *const *)one,
			      *b = *(struct pc_entry *const *)other;

	return a->total < b->total ? 1 : a->total > b->total ? -1 : 0;
}

static void send_entry(const struct pc_entry *entry, uint64_t since_ns)
{
	struct wire_device_pc record = {
		.record = {.type = WIRE_RECORD_DEVICE_PC, .length_bytes = sizeof(record)},
		.time_ns = since_ns,
		.cubin = entry->cubin,
		.pc_offset = entry->pc_offset,
		.function = cuda_name_id(entry->function),
		.file = cuda_name_id(entry->file),
		.line = entry->line,
	};

	for (size_t i = 0; i < PC_MAX_SLOTS; i++) {
		if (!entry->samples[i])
			continue;
		record.samples = entry->samples[i];
		record.not_issued = entry->not_issued[i] < entry->samples[i] ? entry->not_issued[i]
									     : entry->samples[i];
		record.reason = cuda_name_id(cuda_pc_slots[i]);
		cuda_write(&record.record);
	}
}

static void send_entries(uint64_t since_ns)
{
	static struct pc_entry *hot[ENTRIES];
	size_t count = 0;

	for (size_t i = 0; i < ENTRIES; i++)
		if (table[i].total)
			hot[count++] = &table[i];
	qsort(hot, count, sizeof(*hot), most_first);
	cuda_pc_find_lines(hot, count);
	cuda_names_begin();
	for (size_t i = 0; i < count; i++)
		send_entry(hot[i], since_ns);
}

void cuda_pc_send(uint64_t since_ns, uint32_t period_cycles)
{
	if (entry_count)
		send_entries(since_ns);
	if (counts.reads) {
		counts.record = (struct wire_record){
			.type = WIRE_RECORD_DEVICE_PC_COUNTS, .length_bytes = sizeof(counts)};
		counts.time_ns = since_ns;
		counts.period_cycles = period_cycles;
		cuda_write(&counts.record);
	}
	cuda_pc_forget();
}
