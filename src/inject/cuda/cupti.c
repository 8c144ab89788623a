/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cuda/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FUNCTION(field, symbol)                                                                    \
	{                                                                                          \
		offsetof(struct cupti_functions, field), symbol                                    \
	}

static const struct {
	size_t offset;
	const char *name;
} functions[] = {
	FUNCTION(get_version, "cuptiGetVersion"),
	FUNCTION(get_timestamp, "cuptiGetTimestamp"),
	FUNCTION(get_result_string, "cuptiGetResultString"),
	FUNCTION(set_thread_id_type, "cuptiSetThreadIdType"),
	FUNCTION(subscribe, "cuptiSubscribe"),
	FUNCTION(subscribe_v2, "cuptiSubscribe_v2"),
	FUNCTION(unsubscribe, "cuptiUnsubscribe"),
	FUNCTION(enable_callback, "cuptiEnableCallback"),
	FUNCTION(register_callbacks, "cuptiActivityRegisterCallbacks"),
	FUNCTION(register_callbacks_v2, "cuptiActivityRegisterCallbacks_v2"),
	FUNCTION(enable, "cuptiActivityEnable"),
	FUNCTION(enable_v2, "cuptiActivityEnable_v2"),
	FUNCTION(disable, "cuptiActivityDisable"),
	FUNCTION(disable_v2, "cuptiActivityDisable_v2"),
	FUNCTION(set_attribute, "cuptiActivitySetAttribute"),
	FUNCTION(set_attribute_v2, "cuptiActivitySetAttribute_v2"),
	FUNCTION(enable_latency, "cuptiActivityEnableLatencyTimestamps"),
	FUNCTION(enable_device_graphs, "cuptiActivityEnableDeviceGraph"),
	FUNCTION(configure_unified, "cuptiActivityConfigureUnifiedMemoryCounter"),
	FUNCTION(flush_all, "cuptiActivityFlushAll"),
	FUNCTION(next_record, "cuptiActivityGetNextRecord"),
	FUNCTION(next_record_v2, "cuptiActivityGetNextRecord_v2"),
	FUNCTION(dropped, "cuptiActivityGetNumDroppedRecords"),
	FUNCTION(dropped_v2, "cuptiActivityGetNumDroppedRecords_v2"),
	FUNCTION(graph_id, "cuptiGetGraphId"),
	FUNCTION(exec_id, "cuptiGetGraphExecId"),
	FUNCTION(node_id, "cuptiGetGraphNodeId"),
	FUNCTION(pc_enable, "cuptiPCSamplingEnable"),
	FUNCTION(pc_disable, "cuptiPCSamplingDisable"),
	FUNCTION(pc_start, "cuptiPCSamplingStart"),
	FUNCTION(pc_stop, "cuptiPCSamplingStop"),
	FUNCTION(pc_get_data, "cuptiPCSamplingGetData"),
	FUNCTION(pc_set, "cuptiPCSamplingSetConfigurationAttribute"),
	FUNCTION(pc_get, "cuptiPCSamplingGetConfigurationAttribute"),
	FUNCTION(pc_count_reasons, "cuptiPCSamplingGetNumStallReasons"),
	FUNCTION(pc_get_reasons, "cuptiPCSamplingGetStallReasons"),
	FUNCTION(pc_line, "cuptiGetSassToSourceCorrelation"),
	FUNCTION(cubin_crc, "cuptiGetCubinCrc"),
	FUNCTION(device_of_context, "cuptiGetDeviceId"),
	FUNCTION(profiler_initialize, "cuptiProfilerInitialize"),
	FUNCTION(chip_name, "cuptiDeviceGetChipName"),
	FUNCTION(host_initialize, "cuptiProfilerHostInitialize"),
	FUNCTION(host_deinitialize, "cuptiProfilerHostDeinitialize"),
	FUNCTION(host_add, "cuptiProfilerHostConfigAddMetrics"),
	FUNCTION(host_image_size, "cuptiProfilerHostGetConfigImageSize"),
	FUNCTION(host_image, "cuptiProfilerHostGetConfigImage"),
	FUNCTION(host_passes, "cuptiProfilerHostGetNumOfPasses"),
	FUNCTION(host_values, "cuptiProfilerHostEvaluateToGpuValues"),
	FUNCTION(pm_availability, "cuptiPmSamplingGetCounterAvailability"),
	FUNCTION(pm_enable, "cuptiPmSamplingEnable"),
	FUNCTION(pm_disable, "cuptiPmSamplingDisable"),
	FUNCTION(pm_set, "cuptiPmSamplingSetConfig"),
	FUNCTION(pm_start, "cuptiPmSamplingStart"),
	FUNCTION(pm_stop, "cuptiPmSamplingStop"),
	FUNCTION(pm_decode, "cuptiPmSamplingDecodeData"),
	FUNCTION(pm_data_size, "cuptiPmSamplingGetCounterDataSize"),
	FUNCTION(pm_data_init, "cuptiPmSamplingCounterDataImageInitialize"),
	FUNCTION(pm_data_info, "cuptiPmSamplingGetCounterDataInfo"),
	FUNCTION(pm_sample, "cuptiPmSamplingCounterDataGetSampleInfo"),
};

