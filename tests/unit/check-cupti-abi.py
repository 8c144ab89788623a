#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/inject/cuda/cupti_abi.h with the real headers of CUPTI, and runs the real libcupti without a driver.

The headers and libraries are NVIDIA's, from its wheels on PyPI; they are kept in FOLDER, never in the source. Where they
cannot be had the test is skipped. The libraries answer error 999 where there is no driver: the program must run as if
nothing was there, and one sentence must say why no device work is timed. Where there is a driver that part is skipped.

    check-cupti-abi.py FOLDER SOURCE COMPILER LIBSONDE_INJECT      exit status 0: all is right, 1: not, 77: skipped
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wheels import Unavailable, unpack

PARTS = ("/include/", "libcupti.so")  # of the wheels
RUNTIMES = {11: ["nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-nvcc-cu11==11.8.89"],
            12: ["nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86"],
            13: ["nvidia-cuda-runtime==13.5.37", "nvidia-cuda-crt==13.5.37"]}
CUPTIS = {
    "11.8": "nvidia-cuda-cupti-cu11==11.8.87",
    "12.0": "nvidia-cuda-cupti-cu12==12.0.146",
    "12.1": "nvidia-cuda-cupti-cu12==12.1.105",
    "12.2": "nvidia-cuda-cupti-cu12==12.2.142",
    "12.3": "nvidia-cuda-cupti-cu12==12.3.101",
    "12.4": "nvidia-cuda-cupti-cu12==12.4.127",
    "12.5": "nvidia-cuda-cupti-cu12==12.5.82",
    "12.6": "nvidia-cuda-cupti-cu12==12.6.80",
    "12.8": "nvidia-cuda-cupti-cu12==12.8.90",
    "12.9": "nvidia-cuda-cupti-cu12==12.9.79",
    "13.0": "nvidia-cuda-cupti==13.0.85",
    "13.1": "nvidia-cuda-cupti==13.1.115",
    "13.2": "nvidia-cuda-cupti==13.2.86",
    "13.3": "nvidia-cuda-cupti==13.3.75",
    "13.4": "nvidia-cuda-cupti==13.4.92",
    "13.5": "nvidia-cuda-cupti==13.5.25",
}

# ours: theirs, by the newest struct of a header
KERNEL = {"registers": "registersPerThread", "start": "start", "end": "end", "completed": "completed",
          "device": "deviceId", "context": "contextId", "stream": "streamId", "grid[0]": "gridX", "grid[2]": "gridZ",
          "block[0]": "blockX", "block[2]": "blockZ", "static_shared": "staticSharedMemory",
          "dynamic_shared": "dynamicSharedMemory", "local_per_thread": "localMemoryPerThread",
          "local_total": "localMemoryTotal", "correlation": "correlationId", "grid_id": "gridId", "name": "name",
          "queued": "queued", "submitted": "submitted", "launch_type": "launchType",
          "shared_executed": "sharedMemoryExecuted", "graph_node": "graphNodeId", "graph": "graphId",
          "channel": "channelID", "channel_type": "channelType", "cluster[0]": "clusterX", "cluster[2]": "clusterZ",
          "local_total_64": "localMemoryTotal_v2", "max_potential_cluster": "maxPotentialClusterSize",
          "device_launched": "isDeviceLaunched", "priority": "priority", "source_graph": "sourceGraphId",
          "source_node": "sourceGraphNodeId"}
COPY = {"copy": "copyKind", "from": "srcKind", "to": "dstKind", "flags": "flags", "bytes": "bytes", "start": "start",
        "end": "end", "device": "deviceId", "context": "contextId", "stream": "streamId",
        "correlation": "correlationId", "graph_node": "graphNodeId", "graph": "graphId", "channel": "channelID"}
