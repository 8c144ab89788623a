/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sonde uses of rocprofiler-sdk 1.0 and later, as declarations of our own:
 * tests/unit/check-rocprofiler-abi.py compares them with the real headers where they are installed.
 * Only the first bytes of structs are here that end with more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 10000 * major + 100 * minor + patch, as the tool gets it. Of 0.x records are shorter. */
#define ROCPROFILER_VERSION_1_0 10000

enum rocprofiler_constants {
	ROCPROFILER_OK = 0,
	ROCPROFILER_CALLBACK_HIP_RUNTIME = 5,
	ROCPROFILER_CALLBACK_CODE_OBJECT = 10,
	ROCPROFILER_CODE_OBJECT_KERNEL = 2, /* an operation of it */
	ROCPROFILER_BUFFER_COPY = 10,
	ROCPROFILER_BUFFER_DISPATCH = 11,
	ROCPROFILER_REQUEST_COPY = 10,
	ROCPROFILER_REQUEST_DISPATCH = 11,
	ROCPROFILER_CATEGORY_TRACING = 1,
	ROCPROFILER_PHASE_ENTER = 1,
	ROCPROFILER_PHASE_EXIT = 2,
	ROCPROFILER_COPY_HOST_TO_DEVICE = 2,
	ROCPROFILER_COPY_DEVICE_TO_HOST = 3,
	ROCPROFILER_POLICY_LOSSLESS = 2,
	ROCPROFILER_AGENT_GPU = 2,
	ROCPROFILER_AGENT_VERSION_0 = 1,
};

struct rocprofiler_id {
	uint64_t handle;
};

/* ---- the tool ---- */

struct rocprofiler_client {
	size_t size;
	const char *name; /* ours to set */
	uint32_t handle;
};

typedef void rocprofiler_finalize_function(struct rocprofiler_client client);

struct rocprofiler_tool {
	size_t size;
	int (*initialize)(rocprofiler_finalize_function *finalize, void *data);
	void (*finalize)(void *data);
	void *data;
};

/* ---- callbacks ---- */

struct rocprofiler_callback_record {
	struct rocprofiler_id context;
	uint64_t thread;
	uint64_t internal, external, ancestor; /* correlation ids */
	int32_t kind, operation, phase;
	void *payload;
};

_Static_assert(sizeof(struct rocprofiler_callback_record) == 64 &&
		       offsetof(struct rocprofiler_callback_record, payload) == 56,
	"as of 1.0, by value");

typedef void rocprofiler_callback(
	struct rocprofiler_callback_record record, uint64_t *user, void *data);

/* The payload of a HIP call: its arguments follow, and at its end is what it returned. */
struct rocprofiler_hip_call {
	uint64_t size;
};

#define ROCPROFILER_HIP_RESULT_BYTES 24

struct rocprofiler_kernel_symbol {
	uint64_t size;
	uint64_t kernel;
	uint64_t code_object;
	const char *name;
	uint64_t object;
	uint32_t argument_bytes, argument_alignment;
	uint32_t group_bytes, private_bytes;
	uint32_t scalar_registers, vector_registers, accumulation_registers;
};

_Static_assert(offsetof(struct rocprofiler_kernel_symbol, vector_registers) == 60, "as of 1.0");

typedef int rocprofiler_request(uint64_t thread, struct rocprofiler_id context, int kind,
	int32_t operation, uint64_t internal, uint64_t *ret_external, void *data);

typedef int rocprofiler_take_operation(int kind, int32_t operation, void *data);

/* ---- buffers ---- */

struct rocprofiler_header {
	uint32_t category, kind;
	void *payload;
};

typedef void rocprofiler_take_buffer(struct rocprofiler_id context, struct rocprofiler_id buffer,
	struct rocprofiler_header **headers, size_t count, void *data, uint64_t dropped);

/* Times are CLOCK_BOOTTIME. */
struct rocprofiler_record {
	uint64_t size;
	int32_t kind, operation;
	uint64_t internal, external; /* correlation ids */
	uint64_t thread;
	uint64_t start, end;
};

struct rocprofiler_dispatch {
	struct rocprofiler_record common;
	uint64_t info_size;
	uint64_t agent, queue, kernel, dispatch;
	uint32_t private_bytes, group_bytes;
	uint32_t workgroup[3]; /* work-items */
	uint32_t grid[3];      /* the same, of all workgroups */
};

struct rocprofiler_copy {
	struct rocprofiler_record common;
	uint64_t to_agent, from_agent;
	uint64_t bytes;
};

