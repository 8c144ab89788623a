#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our declarations of NVTX (src/inject/nvtx/abi.h) against NVIDIA's headers of several releases, and the door of
libsonde-inject.so with programs that are compiled with these headers. They come from the wheels on PyPI.

    check-nvtx-abi.py FOLDER-FOR-WHEELS SOURCE COMPILER SONDE

Exit status 77: no wheels can be had.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from wheels import Unavailable, unpack

WHEELS = {
    "11.8": "nvidia-nvtx-cu11==11.8.86",
    "12.4": "nvidia-nvtx-cu12==12.4.127",
    "12.9": "nvidia-nvtx-cu12==12.9.79",
    "13.0": "nvidia-nvtx==13.0.85",
    "13.5": "nvidia-nvtx==13.5.25",
}

FIELDS = [
    ("struct nvtx_attributes", "nvtxEventAttributes_t",
     {"version": "version", "size": "size", "category": "category", "color_type": "colorType", "color": "color",
      "payload_type": "payloadType", "count": "reserved0", "payload": "payload", "message_type": "messageType",
      "message": "message"}),
    ("struct nvtx_callbacks", "NvtxExportTableCallbacks",
     {"bytes": "struct_size", "get_table": "GetModuleFunctionTable"}),
]
PAYLOAD_FIELDS = [
    ("struct nvtx_payload_data", "nvtxPayloadData_t", {"schema": "schemaId", "bytes": "size", "data": "payload"}),
    ("struct nvtx_schema_entry", "nvtxPayloadSchemaEntry_t",
     {"flags": "flags", "type": "type", "name": "name", "description": "description", "detail": "arrayOrUnionDetail",
      "offset": "offset"}),
    ("struct nvtx_schema_attributes", "nvtxPayloadSchemaAttr_t",
     {"fields": "fieldMask", "name": "name", "type": "type", "flags": "flags", "entries": "entries",
      "entry_count": "numEntries", "bytes": "payloadStaticSize", "align": "packAlign", "id": "schemaId"}),
    ("struct nvtx_enum_entry", "nvtxPayloadEnum_t", {"name": "name", "value": "value", "is_flag": "isFlag"}),
    ("struct nvtx_enum_attributes", "nvtxPayloadEnumAttr_t",
     {"fields": "fieldMask", "name": "name", "entries": "entries", "entry_count": "numEntries",
      "bytes": "sizeOfEnum", "id": "schemaId"}),
    ("struct nvtx_extension_segment", "nvtxExtModuleSegment_t",
     {"segment": "segmentId", "slot_count": "slotCount", "slots": "functionSlots"}),
    ("struct nvtx_extension", "nvtxExtModuleInfo_t",
     {"version": "nvtxVer", "bytes": "structSize", "module": "moduleId", "compatibility": "compatId",
      "segment_count": "segmentsCount", "segments": "segments", "get_export": "getExportFunction",
      "info": "extInfo"}),
]
CORE = {"MARK_EX": "MarkEx", "MARK_A": "MarkA", "MARK_W": "MarkW", "START_EX": "RangeStartEx", "START_A": "RangeStartA",
        "START_W": "RangeStartW", "END": "RangeEnd", "PUSH_EX": "RangePushEx", "PUSH_A": "RangePushA",
        "PUSH_W": "RangePushW", "POP": "RangePop", "NAME_CATEGORY_A": "NameCategoryA",
        "NAME_CATEGORY_W": "NameCategoryW", "NAME_THREAD_A": "NameOsThreadA", "NAME_THREAD_W": "NameOsThreadW",
        "SLOTS": "SIZE"}
CORE2 = {"MARK_EX": "DomainMarkEx", "START_EX": "DomainRangeStartEx", "END": "DomainRangeEnd",
         "PUSH_EX": "DomainRangePushEx", "POP": "DomainRangePop", "NAME_CATEGORY_A": "DomainNameCategoryA",
         "NAME_CATEGORY_W": "DomainNameCategoryW", "REGISTER_STRING_A": "DomainRegisterStringA",
         "REGISTER_STRING_W": "DomainRegisterStringW", "DOMAIN_CREATE_A": "DomainCreateA",
         "DOMAIN_CREATE_W": "DomainCreateW", "SLOTS": "SIZE"}
