# SPDX-License-Identifier: Apache-2.0
"""Counters of GPUs (PM sampling), against a stand-in for libcupti (tests/doubles/cupti/pm.c, pms.c): no device counts anything.
From CUPTI's decoded samples through rings and captures to counter tracks and the table of counters."""

import json

import pytest

# What pms.c says that the device counts in each millisecond: the mean, the p95, and the values.
BUSY = [10.0 * number for number in range(1, 9)]
EXPECTED = {
    "SM busy (%)": BUSY,
    "tensor pipe busy (%)": [value / 2 for value in BUSY],
    "DRAM read (% of peak)": [40.0] * 8,
    "DRAM write (% of peak)": [20.0] * 8,
    "NVLink received (GB/s)": [2.0] * 8,
    "NVLink sent (GB/s)": [0.0] * 8,
    "PCIe read (GB/s)": [1.0] * 8,
    "PCIe write (GB/s)": [0.5] * 8,
}
BY_BYTES = {"DRAM read (GB/s)": [3.0] * 8, "DRAM write (GB/s)": [1.0] * 8}


@pytest.fixture
def doubles(sonde_path):
    return sonde_path.parent / "tests" / "doubles" / "cupti"


@pytest.fixture
def record(sonde, doubles, tmp_path):
    """record(how, option, …) -> the capture, and the recording's end"""

    def run(how, *options, cupti="13", env=None, check=0):
        capture = tmp_path / "pms.pftrace"
        double = doubles / f"libcupti-double-{cupti}.so"
        done = sonde("record", "--launch-stacks", "off", "-o", capture, *options, "--", doubles / "cuda-pms", double,
                     how, env={"SONDE_CUPTI": str(double), **(env or {})}, check=check)
        return capture, done

    return run


def counters(sonde, capture):
    rows = sonde("report", "--json", "--by", "counter", capture, check=0).json()["counters"] or []
    return {row["name"]: row for row in rows if row["name"].startswith("GPU ")}


def values(sonde, capture):
    lines = map(json.loads, sonde("export", "-f", "jsonl", "-o", "-", capture, check=0).stdout.splitlines())
    found = {}
    for line in lines:
        if line["type"] == "counter" and line["name"].startswith("GPU "):
            found.setdefault(line["name"], []).append((line["time_ns"], line["value"]))
    return {name: sorted(points) for name, points in found.items()}


def notes(sonde, capture):
    return " ".join(sonde("report", "--json", capture, check=0).json()["notes"])


@pytest.mark.parametrize("cupti, version", [("13", "130500"), ("13", "130000"), ("12", "28"), ("12", "24")])
def test_each_sample_is_a_value_of_each_counter(sonde, record, cupti, version):
    """Decoded in several reads; bytes are divided by the sample's own time; both sizes of CUPTI's parameters."""
    capture, done = record("run", "--pm-sampling", cupti=cupti, env={"DOUBLE_CUPTI_VERSION": version})
    assert done.stdout == "samples 8, interval 1000000, other GPU 0, faults 0\n"
    found = values(sonde, capture)
    assert {name: [value for _, value in points] for name, points in found.items()} == {
        f"GPU 0 {name}": pytest.approx(expected) for name, expected in EXPECTED.items()}
    times = [time for time, _ in found["GPU 0 SM busy (%)"]]
    assert [second - first for first, second in zip(times, times[1:])] == pytest.approx([1e6] * 7, rel=0.01)
    assert "pm-sampling" not in notes(sonde, capture)


def test_the_table_has_mean_and_p95(sonde, record):
    capture, _ = record("run", "--pm-sampling")
    row = counters(sonde, capture)["GPU 0 SM busy (%)"]
    assert (row["count"], row["minimum"], row["mean"], row["p95"], row["maximum"]) == (8, 10, 45, 80, 80)
    text = sonde("report", "--by", "counter", capture, check=0).stdout
    assert "GPU 0 tensor pipe busy (%)" in text and "p95" in text
    trace = capture.with_suffix(".json")
    sonde("export", "-f", "chrome", "-o", trace, capture, check=0)
    drawn = [row for row in json.loads(trace.read_text())["traceEvents"] if row["ph"] == "C" and "SM busy" in row["name"]]
    assert len(drawn) == 8


def by_kernel(sonde, path):
    return sonde("report", "--json", "--by", "kernel-counters", path, check=0).json()["kernel_counters"]


