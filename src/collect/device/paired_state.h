/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the collector of paired clocks share: paired.c has launches and their work,
 * paired_events.c what else a process reports. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "collect/device/clock.h"
#include "collect/device/output.h"
#include "collect/device/paired.h"
#include "collect/device/waiting_launches.h"

#define PAIRED_MAX_GPUS  1024
#define PAIRED_MAX_NOTES 16

struct paired_process {
	uint32_t pid;
	uint32_t notes;
	struct paired_clock clock;
	uint64_t clock_written_ns;
	struct waiting_launches launches;
	struct capture_device_counts counts;
	struct map_u64 pc_texts; /* ids that are in the capture */
};

struct pending_activity {
	struct wire_device_gpu_activity activity;
	uint32_t process; /* index */
	uint64_t pairs;   /* of the process's clock when it came */
	uint64_t seen_ns; /* 0: not looked at yet */
};

struct paired_collector {
	const struct device_output *output;
	const struct device_names *names;
	struct device_account *account;
	struct map_u64 process_index; /* pid → index in processes */
	ARRAY_OF(struct paired_process *) processes;
	ARRAY_OF(struct pending_activity) pending;
	struct device_note notes[PAIRED_MAX_NOTES];
	size_t note_count;
	uint64_t end_ns; /* UINT64_MAX: the recording goes on */
};

/* Counts a record that cannot be; 0. */
static inline int paired_drop(struct paired_collector *collector)
{
	collector->account->malformed++;
	return 0;
}

/* A GPU's ordinal + 1, of its id; 0: it is none. */
static inline uint32_t device_gpu_number(uint32_t id)
{
	uint32_t runtime = id / WIRE_DEVICE_IDS_OF(1), number = id % WIRE_DEVICE_IDS_OF(1);

	return runtime && number <= PAIRED_MAX_GPUS ? number : 0;
}

/* A record of each type, into the capture. Return 0 or a negative errno. */
int paired_add_clock(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_clock *record);
int paired_add_graph(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_graph *record);
int paired_add_node(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_node *record);
int paired_add_overhead(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_overhead *record);
int paired_add_memory(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_memory *record);
int paired_add_sync(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_sync *record);
int paired_add_call(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_call *record);
int paired_add_pc(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pc *record);
int paired_add_pc_counts(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pc_counts *record);
int paired_add_pm(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pm *record);
int paired_add_unified(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_unified *record);
int paired_add_gpu(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_gpu *record);
int paired_add_counts(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_counts *record);
int paired_add_note(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_definition *record);
