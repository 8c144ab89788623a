# SPDX-License-Identifier: Apache-2.0
"""Critical paths, stragglers, sequences, memory and comparisons of traces, on the command line."""

import csv
import io
import json

import pytest


def row(category, name, start, duration, pid=100, tid=100, **arguments):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": arguments,
    }


def launch(kernel, call, start, duration, correlation, stream=7):
    """A call of 5 us and the kernel that it launches."""
    return [
        row("cuda_runtime", "cudaLaunchKernel", call, 5, correlation=correlation),
        row(
            "kernel",
            kernel,
            start,
            duration,
            pid=0,
            tid=stream,
            device=0,
            context=1,
            stream=stream,
            correlation=correlation,
        ),
    ]


def memory(time, address, size, total):
    arguments = {
        "Addr": address,
        "Bytes": size,
        "Total Allocated": total,
        "Total Reserved": 4096,
        "Device Type": 1,
        "Device Id": 0,
    }
    return {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 100,
        "tid": 100,
        "ts": time,
        "args": arguments,
    }


def step(number, start, kernel_us):
    """An operator that launches three kernels, and a call that waits for them."""
    first = number * 10
    return [
        row("user_annotation", f"ProfilerStep#{number}", start, 1000),
        row("cpu_op", "aten::linear", start + 10, 90),
        *launch("copy", start + 20, start + 100, 100, first),
        *launch("gemm", start + 40, start + 205, kernel_us, first + 1),
        *launch("ncclKernel_AllReduce", start + 60, start + 210 + kernel_us, 50, first + 2),
        row("cuda_runtime", "cudaDeviceSynchronize", start + 110, 170 + kernel_us, correlation=first + 3),
        memory(start + 15, 4096 * number, 512, 512 * number),
    ]


def write(path, kernel_us=500, steps=(1, 2), rank=0, extra=()):
    events = [event for number in steps for event in step(number, number * 1000, kernel_us)]
    info = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    path.write_text(json.dumps({"schemaVersion": 1, **info, "traceEvents": [*events, *extra]}))
    return path


def by(report, path, section, *arguments):
    return report(path, "--by", section, *arguments)[section.replace("-", "_")]


def test_the_critical_path_leads_over_the_device(report, sonde, tmp_path):
    trace = write(tmp_path / "trace.json")
    (rank,) = by(report, trace, "critical-path")
    assert [window["name"] for window in rank["windows"]] == ["ProfilerStep#1", "ProfilerStep#2"]
    for window in rank["windows"]:
        bounds = window["by_bound_ns"]
        assert window["path_ns"] == sum(bounds.values()) == 770_000
        assert bounds["cpu_bound"] == 10_000 + 20_000
        assert bounds["gpu_kernel_launch_overhead"] == 80_000
        assert bounds["gpu_compute_bound"] == 600_000
        assert bounds["gpu_kernel_kernel_overhead"] == 10_000
        assert bounds["gpu_communication_bound"] == 50_000
        assert sum(edge["duration_ns"] for edge in window["edges_of_path"]) == window["path_ns"]
    text = sonde("report", "--by", "critical-path", trace, check=0).stdout
    assert "Critical path" in text and "ProfilerStep#2" in text and "gemm" in text
    assert "enable_cuda_sync_events" in text


def test_windows_of_critical_paths_are_chosen(report, sonde, tmp_path):
    trace = write(tmp_path / "trace.json")
    (rank,) = by(report, trace, "critical-path", "--instance", "1")
    assert [window["name"] for window in rank["windows"]] == ["ProfilerStep#2"]
    (rank,) = by(report, trace, "critical-path", "--annotation", "")
    (window,) = rank["windows"]
    assert window["name"] is None and window["path_ns"] == 2 * 770_000
    (rank,) = by(report, trace, "critical-path", "--annotation", "no such")
    assert rank["windows"] == []
    assert "no annotation" in sonde("report", "--by", "critical-path", "--annotation", "no such", trace, check=0).stdout
    refused = sonde("report", "--instance", "1", trace)
    assert refused.status == 2 and "--by critical-path" in refused.stderr
    refused = sonde("report", "--operator", "aten", trace)
    assert refused.status == 2 and "--by sequences" in refused.stderr


def test_an_imported_trace_has_the_same_analyses(report, sonde, tmp_path):
    trace = write(tmp_path / "trace.json")
    capture = tmp_path / "trace.pftrace"
    sonde("import", trace, "-o", capture, check=0)
    for section in ("critical-path", "sequences", "memory"):
        assert by(report, trace, section) == by(report, capture, section)


