# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces whose GPU work is slices of a category: rocprofv3's and PyTorch's, made by what their source writes. None
that they wrote was at hand."""

import pytest
from protobuf_writer import message

BEGIN, END = 1, 2
PROCESS, THREAD, COMPUTE, COPY = 10, 11, 12, 13


def packet(*fields):
    return message((1, message((10, 1), *fields)))


def track(uuid, name=None, parent=None, process=None, thread=None):
    return packet((60, message((1, uuid), (2, name), (5, parent), (3, process and message((1, process))),
                               (4, thread and message((1, thread[0]), (2, thread[1]))))))


def annotation(name, value):
    return message((10, name), (6, value) if isinstance(value, str) else (3, value))


def slices(uuid, category, name, start, end, **arguments):
    fields = [(4, annotation(key, value)) for key, value in arguments.items()]
    begin = packet((8, start), (58, 3), (11, message((9, BEGIN), (11, uuid), (22, category), (23, name), *fields)))
    return begin + packet((8, end), (58, 3), (11, message((9, END), (11, uuid))))


def rocprofv3(agent="0"):
    """Kernel 1 is launched by HIP's call 5 on another thread than the main one; the copy by call 6."""
    return b"".join([
        track(PROCESS, process=500), track(THREAD, "THREAD 1 (77)", PROCESS),
        track(COMPUTE, "COMPUTE AGENT [4] STREAM [3] (GPU)", PROCESS), track(COPY, "COPY to AGENT [4] STREAM [3] (GPU)", PROCESS),
        slices(THREAD, "hip_api", "hipLaunchKernel", 1000, 1400, tid=77, corr_id=5),
        slices(THREAD, "hip_api", "hipMemcpyAsync", 2000, 2100, tid=77, corr_id=6),
        slices(THREAD, "hip_api", "hipGetDevice", 2500, 2600, tid=77, corr_id=7),
        slices(THREAD, "marker_api", "step", 900, 3000, tid=77, corr_id=8),
        slices(COPY, "memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", 2200, 2400, dst_agent=agent, copy_bytes=4096, corr_id=6, tid=77),
        slices(COMPUTE, "kernel_dispatch", "gemm(float*)", 1500, 1900, agent=agent, corr_id=5, queue=9, tid=77,
               workgroup_size=256, grid_size=1024),
        slices(COMPUTE, "kernel_dispatch", "gemm(float*)", 2000, 2300, agent=agent, corr_id=99, queue=9, tid=77),
    ])


@pytest.fixture
def write(tmp_path):
    def made(data):
        path = tmp_path / "out_results.pftrace"
        path.write_bytes(data)
        return path

    return made


@pytest.mark.parametrize("agent", ["0", "4-1", "GPU-4", 0])
def test_kernels_and_copies_of_rocprofv3(write, report, agent):
    path = write(rocprofv3(agent))
    kernels = {row["name"]: row for row in report(path, "--by", "kernel")["kernel"]["kernels"]}
    assert (kernels["gemm(float*)"]["count"], kernels["gemm(float*)"]["sum_ns"]) == (2, 700)
    names = {row["device_name"] for row in report(path, "--by", "kernel")["kernel"]["types"]}
    assert names == {agent if agent == "GPU-4" else f"GPU {agent}"}
    assert [row["bytes"]["sum"] if isinstance(row["bytes"], dict) else row["bytes"] for row in report(path)["bandwidth"]] == [4096]
    assert {row["stream"] for row in report(path)["queue"]} == {3}


def test_work_is_joined_to_its_call_and_calls_stay_ranges(write, report):
    whole = report(write(rocprofv3()))
    (launches,) = whole["launches"]
    assert launches["works"] == 2 and launches["cpu_duration_ns"]["max"] == 400
    assert whole["device_work"]["count"] == 3
    assert {row["name"]: row["total_ns"] for row in whole["ranges"]["rows"]} == {
        "hipLaunchKernel": 400, "hipMemcpyAsync": 100, "hipGetDevice": 100, "step": 2100}
    assert {row["kind"] for row in whole["ranges"]["rows"]} == {"thread"}


def test_categories_of_pytorch(write, report):
    path = write(b"".join([
        track(PROCESS, process=500), track(THREAD, parent=PROCESS, thread=(500, 501)), track(COMPUTE, "stream 7", PROCESS),
        slices(THREAD, "cuda_runtime", "cudaLaunchKernel", 1000, 1400, correlation=5),
        slices(COMPUTE, "kernel", "gemm", 1500, 1900, device=1, stream=7, correlation=5),
        slices(COMPUTE, "gpu_memset", "Memset (Device)", 2000, 2010, device=1, stream=7, bytes=64)]))
    kernels = {row["name"]: row["sum_ns"] for row in report(path, "--by", "kernel")["kernel"]["kernels"]}
    assert kernels == {"gemm": 400, "Memset (Device)": 10}


def test_packets_of_android_are_counted(write, sonde):
    others = b"".join(packet((8, 5), (number, message((1, 1)))) for number in (1, 1, 39, 52))
    service = b"".join(packet((number, message((1, 1)))) for number in (33, 35, 89))
    shown = sonde("report", write(rocprofv3() + others + service), check=0)
    assert "left out: 4 packets" in " ".join(shown.stderr.split())
    assert "left out" not in sonde("report", write(rocprofv3() + service), check=0).stderr


def test_ends_alone_and_begins_alone(write, sonde):
    data = rocprofv3()
    end = packet((8, 4000), (11, message((9, END), (11, COMPUTE))))
    begin = packet((8, 5000), (11, message((9, BEGIN), (11, COMPUTE), (22, "kernel_dispatch"), (23, "cut"))))
    assert "cut" not in sonde("report", "--by", "kernel", write(data + end + end + begin), check=0).stdout
