/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcupti found and opened at run time. Every function is optional: a missing one answers
 * CUPTI_E_NOT_SUPPORTED. From CUDA 13.2 on the calls that take our subscriber are used, so that
 * several tools can trace at once; the two families are never mixed, which CUPTI refuses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_abi.h"
#include "inject/cuda/cupti_pc_abi.h"
#include "inject/cuda/cupti_places.h"
#include "inject/cuda/cupti_pm_abi.h"

struct cupti_functions {
	cupti_result (*get_version)(uint32_t *version);
	cupti_result (*get_timestamp)(uint64_t *timestamp);
	cupti_result (*get_result_string)(cupti_result result, const char **text);
	cupti_result (*set_thread_id_type)(int type);
	cupti_result (*subscribe)(cupti_handle *subscriber, cupti_callback *callback, void *user);
	cupti_result (*subscribe_v2)(cupti_handle *subscriber, cupti_callback *callback, void *user,
		struct cupti_subscriber_params *params);
	cupti_result (*unsubscribe)(cupti_handle subscriber);
	cupti_result (*enable_callback)(
		uint32_t enable, cupti_handle subscriber, int domain, uint32_t id);
	cupti_result (*register_callbacks)(cupti_request *request, cupti_complete *complete);
	cupti_result (*register_callbacks_v2)(
		cupti_handle subscriber, cupti_request_v2 *request, cupti_complete_v2 *complete);
	cupti_result (*enable)(int kind);
	cupti_result (*enable_v2)(cupti_handle subscriber, int kind, void *config);
	cupti_result (*disable)(int kind);
	cupti_result (*disable_v2)(cupti_handle subscriber, int kind, void *config);
	cupti_result (*set_attribute)(int attribute, size_t *bytes, void *value);
	cupti_result (*set_attribute_v2)(
		cupti_handle subscriber, int attribute, size_t *bytes, void *value);
	cupti_result (*enable_latency)(uint8_t enable);
	cupti_result (*enable_device_graphs)(uint8_t enable);
	cupti_result (*configure_unified)(struct cupti_unified_config *configs, uint32_t count);
	cupti_result (*flush_all)(uint32_t flag);
	cupti_result (*next_record)(uint8_t *buffer, size_t valid_bytes, void **record);
	cupti_result (*next_record_v2)(
		cupti_handle subscriber, uint8_t *buffer, size_t valid_bytes, void **record);
	cupti_result (*dropped)(cupti_handle context, uint32_t stream, size_t *dropped);
	cupti_result (*dropped_v2)(
		cupti_handle subscriber, cupti_handle context, uint32_t stream, size_t *dropped);
	cupti_result (*graph_id)(cupti_handle graph, uint32_t *id);
	cupti_result (*exec_id)(cupti_handle exec, uint32_t *id);
	cupti_result (*node_id)(cupti_handle node, uint64_t *id);
	cupti_result (*pc_enable)(struct cupti_pc_params *params);
	cupti_result (*pc_disable)(struct cupti_pc_params *params);
	cupti_result (*pc_start)(struct cupti_pc_params *params);
	cupti_result (*pc_stop)(struct cupti_pc_params *params);
	cupti_result (*pc_get_data)(struct cupti_pc_data_params *params);
	cupti_result (*pc_set)(struct cupti_pc_config_params *params);
	cupti_result (*pc_get)(struct cupti_pc_config_params *params);
	cupti_result (*pc_count_reasons)(struct cupti_pc_reason_count_params *params);
	cupti_result (*pc_get_reasons)(struct cupti_pc_reasons_params *params);
	cupti_result (*pc_line)(struct cupti_pc_line_params *params);
	cupti_result (*cubin_crc)(struct cupti_cubin_crc_params *params);
	cupti_result (*device_of_context)(cupti_handle context, uint32_t *device);
	cupti_result (*profiler_initialize)(struct cupti_profiler_params *params);
	cupti_result (*chip_name)(struct cupti_chip_params *params);
	cupti_result (*host_initialize)(struct cupti_host_init_params *params);
	cupti_result (*host_deinitialize)(struct cupti_host_params *params);
	cupti_result (*host_add)(struct cupti_host_metrics_params *params);
	cupti_result (*host_image_size)(struct cupti_host_size_params *params);
	cupti_result (*host_image)(struct cupti_host_image_params *params);
	cupti_result (*host_passes)(struct cupti_host_passes_params *params);
	cupti_result (*host_values)(struct cupti_host_values_params *params);
	cupti_result (*pm_availability)(struct cupti_pm_availability_params *params);
	cupti_result (*pm_enable)(struct cupti_pm_enable_params *params);
	cupti_result (*pm_disable)(struct cupti_pm_params *params);
	cupti_result (*pm_set)(struct cupti_pm_config_params *params);
	cupti_result (*pm_start)(struct cupti_pm_params *params);
	cupti_result (*pm_stop)(struct cupti_pm_params *params);
	cupti_result (*pm_decode)(struct cupti_pm_decode_params *params);
	cupti_result (*pm_data_size)(struct cupti_pm_data_size_params *params);
	cupti_result (*pm_data_init)(struct cupti_pm_data_init_params *params);
	cupti_result (*pm_data_info)(struct cupti_pm_data_info_params *params);
	cupti_result (*pm_sample)(struct cupti_pm_sample_params *params);
};

