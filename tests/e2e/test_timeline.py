# SPDX-License-Identifier: Apache-2.0
"""A recording, its Kineto export and the capture imported from that: one report and one diff, but for what needs
samples."""

import glob

import pytest

# Sections of rows, which all three have: their figures must be the same.
SECTIONS = ("summary", "temporal", "launches", "queue", "kernel", "bandwidth", "idle", "memory", "graphs", "counters",
            "kernel_counters")
# The same, where --by names them: a recording's report has them only then.
BY = ("operators", "cpu-operators", "critical-path")


@pytest.fixture
def forms(sonde, tmp_path):
    """forms(command, env) -> the reports of the three, as JSON and as text"""

    def run(*command, env=None, options=()):
        recording, export, imported = (tmp_path / name for name in ("run.pftrace", "run.json", "imported.pftrace"))
        sonde("record", *options, "-o", recording, "--", *command, env=env)
        sonde("export", "-f", "chrome", "-o", export, recording, check=0)
        sonde("import", "-o", imported, export, check=0)
        return [report_of(path) for path in (recording, export, imported)]

    def report_of(path):
        report = sonde("report", "--json", path, check=0).json()
        for by in BY:
            key = by.replace("-", "_")
            report[key] = sonde("report", "--json", "--by", by, path, check=0).json()[key]
        return report, sonde("report", path, check=0).stdout

    return run


def causes_of(causes):
    """Samples say what a thread did before a launch: without them that is one cause of idle time."""
    known = ("blocking_call", "launch", "kernel_wait", "event", "other", "unknown")
    return {"host": sum(time for cause, time in causes.items() if cause not in known),
            **{cause: causes.get(cause, 0) for cause in known}}


def is_of_process(row):
    """The ranges of a process have no thread: what their line is called is each form's own."""
    return row["thread"]["tid"] is None or row["thread"]["tid"] >= 1 << 30


def without(row, *prefixes):
    return {key: value for key, value in row.items() if not key.startswith(prefixes)}


def section_of(report, name):
    """Without what only a recording knows: samples, the facts of GPUs, when work was handed to one, and when it began."""
    if name == "ranges":
        return [{**row, "samples": None} for row in report[name]["rows"]]
    if name == "summary":
        return {**report[name], "idle_by_cause_ns": causes_of(report[name]["idle_by_cause_ns"])}
    if name == "idle":
        return [{**row, "causes": causes_of({cause["cause"]: cause["idle_ns"] for cause in row["causes"]})}
                for row in report[name]]
    if name == "kernel":
        facts = {"theoretical_occupancy": None, "occupancy_limit": None, "mean_queue_ns": None, "priority": None}
        return {**report[name], "kernels": [{**row, **facts} for row in report[name]["kernels"]]}
    if name == "launches":  # of its work rows have one moment before the start
        return [{**row, "submit_ns": None, "queue_ns": None} for row in report[name]]
    if name == "cpu_operators":
        return [{**row, "thread": None if is_of_process(row) else row["thread"]} for row in report[name]]
    if name == "critical_path":
        numbers = {"start_ns": None, "edges_of_path": None}  # and of rows in the file
        return [{**row, "windows": [{**window, **numbers} for window in row["windows"]]} for row in report[name]]
    if name == "graphs":  # who captured them, and when, only a recording knows
        return [{**without(row, "capture", "instantiat", "replayed_by"),
                 "nodes": [without(node, "captured_by") for node in row["nodes"]]} for row in report[name] or []]
    if name == "memory":
        return [{**row, "peak_ns": None} for row in report[name]]
    return report[name]


def advice_of(report):
    """Sentences of a recording name lines, too."""
    return [{**each, "sentence": None} for each in report["advice"] if each["section"] == "summary"]


def check_forms(forms):
    (recording, text), *others = forms
    assert recording["temporal"] and recording["launches"] and recording["queue"]
    for other, other_text in others:
        for section in (*SECTIONS, *(by.replace("-", "_") for by in BY)):
            assert section_of(other, section) == section_of(recording, section), section
        for heading in ("Where the GPU time went", "Temporal breakdown", "Launches", "Queue length"):
            assert heading in text and heading in other_text
        assert advice_of(other) == advice_of(recording)