def test_kernels_and_ranges_have_what_the_gpu_counted_while_they_ran(sonde, record, tmp_path):
    """"copy" runs in the first two samples, "gemm" in the next five. What is exported and imported has the same."""
    capture, _ = record("run", "--pm-sampling")
    found = by_kernel(sonde, capture)
    assert (found["samples"], found["unplaced_values"], found["steps"]) == (8, 0, [])
    gemm, copy = found["kernels"]
    (attention,) = found["ranges"]
    assert (gemm["name"], copy["name"], attention["name"]) == ("gemm", "copy", "attention")
    assert {**attention, "name": "gemm"} == gemm
    # Clocks are aligned while it runs: a sample may overlap the next kernel by some of a microsecond.
    near = {"rel": 0.01}
    assert (gemm["sum_ns"], copy["sum_ns"]) == (pytest.approx(5e6, **near), pytest.approx(2e6, **near))
    assert 5 <= gemm["samples"] <= 7 and 2 <= copy["samples"] <= 3
    assert (gemm["sm_busy"], gemm["tensor_busy"]) == (pytest.approx(0.5, **near), pytest.approx(0.25, **near))
    assert (copy["sm_busy"], copy["tensor_busy"]) == (pytest.approx(0.15, **near), pytest.approx(0.075, **near))
    for row in (gemm, copy):
        assert (row["dram_read"], row["dram_write"]) == (pytest.approx(0.4), pytest.approx(0.2))
        assert (row["nvlink_received_gbps"], row["nvlink_sent_gbps"]) == (pytest.approx(2), 0)
        assert (row["dram_read_gbps"], row["dram_write_gbps"]) == (None, None), "not counted is not 0"
        assert row["measured_ns"] == pytest.approx(row["sum_ns"], **near) and 0.6 < row["alone_share"] <= 1
    export, imported = tmp_path / "pms.json", tmp_path / "imported.pftrace"
    sonde("export", "-f", "chrome", "-o", export, capture, check=0)
    sonde("import", "-o", imported, export, check=0)
    assert by_kernel(sonde, export) == found and by_kernel(sonde, imported) == found
    text = sonde("report", capture, check=0).stdout
    assert "What GPUs counted while kernels ran" in text and "Tensor pipe" in text and "DRAM read GB/s" not in text
    csv = sonde("report", "--by", "kernel-counters", "--csv", capture, check=0).stdout
    assert "tensor_busy" in csv and "gemm" in csv


def test_steps_have_what_the_gpu_counted_in_their_time(sonde, tmp_path):
    """Of a trace, whose counters say their device; a kernel without samples has no figure, and not 0."""
    path = tmp_path / "steps.json"
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100,
               "ts": 1000 * step, "dur": 1000, "args": {}} for step in range(2)]
    events += [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 400,
                "args": {"device": 0, "stream": 7}} for name, start in (("gemm", 800), ("late", 3000))]
    events += [{"ph": "C", "name": f"GPU 3 {name}", "pid": 100, "tid": 0, "ts": 500 * sample, "device": device,
                "args": {"value": 20 * (sample + 1)}} for sample in range(4)
               for name, device in (("SM busy (%)", 0), ("PCIe read (GB/s)", 1))]
    path.write_text(json.dumps({"traceEvents": events}))
    found = by_kernel(sonde, path)
    assert (found["samples"], found["unplaced_values"]) == (4, 4)
    gemm, late = found["kernels"]
    # 200 us of the second sample, and as much of the third.
    assert (gemm["samples"], gemm["sm_busy"], gemm["alone_share"]) == (2, pytest.approx(0.5), pytest.approx(0.4))
    assert (late["samples"], late["sm_busy"], late["alone_share"], late["pcie_read_gbps"]) == (0, None, None, None)
    assert [(step["number"], step["pid"], step["duration_ns"], step["samples"], step["sm_busy"])
            for step in found["steps"]] == [(0, 100, 1e6, 2, pytest.approx(0.3)), (1, 100, 1e6, 2, pytest.approx(0.7))]
    text = sonde("report", "--by", "kernel-counters", path, check=0).stdout
    as_hta = " ".join(sonde("report", "--hta-compatible", "--by", "kernel-counters", path, check=0).stdout.split())
    assert "Other tools have no table of what GPUs counted." in as_hta
    (row,) = [line for line in text.splitlines() if line.endswith("late")]
    assert row.split() == ["400", "µs", "1", "0", "–", "–", "late"]


def test_it_is_off_by_default(sonde, record):
    capture, done = record("at-once")
    assert done.stdout == "samples 0, interval 0, other GPU 0, faults 0\n"
    assert not counters(sonde, capture)
    text = " ".join(sonde("report", "--by", "counter", capture, check=0).stdout.split())
    assert "sonde record --pm-sampling has those of GPUs" in text
    assert by_kernel(sonde, capture) is None
    text = " ".join(sonde("report", "--by", "kernel-counters", capture, check=0).stdout.split())
    assert "There is nothing that GPUs counted" in text and "--pm-sampling" in text