_Static_assert(offsetof(struct rocprofiler_record, external) == 24 &&
		       offsetof(struct rocprofiler_record, start) == 40 &&
		       offsetof(struct rocprofiler_dispatch, agent) == 64 &&
		       offsetof(struct rocprofiler_dispatch, kernel) == 80 &&
		       offsetof(struct rocprofiler_dispatch, workgroup) == 104 &&
		       sizeof(struct rocprofiler_dispatch) == 128,
	"as of 1.0");
_Static_assert(offsetof(struct rocprofiler_copy, from_agent) == 64 &&
		       sizeof(struct rocprofiler_copy) == 80,
	"as of 1.0");

/* ---- agents ---- */

struct rocprofiler_agent {
	uint64_t size;
	uint64_t id;
	uint32_t type;
	uint32_t not_used_1[11];
	uint32_t wave_items;
	uint32_t xccs;
	uint32_t compute_units;
	uint32_t not_used_2[6];
	uint32_t gfx_version; /* major * 10000 + minor * 100 + stepping */
	uint32_t not_used_3[9];
	uint32_t core_clock_mhz;
	uint32_t not_used_4[4];
	uint32_t waves_per_unit;
	uint32_t family;
	uint32_t workgroup_items;
	uint32_t not_used_5;
	uint64_t memory_bytes;
	uint64_t not_used_6[8];
	const char *name; /* gfx942 */
	const char *vendor;
	const char *product;
	const char *model;
	uint32_t node;
	int32_t logical_node, ordinal; /* the last of them among those of its type */
};

_Static_assert(offsetof(struct rocprofiler_agent, gfx_version) == 100 &&
		       offsetof(struct rocprofiler_agent, memory_bytes) == 176 &&
		       offsetof(struct rocprofiler_agent, name) == 248 &&
		       offsetof(struct rocprofiler_agent, product) == 264 &&
		       offsetof(struct rocprofiler_agent, ordinal) == 288,
	"as of 1.0");

typedef int rocprofiler_take_agents(int version, const void **agents, size_t count, void *data);

/* ---- its functions, which return ROCPROFILER_OK or why not ---- */

struct rocprofiler_functions {
	int (*create_context)(struct rocprofiler_id *ret_context);
	int (*start_context)(struct rocprofiler_id context);
	int (*stop_context)(struct rocprofiler_id context);
	int (*create_buffer)(struct rocprofiler_id context, size_t bytes, size_t watermark,
		int policy, rocprofiler_take_buffer *take, void *data,
		struct rocprofiler_id *ret_buffer);
	int (*flush_buffer)(struct rocprofiler_id buffer);
	int (*trace_callbacks)(struct rocprofiler_id context, int kind, const int32_t *operations,
		size_t count, rocprofiler_callback *callback, void *data);
	int (*trace_buffer)(struct rocprofiler_id context, int kind, const int32_t *operations,
		size_t count, struct rocprofiler_id buffer);
	int (*answer_requests)(struct rocprofiler_id context, const int *kinds, size_t count,
		rocprofiler_request *answer, void *data);
	int (*each_operation)(int kind, rocprofiler_take_operation *take, void *data);
	int (*operation_name)(
		int kind, int32_t operation, const char **ret_name, uint64_t *ret_length);
	int (*agents)(int version, rocprofiler_take_agents *take, size_t agent_bytes, void *data);
	const char *(*status_text)(int status);
};

/* The field, and the name of the function; status_text may be missing. */
#define ROCPROFILER_FUNCTIONS(F)                                                                   \
	F(create_context, "rocprofiler_create_context")                                            \
	F(start_context, "rocprofiler_start_context")                                              \
	F(stop_context, "rocprofiler_stop_context")                                                \
	F(create_buffer, "rocprofiler_create_buffer")                                              \
	F(flush_buffer, "rocprofiler_flush_buffer")                                                \
	F(trace_callbacks, "rocprofiler_configure_callback_tracing_service")                       \
	F(trace_buffer, "rocprofiler_configure_buffer_tracing_service")                            \
	F(answer_requests, "rocprofiler_configure_external_correlation_id_request_service")        \
	F(each_operation, "rocprofiler_iterate_callback_tracing_kind_operations")                  \
	F(operation_name, "rocprofiler_query_callback_tracing_kind_operation_name")                \
	F(agents, "rocprofiler_query_available_agents")                                            \
	F(status_text, "rocprofiler_get_status_string")
