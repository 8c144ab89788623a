# SPDX-License-Identifier: Apache-2.0
"""Results of rocprofv3: what rocprof_result.py writes. One by rocprofv3 itself was not at hand."""

import pytest
import rocprof_result


@pytest.fixture
def result(tmp_path):
    def write(text=None, **options):
        path = tmp_path / "out_results.json"
        path.write_text(rocprof_result.text(**options) if text is None else text)
        return path

    return write


def test_kernels_and_copies(result, report):
    path = result()
    kernels = {(row["device"], row["name"]): row["sum_ns"] for row in report(path, "--by", "kernel")["kernel"]["kernels"]}
    assert kernels == {(0, "gemm(float*)"): 180, (1, "gemm(float*)"): 180, (0, "Memcpy HtoD"): 100}
    (trace,) = report(path)["traces"]
    assert trace["device_works"] == 7 and trace["works_without_launch"] == 0


def test_launches_ranges_and_names(result, report):
    whole = report(result())
    launches = {row["name"]: row["launches"] for row in whole["launches"]}
    assert launches == {"hipLaunchKernel": 6, "hipMemcpyAsync": 1}
    ranges = {row["name"]: row for row in whole["ranges"]["rows"]}
    assert ranges['step "1"']["total_ns"] == 560 and ranges["loss"]["kind"] == "mark" and len(ranges) == 2
    assert {row["device_name"] for row in whole["kernel"]["types"]} == {"AMD Instinct MI300X"}


def test_without_streams_queues_count(result, report):
    queues = {(row["device"], row["stream"]) for row in report(result(stream=None))["queue"]}
    assert queues >= {(0, 5), (1, 5)}
    assert {(row["device"], row["stream"]) for row in report(result())["queue"]} >= {(0, 3), (1, 3)}


def test_memory_that_is_released_has_its_size(result, report):
    rows = report(result(), "--by", "memory")["memory"]
    assert [(row["device"], row["peak_bytes"], row["released_bytes"]) for row in rows] == [("GPU 1", 4096, 4096)]


def test_what_is_left_out_is_said(result, sonde):
    assert "2 records of rocprofv3" in sonde("report", result(), check=0).stderr


def test_several_processes(result, report):
    tools = [rocprof_result.tool(), rocprof_result.tool()]
    tools[1]["metadata"]["pid"] = 600
    (trace,) = report(result(rocprof_result.text(tools)))["traces"]
    assert trace["device_works"] == 14 and trace["works_without_launch"] == 0


@pytest.mark.parametrize("text", ['{"rocprofiler-sdk-tool": []}', '{"rocprofiler-sdk-tool": [{"metadata": {}}', None])
def test_nothing_in_it(result, sonde, text):
    refused = sonde("report", result(text if text else rocprof_result.text()[:-300]))
    assert refused.status != 0 and "--kernel-trace" in refused.stderr
