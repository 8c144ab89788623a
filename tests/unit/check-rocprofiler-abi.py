#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/inject/hip/rocprofiler_abi.h with the headers of an installed rocprofiler-sdk.

They come with ROCm 7: $ROCM_PATH, /opt/rocm, or rocm-sdk-devel of a Python environment. Skipped where there is none.

    check-rocprofiler-abi.py SOURCE COMPILER          exit status 0: all is right, 1: not, 77: skipped
"""

import os
import re
import subprocess
import sys
from pathlib import Path

RECORD = {"size": "size", "kind": "kind", "operation": "operation", "internal": "correlation_id.internal",
          "external": "correlation_id.external", "thread": "thread_id", "start": "start_timestamp", "end": "end_timestamp"}
COMMON = {f"common.{ours}": theirs for ours, theirs in RECORD.items()}
# ours: theirs, and the fields of both
STRUCTS = {
    "rocprofiler_client": ("rocprofiler_client_id_t", {"size": "size", "name": "name", "handle": "handle"}),
    "rocprofiler_tool": ("rocprofiler_tool_configure_result_t",
                         {"size": "size", "initialize": "initialize", "finalize": "finalize", "data": "tool_data"}),
    "rocprofiler_callback_record": ("rocprofiler_callback_tracing_record_t", {
        "context": "context_id", "thread": "thread_id", "internal": "correlation_id.internal",
        "external": "correlation_id.external", "ancestor": "correlation_id.ancestor", "kind": "kind",
        "operation": "operation", "phase": "phase", "payload": "payload"}),
    "rocprofiler_hip_call": ("rocprofiler_callback_tracing_hip_api_data_t", {"size": "size"}),
    "rocprofiler_kernel_symbol": ("rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t", {
        "size": "size", "kernel": "kernel_id", "code_object": "code_object_id", "name": "kernel_name",
        "group_bytes": "group_segment_size", "private_bytes": "private_segment_size", "scalar_registers": "sgpr_count",
        "vector_registers": "arch_vgpr_count", "accumulation_registers": "accum_vgpr_count"}),
    "rocprofiler_header": ("rocprofiler_record_header_t", {"category": "category", "kind": "kind", "payload": "payload"}),
    "rocprofiler_dispatch": ("rocprofiler_buffer_tracing_kernel_dispatch_record_t", {
        **COMMON, **{ours: f"dispatch_info.{theirs}" for ours, theirs in {
            "info_size": "size", "agent": "agent_id", "queue": "queue_id", "kernel": "kernel_id", "dispatch": "dispatch_id",
            "private_bytes": "private_segment_size", "group_bytes": "group_segment_size", "workgroup": "workgroup_size",
            "grid": "grid_size"}.items()}}),
    "rocprofiler_copy": ("rocprofiler_buffer_tracing_memory_copy_record_t", {
        **COMMON, "to_agent": "dst_agent_id", "from_agent": "src_agent_id", "bytes": "bytes"}),
    "rocprofiler_agent": ("rocprofiler_agent_v0_t", {
        "size": "size", "id": "id", "type": "type", "wave_items": "wave_front_size", "xccs": "num_xcc",
        "compute_units": "cu_count", "gfx_version": "gfx_target_version", "core_clock_mhz": "max_engine_clk_fcompute",
        "waves_per_unit": "max_waves_per_cu", "workgroup_items": "workgroup_max_size", "memory_bytes": "local_mem_size",
        "name": "name", "product": "product_name", "node": "node_id", "ordinal": "logical_node_type_id"}),
}
SAME_SIZE = ("rocprofiler_client", "rocprofiler_tool", "rocprofiler_callback_record", "rocprofiler_header")
CONSTANTS = {
    "OK": "STATUS_SUCCESS", "CALLBACK_HIP_RUNTIME": "CALLBACK_TRACING_HIP_RUNTIME_API",
    "CALLBACK_CODE_OBJECT": "CALLBACK_TRACING_CODE_OBJECT",
    "CODE_OBJECT_KERNEL": "CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER", "BUFFER_COPY": "BUFFER_TRACING_MEMORY_COPY",
    "BUFFER_DISPATCH": "BUFFER_TRACING_KERNEL_DISPATCH", "REQUEST_COPY": "EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY",
    "REQUEST_DISPATCH": "EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH", "CATEGORY_TRACING": "BUFFER_CATEGORY_TRACING",
    "PHASE_ENTER": "CALLBACK_PHASE_ENTER", "PHASE_EXIT": "CALLBACK_PHASE_EXIT",
    "COPY_HOST_TO_DEVICE": "MEMORY_COPY_HOST_TO_DEVICE", "COPY_DEVICE_TO_HOST": "MEMORY_COPY_DEVICE_TO_HOST",
    "POLICY_LOSSLESS": "BUFFER_POLICY_LOSSLESS", "AGENT_GPU": "AGENT_TYPE_GPU", "AGENT_VERSION_0": "AGENT_INFO_VERSION_0",
}
FUNCTIONS = re.compile(r'F\((\w+), "(\w+)"\)')
PROLOGUE = """
#define __HIP_PLATFORM_AMD__ 1
#include <stdbool.h>
#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/context.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
"""


def include_folders():
    roots = [os.environ.get("ROCM_PATH"), "/opt/rocm", *sorted(map(str, Path("/opt").glob("rocm-*")), reverse=True)]
    roots += [str(path) for folder in sys.path for path in Path(folder or ".").glob("_rocm_sdk_devel")]
    return [Path(root) / "include" for root in roots
            if root and (Path(root) / "include/rocprofiler-sdk/registration.h").exists()]


def assertions(source):
    lines = []
    for ours, (theirs, fields) in STRUCTS.items():
        for our_field, field in fields.items():
            lines.append(f'_Static_assert(offsetof(struct {ours}, {our_field}) == offsetof({theirs}, {field}), "{theirs}.{field}");')
            lines.append(f'_Static_assert(sizeof(((struct {ours} *)0)->{our_field}) == sizeof((({theirs} *)0)->{field}), '
                         f'"size of {theirs}.{field}");')
        comparison = "==" if ours in SAME_SIZE else "<="
        lines.append(f'_Static_assert(sizeof(struct {ours}) {comparison} sizeof({theirs}), "size of {theirs}");')
    for ours, theirs in CONSTANTS.items():
        lines.append(f'_Static_assert(OUR_{ours} == (int)ROCPROFILER_{theirs}, "{theirs}");')
    call = STRUCTS["rocprofiler_hip_call"][0]
    lines.append(f'_Static_assert(sizeof((({call} *)0)->retval) == ROCPROFILER_HIP_RESULT_BYTES && '
                 f'offsetof({call}, retval) + ROCPROFILER_HIP_RESULT_BYTES == sizeof({call}), "what a call returned");')
    text = (source / "src/inject/hip/rocprofiler_abi.h").read_text()
    for _, name in FUNCTIONS.findall(text):
        lines.append(f"const void *const use_{name} = (const void *){name};")
    return lines


def check(include, source, compiler):
    abi = (source / "src/inject/hip/rocprofiler_abi.h").read_text().replace("#pragma once", "")
    for name in CONSTANTS:
        abi = re.sub(rf"\bROCPROFILER_{name}\b", f"OUR_{name}", abi)
    lines = assertions(source)
    program = PROLOGUE + abi + "\n".join(lines) + "\nint main(void) { return 0; }\n"
    done = subprocess.run([*compiler, "-std=gnu17", "-fsyntax-only", "-x", "c", f"-I{include}", "-"],
                          input=program, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    print(f"{include}: {len(lines)} comparisons, {len(errors)} differ")
    for error in errors[:20]:
        print("   ", error)
    return done.returncode == 0


def main():
    source, compiler = Path(sys.argv[1]), sys.argv[2].split()
    folders = include_folders()
    if not folders:
        print("SKIPPED: no headers of rocprofiler-sdk; they come with ROCm 7, which ROCM_PATH may name")
        return 77
    return 0 if all([check(include, source, compiler) for include in folders]) else 1


if __name__ == "__main__":
    sys.exit(main())