VALUES = {"NVTX_MODULE_CORE": "NVTX_CB_MODULE_CORE", "NVTX_MODULE_CORE2": "NVTX_CB_MODULE_CORE2",
          "NVTX_EXPORT_CALLBACKS": "NVTX_ETID_CALLBACKS", "NVTX_UNTRACKED": "NVTX_NO_PUSH_POP_TRACKING",
          **{f"NVTX_CORE_{ours}": f"NVTX_CBID_CORE_{theirs}" for ours, theirs in CORE.items()},
          **{f"NVTX_CORE2_{ours}": f"NVTX_CBID_CORE2_{theirs}" for ours, theirs in CORE2.items()}}
SLOTS = {"SCHEMA_REGISTER": "PayloadSchemaRegister", "ENUM_REGISTER": "PayloadEnumRegister", "MARK": "MarkPayload",
         "PUSH": "RangePushPayload", "POP": "RangePopPayload", "START": "RangeStartPayload", "END": "RangeEndPayload"}
ENTRIES = ["CHAR", "UCHAR", "SHORT", "USHORT", "INT", "UINT", "LONG", "ULONG", "LONGLONG", "ULONGLONG", "INT8", "UINT8",
           "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FLOAT", "DOUBLE", "SIZE", "ADDRESS", "BYTE",
           "FLOAT32", "FLOAT64", "CATEGORY", "CSTRING", "CSTRING_UTF8"]
PAYLOAD_VALUES = {
    "NVTX_EXTENSION_PAYLOAD": "NVTX_EXT_PAYLOAD_MODULEID", "NVTX_PAYLOAD_EXTENDED": "NVTX_PAYLOAD_TYPE_EXT",
    "NVTX_SCHEMA_STATIC": "NVTX_PAYLOAD_SCHEMA_TYPE_STATIC", "NVTX_SCHEMA_FIRST_ID": "NVTX_PAYLOAD_SCHEMA_ID_STATIC_START",
    "NVTX_ENTRY_REGISTERED_STRING": "NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE",
    "NVTX_ENTRY_FLAG_MESSAGE": "NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE",
    "NVTX_SCHEMA_HAS_NAME": "NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME",
    "NVTX_SCHEMA_HAS_ALIGN": "NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT",
    "NVTX_SCHEMA_HAS_ID": "NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID",
    "NVTX_ENUM_HAS_ID": "NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID",
    **{f"NVTX_PAYLOAD_{ours}": f"NVTX3EXT_CBID_nvtx{theirs}" for ours, theirs in SLOTS.items()},
    **{f"NVTX_ENTRY_{name}": f"NVTX_PAYLOAD_ENTRY_TYPE_{name}" for name in ENTRIES},
}
PROLOGUE = """
#include <nvtx3/nvToolsExt.h>
#if HAS_PAYLOAD
#include <nvtx3/nvToolsExtPayload.h>
#endif
#include "inject/nvtx/abi.h"
#define CHECK_FIELD(ours, our_field, theirs, field)                                            \\
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, field), #theirs "." #field);  \\
    _Static_assert(sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->field), "size of " #theirs "." #field);
#define CHECK_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #theirs);
#define CHECK_VALUE(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs);
"""

EXPECTED = {("NVTX", "outer"): 1, ("NVTX", "inner"): 3, ("one", "crossing"): 1, ("two", "crossing"): 1,
            ("one", "with payload"): 1, ("NVTX", "step 1"): 2, ("NVTX", "first"): 1, ("library", "library work"): 20,
            ("NVTX", "after the library"): 1}
EXPECTED_PAYLOAD = {("NCCL", "ncclAllReduce"): 1, ("NCCL", "AllReduce"): 1}


PYTHON = "nvtx==0.2.17"
SCRIPT = """
import nvtx, time
@nvtx.annotate("decorated", domain="python")
def work():
    time.sleep(0.01)
for i in range(5):
    with nvtx.annotate("step", color="blue", category="loop", payload=i):
        work()
nvtx.mark("done")
nvtx.end_range(nvtx.start_range("of the process"))
"""
EXPECTED_PYTHON = {("python", "decorated"): 5, ("NVTX", "step"): 5, ("NVTX", "done"): 1, ("NVTX", "of the process"): 1}