def test_a_recording_of_opencl_and_what_is_made_of_it_have_one_report(forms, workload, workload_directory):
    if not (workload_directory / "opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL's libraries, or no driver: run tools/deps test, then make")
    reports = forms(*workload("opencl", 50))
    check_forms(reports)
    (device,) = reports[0][0]["temporal"]
    assert device["device_name"] in reports[1][1], "its name, not a number"


def check_ranges(reports, works):
    """Device work belongs to the ranges of the thread that launched it, and to those of its process."""
    (recording, _), *others = reports
    rows = section_of(recording, "ranges")
    assert {(row["kind"], row["name"]): row["device_work_count"] for row in rows} == works
    assert all(row["device_busy_ns"] > 0 for row in rows if row["device_work_count"])
    for other, text in others:
        assert section_of(other, "ranges") == rows
        assert section_of(other, "cpu_operators") == section_of(recording, "cpu_operators")
        assert "could not be read" not in text


def test_ranges_of_opencl_have_their_device_work_in_all_forms(forms, workload, workload_directory):
    if not (workload_directory / "nvtx_opencl").exists() or not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.fail("built without OpenCL's libraries, or no driver: run tools/deps test, then make")
    reports = forms(*workload("nvtx_opencl"))
    check_ranges(reports, {("process", "process"): 30, ("thread", "step"): 30, ("thread", "forward"): 20,
                           ("thread", "backward"): 10, ("mark", "half"): None})


def test_ranges_of_cuda_have_their_device_work_in_all_forms(forms, sonde_path):
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    library = str(doubles / "libcupti-double-13.so")
    reports = forms(str(doubles / "cuda-program"), library, "3", "ranges", env={"SONDE_CUPTI": library})
    check_ranges(reports, {("process", "training"): 24, ("thread", "train step"): 24})


def test_a_recording_of_cuda_and_what_is_made_of_it_have_one_report(forms, sonde_path):
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    library = str(doubles / "libcupti-double-13.so")
    reports = forms(str(doubles / "cuda-program"), library, "3", env={"SONDE_CUPTI": library})
    check_forms(reports)
    for report, _ in reports:
        (graph,) = report["graphs"]
        assert (graph["graph"], graph["replays"], len(graph["nodes"])) == (20, 10, 3)
        assert graph["pid"] == reports[0][0]["graphs"][0]["pid"]
    (device,) = reports[0][0]["memory"]
    assert (device["device"], device["peak_bytes"], device["unreleased_bytes"]) == ("GPU 0", 1 << 20, 0)


def test_counters_of_gpus_are_of_the_same_kernels_in_all_forms(forms, sonde_path):
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    library = str(doubles / "libcupti-double-13.so")
    reports = forms(str(doubles / "cuda-pms"), library, "run", options=["--pm-sampling"], env={"SONDE_CUPTI": library})
    check_forms(reports)
    assert len(reports[0][0]["kernel_counters"]["kernels"]) == 2


# Its last step does not end.
STEPS = """
import time
import sonde

for step in range(5):
    with sonde.range("send", fields={"bytes": 100 + step}):
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
    sonde.counter("loss", 1 / (step + 1))
    sonde.step("train")
"""


