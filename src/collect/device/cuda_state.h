/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of CUDA's collector share: cuda.c has launches and their work,
 * cuda_told.c what else a process tells. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "collect/device/clock.h"
#include "collect/device/cuda.h"
#include "collect/device/output.h"
#include "collect/device/waiting_launches.h"

#define CUDA_MAX_GPUS  1024
#define CUDA_MAX_NOTES 16
/* CUDA's ids have this bit; a device's are its ordinal + 1. */
#define CUDA_RUNTIME_BIT WIRE_DEVICE_IDS_OF(8)

struct cuda_process {
	uint32_t pid;
	uint32_t notes;
	struct paired_clock clock;
	uint64_t clock_written_ns;
	struct waiting_launches launches;
	struct capture_device_counts counts;
};

struct pending_activity {
	struct wire_device_gpu_activity activity;
	uint32_t process; /* index */
	uint64_t pairs;   /* of the process's clock when it came */
	uint64_t seen_ns; /* 0: not looked at yet */
};

struct cuda_collector {
	const struct device_output *output;
	const struct device_names *names;
	struct device_account *account;
	struct map_u64 process_index; /* pid → index in processes */
	ARRAY_OF(struct cuda_process *) processes;
	ARRAY_OF(struct pending_activity) pending;
	struct device_note notes[CUDA_MAX_NOTES];
	size_t note_count;
	uint64_t end_ns; /* UINT64_MAX: the recording goes on */
};

/* Counts a record that cannot be; 0. */
static inline int cuda_drop(struct cuda_collector *collector)
{
	collector->account->malformed++;
	return 0;
}

/* 0: it is none. */
static inline uint32_t cuda_gpu_number(uint32_t id)
{
	uint32_t number = id & ~CUDA_RUNTIME_BIT;

	return id & CUDA_RUNTIME_BIT && number <= CUDA_MAX_GPUS ? number : 0;
}

/* A record of each type, into the capture. Return 0 or a negative errno. */
int cuda_add_clock(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_clock *record);
int cuda_add_graph(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_graph *record);
int cuda_add_node(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_node *record);
int cuda_add_overhead(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_overhead *record);
int cuda_add_memory(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_memory *record);
int cuda_add_gpu(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_gpu *record);
int cuda_add_counts(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_counts *record);
int cuda_add_note(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_definition *record);