def comparisons(has_payload):
    fields, values = list(FIELDS), dict(VALUES)
    if has_payload:
        fields += PAYLOAD_FIELDS
        values.update(PAYLOAD_VALUES)
    lines = [f"CHECK_FIELD({ours}, {our_field}, {theirs}, {field})"
             for ours, theirs, pairs in fields for our_field, field in pairs.items()]
    lines += [f"CHECK_SIZE({ours}, {theirs})" for ours, theirs, _ in fields]
    lines += [f"CHECK_VALUE({ours}, {theirs})" for ours, theirs in values.items()]
    return lines


def check_layouts(include, source, compiler, name, has_payload):
    lines = comparisons(has_payload)
    program = PROLOGUE + "\n".join(lines) + "\nint main(void) { return 0; }\n"
    done = subprocess.run([*compiler, "-std=gnu17", "-fsyntax-only", "-x", "c", f"-DHAS_PAYLOAD={int(has_payload)}",
                           f"-I{source / 'src'}", f"-isystem{include}", "-"],
                          input=program, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    print(f"NVTX of CUDA {name}: {len(lines)} comparisons, {len(errors)} differ")
    for error in errors[:20]:
        print("   ", error)
    return not errors


def check_program(include, source, compiler, name, sonde, has_payload):
    """The program and the library of the end-to-end tests, by the real headers."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        base = [*compiler, "-std=gnu17", "-O2", "-DREAL_NVTX", f"-I{source / 'tests'}", f"-isystem{include}"]
        for command in (
            [*base, source / "tests/e2e/workloads/nvtx.c", "-o", folder / "nvtx", "-ldl", "-lpthread"],
            [*base, "-shared", "-fPIC", source / "tests/e2e/workloads/nvtx_library.c", "-o", folder / "library.so", "-ldl"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"NVTX of CUDA {name}: does not compile: {done.stderr[:2000]}")
                return False
        expected = {**EXPECTED, **(EXPECTED_PAYLOAD if has_payload else {})}
        command = ["env", "NVTX_CHECK=1", folder / "nvtx", "all", "1", folder / "library.so"]
        return record(f"NVTX of CUDA {name}", sonde, folder, command, 5, expected)


def record(what, sonde, folder, command, status, expected):
    """Are these the counts of the command's ranges, by domain and name?"""
    capture = folder / "capture.pftrace"
    done = subprocess.run([sonde, "record", "-q", "-o", capture, "--", *command], capture_output=True, text=True)
    if done.returncode != status:
        print(f"{what}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return False
    report = subprocess.run([sonde, "report", "--json", capture], capture_output=True, text=True, check=True).stdout
    rows = {(row["domain"], row["name"]): row["count"] for row in json.loads(report)["ranges"]["rows"]}
    wrong = {key: rows.get(key) for key, count in expected.items() if rows.get(key) != count}
    print(f"{what}: {sum(rows.values())} ranges and marks; wrong: {wrong or 'none'}")
    return not wrong


def check_python(folder, sonde):
    """The Python package: a client that others wrote."""
    package = unpack(folder, PYTHON, ("nvtx/",))
    with tempfile.TemporaryDirectory() as temporary:
        script = Path(temporary) / "annotated.py"
        script.write_text(SCRIPT)
        command = ["env", f"PYTHONPATH={package}", sys.executable, script]
        return record(f"Python's {PYTHON}", sonde, Path(temporary), command, 0, EXPECTED_PYTHON)


def main():
    folder, source, compiler, sonde = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(), sys.argv[4]
    folder.mkdir(parents=True, exist_ok=True)
    good = True
    try:
        good &= check_python(folder, sonde)
        for name, requirement in WHEELS.items():
            headers = next(unpack(folder, requirement, ("/include/",)).rglob("nvtx3/nvToolsExt.h"))
            has_payload = (headers.parent / "nvToolsExtPayload.h").exists()
            good &= check_layouts(headers.parents[1], source, compiler, name, has_payload)
            good &= check_program(headers.parents[1], source, compiler, name, sonde, has_payload)
    except Unavailable as error:
        print(f"SKIPPED: no wheels of NVTX to compare with: {error}")
        return 77 if good else 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