STRUCTS = [
    ("cupti_kernel", "CUpti_ActivityKernel", KERNEL),
    ("cupti_memcpy", "CUpti_ActivityMemcpy", {**COPY, "runtime_correlation": "runtimeCorrelationId"}),
    ("cupti_memcpy_peer", "CUpti_ActivityMemcpyPtoP", {**COPY, "from_device": "srcDeviceId", "to_context": "dstContextId"}),
    ("cupti_memset", "CUpti_ActivityMemset",
     {"value": "value", "bytes": "bytes", "start": "start", "end": "end", "device": "deviceId", "context": "contextId",
      "stream": "streamId", "correlation": "correlationId", "flags": "flags", "memory": "memoryKind",
      "graph_node": "graphNodeId", "graph": "graphId", "channel": "channelID"}),
    ("cupti_graph_trace", "CUpti_ActivityGraphTrace",
     {"correlation": "correlationId", "start": "start", "end": "end", "device": "deviceId", "graph": "graphId",
      "context": "contextId", "stream": "streamId", "end_device": "endDeviceId", "end_context": "endContextId"}),
    ("cupti_device_graph", "CUpti_ActivityDeviceGraphTrace",
     {"device": "deviceId", "start": "start", "end": "end", "graph": "graphId", "launcher": "launcherGraphId",
      "mode": "deviceLaunchMode", "context": "contextId", "stream": "streamId"}),
    ("cupti_memory", "CUpti_ActivityMemory(?=[34])",
     {"operation": "memoryOperationType", "memory": "memoryKind", "correlation": "correlationId", "address": "address",
      "bytes": "bytes", "timestamp": "timestamp", "device": "deviceId", "context": "contextId", "stream": "streamId",
      "pool": "memoryPoolConfig.memoryPoolType", "pool_bytes": "memoryPoolConfig.pool.size",
      "pool_used": "memoryPoolConfig.utilizedSize"}),
    ("cupti_synchronization", "CUpti_ActivitySynchronization",
     {"type": "type", "start": "start", "end": "end", "correlation": "correlationId", "context": "contextId",
      "stream": "streamId", "event": "cudaEventId", "event_sync": "cudaEventSyncId"}),
    ("cupti_event", "CUpti_ActivityCudaEvent",
     {"correlation": "correlationId", "context": "contextId", "stream": "streamId", "event": "eventId",
      "event_sync": "cudaEventSyncId"}),
    ("cupti_host_launch", "CUpti_ActivityHostLaunch",
     {"stream": "streamId", "context": "contextId", "device": "deviceId", "correlation": "correlationId", "process": "processId",
      "thread": "threadId", "start": "start", "end": "end"}),
    ("cupti_graph_host_node", "CUpti_ActivityGraphHostNode",
     {"stream": "streamId", "context": "contextId", "device": "deviceId", "correlation": "correlationId", "graph": "graphId",
      "graph_node": "graphNodeId", "process": "processId", "thread": "threadId", "start": "start", "end": "end"}),
    ("cupti_unified_memory", "CUpti_ActivityUnifiedMemoryCounter",
     {"counter": "counterKind", "value": "value", "start": "start", "end": "end", "address": "address", "from": "srcId",
      "to": "dstId", "stream": "streamId", "process": "processId", "flags": "flags", "processors": "processors"}),
    ("cupti_unified_config", "CUpti_ActivityUnifiedMemoryCounterConfig",
     {"scope": "scope", "counter": "kind", "device": "deviceId", "enable": "enable"}),
    ("cupti_overhead", "CUpti_ActivityOverhead",
     {"overhead": "overheadKind", "object": "objectKind", "object_id": "objectId", "start": "start", "end": "end",
      "correlation": "correlationId", "details": "overheadData"}),
    ("cupti_device", "CUpti_ActivityDevice",
     {"memory_bytes": "globalMemorySize", "warp_threads": "numThreadsPerWarp", "core_clock_khz": "coreClockRate",
      "multiprocessors": "numMultiprocessors", "multiprocessor_warps": "maxWarpsPerMultiprocessor",
      "multiprocessor_blocks": "maxBlocksPerMultiprocessor",
      "multiprocessor_shared": "maxSharedMemoryPerMultiprocessor",
      "multiprocessor_registers": "maxRegistersPerMultiprocessor", "block_registers": "maxRegistersPerBlock",
      "block_shared": "maxSharedMemoryPerBlock", "block_threads": "maxThreadsPerBlock",
      "capability_major": "computeCapabilityMajor", "capability_minor": "computeCapabilityMinor", "id": "id",
      "uuid": "uuid", "name": "name", "cuda_visible": "isCudaVisible", "mig": "isMigEnabled",
      "gpu_instance": "gpuInstanceId", "compute_instance": "computeInstanceId", "mig_uuid": "migUuid"}),
    ("cupti_call_data", "CUpti_CallbackData",
     {"site": "callbackSite", "function_name": "functionName", "params": "functionParams",
      "result": "functionReturnValue", "symbol_name": "symbolName", "context": "context", "context_id": "contextUid",
      "correlation_data": "correlationData", "correlation": "correlationId"}),
    ("cupti_resource_data", "CUpti_ResourceData",
     {"context": "context", "resource": "resourceHandle", "descriptor": "resourceDescriptor"}),
    ("cupti_graph_data", "CUpti_GraphData",
     {"graph": "graph", "original_graph": "originalGraph", "node": "node", "original_node": "originalNode",
      "node_type": "nodeType", "dependency": "dependency", "exec": "graphExec"}),
    ("cupti_state_data", "CUpti_StateData", {"result": "notification.result", "message": "notification.message"}),
    ("cupti_subscriber_params", "CUpti_SubscriberParams",
     {"bytes": "structSize", "name": "subscriberName", "old_name": "oldSubscriberName",
      "old_name_bytes": "oldSubscriberSize", "allow_multiple": "allowMultipleSubscribers"}),
]
# PC sampling.
STRUCTS += [
    ("cupti_pc_stall", "CUpti_PCSamplingStallReason", {"reason": "pcSamplingStallReasonIndex", "samples": "samples"}),
    ("cupti_pc", "CUpti_PCSamplingPCData",
     {"bytes": "size", "cubin_crc": "cubinCrc", "pc_offset": "pcOffset", "function_index": "functionIndex",
      "function": "functionName", "stall_count": "stallReasonCount", "stalls": "stallReason", "correlation": "correlationId"}),
    ("cupti_pc_data", "CUpti_PCSamplingData",
     {"bytes": "size", "room": "collectNumPcs", "samples": "totalSamples", "dropped": "droppedSamples", "count": "totalNumPcs",
      "remaining": "remainingNumPcs", "range": "rangeId", "pcs": "pPcData", "foreign_samples": "nonUsrKernelsTotalSamples",
      "is_full": "hardwareBufferFull"}),
    ("cupti_pc_params", "CUpti_PCSamplingEnableParams", {"bytes": "size", "reserved": "pPriv", "context": "ctx"}),
    ("cupti_pc_params", "CUpti_PCSamplingDisableParams", {"bytes": "size", "reserved": "pPriv", "context": "ctx"}),
    ("cupti_pc_params", "CUpti_PCSamplingStartParams", {"bytes": "size", "reserved": "pPriv", "context": "ctx"}),
    ("cupti_pc_params", "CUpti_PCSamplingStopParams", {"bytes": "size", "reserved": "pPriv", "context": "ctx"}),
    ("cupti_pc_data_params", "CUpti_PCSamplingGetDataParams",
     {"bytes": "size", "reserved": "pPriv", "context": "ctx", "data": "pcSamplingData"}),
    ("cupti_pc_config", "CUpti_PCSamplingConfigurationInfo",
     {"attribute": "attributeType", "result": "attributeStatus", "longest": "attributeData.invalidData.data",
      "number": "attributeData.samplingPeriodData.samplingPeriod",
      "pointer": "attributeData.samplingDataBufferData.samplingDataBuffer"}),
    ("cupti_pc_config_params", "CUpti_PCSamplingConfigurationInfoParams",
     {"bytes": "size", "reserved": "pPriv", "context": "ctx", "count": "numAttributes", "items": "pPCSamplingConfigurationInfo"}),
    ("cupti_pc_reason_count_params", "CUpti_PCSamplingGetNumStallReasonsParams",
     {"bytes": "size", "reserved": "pPriv", "context": "ctx", "count": "numStallReasons"}),
    ("cupti_pc_reasons_params", "CUpti_PCSamplingGetStallReasonsParams",
     {"bytes": "size", "reserved": "pPriv", "context": "ctx", "count": "numStallReasons", "indices": "stallReasonIndex",
      "names": "stallReasons"}),
    ("cupti_pc_line_params", "CUpti_GetSassToSourceCorrelationParams",
     {"bytes": "size", "cubin": "cubin", "function": "functionName", "cubin_bytes": "cubinSize", "line": "lineNumber",
      "pc_offset": "pcOffset", "file": "fileName", "folder": "dirName"}),
    ("cupti_cubin_crc_params", "CUpti_GetCubinCrcParams",
     {"bytes": "size", "cubin_bytes": "cubinSize", "cubin": "cubin", "crc": "cubinCrc"}),
    ("cupti_module_data", "CUpti_ModuleResourceData", {"id": "moduleId", "cubin_bytes": "cubinSize", "cubin": "pCubin"}),
]
# PM sampling and the part of the host that it needs, from 12.6 on: ours, its last field, theirs.
PM = {"bytes": "structSize", "reserved": "pPriv"}
TARGET, HOST = {**PM, "sampling": "pPmSamplingObject"}, {**PM, "host": "pHostObject"}
PM_STRUCTS = [
    ("cupti_profiler_params", "reserved", "CUpti_Profiler_Initialize_Params", PM),
    ("cupti_chip_params", "name", "CUpti_Device_GetChipName_Params", {**PM, "device": "deviceIndex", "name": "pChipName"}),
    ("cupti_host_init_params", "", "CUpti_Profiler_Host_Initialize_Params",
     {**HOST, "type": "profilerType", "chip": "pChipName", "availability": "pCounterAvailabilityImage",
      "single_pass_set": "pSinglePassMetricSetName"}),
    ("cupti_host_params", "host", "CUpti_Profiler_Host_Deinitialize_Params", HOST),
    ("cupti_host_metrics_params", "count", "CUpti_Profiler_Host_ConfigAddMetrics_Params",
     {**HOST, "names": "ppMetricNames", "count": "numMetrics"}),
    ("cupti_host_size_params", "image_bytes", "CUpti_Profiler_Host_GetConfigImageSize_Params",
     {**HOST, "image_bytes": "configImageSize"}),
    ("cupti_host_image_params", "image", "CUpti_Profiler_Host_GetConfigImage_Params",
     {**HOST, "image_bytes": "configImageSize", "image": "pConfigImage"}),
    ("cupti_host_passes_params", "passes", "CUpti_Profiler_Host_GetNumOfPasses_Params",
     {**PM, "image_bytes": "configImageSize", "image": "pConfigImage", "passes": "numOfPasses"}),
    ("cupti_host_values_params", "values", "CUpti_Profiler_Host_EvaluateToGpuValues_Params",
     {**HOST, "data": "pCounterDataImage", "data_bytes": "counterDataImageSize", "index": "rangeIndex", "names": "ppMetricNames",
      "count": "numMetrics", "values": "pMetricValues"}),
    ("cupti_pm_availability_params", "image", "CUpti_PmSampling_GetCounterAvailability_Params",
     {**PM, "device": "deviceIndex", "image_bytes": "counterAvailabilityImageSize", "image": "pCounterAvailabilityImage"}),
    ("cupti_pm_enable_params", "sampling", "CUpti_PmSampling_Enable_Params", {**TARGET, "device": "deviceIndex"}),
    ("cupti_pm_params", "sampling", "CUpti_PmSampling_Disable_Params", TARGET),
    ("cupti_pm_params", "sampling", "CUpti_PmSampling_Start_Params", TARGET),
    ("cupti_pm_params", "sampling", "CUpti_PmSampling_Stop_Params", TARGET),
    ("cupti_pm_config_params", "", "CUpti_PmSampling_SetConfig_Params",
     {**TARGET, "image_bytes": "configSize", "image": "pConfig", "buffer_bytes": "hardwareBufferSize",
      "interval": "samplingInterval", "trigger": "triggerMode"}),
    ("cupti_pm_decode_params", "overflow", "CUpti_PmSampling_DecodeData_Params",
     {**TARGET, "data": "pCounterDataImage", "data_bytes": "counterDataImageSize", "decoded": "decodeStopReason",
      "overflow": "overflow"}),
    ("cupti_pm_data_size_params", "data_bytes", "CUpti_PmSampling_GetCounterDataSize_Params",
     {**TARGET, "names": "pMetricNames", "count": "numMetrics", "max_samples": "maxSamples", "data_bytes": "counterDataSize"}),
    ("cupti_pm_data_init_params", "data", "CUpti_PmSampling_CounterDataImage_Initialize_Params",
     {**TARGET, "data_bytes": "counterDataSize", "data": "pCounterData"}),
    ("cupti_pm_data_info_params", "completed", "CUpti_PmSampling_GetCounterDataInfo_Params",
     {**PM, "data": "pCounterDataImage", "data_bytes": "counterDataImageSize", "total": "numTotalSamples",
      "populated": "numPopulatedSamples", "completed": "numCompletedSamples"}),
    ("cupti_pm_sample_params", "end", "CUpti_PmSampling_CounterData_GetSampleInfo_Params",
     {**TARGET, "data": "pCounterDataImage", "data_bytes": "counterDataImageSize", "index": "sampleIndex",
      "start": "startTimestamp", "end": "endTimestamp"}),
]
PM_SINCE = 24
STRUCTS += [(ours, theirs, fields) for ours, _, theirs, fields in PM_STRUCTS]
# The size that a struct says of itself, by which CUPTI tells releases apart.
SIZES = [
    ("cupti_pc_params", "CUpti_PCSamplingEnableParamsSize"), ("cupti_pc_params", "CUpti_PCSamplingDisableParamsSize"),
    ("cupti_pc_params", "CUpti_PCSamplingStartParamsSize"), ("cupti_pc_params", "CUpti_PCSamplingStopParamsSize"),
    ("cupti_pc_data_params", "CUpti_PCSamplingGetDataParamsSize"), ("cupti_pc_data", "sizeof(CUpti_PCSamplingData)"),
    ("cupti_pc_config_params", "CUpti_PCSamplingConfigurationInfoParamsSize"), ("cupti_pc_stall", "sizeof(CUpti_PCSamplingStallReason)"),
    ("cupti_pc_config", "sizeof(CUpti_PCSamplingConfigurationInfo)"),
    ("cupti_pc_reason_count_params", "CUpti_PCSamplingGetNumStallReasonsParamsSize"),
    ("cupti_pc_reasons_params", "CUpti_PCSamplingGetStallReasonsParamsSize"),
    ("cupti_pc_line_params", "CUpti_GetSassToSourceCorrelationParamsSize"),
    ("cupti_cubin_crc_params", "CUpti_GetCubinCrcParamsSize"), ("cupti_module_data", "sizeof(CUpti_ModuleResourceData)"),
]
# Fields, and whole structs, that the versions before these do not have.
SINCE = {"max_potential_cluster": 18, "is_full": 18, "cupti_pc_data": 18, **{ours: PM_SINCE for ours, *_ in PM_STRUCTS}, "cupti_device_graph": 26, "cupti_host_launch": 130100, "cupti_graph_host_node": 130100, "single_pass_set": 130200, "correlation_of_pc": 22, "device_launched": 130000, "priority": 130100, "source_graph": 130400, "source_node": 130400,
         "correlation": 22, "details": 22, "end_device": 22, "end_context": 22, "allow_multiple": 130200, "cupti_subscriber_params": 130000, "event_sync": 26, "processors": 26,
         "cupti_state_data": 20}