def test_ranks_that_others_wait_for_are_named(report, sonde, tmp_path):
    """Rank 1 begins its all-reduces 200 us later, and ends them with rank 0."""
    late = [event for number in (1, 2) for event in launch("ncclKernel_AllGather", number * 1000 + 300,
            number * 1000 + 700, 200, 100 + number, stream=20)]
    early = [event for number in (1, 2) for event in launch("ncclKernel_AllGather", number * 1000 + 300,
             number * 1000 + 500, 400, 100 + number, stream=20)]
    first = write(tmp_path / "rank0.json", extra=early)
    second = write(tmp_path / "rank1.json", rank=1, extra=late)
    ranks = json.loads(sonde("report", "--json", "--by", "stragglers", first, second, check=0).stdout)["ranks"]
    found = ranks["collectives"]
    assert found["matched"] == 4 and found["end_error_ns"] == 0 and ranks["collective"] is None
    assert [(rank["rank"], rank["last"], rank["caused_ns"], rank["suffered_ns"]) for rank in found["ranks"]] == [
        (1, 2, 400_000, 0),
        (0, 0, 0, 400_000),
    ]
    gather = found["kinds"][0]
    assert gather["name"] == "ncclKernel_AllGather" and gather["count"] == 2 and gather["last_rank"] == 1
    assert gather["mean_skew_ns"] == gather["mean_transfer_ns"] == 200_000
    output = sonde("report", "--hta-compatible", "--json", "--by", "stragglers", "--include-last-step", first, second)
    of_hta = json.loads(output.stdout)["ranks"]
    assert of_hta["collectives"] is None and of_hta["collective"]["name"] == "ncclKernel_AllGather"
    assert [row["name"] for row in ranks["rows"]] == ["ProfilerStep"]
    shown = sonde("report", first, second, check=0).stdout
    assert "waited most for rank 1: 400 µs of 400 µs" in " ".join(shown.split())
    assert report(first)["ranks"] is None


def test_sequences_and_memory_have_their_operators(report, tmp_path):
    trace = write(tmp_path / "trace.json")
    (rank,) = by(report, trace, "sequences")
    (sequence,) = rank["rows"]
    assert sequence["name"] == "aten::linear" and sequence["count"] == 2
    assert sequence["kernels"] == ["copy", "gemm", "ncclKernel_AllReduce"]
    assert by(report, trace, "sequences", "--operator", "softmax")[0]["rows"] == []
    (device,) = by(report, trace, "memory")
    assert device["device"] == "GPU 0" and device["peak_bytes"] == 1024 and device["unreleased"] == 2
    assert [point["allocated_bytes"] for point in device["timeline"]] == [512, 1024]
    assert device["operators"][0]["name"] == "aten::linear"


def test_traces_are_compared(sonde, tmp_path):
    before, after = write(tmp_path / "before.json"), write(tmp_path / "after.json", kernel_us=700, steps=(1, 2, 3))
    diff = sonde("diff", "--json", before, after, check=0).json()
    assert diff["before"]["steps"] == 2 and diff["after"]["steps"] == 3
    assert diff["samples"] is None and diff["before"]["ranks"] == 1
    (gemm,) = [each for each in diff["work"]["rows"] if each["name"] == "gemm"]
    assert (gemm["kind"], gemm["count_before"], gemm["count_after"], gemm["change"]) == ("kernel", 2, 3, "more")
    assert gemm["time_change_ns"] == 3 * 700_000 - 2 * 500_000
    assert (gemm["by_count_ns"], gemm["by_duration_ns"]) == (500_000, 600_000)
    (step,) = [each for each in diff["work"]["rows"] if each["kind"] == "step"]
    assert (step["name"], step["count_before"], step["count_after"]) == ("ProfilerStep", 2, 3)
    diff = sonde("diff", "--json", "--hta-compatible", before, after, check=0).json()
    (gemm,) = [each for each in diff["work"]["rows"] if each["name"] == "gemm"]
    assert (gemm["count_before"], gemm["count_after"], gemm["time_change_ns"]) == (1, 1, 200_000)
    assert (gemm["kind"], gemm["change"]) == ("any", "unchanged")
    text = sonde("diff", before, after, check=0).stdout
    assert "different lengths" in text and "gemm" in text
    assert "Nothing changed" in sonde("diff", before, before, check=0).stdout
    slower = sonde("diff", "--fail-above", 5, before, after)
    assert slower.status == 1 and "kernel gemm got slower by" in slower.stderr
    assert sonde("diff", "--fail-above", 5, before, before).status == 0
    rows = list(csv.DictReader(io.StringIO(sonde("diff", "--csv", before, after, check=0).stdout)))
    assert [row["time_after_ns"] for row in rows if row["name"] == "gemm"] == ["2100000"]


@pytest.mark.parametrize("option", ["--per-second", "--sort=total", "--by=module", "--fail-above=5 --hta-compatible"])
def test_comparisons_of_traces_refuse_what_is_of_recordings(sonde, tmp_path, option):
    trace = write(tmp_path / "trace.json")
    refused = sonde("diff", *option.split(), trace, trace)
    assert refused.status == 2 and option.split("=")[0] in refused.stderr and refused.stderr.count("\n") == 1


def test_hta_compares_profiler_steps(sonde, tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": [row("cpu_op", "aten::mm", 0, 10)]}))
    refused = sonde("diff", "--hta-compatible", trace, trace)
    assert refused.status == 1 and "no profiler step" in refused.stderr
