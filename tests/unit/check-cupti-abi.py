#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/inject/cuda/cupti_abi.h with the real headers of CUPTI, and runs the real libcupti without a driver.

The headers and libraries are NVIDIA's, from its wheels on PyPI; they are kept in FOLDER, never in the source. Where they
cannot be had the test is skipped. The libraries answer error 999 where there is no driver: the program must run as if
nothing was there, and one sentence must say why no device work is timed. Where there is a driver that part is skipped.

    check-cupti-abi.py FOLDER SOURCE COMPILER LIBSONDE_INJECT      exit status 0: all is right, 1: not, 77: skipped
"""

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
RUNTIMES = {12: ["nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86"],
            13: ["nvidia-cuda-runtime==13.5.37", "nvidia-cuda-crt==13.5.37"]}
CUPTIS = {
    "12.0": "nvidia-cuda-cupti-cu12==12.0.146",
    "12.4": "nvidia-cuda-cupti-cu12==12.4.127",
    "12.6": "nvidia-cuda-cupti-cu12==12.6.80",
    "12.9": "nvidia-cuda-cupti-cu12==12.9.79",
    "13.0": "nvidia-cuda-cupti==13.0.85",
    "13.1": "nvidia-cuda-cupti==13.1.115",
    "13.3": "nvidia-cuda-cupti==13.3.75",
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
    ("cupti_memory", "CUpti_ActivityMemory(?=[34])",
     {"operation": "memoryOperationType", "memory": "memoryKind", "correlation": "correlationId", "address": "address",
      "bytes": "bytes", "timestamp": "timestamp", "device": "deviceId", "context": "contextId", "stream": "streamId",
      "pool": "memoryPoolConfig.memoryPoolType", "pool_bytes": "memoryPoolConfig.pool.size",
      "pool_used": "memoryPoolConfig.utilizedSize"}),
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
# Fields, and whole structs, that the versions before these do not have.
SINCE = {"device_launched": 130000, "priority": 130100, "source_graph": 130400, "source_node": 130400,
         "correlation": 20, "details": 22, "end_device": 22, "end_context": 22, "allow_multiple": 130200, "cupti_subscriber_params": 130000,
         "cupti_state_data": 20}
ENUMS = {
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
    "CUPTI_KIND_MEMORY2": "CUPTI_ACTIVITY_KIND_MEMORY2", "CUPTI_MEMORY_RELEASE": "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE",
    "CUPTI_KIND_GRAPH_TRACE": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER": "CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER",
    "CUPTI_THREAD_ID_SYSTEM": "CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM",
    "CUPTI_FLUSH_FORCED": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED", "CUPTI_OBJECT_THREAD": "CUPTI_ACTIVITY_OBJECT_THREAD",
    "CUPTI_COPY_HTOD": "CUPTI_ACTIVITY_MEMCPY_KIND_HTOD", "CUPTI_COPY_DTOH": "CUPTI_ACTIVITY_MEMCPY_KIND_DTOH",
    **{f"WIRE_MEMORY_{kind}": f"CUPTI_ACTIVITY_MEMORY_KIND_{kind}" for kind in
       ("UNKNOWN", "PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC")},
    "CUPTI_COPY_HTOA": "CUPTI_ACTIVITY_MEMCPY_KIND_HTOA", "CUPTI_COPY_ATOH": "CUPTI_ACTIVITY_MEMCPY_KIND_ATOH",
}
ENUMS_SINCE = {"CUPTI_E_MINING_DEVICE": 19, "CUPTI_E_MIG": 26, "CUPTI_E_SLI": 26, "CUPTI_E_WSL": 26,
               "CUPTI_DOMAIN_STATE": 20, "CUPTI_STATE_FATAL_ERROR": 20, "CUPTI_STATE_ERROR": 20}
CALL = re.compile(r"CALL\((\w+), (\d+), (\w+)\)")


def include_folder(wheel):
    return next(iter(sorted(wheel.rglob("include"), key=lambda path: len(path.parts))))


def newest(headers, prefix):
    """The struct of this name with the highest number, and its text."""
    found = re.findall(r"typedef struct(?: PACKED_ALIGNMENT)? \{((?:(?!typedef struct).)*?)\} (%s(\d*));" % prefix, headers, re.S)
    if not found:
        return None, ""
    body, name, _ = max(found, key=lambda one: int(one[2] or 0))
    return name, body


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def assertions(include, calls):
    """C that compiles only when ours and theirs are one."""
    headers = "".join(without_comments((include / name).read_text(errors="replace"))
                      for name in ("cupti_activity.h", "cupti_callbacks.h", "cupti_result.h", "cupti_activity_deprecated.h",
                                   "cupti_driver_cbid.h", "cupti_runtime_cbid.h")
                      if (include / name).exists())
    version = int(re.search(r"#define CUPTI_API_VERSION\s+(\d+)", (include / "cupti_version.h").read_text())[1])
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
    for ours, theirs in ENUMS.items():
        if not re.search(r"\b%s\b" % theirs, headers):
            if ENUMS_SINCE.get(ours, 0) <= version:
                missing.append(theirs)
            continue
        lines.append(f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");')
    for domain, rows in calls.items():
        for name, number, _ in rows:
            theirs = f"CUPTI_{domain}_TRACE_CBID_{name}"
            if re.search(r"\b%s\b" % theirs, headers):
                lines.append(f'_Static_assert({theirs} == {number}, "{theirs}");')
    return version, lines, missing


PROLOGUE = """
#include <cupti.h>
#include "inject/cuda/cupti_abi.h"
#include "wire/device.h"
#define CHECK_FIELD(ours, our_field, theirs, field)                                            \\
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, field), #theirs "." #field);  \\
    _Static_assert(sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->field), "size of " #theirs "." #field);
_Static_assert((int)WIRE_NODE_KERNEL == (int)CU_GRAPH_NODE_TYPE_KERNEL &&
    (int)WIRE_NODE_COPY == (int)CU_GRAPH_NODE_TYPE_MEMCPY && (int)WIRE_NODE_FILL == (int)CU_GRAPH_NODE_TYPE_MEMSET && (int)WIRE_NODE_HOST == (int)CU_GRAPH_NODE_TYPE_HOST &&
    (int)WIRE_NODE_GRAPH == (int)CU_GRAPH_NODE_TYPE_GRAPH, "CUgraphNodeType");
"""


def read_calls(source):
    text = (source / "src/inject/cuda/cupti_calls.h").read_text()
    driver, runtime = text.split("#define CUPTI_RUNTIME_CALLS")
    return {"DRIVER": CALL.findall(driver), "RUNTIME": CALL.findall(runtime)}


def check_layouts(folder, source, compiler, name, requirement, calls):
    major = int(name.split(".")[0])
    include = include_folder(unpack(folder, requirement, PARTS))
    others = [include_folder(unpack(folder, runtime, PARTS)) for runtime in RUNTIMES[major]]
    version, lines, missing = assertions(include, calls)
    program = PROLOGUE + "\n".join(lines) + "\nint main(void) { return 0; }\n"
    command = [*compiler, "-std=gnu17", "-fsyntax-only", "-x", "c", f"-I{source / 'src'}"]
    command += [f"-I{path}" for path in (include, *others)]
    done = subprocess.run([*command, "-"], input=program, capture_output=True, text=True)
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


def check_library(folder, source, inject, name, requirement):
    library = next(iter(unpack(folder, requirement, PARTS).rglob("libcupti.so.*")))
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