ENUMS = {
    "CUPTI_FOR_PM_SAMPLING": "CUPTI_PROFILER_TYPE_PM_SAMPLING",
    "CUPTI_PM_BY_CLOCK": "CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL",
    "CUPTI_PM_BY_TIME": "CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL",
    "CUPTI_PM_DECODED_FULL": "CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL",
    "CUPTI_PM_DECODED_ALL": "CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS",
    "CUPTI_E_INVALID_OPERATION": "CUPTI_ERROR_INVALID_OPERATION",
    "CUPTI_PC_CONTINUOUS": "CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS",
    "CUPTI_PC_PERIOD": "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD",
    "CUPTI_PC_MODE": "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE",
    "CUPTI_PC_START_STOP": "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL",
    "CUPTI_PC_BUFFER": "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER",
    "CUPTI_PC_REASON_BYTES": "CUPTI_STALL_REASON_STRING_SIZE",
    "CUPTI_E_OUT_OF_MEMORY": "CUPTI_ERROR_OUT_OF_MEMORY", "CUPTI_E_HARDWARE_BUSY": "CUPTI_ERROR_HARDWARE_BUSY",
    "CUPTI_RESOURCE_CONTEXT_CREATED": "CUPTI_CBID_RESOURCE_CONTEXT_CREATED",
    "CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING": "CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING",
    "CUPTI_RESOURCE_MODULE_LOADED": "CUPTI_CBID_RESOURCE_MODULE_LOADED",
    "CUPTI_OK": "CUPTI_SUCCESS", "CUPTI_E_INVALID_PARAMETER": "CUPTI_ERROR_INVALID_PARAMETER",
    "CUPTI_E_END_OF_BUFFER": "CUPTI_ERROR_MAX_LIMIT_REACHED", "CUPTI_E_NOT_COMPATIBLE": "CUPTI_ERROR_NOT_COMPATIBLE",
    "CUPTI_E_NOT_INITIALIZED": "CUPTI_ERROR_NOT_INITIALIZED", "CUPTI_E_NOT_SUPPORTED": "CUPTI_ERROR_NOT_SUPPORTED",
    "CUPTI_E_VIRTUALIZED": "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "CUPTI_E_PRIVILEGES": "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    "CUPTI_E_HELD": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_E_VIRTUALIZED_PRIVILEGES": "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "CUPTI_E_CONFIDENTIAL": "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "CUPTI_E_MINING_DEVICE": "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "CUPTI_E_MIG": "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED", "CUPTI_E_SLI": "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "CUPTI_E_WSL": "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED", "CUPTI_E_UNKNOWN": "CUPTI_ERROR_UNKNOWN",
    "CUPTI_DOMAIN_DRIVER": "CUPTI_CB_DOMAIN_DRIVER_API", "CUPTI_DOMAIN_RUNTIME": "CUPTI_CB_DOMAIN_RUNTIME_API",
    "CUPTI_DOMAIN_RESOURCE": "CUPTI_CB_DOMAIN_RESOURCE", "CUPTI_DOMAIN_STATE": "CUPTI_CB_DOMAIN_STATE",
    "CUPTI_SITE_ENTER": "CUPTI_API_ENTER", "CUPTI_SITE_EXIT": "CUPTI_API_EXIT",
    "CUPTI_RESOURCE_GRAPH_CREATED": "CUPTI_CBID_RESOURCE_GRAPH_CREATED",
    "CUPTI_RESOURCE_GRAPH_DESTROY_STARTING": "CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING",
    "CUPTI_RESOURCE_GRAPH_CLONED": "CUPTI_CBID_RESOURCE_GRAPH_CLONED",
    "CUPTI_RESOURCE_GRAPHNODE_CREATED": "CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED",
    "CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING": "CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING",
    "CUPTI_RESOURCE_GRAPHEXEC_CREATED": "CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED",
    "CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING": "CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING",
    "CUPTI_RESOURCE_GRAPHNODE_CLONED": "CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED",
    "CUPTI_STATE_FATAL_ERROR": "CUPTI_CBID_STATE_FATAL_ERROR", "CUPTI_STATE_ERROR": "CUPTI_CBID_STATE_ERROR",
    "CUPTI_KIND_MEMCPY": "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_KIND_MEMSET": "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_KIND_KERNEL": "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_KIND_DEVICE": "CUPTI_ACTIVITY_KIND_DEVICE",
    "CUPTI_KIND_CONCURRENT_KERNEL": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "CUPTI_KIND_OVERHEAD": "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUPTI_KIND_MEMCPY2": "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "CUPTI_KIND_SYNCHRONIZATION": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_KIND_CUDA_EVENT": "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_SYNC_INVALID": "CUPTI_SYNCHRONIZATION_INVALID_VALUE",
    "WIRE_SYNC_EVENT": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE",
    "WIRE_SYNC_WAIT": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
    "WIRE_SYNC_STREAM": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE",
    "WIRE_SYNC_CONTEXT": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE",
    "CUPTI_KIND_HOST_LAUNCH": "CUPTI_ACTIVITY_KIND_HOST_LAUNCH",
    "CUPTI_KIND_GRAPH_HOST_NODE": "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE",
    "CUPTI_ATTRIBUTE_LATENCY_TIMES": "CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS",
    "CUPTI_KIND_UNIFIED_MEMORY": "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER",
    "CUPTI_UNIFIED_ALL_GPUS": "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES",
    "CUPTI_UNIFIED_ON_HOST": "CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU",
    "CUPTI_RESOURCE_DRIVER_READY": "CUPTI_CBID_RESOURCE_CU_INIT_FINISHED",
    "CUPTI_E_UNIFIED": "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
    "CUPTI_E_UNIFIED_ON_DEVICE": "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "CUPTI_E_UNIFIED_WITHOUT_P2P": "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "CUPTI_E_UNIFIED_WITH_MPS": "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    **{f"WIRE_UNIFIED_{ours}": f"CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_{theirs}" for ours, theirs in
       {"TO_DEVICE": "BYTES_TRANSFER_HTOD", "TO_HOST": "BYTES_TRANSFER_DTOH", "HOST_FAULT": "CPU_PAGE_FAULT_COUNT",
        "DEVICE_FAULT": "GPU_PAGE_FAULT", "THRASHING": "THRASHING", "THROTTLING": "THROTTLING", "REMOTE_MAP": "REMOTE_MAP",
        "BETWEEN_DEVICES": "BYTES_TRANSFER_DTOD"}.items()},
    **{f"WIRE_MIGRATION_{cause}": f"CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_{cause}" for cause in
       ("UNKNOWN", "USER", "COHERENCE", "PREFETCH", "EVICTION", "ACCESS_COUNTERS")},
    **{f"WIRE_ACCESS_{access}": f"CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_{access}" for access in
       ("UNKNOWN", "READ", "WRITE", "ATOMIC", "PREFETCH")},
    **{f"WIRE_MAP_{cause}": f"CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_{cause}" for cause in
       ("UNKNOWN", "COHERENCE", "THRASHING", "POLICY", "OUT_OF_MEMORY", "EVICTION")},
    "CUPTI_KIND_MEMORY2": "CUPTI_ACTIVITY_KIND_MEMORY2", "CUPTI_MEMORY_RELEASE": "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE",
    "CUPTI_KIND_GRAPH_TRACE": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_KIND_DEVICE_GRAPH_TRACE": "CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE",
    "CUPTI_ATTRIBUTE_DEVICE_GRAPHS": "CUPTI_ACTIVITY_ATTR_ENABLE_DEVICE_GRAPH_TRACE",
    **{f"CUPTI_DEVICE_LAUNCH_{ours}": f"CUPTI_DEVICE_GRAPH_LAUNCH_MODE_{theirs}" for ours, theirs in
       {"FIRE_AND_FORGET": "FIRE_AND_FORGET", "TAIL": "TAIL", "SIBLING": "FIRE_AND_FORGET_AS_SIBLING"}.items()},
    "CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER": "CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER",
    "CUPTI_THREAD_ID_SYSTEM": "CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM",
    "CUPTI_FLUSH_FORCED": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED", "CUPTI_OBJECT_THREAD": "CUPTI_ACTIVITY_OBJECT_THREAD",
    "CUPTI_COPY_HTOD": "CUPTI_ACTIVITY_MEMCPY_KIND_HTOD", "CUPTI_COPY_DTOH": "CUPTI_ACTIVITY_MEMCPY_KIND_DTOH",
    **{f"WIRE_MEMORY_{kind}": f"CUPTI_ACTIVITY_MEMORY_KIND_{kind}" for kind in
       ("UNKNOWN", "PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC")},
    "CUPTI_COPY_HTOA": "CUPTI_ACTIVITY_MEMCPY_KIND_HTOA", "CUPTI_COPY_ATOH": "CUPTI_ACTIVITY_MEMCPY_KIND_ATOH",
}
ENUMS_SINCE = {**{ours: PM_SINCE for ours in ENUMS if ours.startswith(("CUPTI_PM_", "CUPTI_FOR_PM"))},
               **{ours: 26 for ours in ENUMS if ours.startswith(("CUPTI_DEVICE_LAUNCH_", "CUPTI_KIND_DEVICE_GRAPH"))}, "CUPTI_ATTRIBUTE_DEVICE_GRAPHS": 130300,
               "CUPTI_KIND_HOST_LAUNCH": 130100, "CUPTI_KIND_GRAPH_HOST_NODE": 130100, "CUPTI_ATTRIBUTE_LATENCY_TIMES": 130300, "CUPTI_E_MINING_DEVICE": 19, "CUPTI_E_MIG": 26, "CUPTI_E_SLI": 26, "CUPTI_E_WSL": 26,
               "CUPTI_DOMAIN_STATE": 20, "CUPTI_STATE_FATAL_ERROR": 20, "CUPTI_STATE_ERROR": 20}