/* ---- opening ---- */

static unsigned cuda_major(uint32_t version)
{
	if (version >= CUPTI_VERSION_13_0)
		return version / 10000;
	return version >= CUPTI_VERSION_12_0 ? 12 : 11;
}

/* Names that the loader is asked for are not there, as a rule. */
static void note_refused(struct cupti *cupti, const char *path, const char *reason)
{
	if (strchr(path, '/') && !*cupti->refused)
		snprintf(cupti->refused, sizeof(cupti->refused), "%s %s", path, reason);
}

static bool open_candidate(void *context, const char *path, bool mapped)
{
	struct cupti *cupti = context;
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | (mapped ? RTLD_NOLOAD : 0));
	unsigned driver_major = cupti_driver_cuda_major();

	if (!library) {
		note_refused(cupti, path, "cannot be loaded");
		return false;
	}
	memset(&cupti->call, 0, sizeof(cupti->call));
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = dlsym(library, functions[i].name);

		memcpy((char *)&cupti->call + functions[i].offset, &function, sizeof(function));
	}
	if (!cupti->call.get_version || cupti->call.get_version(&cupti->version) != CUPTI_OK ||
		(!mapped && driver_major && cuda_major(cupti->version) > driver_major)) {
		note_refused(cupti, path, "is newer than the driver, or no libcupti");
		dlclose(library);
		return false;
	}
	snprintf(cupti->path, sizeof(cupti->path), "%s", path);
	return true;
}

bool cupti_open(struct cupti *cupti, struct cupti_search *ret_search)
{
	*cupti->refused = '\0';
	memset(ret_search, 0, sizeof(*ret_search));
	ret_search->try = open_candidate;
	ret_search->context = cupti;
	return cupti_find(ret_search);
}

/* ---- subscribing ---- */

static bool has_calls_by_subscriber(const struct cupti_functions *call)
{
	return call->register_callbacks_v2 && call->enable_v2 && call->disable_v2 &&
	       call->next_record_v2 && call->set_attribute_v2;
}

cupti_result cupti_subscribe(struct cupti *cupti, cupti_callback *callback, char *ret_holder)
{
	bool several =
		cupti->version >= CUPTI_VERSION_13_2 && has_calls_by_subscriber(&cupti->call);
	struct cupti_subscriber_params params = {
		.bytes = cupti->version >= CUPTI_VERSION_13_2 ? sizeof(params)
							      : CUPTI_SUBSCRIBER_PARAMS_13_0_BYTES,
		.name = "sonde",
		.old_name = ret_holder,
		.old_name_bytes = CUPTI_SUBSCRIBER_NAME_BYTES,
		.allow_multiple = several,
	};
	cupti_result result;

	*ret_holder = '\0';
	cupti->by_subscriber = several;
	cupti->is_shared = false;
	if (!cupti->call.subscribe_v2)
		return cupti->call.subscribe
			       ? cupti->call.subscribe(&cupti->subscriber, callback, NULL)
			       : CUPTI_E_NOT_SUPPORTED;
	result = cupti->call.subscribe_v2(&cupti->subscriber, callback, NULL, &params);
	cupti->is_shared = result == CUPTI_OK && several;
	if (result == CUPTI_OK || !several)
		return result;
	/* A driver that knows one subscriber only. */
	params.allow_multiple = 0;
	return cupti->call.subscribe_v2(&cupti->subscriber, callback, NULL, &params);
}

void cupti_unsubscribe(struct cupti *cupti)
{
	if (cupti->call.unsubscribe)
		cupti->call.unsubscribe(cupti->subscriber);
}

/* ---- both families of calls ---- */

cupti_result cupti_register(struct cupti *cupti, const struct cupti_buffer_callbacks *callbacks)
{
	if (cupti->by_subscriber)
		return cupti->call.register_callbacks_v2(
			cupti->subscriber, callbacks->request_v2, callbacks->complete_v2);
	if (!cupti->call.register_callbacks)
		return CUPTI_E_NOT_SUPPORTED;
	return cupti->call.register_callbacks(callbacks->request, callbacks->complete);
}

cupti_result cupti_set_attribute(struct cupti *cupti, int attribute, size_t bytes, void *value)
{
	if (cupti->by_subscriber)
		return cupti->call.set_attribute_v2(cupti->subscriber, attribute, &bytes, value);
	if (!cupti->call.set_attribute)
		return CUPTI_E_NOT_SUPPORTED;
	return cupti->call.set_attribute(attribute, &bytes, value);
}

cupti_result cupti_enable(struct cupti *cupti, int kind, bool on)
{
	if (cupti->by_subscriber)
		return (on ? cupti->call.enable_v2 : cupti->call.disable_v2)(
			cupti->subscriber, kind, NULL);
	if (on)
		return cupti->call.enable ? cupti->call.enable(kind) : CUPTI_E_NOT_SUPPORTED;
	return cupti->call.disable ? cupti->call.disable(kind) : CUPTI_E_NOT_SUPPORTED;
}