def test_steps_and_payloads_are_the_same_in_all_forms(forms, sonde_path, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(STEPS)
    (recording, _), *others = forms("/usr/bin/python3", program, env={"PYTHONPATH": str(sonde_path.parent / "python")})
    (steps,) = recording["steps"]["rows"]
    (send,) = recording["ranges"]["rows"]
    (loss,) = recording["counters"]
    assert (loss["name"], loss["count"], loss["minimum"], loss["last"]) == ("loss", 5, 0.2, 0.2) and loss["pid"]
    assert (steps["name"], steps["count"], steps["cut_count"], send["bytes"]) == ("train", 4, 1, 510)
    for other, _ in others:
        (found,) = other["steps"]["rows"]
        assert {**found, "samples": None, "cpu_time_ns": None} == {**steps, "samples": None, "cpu_time_ns": None}
        assert other["counters"] == [loss]
        (found,) = other["ranges"]["rows"]
        assert {**found, "domain": None} == {**send, "domain": None, "samples": None}


def test_parts_by_step_and_time_are_the_same_in_all_forms(forms, sonde, sonde_path, tmp_path):
    """Which steps are warm-up and odd, whatever the machine does meanwhile; and what --step and --time leave."""
    program = tmp_path / "program.py"
    program.write_text(STEPS.replace("range(5)", "range(9)"))
    (recording, _), *others = forms("/usr/bin/python3", program, env={"PYTHONPATH": str(sonde_path.parent / "python")})
    same = ("number", "duration_ns", "of_steady", "mark", "is_cut")
    steps = [{key: step[key] for key in same} for step in recording["steps"]["list"]]
    assert [step["number"] for step in steps] == list(range(1, 10)) and steps[-1]["is_cut"] and steps[0]["of_steady"]
    for other, _ in others:
        assert [{key: step[key] for key in same} for step in other["steps"]["list"]] == steps
        assert other["steps"]["rows"][0]["warm_up_count"] == recording["steps"]["rows"][0]["warm_up_count"]
        assert other["steps"]["rows"][0]["steady_p50_ns"] == recording["steps"]["rows"][0]["steady_p50_ns"]
    for name in ("run.pftrace", "run.json", "imported.pftrace"):
        part = sonde("report", "--json", "--step", "3-4", tmp_path / name, check=0).json()
        assert [step["number"] for step in part["steps"]["list"]] == [3, 4], name
        assert [(row["name"], row["count"]) for row in part["ranges"]["rows"]] == [("send", 2)], name
        assert [(row["name"], row["count"]) for row in part["counters"]] == [("loss", 2)], name
        third = part["steps"]["list"][0]
        begin_s, end_s = (ns / 1e9 for ns in (third["begin_ns"] + 1000, third["begin_ns"] + third["duration_ns"] - 1000))
        part = sonde("report", "--json", "--time", f"{begin_s:.9f}..{end_s:.9f}", tmp_path / name, check=0).json()
        assert [step["number"] for step in part["steps"]["list"]] == [3], name
        assert [row["count"] for row in part["ranges"]["rows"]] == [1], name
        refused = sonde("report", "--step", "77", tmp_path / name)
        assert refused.status and "there is no such step; there are 1 to 9" in refused.stderr, name


def test_idle_time_and_graphs_of_a_time_are_known_in_all_forms(forms, sonde, sonde_path, tmp_path):
    """With all of the time they are what they are without a filter; where a filter leaves out work they are not known."""
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    library = str(doubles / "libcupti-double-13.so")
    reports = forms(str(doubles / "cuda-program"), library, "3", env={"SONDE_CUPTI": library})
    for (report, _), name in zip(reports, ("run.pftrace", "run.json", "imported.pftrace")):
        part = sonde("report", "--json", "--time", "0..", tmp_path / name, check=0).json()
        assert part["idle"] and part["idle"] == report["idle"] and part["graphs"] == report["graphs"], name
    part = sonde("report", "--json", "--symbol", "launch", tmp_path / "run.pftrace", check=0).json()
    assert part["idle"] is None and "idle time of devices" in part["left_out"]


@pytest.fixture
def check_diffs(sonde, tmp_path):
    """check_diffs(one load, another) -> what changed, which two recordings and their Kineto exports say alike"""

    def diff(*paths):
        document = sonde("diff", "--json", "--by", "work", *paths, check=0).json()
        for side in ("before", "after"):
            del document[side]["path"]
        return document

    def run(*commands, env=None):
        recordings, exports = [], []
        for i, command in enumerate(commands):
            recordings.append(tmp_path / f"{i}.pftrace")
            exports.append(tmp_path / f"{i}.json")
            sonde("record", "-o", recordings[i], "--", *command, env=env)
            sonde("export", "-f", "chrome", "-o", exports[i], recordings[i], check=0)
        found = diff(*recordings)
        for others in (exports, (recordings[0], exports[1]), (exports[0], recordings[1])):
            assert diff(*others) == found
        same = diff(recordings[0], exports[0])["work"]["rows"]
        assert same and all(row["change"] == "unchanged" for row in same)
        return found

    return run


def test_recordings_of_opencl_differ_as_their_exports_do(check_diffs, workload):
    found = check_diffs(workload("opencl", 50), workload("opencl", 100))
    rows = {(row["kind"], row["name"]): row for row in found["work"]["rows"]}
    scale, call = rows["kernel", "scale"], rows["call", "clEnqueueNDRangeKernel"]
    assert scale["count_after"] == 2 * scale["count_before"] and scale["duration_q"] is not None
    assert call["count_after"] - call["count_before"] == 3 * scale["count_before"] / 2
    assert found["after"]["device_ns"] == sum(row["time_after_ns"] for row in rows.values() if row["share_after"])


def test_recordings_of_cuda_differ_as_their_exports_do(check_diffs, sonde_path):
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    library = str(doubles / "libcupti-double-13.so")
    found = check_diffs(
        *([str(doubles / "cuda-program"), library, steps] for steps in ("3", "6")), env={"SONDE_CUPTI": library}
    )
    rows = {(row["kind"], row["name"]): row for row in found["work"]["rows"]}
    scale = rows["kernel", "scale"]
    assert scale["count_after"] == 2 * scale["count_before"] and scale["change"] == "more"


# Rank 1 computes three times as long.
RANK = """
import os, time
import sonde

for step in range(4):
    with sonde.range("forward"):
        until = time.thread_time() + (0.03 if os.environ["RANK"] == "1" else 0.01)
        while time.thread_time() < until:
            pass
    sonde.step("train")
"""


def ranges_of(report):
    """What ranks are compared by, without what samples say, and domains, which Kineto's files do not have."""
    rows = [row for row in report["ranks"]["rows"] if row["kind"] == "range"]
    without = {"cpu_time_ns": None, "wait_time_ns": None}
    nothing = {"domain": None, "difference": None, "difference_ns": None}
    return [{**row, **nothing, "ranks": [{**one, **without} for one in row["ranks"]]} for row in rows]


def test_recordings_of_ranks_and_what_is_made_of_them_have_one_report(sonde, sonde_path, tmp_path):
    program, both = tmp_path / "program.py", tmp_path / "both.pftrace"
    program.write_text(RANK)
    exports = [tmp_path / f"rank{rank}.json" for rank in range(2)]
    for rank, export in enumerate(exports):
        capture = tmp_path / f"rank{rank}.pftrace"
        sonde("record", "-F", 499, "-o", capture, "--", "/usr/bin/python3", program, check=0,
              env={"PYTHONPATH": str(sonde_path.parent / "python"), "RANK": str(rank), "WORLD_SIZE": "2"})
        sonde("export", "-f", "chrome", "-o", export, capture, check=0)
        with both.open("ab") as file:
            file.write(capture.read_bytes())
    sonde("import", "-o", tmp_path / "imported.pftrace", *exports, check=0)
    recorded = sonde("report", "--json", both, check=0).json()
    (forward,) = ranges_of(recorded)
    slowest = max(forward["ranks"], key=lambda one: one["mean_ns"])["rank"]  # rank 1, but on a busy machine
    assert (forward["name"], forward["slowest_rank"], len(forward["ranks"])) == ("forward", slowest, 2)
    assert recorded["ranks"]["rows"][0]["kind"] == "step"
    for paths in (exports, [tmp_path / "imported.pftrace"]):
        other = sonde("report", "--json", *paths, check=0).json()
        assert ranges_of(other) == [forward]
        assert other["ranks"]["rows"][0]["kind"] == "step"