struct cupti {
	struct cupti_functions call;
	uint32_t version;
	bool by_subscriber; /* the calls that take the subscriber are used */
	bool is_shared;     /* others may subscribe, too */
	cupti_handle subscriber;
	char path[CUPTI_PATH_BYTES];
	/* Until one was opened: "PATH REASON" of the first that is there and does not serve. */
	char refused[CUPTI_PATH_BYTES];
};

/* The callbacks that receive buffers, in both forms. */
struct cupti_buffer_callbacks {
	cupti_request *request;
	cupti_complete *complete;
	cupti_request_v2 *request_v2;
	cupti_complete_v2 *complete_v2;
};

/*
 * Opens the libcupti that fits: the one that the program has already, $SONDE_CUPTI, the one beside
 * the program's CUDA libraries, in the packages that it has mapped, in its environment, the
 * loader's, in a toolkit; none that is newer than the driver where that is known. False when
 * there is none: `ret_search` and `refused` say what was looked at.
 */
bool cupti_open(struct cupti *cupti, struct cupti_search *ret_search);

/* `ret_holder` (CUPTI_SUBSCRIBER_NAME_BYTES) gets the name of who holds CUPTI, or "". */
cupti_result cupti_subscribe(struct cupti *cupti, cupti_callback *callback, char *ret_holder);

/* Others may subscribe then. */
void cupti_unsubscribe(struct cupti *cupti);

cupti_result cupti_register(struct cupti *cupti, const struct cupti_buffer_callbacks *callbacks);
cupti_result cupti_set_attribute(struct cupti *cupti, int attribute, size_t bytes, void *value);
cupti_result cupti_enable(struct cupti *cupti, int kind, bool on);
/* Records of kernels have the times at which their launches were queued and submitted. */
cupti_result cupti_enable_latency(struct cupti *cupti);
/* Graphs that devices launch have records where graphs are timed as a whole. */
cupti_result cupti_enable_device_graphs(struct cupti *cupti);
cupti_result cupti_enable_callback(struct cupti *cupti, int domain, uint32_t id, bool on);
/* NULL at the first call, then what the last gave; false at the end. */
bool cupti_next_record(struct cupti *cupti, uint8_t *buffer, size_t valid_bytes, void **record);
/* Records that CUPTI lost since the last call. */
size_t cupti_dropped(struct cupti *cupti, cupti_handle context, uint32_t stream);

/* When a fault of a version shows. */
enum cupti_when {
	CUPTI_ALWAYS,
	CUPTI_AT_GRAPH_LEVEL,
	CUPTI_AGAIN, /* when kinds are enabled a second time */
};

/* Finished sentences on what a version is known to do wrong, from number 0; NULL after the last. */
const char *cupti_known_fault(uint32_t version, enum cupti_when when, unsigned number);
/* "12.4", "13.0.1" */
void cupti_version_text(uint32_t version, char *text, size_t bytes);

/* cupti_find.c: calls the search's `try` with candidates, best first, until it returns true. */
bool cupti_find(struct cupti_search *search);
/* The newest CUDA major version that the loaded driver knows; 0: unknown. */
unsigned cupti_driver_cuda_major(void);