cupti_result cupti_enable_latency(struct cupti *cupti)
{
	uint8_t on = 1;

	if (cupti->by_subscriber)
		return cupti_set_attribute(cupti, CUPTI_ATTRIBUTE_LATENCY_TIMES, sizeof(on), &on);
	return cupti->call.enable_latency ? cupti->call.enable_latency(on) : CUPTI_E_NOT_SUPPORTED;
}

cupti_result cupti_enable_device_graphs(struct cupti *cupti)
{
	uint8_t on = 1;

	/* The function is older than the records. */
	if (cupti->version < CUPTI_VERSION_12_8)
		return CUPTI_E_NOT_SUPPORTED;
	if (cupti->by_subscriber)
		return cupti_set_attribute(cupti, CUPTI_ATTRIBUTE_DEVICE_GRAPHS, sizeof(on), &on);
	return cupti->call.enable_device_graphs ? cupti->call.enable_device_graphs(on)
						: CUPTI_E_NOT_SUPPORTED;
}

cupti_result cupti_enable_callback(struct cupti *cupti, int domain, uint32_t id, bool on)
{
	if (!cupti->call.enable_callback)
		return CUPTI_E_NOT_SUPPORTED;
	return cupti->call.enable_callback(on, cupti->subscriber, domain, id);
}

bool cupti_next_record(struct cupti *cupti, uint8_t *buffer, size_t valid_bytes, void **record)
{
	if (cupti->by_subscriber)
		return cupti->call.next_record_v2(cupti->subscriber, buffer, valid_bytes, record) ==
		       CUPTI_OK;
	return cupti->call.next_record &&
	       cupti->call.next_record(buffer, valid_bytes, record) == CUPTI_OK;
}

size_t cupti_dropped(struct cupti *cupti, cupti_handle context, uint32_t stream)
{
	cupti_result result = CUPTI_E_NOT_SUPPORTED;
	size_t dropped = 0;

	if (cupti->by_subscriber && cupti->call.dropped_v2)
		result = cupti->call.dropped_v2(cupti->subscriber, context, stream, &dropped);
	else if (!cupti->by_subscriber && cupti->call.dropped)
		result = cupti->call.dropped(context, stream, &dropped);
	return result == CUPTI_OK ? dropped : 0;
}

/* ---- versions ---- */

/* From NVIDIA's release notes, which name the release that is right, rarely the first that is not.
 */
static const struct {
	uint32_t from, below;
	enum cupti_when when;
	const char *fault;
} faults[] = {
	/* The update has the number of 12.4 itself. */
	{CUPTI_VERSION_12_4, CUPTI_VERSION_12_4 + 1, CUPTI_AT_GRAPH_LEVEL,
		"CUPTI 12.4 can crash while it times copies and fills of graphs as a whole; "
		"12.4 update 1 is right, and so is --graph node."},
	{CUPTI_VERSION_13_0, CUPTI_VERSION_13_0 + 1, CUPTI_ALWAYS,
		"CUPTI 13.0 can deadlock when tracing stops and crash when it flushes or when "
		"graphs run long; 13.0 update 1 is right."},
	{0, CUPTI_VERSION_13_1 + 1, CUPTI_AGAIN,
		"CUPTI before 13.1 update 1 gives wrong correlation ids to graph launches in every "
		"tracing session but the first: graph kernels from now on may be charged to the "
		"wrong launch."},
	{0, CUPTI_VERSION_13_4 + 1, CUPTI_ALWAYS,
		"CUPTI before 13.4 update 1 uses more and more CPU time the longer it traces, and "
		"may name kernels of a module that was loaded again as those of the one before."},
};

const char *cupti_known_fault(uint32_t version, enum cupti_when when, unsigned number)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (faults[i].when == when && version >= faults[i].from &&
			version < faults[i].below && number-- == 0)
			return faults[i].fault;
	return NULL;
}

void cupti_version_text(uint32_t version, char *text, size_t bytes)
{
	/* The counter that versions were until CUDA 13. */
	static const char *const names[] = {[18] = "12.0",
		[19] = "12.1",
		[20] = "12.2",
		[21] = "12.3",
		[22] = "12.4",
		[23] = "12.5",
		[24] = "12.6",
		[26] = "12.8",
		[27] = "12.9",
		[28] = "12.9.1"};

	if (version >= CUPTI_VERSION_13_0 && version % 100)
		snprintf(text, bytes, "%u.%u.%u", version / 10000, version / 100 % 100,
			version % 100);
	else if (version >= CUPTI_VERSION_13_0)
		snprintf(text, bytes, "%u.%u", version / 10000, version / 100 % 100);
	else if (version < sizeof(names) / sizeof(*names) && names[version])
		snprintf(text, bytes, "%s", names[version]);
	else
		snprintf(text, bytes, "API %u", version);
}
