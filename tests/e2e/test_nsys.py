# SPDX-License-Identifier: Apache-2.0
"""Exports of Nsight Systems as SQLite: what nsys_export.py writes, read as any other trace. One by Nsight Systems itself was
not at hand."""

import json
import sqlite3

import nsys_export
import pytest


@pytest.fixture
def export(tmp_path):
    def write(**options):
        path = tmp_path / "run.sqlite"
        path.unlink(missing_ok=True)
        nsys_export.write(path, **options)
        return path

    return write


def test_work_of_devices(export, report):
    path = export()
    found = report(path, "--by", "kernel")["kernel"]
    kernels = {(each["device"], each["name"]): each for each in found["kernels"]}
    assert set(device for device, _ in kernels) == {0, 1}  # both processes call theirs 0
    gemm = kernels[0, "void gemm<float, 128>(float *)"]
    assert (gemm["count"], gemm["sum_ns"]) == (5, 300)
    assert kernels[1, "Memcpy HtoD (Pageable -> Device)"]["sum_ns"] == 100
    assert kernels[1, "Memset (Device)"]["count"] == 1
    (trace,) = report(path)["traces"]
    assert trace["device_works"] == 14 and trace["works_without_launch"] == 0


def test_launches_and_idle_time(export, report):
    whole = report(export())
    launches = {row["name"]: row for row in whole["launches"]}
    assert set(launches) == {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync"}
    assert launches["cudaLaunchKernel"]["launches"] == 10
    assert launches["cudaLaunchKernel"]["cpu_duration_ns"]["p50"] == 20
    assert [row["idle_ns"] for row in whole["idle"] if row["of"] == "device"] == [220, 220]


def test_ranges_domains_and_operators(export, report):
    whole = report(export(), "--by", "range")["ranges"]["rows"]
    rows = {(row["domain"] or "", row["name"]): row for row in whole}
    assert rows["library", "forward"]["total_ns"] == 2 * 290
    assert rows["", "step"]["total_ns"] == 2 * 480
    assert rows["", "request"]["total_ns"] == 2 * 585  # began in one range and ended behind it
    assert rows["", "loss"]["count"] == 2
    assert not any("aten" in name for _, name in rows)
    operators = report(export(), "--by", "cpu-operators")
    assert "aten::mm" in str(operators) and "op_id" not in str(operators)


def test_memory(export, report):
    rows = report(export(), "--by", "memory")["memory"]
    assert [row["device"] for row in rows] == ["GPU 0", "GPU 1"]
    assert rows[0]["device_name"] == "NVIDIA H100"
    assert rows[0]["peak_bytes"] == (1 << 20) + 1024 and rows[0]["unreleased_bytes"] == 1024


def test_waits_name_what_recorded_their_event(export, sonde):
    """By the id that both have since CUDA 12.8, which the second process has; else by the last record before."""
    rows = json.loads(sonde("export", "-f", "chrome", "-o", "-", export()).stdout)["traceEvents"]
    calls = {row["args"]["correlation"]: row["name"] for row in rows if row.get("cat") == "cuda_runtime"}
    waits = [row for row in rows if row.get("name") == "Stream Wait Event"]
    assert len(waits) == 2
    for wait in waits:
        args = wait["args"]
        assert (args["wait_on_stream"], args["wait_on_cuda_event_id"]) == (7, 40)
        assert calls[args["wait_on_cuda_event_record_corr_id"]] == "cudaEventRecord"
        assert calls[args["correlation"]] == "cudaStreamWaitEvent"


def test_what_is_left_out_is_said(export, sonde, tmp_path):
    path = export()
    assert "6 calls of the C library" in sonde("report", path, check=0).stderr
    assert "6 calls of the C library" in sonde("import", "-o", tmp_path / "run.pftrace", path, check=0).stderr


@pytest.mark.parametrize(
    "left_out, without",
    [
        (("NVTX_EVENTS", "ThreadNames", "PROCESSES"), ()),
        (("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUDA_GPU_MEMORY_USAGE_EVENTS"), ("graphNodeId", "srcKind", "dstKind")),
        (("TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_SESSION_START_TIME", "OSRT_API"), ("domainId", "textId")),
    ],
)
def test_tables_and_columns_differ_by_release(export, report, left_out, without):
    found = report(export(left_out=left_out, without=without), "--by", "kernel")["kernel"]
    assert sum(each["sum_ns"] for each in found["kernels"] if "gemm" in each["name"]) == 600


def test_an_import_is_the_same(export, sonde, report, tmp_path):
    path, capture, again = export(), tmp_path / "run.pftrace", tmp_path / "again.json"
    sonde("import", "-o", capture, path, check=0)
    sonde("export", "-f", "chrome", "-o", again, capture, check=0)
    first = report(path)
    for other in (capture, again):
        found = report(other)
        for section in ("idle", "launches", "queue", "ranges", "kernel", "temporal", "bandwidth", "memory"):
            assert found.get(section) == first.get(section), (other, section)


def test_another_database_is_none(sonde, tmp_path):
    path = tmp_path / "runs.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE runs (id INTEGER)")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end")
    refused = sonde("report", path)
    assert refused.status != 0 and "an export of Nsight Systems would have" in refused.stderr


def test_a_damaged_database(export, sonde, tmp_path):
    path = export()
    path.write_bytes(path.read_bytes()[:20000])
    refused = sonde("report", path)
    assert "damaged" in refused.stderr or "cut off" in refused.stderr
