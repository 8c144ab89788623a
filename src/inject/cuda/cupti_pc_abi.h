/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's PC Sampling API, as cupti_abi.h has the rest: from CUDA 11.8 on, and compared with the
 * real headers by the same test. Structures begin with their size, by which CUPTI tells releases
 * apart; of those that it fills in arrays, cupti_pc_bytes() is what the release in use has.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_abi.h"

#define CUPTI_PC_REASON_BYTES 128 /* of a reason's name, with its end */

enum cupti_pc_mode {
	CUPTI_PC_CONTINUOUS = 1, /* kernels may run at the same time */
};

enum cupti_pc_attribute {
	CUPTI_PC_PERIOD = 1, /* its logarithm to base 2, in cycles */
	CUPTI_PC_MODE = 5,
	CUPTI_PC_START_STOP = 6,
	CUPTI_PC_BUFFER = 8,
};

struct cupti_pc_stall {
	uint32_t reason;
	uint32_t samples;
};

struct cupti_pc {
	size_t bytes;
	uint64_t cubin_crc;
	uint64_t pc_offset;
	uint32_t function_index; /* in the cubin */
	uint32_t padding;
	char *function; /* may be shared with other records, those of activities included */
	size_t stall_count;
	struct cupti_pc_stall *stalls;
	uint32_t correlation; /* 12.4 */
	uint32_t padding_2;
};

_Static_assert(offsetof(struct cupti_pc, correlation) == 56, "CUpti_PCSamplingPCData");
_Static_assert(sizeof(struct cupti_pc) == 64, "CUpti_PCSamplingPCData");

static inline size_t cupti_pc_bytes(uint32_t version)
{
	return version >= CUPTI_VERSION_12_4 ? sizeof(struct cupti_pc)
					     : offsetof(struct cupti_pc, correlation);
}

struct cupti_pc_data {
	size_t bytes;
	size_t room; /* in pcs, of any release */
	uint64_t samples;
	uint64_t dropped;
	size_t count;
	size_t remaining;
	uint64_t range;
	struct cupti_pc *pcs;
	uint64_t foreign_samples;
	uint8_t is_full; /* 12.0; 11.8 leaves it as it is */
	uint8_t padding[7];
};

_Static_assert(offsetof(struct cupti_pc_data, foreign_samples) == 64, "CUpti_PCSamplingData");
_Static_assert(sizeof(struct cupti_pc_data) == 80, "CUpti_PCSamplingData");

/* Of enabling, disabling, starting and stopping. */
struct cupti_pc_params {
	size_t bytes;
	void *reserved;
	cupti_handle context;
};

struct cupti_pc_data_params {
	size_t bytes;
	void *reserved;
	cupti_handle context;
	struct cupti_pc_data *data;
};

struct cupti_pc_config {
	int attribute; /* enum cupti_pc_attribute */
	cupti_result result;
	union {
		uint64_t longest[3];
		uint32_t number;
		void *pointer;
	};
};

_Static_assert(sizeof(struct cupti_pc_config) == 32, "CUpti_PCSamplingConfigurationInfo");

struct cupti_pc_config_params {
	size_t bytes;
	void *reserved;
	cupti_handle context;
	size_t count;
	struct cupti_pc_config *items;
};

struct cupti_pc_reason_count_params {
	size_t bytes;
	void *reserved;
	cupti_handle context;
	size_t *count;
};

struct cupti_pc_reasons_params {
	size_t bytes;
	void *reserved;
	cupti_handle context;
	size_t count;
	uint32_t *indices;
	char **names; /* each of CUPTI_PC_REASON_BYTES */
};

/* The texts are the caller's to free. */
struct cupti_pc_line_params {
	size_t bytes;
	const void *cubin;
	const char *function;
	size_t cubin_bytes;
	uint32_t line;
	uint32_t padding;
	uint64_t pc_offset;
	char *file;
	char *folder;
};

_Static_assert(sizeof(struct cupti_pc_line_params) == 64, "CUpti_GetSassToSourceCorrelationParams");

struct cupti_cubin_crc_params {
	size_t bytes;
	size_t cubin_bytes;
	const void *cubin;
	uint64_t crc;
};

/* What a callback of CUPTI_RESOURCE_MODULE_LOADED gets; good during the callback. */
struct cupti_module_data {
	uint32_t id;
	uint32_t padding;
	size_t cubin_bytes;
	const char *cubin;
};

_Static_assert(sizeof(struct cupti_module_data) == 24, "CUpti_ModuleResourceData");