def test_the_interval_is_the_users(record):
    _, done = record("run", "--pm-sampling", "--pm-interval", "250")
    assert "interval 250000," in done.stdout


@pytest.mark.parametrize("chip, missing, by_bytes, by_clock", [
    ("GB100", {"PCIe read (GB/s)", "PCIe write (GB/s)"}, False, False),
    ("GA100", set(), False, True),
    ("TU102", {"tensor pipe busy (%)", "DRAM read (% of peak)", "DRAM write (% of peak)"}, True, True),
])
def test_a_chip_has_what_it_counts_in_one_pass(sonde, record, chip, missing, by_bytes, by_clock):
    """And a chip that is not sampled by time is sampled by its clock, which a note says."""
    capture, done = record("run", "--pm-sampling", env={"DOUBLE_CUPTI_PM_CHIP": chip})
    assert "samples 8," in done.stdout and "faults 0" in done.stdout
    expected = {name: points for name, points in EXPECTED.items() if name not in missing} | (BY_BYTES if by_bytes else {})
    found = values(sonde, capture)
    assert {name: [value for _, value in points] for name, points in found.items()} == {
        f"GPU 0 {name}": pytest.approx(points) for name, points in expected.items()}
    assert ("every 1000000 cycles" in notes(sonde, capture)) == by_clock


@pytest.mark.parametrize("answer, words", [
    (35, "NVreg_RestrictProfilingToAdminUsers=0"),
    (33, "virtual GPU"),
    (40, "the host of this virtual gpu does not allow"),
    (43, "MIG instance"),
    (26, "Another profiler"),
    (7, "another profiler in it"),
    (15, "libnvperf_host.so"),
    (999, "error 999"),
])
def test_refusals_are_sentences(sonde, record, answer, words):
    """The kernels are recorded all the same."""
    capture, done = record("run", "--pm-sampling", env={"DOUBLE_CUPTI_PM": str(answer)})
    assert done.stdout == "samples 0, interval 0, other GPU 0, faults 0\n"
    assert words.lower() in notes(sonde, capture).lower() and "--pm-sampling has nothing" in notes(sonde, capture)
    text = " ".join(sonde("report", "--by", "counter", capture, check=0).stdout.split())
    assert words.lower() in text.lower()
    text = " ".join(sonde("report", "--by", "kernel-counters", capture, check=0).stdout.split())
    assert words.lower() in text.lower()
    assert sonde("report", "--json", capture, check=0).json()["device_work"]["count"] == 2


@pytest.mark.parametrize("how, env, words", [
    ("run", {"DOUBLE_CUPTI_PM_CHIP": "GV100"}, "this GPU (GV100)"),
    ("at-once", {"DOUBLE_CUPTI_VERSION": "22"}, "needs CUPTI 12.6 or later"),
])
def test_what_is_too_old_is_said(sonde, record, how, env, words):
    capture, done = record(how, "--pm-sampling", cupti="12", env=env)
    assert "samples 0," in done.stdout and "faults 0" in done.stdout
    assert words in notes(sonde, capture) and "--pm-sampling has nothing" in notes(sonde, capture)


def test_a_full_buffer_is_said(sonde, record):
    """What is in it then is lost, and sampling goes on."""
    capture, done = record("run", "--pm-sampling", env={"DOUBLE_CUPTI_PM_FULL": "1000"})
    assert "faults 0" in done.stdout and not counters(sonde, capture)
    assert "some are missing: take a longer --pm-interval" in notes(sonde, capture)


def test_times_of_another_clock_are_left_out(sonde, record):
    capture, done = record("strange", "--pm-sampling")
    assert "samples 8," in done.stdout and not counters(sonde, capture)
    assert "times at which it was not sampled: they are left out" in notes(sonde, capture)


def test_what_does_not_go_together(sonde):
    for arguments in (("-p", 1), ("--cpu-only", "--", "true"), ("--launch-only", "--", "true")):
        done = sonde("record", "--pm-sampling", *map(str, arguments), check=2)
        assert "--pm-sampling is for a command" in done.stderr
    done = sonde("record", "--pm-sampling", "--pc-sampling", "--", "true", check=2)
    assert "both take the GPU's counters" in done.stderr
    done = sonde("record", "--pm-interval", "100", "--", "true", check=2)
    assert "--pm-interval is of --pm-sampling" in done.stderr
    assert sonde("record", "--pm-sampling", "--pm-interval", "5", "--", "true", check=2).stderr
