# SPDX-License-Identifier: Apache-2.0
"""A result of rocprofv3 as JSON, made by hand with the members that rocprofiler-sdk's own tests read: kernels on two GPUs,
copies, calls of HIP, markers, allocations."""

import json
import sys

KINDS = {
    "NONE": [],
    "HIP_RUNTIME_API": ["hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize"],
    "KERNEL_DISPATCH": ["NONE", "COMPLETE"],
    "MEMORY_COPY": ["NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"],
    "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA", "roctxRangeStartA"],
    "MEMORY_ALLOCATION": ["NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"],
    "SCRATCH_MEMORY": ["NONE", "SCRATCH_MEMORY_ALLOC"],
}
NUMBERS = {name: number for number, name in enumerate(KINDS)}
CPU, GPUS = 11, (22, 33)


def record(kind, operation, begin, end, correlation, **more):
    return {
        "size": 96,
        "kind": NUMBERS[kind],
        "operation": KINDS[kind].index(operation) if KINDS[kind] else 0,
        "thread_id": 501,
        "correlation_id": {"internal": correlation, "external": 0},
        "start_timestamp": begin,
        "end_timestamp": end,
        **more,
    }


def handle(number):
    return {"handle": number}


def dispatch(number, begin, gpu, stream=None):
    size = {"workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 2, "z": 1}}
    info = {"agent_id": handle(GPUS[gpu]), "queue_id": handle(5), "kernel_id": 7, "dispatch_id": number, **size}
    more = {"dispatch_info": {**info, "group_segment_size": 1024}}
    if stream is not None:
        more["stream_id"] = handle(stream)
    return record("KERNEL_DISPATCH", "COMPLETE", begin, begin + 60, number, **more)


def agent(identity, kind, number, **names):
    return {"id": handle(identity), "type": kind, "node_id": identity, "logical_node_type_id": number, **names}


def tool(stream=3):
    calls = [record("HIP_RUNTIME_API", "hipLaunchKernel", 100 * i, 100 * i + 20, i) for i in range(1, 7)]
    calls += [record("HIP_RUNTIME_API", "hipMemcpyAsync", 700, 720, 7)]
    calls += [record("HIP_RUNTIME_API", "hipDeviceSynchronize", 730, 900, 8)]
    copy = {"dst_agent_id": handle(GPUS[0]), "src_agent_id": handle(CPU), "bytes": 4096}
    place = {"agent_id": handle(GPUS[1])}
    return {
        "metadata": {"pid": 500, "init_time": 1, "fini_time": 2000, "command": ["/usr/bin/python3", "train.py"]},
        "agents": [agent(CPU, 1, 0, name="EPYC")]
        + [agent(GPUS[i], 2, i, name="gfx942", product_name="AMD Instinct MI300X") for i in range(2)],
        "kernel_symbols": [
            {"kernel_id": 7, "kernel_name": "_Z4gemmPf.kd", "formatted_kernel_name": "gemm(float*)", "code_object_id": 1}
        ],
        "strings": {
            "buffer_records": [{"kind": kind, "operations": names} for kind, names in KINDS.items()],
            "marker_api": [{"key": 20, "value": 'step "1"'}, {"key": 21, "value": "loss"}],
        },
        "buffer_records": {
            "kernel_dispatch": [dispatch(i, 100 * i + 30, i % 2, stream) for i in range(1, 7)],
            "hip_api": calls,
            "memory_copy": [record("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE", 730, 830, 7, **copy)],
            "marker_api": [
                record("MARKER_CORE_API", "roctxRangePushA", 90, 650, 20),
                record("MARKER_CORE_API", "roctxMarkA", 300, 300, 21),
                record("MARKER_CORE_API", "roctxRangePushA", 90, 91, 99),
            ],
            "memory_allocation": [
                record("MEMORY_ALLOCATION", "MEMORY_ALLOCATION_ALLOCATE", 1, 2, 30, address="0x7000", allocation_size=4096, **place),
                record("MEMORY_ALLOCATION", "MEMORY_ALLOCATION_FREE", 5, 6, 31, address="0x7000", allocation_size=0, **place),
            ],
            "scratch_memory": [record("SCRATCH_MEMORY", "SCRATCH_MEMORY_ALLOC", 1, 2, 40)],
        },
    }


def text(tools=None, **options):
    return json.dumps({"rocprofiler-sdk-tool": [tool(**options)] if tools is None else tools})


if __name__ == "__main__":
    print(text(), file=open(sys.argv[1], "w"))