CALL = re.compile(r"CALL\((\w+), (\d+), (\w+)\)")


def include_folder(wheel):
    return next(iter(sorted(wheel.rglob("include"), key=lambda path: len(path.parts))))


def newest(headers, prefix):
    """The struct of this name with the highest number, and its text."""
    found = re.findall(r"typedef struct(?: PACKED_ALIGNMENT| CUpti_\w+)?\s*\{((?:(?!typedef struct).)*?)\} (%s(\d*));" % prefix, headers, re.S)
    if not found:
        return None, ""
    body, name, _ = max(found, key=lambda one: int(one[2] or 0))
    return name, body


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def without_version(name):
    """cuMemAlloc of cuMemAlloc_v2_ptds."""
    return re.sub(r"(_v\d+|_ptds|_ptsz)+$", "", name)


def version_of(include):
    """CUPTI 11.8 says 18, as 12.0 does, of which its records lack fields: 17 here."""
    version = int(re.search(r"#define CUPTI_API_VERSION\s+(\d+)", (include / "cupti_version.h").read_text())[1])
    has_12 = "CUpti_ActivityKernel9" in (include / "cupti_activity.h").read_text(errors="replace")
    return version if has_12 or version != 18 else 17


def assertions(include, calls):
    """C that compiles only when ours and theirs are one."""
    headers = "".join(without_comments((include / name).read_text(errors="replace"))
                      for name in ("cupti_activity.h", "cupti_callbacks.h", "cupti_result.h", "cupti_activity_deprecated.h",
                                   "cupti_driver_cbid.h", "cupti_runtime_cbid.h", "cupti_pcsampling.h", "cupti_pmsampling.h",
                                   "cupti_profiler_host.h", "cupti_target.h", "cupti_profiler_target.h")
                      if (include / name).exists())
    version = version_of(include)
    lines, missing = [], []
    for ours, prefix, fields in STRUCTS:
        theirs, body = newest(headers, prefix)
        if not theirs:
            if SINCE.get(ours, 0) <= version:
                missing.append(prefix)
            continue
        for our_field, field in fields.items():
            if not re.search(r"\b%s\b" % field.split(".")[-1], body):
                if not (our_field in SINCE and SINCE[our_field] > version):
                    missing.append(f"{theirs}.{field}")
                continue
            lines.append(f"CHECK_FIELD(struct {ours}, {our_field}, {theirs}, {field})")
        lines.append(f"/* {theirs} */")
    lines += [f'_Static_assert(sizeof(struct {ours}) == {theirs}, "{theirs}");' for ours, theirs in SIZES
              if SINCE.get(ours, 0) <= version]
    if version >= PM_SINCE:
        lines += [f'_Static_assert(CUPTI_PM_BYTES(struct {ours}, {last}) == {theirs}_STRUCT_SIZE, "{theirs}");'
                  for ours, last, theirs, _ in PM_STRUCTS if last]
        last = "single_pass_set" if version >= SINCE["single_pass_set"] else "host"
        lines.append(f'_Static_assert(CUPTI_PM_BYTES(struct cupti_host_init_params, {last}) == '
                     'CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE, "CUpti_Profiler_Host_Initialize_Params");')
    record = "sizeof(struct cupti_pc)" if version >= SINCE["correlation_of_pc"] else "offsetof(struct cupti_pc, correlation)"
    lines.append(f'_Static_assert(sizeof(CUpti_PCSamplingPCData) == {record}, "CUpti_PCSamplingPCData");')
    for ours, theirs in ENUMS.items():
        if not re.search(r"\b%s\b" % theirs, headers):
            if ENUMS_SINCE.get(ours, 0) <= version:
                missing.append(theirs)
            continue
        lines.append(f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");')
    for domain, rows in calls.items():
        numbers = {number for _, number, _ in rows}  # some were renamed
        families = {without_version(name) for name, _, _ in rows}
        missing += [f"{name} = {number}, of a call that the tables have" for name, number in
                    re.findall(rf"\bCUPTI_{domain}_TRACE_CBID_(\w+)\s*=\s*(\d+)", headers)
                    if without_version(name) in families and number not in numbers]
        for name, number, _ in rows:
            theirs = f"CUPTI_{domain}_TRACE_CBID_{name}"
            if re.search(r"\b%s\b" % theirs, headers):
                lines.append(f'_Static_assert({theirs} == {number}, "{theirs}");')
    return version, lines, missing


PROLOGUE = """
#include <stdbool.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#if __has_include(<cupti_pmsampling.h>)
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#endif
#include "inject/cuda/cupti_abi.h"
#include "inject/cuda/cupti_pc_abi.h"
#include "inject/cuda/cupti_pm_abi.h"
#include "wire/device.h"
#define CHECK_FIELD(ours, our_field, theirs, field)                                            \\
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, field), #theirs "." #field);  \\
    _Static_assert(sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->field), "size of " #theirs "." #field);
_Static_assert((int)WIRE_NODE_KERNEL == (int)CU_GRAPH_NODE_TYPE_KERNEL &&
    (int)WIRE_NODE_COPY == (int)CU_GRAPH_NODE_TYPE_MEMCPY && (int)WIRE_NODE_FILL == (int)CU_GRAPH_NODE_TYPE_MEMSET && (int)WIRE_NODE_HOST == (int)CU_GRAPH_NODE_TYPE_HOST &&
    (int)WIRE_NODE_GRAPH == (int)CU_GRAPH_NODE_TYPE_GRAPH, "CUgraphNodeType");
"""


def read_calls(source):
    calls = {"DRIVER": [], "RUNTIME": []}
    for header, runtime_table in (("cupti_calls.h", "CUPTI_RUNTIME_CALLS"), ("cupti_other_calls.h", "CUPTI_OTHER_RUNTIME_CALLS")):
        driver, runtime = (source / "src/inject/cuda" / header).read_text().split(f"#define {runtime_table}")
        calls["DRIVER"] += CALL.findall(driver)
        calls["RUNTIME"] += CALL.findall(runtime)
    return calls


def check_layouts(folder, source, compiler, name, requirement, calls):
    major = int(name.split(".")[0])
    include = include_folder(unpack(folder, requirement, PARTS))
    others = [include_folder(unpack(folder, runtime, PARTS)) for runtime in RUNTIMES[major]]
    version, lines, missing = assertions(include, calls)
    program = PROLOGUE + "\n".join(lines) + "\nint main(void) { return 0; }\n"
    command = [*compiler, "-std=gnu17", "-fsyntax-only", "-x", "c", f"-I{source / 'src'}"]
    command += [f"-I{path}" for path in (include, *others)]
    with tempfile.TemporaryDirectory() as unused:
        (Path(unused) / "string").touch()  # of C++, which releases before 13.1 include and do not need
        done = subprocess.run([*command, f"-I{unused}", "-"], input=program, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error" in line] + [f"missing: {one}" for one in missing]
    count = sum("CHECK_FIELD" in line or "_Static_assert" in line for line in lines)
    print(f"CUPTI {name} (API {version}): {count} comparisons, {len(errors)} differ")
    for error in errors[:20]:
        print("   ", error)
    return not errors


# ---- the real library, no driver ----

GATE_MAGIC, RECORD_NOTE, NOTE_NO_DRIVER = 0x65746167646E6F73, 48, 3
GATE_BYTES = 4096  # and more than it needs
HOST = """
import ctypes, os, sys
assert ctypes.CDLL(sys.argv[1]).InitializeInjection() == 1
print("ran to its end")
sys.exit(3)
"""


def notes_of(session):
    """{note: sentence} of the only ring file; the layouts are those of src/wire."""
    data = b"".join(path.read_bytes() for path in session.glob("ring.*"))
    found = {}
    for match in re.finditer(struct.pack("<H", RECORD_NOTE) + b"\\0\\0(....)(....)\\0{4}(....)\\0{4}", data, re.S):
        note, size = struct.unpack("<I", match[2])[0], struct.unpack("<I", match[3])[0]
        if size <= 480:
            found[note] = data[match.end():match.end() + size].decode(errors="replace")
    return found


def ring_version(source):
    return int(re.search(r"#define WIRE_RING_VERSION +(\d+)", (source / "src/wire/gate.h").read_text())[1])


GET_VERSION = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(ctypes.c_uint32()))"


def library_of(folder, requirement):
    return next(iter(unpack(folder, requirement, PARTS).rglob("libcupti.so.*")))


def runs_alone(library):
    """Without libcuda, which calls sonde where a program uses CUDA, 13.2 calls itself until its stack ends."""
    return subprocess.run([sys.executable, "-c", GET_VERSION, library], capture_output=True, timeout=60).returncode == 0


def check_library(folder, source, inject, name, requirement):
    library = library_of(folder, requirement)
    with tempfile.TemporaryDirectory() as temporary:
        session = Path(temporary)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        gate = struct.pack("<QIIIIQ", GATE_MAGIC, ring_version(source), 1, os.getpid(), 1, now)
        (session / "gate").write_bytes(gate.ljust(GATE_BYTES, b"\0"))
        done = subprocess.run([sys.executable, "-c", HOST, inject], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SONDE_SESSION": str(session), "SONDE_CUPTI": str(library)})
        notes = notes_of(session)
    sentence = notes.get(NOTE_NO_DRIVER, "")
    good = done.returncode == 3 and done.stdout == "ran to its end\n" and not done.stderr and "NVIDIA driver" in sentence
    print(f"libcupti {name} without a driver: {sentence or (done.returncode, done.stdout, done.stderr, notes)}")
    return good


# ---- source lines of code, which releases up to 13.1 find without a driver ----

# scale.cubin: ptxas 13.0 -lineinfo -arch sm_80 of a kernel with a line of /src/app/scale.cu for each statement, 10 to 15.
LINES = {0x00: 10, 0x10: 11, 0x50: 12, 0x60: 13, 0x70: 14, 0x80: 15}
FIND_LINES = """
import ctypes, json, sys
class Line(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("cubin", ctypes.c_char_p), ("function", ctypes.c_char_p), ("cubin_bytes", ctypes.c_size_t),
                ("line", ctypes.c_uint32), ("pc_offset", ctypes.c_uint64), ("file", ctypes.c_char_p), ("folder", ctypes.c_char_p)]
class Crc(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("cubin_bytes", ctypes.c_size_t), ("cubin", ctypes.c_char_p), ("crc", ctypes.c_uint64)]
library, cubin, found = ctypes.CDLL(sys.argv[1]), open(sys.argv[2], "rb").read(), {}
crc = Crc(ctypes.sizeof(Crc), len(cubin), cubin)
answer = library.cuptiGetCubinCrc(ctypes.byref(crc))
for pc in map(int, sys.argv[3:]):
    line = Line(ctypes.sizeof(Line), cubin, b"scale", len(cubin), 0, pc)
    answer = library.cuptiGetSassToSourceCorrelation(ctypes.byref(line)) or answer
    found[pc] = [(line.folder or b"").decode(), (line.file or b"").decode(), line.line]
print(json.dumps([answer, crc.crc, list(found.values())]))
"""


def check_lines(folder, source, name, requirement):
    library = library_of(folder, requirement)
    done = subprocess.run([sys.executable, "-c", FIND_LINES, library, source / "tests/unit/scale.cubin", *map(str, LINES)],
                          capture_output=True, text=True, timeout=60)
    answer, crc, found = json.loads(done.stdout) if done.returncode == 0 else (done.stderr, 0, [])
    good = answer == 999 and not has_driver() or crc and found == [["/src/app", "scale.cu", line] for line in LINES.values()]
    print(f"libcupti {name}, source lines: {'needs a driver' if answer == 999 else found if not good else 'right'}")
    return good


# ---- the metrics of PM sampling, which releases of CUDA 12 choose without a driver ----

# What sonde takes of them, by chip: a chip does not have all.
CHIPS = {"GH100": 8, "GA100": 8, "GB100": 6, "AD102": 6, "GB202": 6, "GA10B": 2}
FIND_METRICS = """
import ctypes as c, json, sys
class Params(c.Structure):
    _fields_ = [("bytes", c.c_size_t), ("reserved", c.c_void_p)]
def params(**fields):
    kind = type("Of", (Params,), {"_fields_": [(name, type(value)) for name, value in fields.items()]})
    return kind(c.sizeof(kind), None, *fields.values())
library = c.CDLL(sys.argv[1])
def passes(chip, names):
    opened = params(type=c.c_int(1), chip=c.c_char_p(chip.encode()), availability=c.c_void_p(), host=c.c_void_p())
    if library.cuptiProfilerHostInitialize(c.byref(opened)):
        return -1
    host = c.c_void_p(opened.host)
    texts = (c.c_char_p * len(names))(*[name.encode() for name in names])
    size = params(host=host, size=c.c_size_t())
    if library.cuptiProfilerHostConfigAddMetrics(c.byref(params(host=host, names=c.cast(texts, c.c_void_p), count=c.c_size_t(len(names))))):
        return 0
    library.cuptiProfilerHostGetConfigImageSize(c.byref(size))
    image = c.cast(c.create_string_buffer(size.size), c.c_void_p)
    library.cuptiProfilerHostGetConfigImage(c.byref(params(host=host, size=c.c_size_t(size.size), image=image)))
    counted = params(size=c.c_size_t(size.size), image=image, passes=c.c_size_t())
    library.cuptiProfilerHostGetNumOfPasses(c.byref(counted))
    return counted.passes
library.cuptiProfilerInitialize(c.byref(params()))
found = {}
for chip in json.loads(sys.argv[2]):
    taken = []
    for name in json.loads(sys.argv[3]):
        taken += [name] if passes(chip, taken + [name]) == 1 else []
    found[chip] = taken
print(json.dumps(found))
"""


def metrics_of(source):
    """Those of src/inject/cuda/pm_host.c that take no other's place."""
    text = (source / "src/inject/cuda/pm_host.c").read_text()
    percent = re.search(r'#define PERCENT +"(.+)"', text)[1]
    return [name + (percent if is_percent else "") for name, is_percent in re.findall(r'NO_OTHER, "([\w.]+)"( PERCENT)?\}', text)]


def check_metrics(folder, source, name, requirement):
    libraries = folder / "metrics"
    libraries.mkdir(exist_ok=True)
    library = next(iter(unpack(libraries, requirement, ("libcupti.so", "libnvperf_host.so")).rglob("libcupti.so.*")))
    wanted = metrics_of(source)
    done = subprocess.run([sys.executable, "-c", FIND_METRICS, library, json.dumps(list(CHIPS)), json.dumps(wanted)],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    good = {chip: len(taken) for chip, taken in found.items()} == CHIPS and len(wanted) == max(CHIPS.values())
    print(f"libcupti {name}, metrics of PM sampling in one pass: {'right' if good else found or done.stderr}")
    return good


def has_driver():
    return Path("/proc/driver/nvidia/version").exists()


def main():
    folder, source, compiler, inject = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(), sys.argv[4]
    folder.mkdir(parents=True, exist_ok=True)
    calls = read_calls(source)
    good = True
    try:
        for name, requirement in CUPTIS.items():
            good &= check_layouts(folder, source, compiler, name, requirement, calls)
            if name == "12.9":
                good &= check_metrics(folder, source, name, requirement)
            if not has_driver() and not runs_alone(library_of(folder, requirement)):
                print(f"libcupti {name}: not run, it needs libcuda")
                continue
            good &= bool(check_lines(folder, source, name, requirement))
            if not has_driver():
                good &= check_library(folder, source, inject, name, requirement)
    except Unavailable as error:
        print(f"SKIPPED: no wheels of CUPTI to compare with: {error}")
        return 77 if good else 1
    if has_driver():
        print("not run: the library without a driver, as there is one")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
