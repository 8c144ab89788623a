# SPDX-License-Identifier: Apache-2.0
"""An export of Nsight Systems as SQLite, made by hand by its documented schema: two processes that each call their device
0, with kernels, copies, a graph, waits, NVTX ranges in and without a domain, and allocations."""

import sqlite3
import sys
from itertools import chain

EPOCH_NS = 1_700_000_000_000_000_000
VM = 1 << 48

TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL,"
    " gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,"
    " staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " value INTEGER NOT NULL, bytes INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL, eventSyncId INTEGER",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, address INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,"
    " memoryOperationType INTEGER NOT NULL",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,"
    " color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
    "OSRT_API": "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL",
}
STRINGS = [
    "cudaLaunchKernel_v7000",
    "cudaMemcpyAsync_v3020",
    "cudaStreamSynchronize_v3020",
    "cudaMemsetAsync_v3020",
    "void gemm<float, 128>(float *)",
    "gemm",
    "python3",
    "step",
    "cuLaunchKernel",
    "read",
    "cudaEventRecord_v3020",
    "cudaStreamWaitEvent_v3020",
]
LAUNCH, COPY, WAIT, FILL, GEMM, SHORT, THREAD, STEP, DRIVER, READ, RECORD, WAIT_EVENT = range(1, len(STRINGS) + 1)


def rows_of_process(number):
    """Of one process: its tables and their rows. Both have the same correlations, streams and device numbers."""
    pid, at = 100 + number, 1000 * number
    process, thread = VM | pid << 24, VM | pid << 24 | pid
    stream = (0, 1, 7)  # the device as the process counts it, its context, the stream
    calls = [(at + 100 * i, at + 100 * i + 20, 0, thread, i + 1, LAUNCH, 0, None) for i in range(5)]
    kernels = [
        (at + 100 * i + 30, at + 100 * i + 90, *stream, i + 1, process, GEMM, SHORT, 32, 4, 2, 1, 128, 1, 1, 1024, 2048, None)
        for i in range(5)
    ]
    calls += [(at + 520, at + 540, 0, thread, 6, COPY, 0, None), (at + 550, at + 560, 0, thread, 7, FILL, 0, None)]
    calls += [(at + 600, at + 700, 0, thread, 8, WAIT, 0, None), (at + 710, at + 720, 1, thread, 9, DRIVER, 0, None)]
    calls += [(at + 725 + i, at + 726 + i, 0, thread, 10 + i, name, 0, None) for i, name in enumerate((RECORD, WAIT_EVENT, RECORD))]
    return {
        "PROCESSES": [(process, pid, "/usr/bin/python3.11")],
        "ThreadNames": [(THREAD, 0, thread)],
        "TARGET_INFO_CUDA_DEVICE": [(number, 0, pid, "GPU-%d" % number)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(at + 545, at + 645, *stream, 6, process, 4096, 1, 0, 2)],
        "CUPTI_ACTIVITY_KIND_MEMSET": [(at + 650, at + 660, *stream, 7, process, 0, 512)],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            (at + 600, at + 700, *stream, 8, process, 3, 0, None),
            (at + 730, at + 730, 0, 1, 8, 11, process, 2, 40, 900 if number else None),
        ],
        # The later record of the event is of another wait; the ids of waits are another process's, too.
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [
            (0, 1, 9, 12, process, 40, 901 if number else None),
            (0, 1, 7, 10, process, 40, 900 if number else None),
        ],
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [
            (at + 1, process, 0, 1, 0x7000, 1 << 20, 2, 0),
            (at + 2, process, 0, 1, 0x9000, 1 << 10, 2, 0),
            (at + 700, process, 0, 1, 0x7000, 1 << 20, 2, 1),
        ],
        "NVTX_EVENTS": [
            (at, None, 75, None, None, None, "library", thread, None, None, 3),
            (at, at + 480, 59, None, None, None, None, thread, None, STEP, 0),
            (at + 10, at + 300, 59, None, None, None, "forward", thread, None, None, 3),
            (at + 20, at + 250, 59, None, None, None, "aten::mm, seq = 3, op_id = 7, sizes = [[2, 2]]", thread, None, None, 0),
            (at + 15, at + 600, 60, 5, None, None, "request", thread, thread, None, 0),
            (at + 90, None, 34, None, None, None, "loss", thread, None, None, 0),
            (at + 700, None, 59, None, None, None, "open", thread, None, None, 0),
        ],
        "OSRT_API": [(at, at + 1, thread, READ)] * 3,
    }


def write(path, left_out=(), without=(), page_size=4096):
    """`left_out`: tables that are not there; `without`: columns that no table has, as those of other releases."""
    parts = [rows_of_process(0), rows_of_process(1)]
    rows = {table: list(chain.from_iterable(part.get(table, []) for part in parts)) for table in TABLES}
    rows["StringIds"] = list(enumerate(STRINGS, 1))
    rows["TARGET_INFO_SESSION_START_TIME"] = [(EPOCH_NS, "", "")]
    rows["TARGET_INFO_GPU"] = [(0, number, "NVIDIA H100", "", 80 << 30) for number in range(2)]
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        for table, columns in TABLES.items():
            if table in left_out:
                continue
            database.execute(f"CREATE TABLE {table} ({columns})")
            if rows[table]:
                marks = ", ".join("?" * len(rows[table][0]))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
            for column in without:
                if f" {column} " in columns:
                    database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    database.close()


if __name__ == "__main__":
    write(sys.argv[1])
