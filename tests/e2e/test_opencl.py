# SPDX-License-Identifier: Apache-2.0
"""OpenCL on the CPU (PoCL): every piece of device work is timed, and joined to the stack that launched it."""

import collections
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pprof
import pytest
from device_report import counts, record_device

LAUNCHES = 100  # of `scale` by each of two threads; `add` half as often; two writes, fills, copies and reads
COUNTS = {"scale": 200, "add": 100, "write": 2, "fill": 2, "copy": 2, "read": 2}
TOTAL = sum(COUNTS.values())


@pytest.fixture
def opencl_workload(workload, workload_directory):
    """The command line of an OpenCL program; fails where it was not built or there is no driver."""

    def command(name, *arguments):
        if not (workload_directory / name).exists():
            pytest.fail(f"built without {name}'s libraries: run tools/deps test, then make")
        if not glob.glob("/etc/OpenCL/vendors/*.icd"):
            pytest.fail("no OpenCL driver: run tools/deps test")
        return workload(name, *arguments)

    return command


@pytest.fixture
def opencl(opencl_workload):
    opencl_workload("opencl")
    return lambda *arguments: opencl_workload("opencl", *arguments)


@pytest.fixture
def device(sonde, tmp_path):
    """device(command, ...) -> the report's device part, the whole report, the recording's end"""

    def run(*command, options=(), env=None):
        return record_device(sonde, tmp_path / "device.pftrace", *options, "--", *command, env=env)

    return run


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="launch stacks are taken by BPF, which needs root")
needs_root_to_mount = pytest.mark.skipif(os.geteuid() != 0, reason="mounting over /opt needs root")


def plain(command, env=None):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})


def assert_same(done, before):
    """The same results and exit status; threads print in any order."""
    status = before.returncode if before.returncode >= 0 else 128 - before.returncode
    assert (done.status, sorted(done.stdout.splitlines())) == (status, sorted(before.stdout.splitlines()))


@needs_root
def test_every_launch_has_its_stack(device, opencl):
    part, data, done = device(*opencl(LAUNCHES))
    assert_same(done, plain(opencl(LAUNCHES)))
    assert done.status == 5
    assert counts(part) == COUNTS
    assert part["attribution"] == {"matched": TOTAL, "no_stack": 0, "stacks_off": 0, "launched_on_device": 0}
    launches = part["launches"]
    assert launches["count"] == launches["stacks"] == TOTAL and not any(launches["without_work"].values())
    assert launches["complete_stacks"] >= 0.995 * TOTAL
    assert part["records_lost"] == part["stacks_lost"] == part["started_before_launch"] == 0
    assert part["host_wait_count"] == 6, "two waits for events, two for a queue, two blocking reads"
    assert part["clock_error_ns"] < 1e6
    (used,) = part["devices"]
    assert 0 < used["busy_ns"] <= used["work_ns"] == part["total_ns"]
    assert not [note for note in data["notes"] if "device" in note]


@needs_root
def test_stacks_lead_to_the_launch(device, opencl, sonde, tmp_path):
    part, _, _ = device(*opencl(LAUNCHES))
    capture = tmp_path / "device.pftrace"
    out = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    stacks = [line.rsplit(" ", 1) for line in out.splitlines()]
    assert stacks and all("[gpu] " in stack for stack, _ in stacks)
    scale = [stack for stack, _ in stacks if stack.endswith("[gpu] scale")]
    assert len(scale) == 2, "from the main thread and from the other"
    assert all(re.search(r"run;launch_scale;launch.*;clEnqueueNDRangeKernel;\[gpu\] scale$", s) for s in scale)
    assert any("main;run;" in s for s in scale) and any("start_thread;run;" in s for s in scale)
    # In nanoseconds.
    assert sum(int(count) for _, count in stacks) == part["total_ns"]
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    assert "of device work" in graph and "[gpu] add" in graph
    weighed = sonde("report", "--weight", "gpu", "--symbol", "launch_scale", capture, check=0).stdout
    assert "(device time)" in weighed and "[gpu] scale" in weighed and "[gpu] add" not in weighed
    text = sonde("report", "--by", "kernel", capture, check=0).stdout
    assert "scale" in text and f"{TOTAL} of {TOTAL} kernels, copies and the like have the stack" in text and "Hottest functions" not in text
    assert "Device work" in sonde("report", capture, check=0).stdout


def folded_total(text):
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


@needs_root
def test_cpu_and_device_time_are_one_picture(device, opencl, sonde, report, tmp_path):
    """Both in nanoseconds: the sum is the CPU's samples times their period, and the device's time."""
    device(*opencl(LAUNCHES), options=["-F", "999"])
    capture = tmp_path / "device.pftrace"

    def folded(weight):
        return sonde("export", "-f", "folded", "--weight", weight, "-o", "-", capture, check=0).stdout

    period_ns = report(capture)["session"]["period_ns"]
    both, device_only = folded("cpu+gpu"), folded("gpu")
    assert folded_total(both) == folded_total(folded("cpu")) * period_ns + folded_total(device_only)
    assert set(device_only.splitlines()) <= set(both.splitlines())
    graph = sonde("export", "-f", "flamegraph", "--min-width", 0.001, "--weight", "cpu+gpu", "-o", "-", capture, check=0).stdout
    assert "of CPU time and device work" in graph and "[gpu] add" in graph
    table = sonde("report", "--weight", "cpu+gpu", "--limit", 100000, capture, check=0).stdout
    assert "[gpu] scale" in table


@needs_root
def test_events_as_lines(device, opencl, sonde, tmp_path):
    part, _, _ = device(*opencl(LAUNCHES))
    text = sonde("export", "-f", "jsonl", "-o", "-", tmp_path / "device.pftrace", check=0).stdout
    events = [json.loads(line) for line in text.splitlines()]
    works = [event for event in events if "launch_ns" in event]
    assert len(works) == part["count"] == TOTAL
    assert sum(event["end_ns"] - event["start_ns"] for event in works) == part["total_ns"]
    kernels = [event for event in works if event["type"] == "kernel"]
    assert len(kernels) == 300 and {event["name"] for event in kernels} == {"scale", "add"}
    assert all(event["stack"][-1]["function"] == "clEnqueueNDRangeKernel" for event in kernels)
    assert all(event["start_ns"] >= event["launch_ns"] for event in works)


def most_grown_percent(document):
    """What --fail-above goes by: other counts, and durations that changed significantly, of each row of device work and of all."""
    works = [row for row in document["work"]["rows"] if row["share_before"] is not None or row["share_after"] is not None]
    is_sure = [row["duration_q"] is not None and row["duration_q"] <= 0.05 for row in works]
    grown = [row["by_count_ns"] + (row["by_duration_ns"] if sure else 0) for row, sure in zip(works, is_sure)]
    return 100 * max(*grown, sum(grown)) / document["before"]["device_ns"]


def test_diff_compares_device_work(opencl, sonde, tmp_path):
    captures = [tmp_path / f"{launches}.pftrace" for launches in (LAUNCHES, 2 * LAUNCHES)]
    for launches, capture in zip((LAUNCHES, 2 * LAUNCHES), captures):
        sonde("record", "-F", 997, "-o", capture, "--", *opencl(launches), check=5)
    document = sonde("diff", "--json", *captures, check=0).json()
    rows = {(row["kind"], row["name"]): row for row in document["work"]["rows"]}
    scale = rows["kernel", "scale"]
    assert (scale["count_before"], scale["count_after"]) == (COUNTS["scale"], 2 * COUNTS["scale"])
    assert scale["time_change_ns"] == pytest.approx(scale["time_after_ns"] - scale["time_before_ns"])
    assert scale["by_count_ns"] == pytest.approx(scale["time_before_ns"])
    assert sum(row["share_after"] or 0 for row in document["work"]["rows"]) == pytest.approx(1)
    assert document["before"]["device_works"] == TOTAL
    write = rows["copy", "write"]
    assert (write["count_before"], write["by_count_ns"], write["duration_q"]) == (COUNTS["write"], 0, None)
    launches = rows["call", "clEnqueueNDRangeKernel"]
    assert launches["count_after"] == 2 * launches["count_before"] and launches["share_before"] is None
    text = sonde("diff", *captures, check=0).stdout
    assert "CPU time: " in text and "Device time: " in text and " new " not in text
    alone = sonde("diff", "--json", "--by", "work", *captures, check=0).json()
    assert alone["samples"] is None and alone["work"] == document["work"]
    # Twice as many launches take longer, but for a machine that was busy in the first run: then each is faster in the second.
    grown_percent = most_grown_percent(document)
    for limit, is_worse in [(1, grown_percent > 1), (max(grown_percent, 0) + 1, False)]:
        judged = sonde("diff", "--by", "work", "--fail-above", limit, *captures)
        assert judged.status == is_worse and ("of the device time of the run before" in judged.stderr) == is_worse
    filtered = sonde("diff", "--thread", "opencl", *captures, check=0).stdout
    assert "Device time: " in filtered


@needs_root
def test_other_formats_hold_the_device_time(device, opencl, sonde, tmp_path):
    part, _, _ = device(*opencl(LAUNCHES))
    capture = tmp_path / "device.pftrace"
    document = sonde("export", "-f", "speedscope", "--weight", "gpu", "-o", "-", capture, check=0).json()
    assert sum(sum(profile["weights"]) for profile in document["profiles"]) == part["total_ns"]
    assert {"[gpu] scale", "[gpu] add"} <= {frame["name"] for frame in document["shared"]["frames"]}
    sonde("export", "-f", "pprof", "--weight", "gpu", "-o", tmp_path / "device.pb.gz", capture, check=0)
    samples = pprof.read(tmp_path / "device.pb.gz", value_type=1)
    assert sum(time_ns for _, time_ns in samples) == part["total_ns"]
    assert {"launch_scale", "[gpu] scale"} <= {frame.function for stack, _ in samples for frame in stack}
    events = sonde("export", "-f", "chrome", "-o", "-", capture, check=0).json()["traceEvents"]
    kinds = [(event["ph"], event.get("cat")) for event in events]
    assert kinds.count(("X", "kernel")) == 300 and kinds.count(("X", "cuda_runtime")) == TOTAL + part["host_wait_count"]
    starts = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "f"}
    assert len(starts) == TOTAL and all(starts[number] <= ends[number] for number in ends)
    worked = sum(event["dur"] for event in events if "stream" in event.get("args", {}))
    assert worked * 1000 == pytest.approx(part["total_ns"], abs=TOTAL)


@needs_root
def test_a_simulator_can_replay_a_recording(device, opencl, sonde, tmp_path):
    device(*opencl(LAUNCHES))
    trace = tmp_path / "device.0.et"
    done = sonde("export", "-f", "chakra", "-o", trace, tmp_path / "device.pftrace", check=0)
    assert "left out" not in done.stderr
    assert "a simulator can run it" in sonde("chakra", "check", trace, check=0).stdout
    nodes = [json.loads(line) for line in sonde("chakra", "dump", trace, check=0).stdout.splitlines()[1:]]
    names = {node.get("id", "0"): node["name"] for node in nodes}
    work = [node for node in nodes if {"name": "is_cpu_op", "boolVal": False} in node["attr"]]
    assert collections.Counter(node["name"] for node in work) == COUNTS
    assert all(names[node["ctrlDeps"][0]].startswith("clEnqueue") for node in work)


def slices_of(capture):
    """The TrackEvents of a capture: {track: [(begin, end, arrows out, arrows in)]}, in the order of the file."""
    schema = os.path.join(os.path.dirname(__file__), "..", "..", "schema")
    with open(capture, "rb") as packets:
        text = subprocess.run(["protoc", "-I", schema, "--decode=perfetto.protos.Trace", f"{schema}/sonde.proto"],
                              stdin=packets, capture_output=True, text=True, check=True).stdout
    slices, names = {}, {}
    for packet in text.split("\npacket {")[1:]:
        def values(name, packet=packet):
            return [int(value, 0) for value in re.findall(rf"\b{name}: (\w+)", packet)]

        if "track_descriptor {" in packet and " name: " in packet:
            names[values("uuid")[0]] = re.search(r' name: "(.*)"', packet).group(1)
        if "TYPE_SLICE_BEGIN" in packet:
            slices.setdefault(values("track_uuid")[0], []).append(
                [*values("timestamp"), None, values("flow_ids"), values("terminating_flow_ids")])
        elif "TYPE_SLICE_END" in packet:
            slices[values("track_uuid")[0]][-1][1] = values("timestamp")[0]
    return [(names[track], rows) for track, rows in slices.items()]


@needs_root
def test_slices_and_arrows_for_viewers(device, opencl, tmp_path):
    part, data, _ = device(*opencl(LAUNCHES), options=("--uncompressed", "--device-slices"))
    assert counts(part) == COUNTS and data["ranges"] is None, "they are no ranges of the program"
    arrows_out, arrows_in, lanes = {}, {}, 0
    for name, rows in slices_of(tmp_path / "device.pftrace"):
        lanes += ", queue " in name
        assert name == "Launches" or ", queue " in name, name
        open_until = []
        for begin, end, out, into in sorted(rows):
            open_until = [until for until in open_until if until > begin]
            assert begin <= end <= min(open_until, default=end), f"slices of {name} overlap"
            open_until.append(end)
            arrows_out.update(dict.fromkeys(out, begin))
            arrows_in.update(dict.fromkeys(into, begin))
    assert lanes >= 2, "each of the two threads has a queue"
    assert len(arrows_in) == TOTAL and arrows_in.keys() <= arrows_out.keys()
    assert all(arrows_out[arrow] <= begin for arrow, begin in arrows_in.items())


MEMORY_COUNTS = {"read": 3, "write": 2, "copy": 5, "fill": 2, "map": 2, "unmap": 2, "migrate": 2, "free": 1,
                 "[native kernel]": 1}


@needs_root
def test_every_command_that_moves_memory(device, opencl_workload):
    """Images, rectangles, shared memory: each is timed with its bytes, and the driver's errors stay."""
    command = opencl_workload("opencl_memory")
    part, data, done = device(*command)
    before = plain(command)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    assert counts(part) == MEMORY_COUNTS
    assert part["attribution"]["matched"] == part["count"] == sum(MEMORY_COUNTS.values())
    failed = part["launches"]["without_work"].pop("failed")
    assert failed == 4 and not any(part["launches"]["without_work"].values()), "the calls with wrong arguments"
    moved = {row["name"]: row["bytes"] for row in data["bandwidth"]}
    nothing = dict.fromkeys(("map", "unmap", "migrate", "free"))
    assert moved == {"read": 3072, "write": 2048, "copy": 5120, "fill": 2048, **nothing}
    assert part["host_wait_count"] == 3 + 8, "finishes, and commands that block"


@needs_root
def test_calls_and_copies_are_what_opencl_calls_them(sonde, opencl_workload, tmp_path):
    """In the tables of traces, too: no call of CUDA, and a mapping moves nothing that has a bandwidth."""
    capture = tmp_path / "memory.pftrace"
    sonde("record", "-q", "-o", capture, "--", *opencl_workload("opencl_memory"), check=0)
    by = {by: sonde("report", "--json", "--by", by, capture, check=0).json()[by] for by in ("launches", "host", "bandwidth")}
    calls = {row["name"] for row in by["launches"]}
    assert {"clEnqueueWriteBuffer", "clEnqueueCopyBuffer", "clEnqueueMapBuffer", "clEnqueueNDRangeKernel"} <= calls
    calls |= {row["name"] for row in by["host"] if row["kind"] == "call"}
    assert all(call.startswith("cl") for call in calls), calls
    rates = {row["name"]: row["gbps"] for row in by["bandwidth"]}
    assert rates["read"] and rates["copy"]
    assert not any(rates[kind] for kind in ("map", "unmap", "migrate", "free")), rates


@needs_root_to_mount
def test_a_program_that_was_installed(sonde, opencl, tmp_path):
    """Stripped, in a folder of the system's: its device work is on its own functions, not on sonde's or a loader's."""
    program, *arguments = opencl(LAUNCHES)
    folder = tmp_path / "installed"
    folder.mkdir()
    subprocess.run(["strip", "-o", folder / "worker", program], check=True)
    under_opt = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /opt && exec "$@"', str(folder))
    capture = tmp_path / "device.pftrace"
    sonde("record", "-o", capture, "--", "/opt/worker", *arguments, prefix=under_opt)
    data = sonde("report", "--json", capture, check=0).json()
    lines = data["device_work"]["lines"]
    assert sum(row["count"] for row in lines) == TOTAL
    assert {row["module"] for row in lines} == {"worker"}
    functions = data["tables"]["function"]["rows"]
    assert {row["class"] for row in functions if row["module"] == "worker"} <= {"user"}
    assert {row["class"] for row in functions if row["module"] == "libsonde-inject.so"} <= {"sonde"}


@pytest.mark.slow  # PoCL compiles its kernels
@needs_root
def test_clblast(device, opencl_workload, workload_directory):
    """A library of others as it is: its kernels, its queue, its events."""
    command = opencl_workload("clblast", 3)
    env = {"POCL_CACHE_DIR": str(workload_directory / "pocl-cache")}  # its kernels take long to compile
    before = plain(command, env=env)
    assert before.returncode == 0, before.stderr
    part, _, done = device(*command, env=env)
    assert (done.status, done.stdout) == (0, before.stdout)
    seen = counts(part)
    # With which of its kernels CLBlast transposes and pads depends on the processor.
    transposed = [seen.pop(name) for name in list(seen) if name.startswith("Transpose")]
    assert sum(transposed) == 9 and seen == {"Xgemm": 3, "Xasum": 1, "XasumEpilogue": 1, "read": 1}
    assert part["attribution"]["matched"] == part["count"] == 15
    assert {row["function"] for row in part["lines"]} == {"multiply"}, "the program's line, not the library's"


def check_flow(report):
    """What the parts of the analysis must agree on, whatever the machine does."""
    for flow, used in zip(report["temporal"], report["device_work"]["devices"]):
        assert flow["device_name"] == used["name"]
        assert flow["idle_ns"] + used["busy_ns"] == flow["kernel_time_ns"]
        assert max(flow["compute_ns"], flow["memory_ns"]) <= used["busy_ns"] <= flow["compute_ns"] + flow["memory_ns"]
    for queue in report["queue"]:
        assert 0 <= queue["empty_ns"] <= queue["span_ns"] and queue["series"] is None
        assert 0 <= queue["mean"] <= queue["max"] <= queue["launches"]
    for call in report["launches"]:
        for times in (call["cpu_duration_ns"], call["idle_queue_latency_ns"]):
            assert times["count"] <= call["launches"]
            assert not times["count"] or 0 < times["p50"] <= times["p90"] <= times["p99"]


@needs_root
def test_how_launches_reach_the_device(device, opencl, sonde, tmp_path):
    _, report, _ = device(*opencl(2000))
    check_flow(report)
    (flow,) = report["temporal"]
    assert flow["communication_ns"] == 0
    calls = {call["name"]: call["launches"] for call in report["launches"]}
    assert sum(calls.values()) == 6008 and calls["clEnqueueNDRangeKernel"] == 6000
    assert report["summary"]["works_without_launch"] == 0
    assert report["queue"][0]["max"] >= 1
    text = sonde("report", tmp_path / "device.pftrace", check=0).stdout
    for heading in ("Where the GPU time went", "Temporal breakdown", "Launches", "Queue length"):
        assert heading in text
    for advice in report["advice"]:
        assert set(advice) == {"section", "id", "sentence", "evidence", "saves_ns", "docs"}
        if advice["section"] == "summary" and advice["saves_ns"]:
            assert re.search(r"\. This can save up to [\d.]+ [µm]?s( on each device)?, [\d.]+ % of the time\.$",
                             advice["sentence"])


def test_without_launch_stacks(device, opencl, sonde, tmp_path):
    part, _, done = device(*opencl(LAUNCHES), options=("--launch-stacks", "off"))
    assert done.status == 5 and counts(part) == COUNTS
    assert part["attribution"] == {"matched": 0, "no_stack": 0, "stacks_off": TOTAL, "launched_on_device": 0}
    folded = sonde(
        "export", "-f", "folded", "--weight", "gpu", "-o", "-", tmp_path / "device.pftrace", check=0
    ).stdout
    assert "[unattributed: launch stacks were off];[gpu] scale" in folded


def test_user_mode_times_and_says_why_no_stacks(device, opencl):
    part, data, done = device(*opencl(LAUNCHES), options=("--mode", "user", "--launch-stacks", "bpf"))
    assert done.status == 5 and counts(part) == COUNTS
    assert part["attribution"]["matched"] == 0
    assert any("launches of device work have no stacks" in note for note in data["notes"])


@pytest.mark.parametrize("end, status", [("_exit", 5), ("kill", 137), ("fork", 5), ("workers", 5)])
def test_ends(device, opencl, end, status):
    """What was finished is in the capture however the program ends, and forked children write nothing."""
    part, _, done = device(*opencl(LAUNCHES, end))
    assert_same(done, plain(opencl(LAUNCHES, end)))
    assert done.status == status
    assert counts(part) == COUNTS
    assert part["records_lost"] == 0
    if end == "fork":
        assert "child ended with 7" in done.stdout
    if end == "workers":
        assert "workers ended with 6" in done.stdout


@needs_root
def test_a_program_becomes_another(device, opencl):
    """Both have one pid: the work of each is joined to its own launches."""
    part, _, done = device(*opencl(LAUNCHES, "exec"))
    assert_same(done, plain(opencl(LAUNCHES, "exec")))
    assert done.status == 5 and done.stdout.count("sum") == 4
    assert counts(part) == {name: 2 * count for name, count in COUNTS.items()}
    assert part["launches"]["count"] == part["launches"]["stacks"] == part["attribution"]["matched"] == 2 * TOTAL


@needs_root
def test_another_pid_namespace(device, opencl):
    """The process is called otherwise there; its stacks are joined all the same."""
    container = ["unshare", "--pid", "--fork", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*container, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us make namespaces")
    part, _, done = device(*container, *opencl(LAUNCHES))
    assert done.status == 5 and counts(part) == COUNTS
    assert part["attribution"]["matched"] == part["launches"]["count"] == TOTAL


@needs_root
def test_many_threads_launch_at_once(device, opencl):
    threads, launches = 64, 20
    part, _, done = device(*opencl(launches, "exit", threads))
    assert done.status == 5 and done.stdout.count("sum") == threads
    assert counts(part) == {name: count * threads // 2 * launches // 100 if name in ("scale", "add")
                            else threads for name, count in COUNTS.items()}
    assert part["attribution"]["matched"] == part["count"]
    assert part["records_lost"] == part["stacks_lost"] == 0


def test_another_layer_stays(device, opencl, sonde_path, tmp_path):
    """A layer that is there already is called first; ours comes behind it, which a note says."""
    other = tmp_path / "libother.so"
    other.write_bytes((sonde_path.parent / "src" / "inject" / "libsonde-inject.so").read_bytes())
    before = plain(opencl(LAUNCHES), env={"OPENCL_LAYERS": str(other)})
    part, data, done = device(*opencl(LAUNCHES), env={"OPENCL_LAYERS": str(other)})
    assert_same(done, before)
    assert any(f"OPENCL_LAYERS was set to {other}" in note for note in data["notes"])
    assert part["count"] >= TOTAL


def test_full_rings_are_counted(device, opencl):
    """More than the rings hold, faster than they are read: nothing is lost unseen."""
    launches = 40000
    part, data, done = device(*opencl(launches), options=("--launch-stacks", "off"))
    assert_same(done, plain(opencl(launches)))
    assert part["count"] + part["records_lost"] + part["launches"]["without_work"]["too_many_in_flight"] == (
        pytest.approx(3 * launches + 8, abs=8)
    ), "lost waits are records, too"
    if part["records_lost"]:
        assert any("records of device work and ranges were lost" in note for note in data["notes"])


def test_cut_ring_file(device, sonde_path):
    """The recording goes on, and says what was left out."""
    source = sonde_path.parent / "bench" / "ring-source"
    script = f"{source} 20000 2 & sleep 1; for file in $SONDE_SESSION/ring.*; do : > $file; done; wait"
    part, data, done = device("sh", "-c", script, options=("--launch-stacks", "off"))
    assert done.status == 0
    assert 0 < part["count"] < 40000
    assert any("records of device work and ranges were damaged" in note for note in data["notes"])


def test_no_session_is_left_behind(sonde, opencl, tmp_path):
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", *opencl(LAUNCHES))
    assert running.wait(60) == 5
    assert not glob.glob(f"/dev/shm/sonde-{running.pid}-*")


def test_collector_killed(sonde, opencl, tmp_path):
    """The program goes on to its own end."""
    marker = tmp_path / "status"
    out = tmp_path / "out"
    script = f'{" ".join(opencl(30000))} >{out}; echo $? > {marker}'
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", "sh", "-c", script)
    session_folder(running, timeout=60)
    running.kill()
    running.wait()
    assert glob.glob(f"/dev/shm/sonde-{running.pid}-*")
    for _ in range(1200):
        if marker.exists() and marker.read_text():
            break
        time.sleep(0.1)
    assert marker.read_text().strip() == "5"
    assert sorted(out.read_text().splitlines()) == sorted(plain(opencl(30000)).stdout.splitlines())
    sonde("record", "-q", "-o", tmp_path / "next.pftrace", "--", "true", check=0)
    assert not glob.glob(f"/dev/shm/sonde-{running.pid}-*"), "the next recording cleans up"


def session_folder(running, timeout=10):
    """The recording's, when a process has opened it."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if glob.glob(f"/dev/shm/sonde-{running.pid}-*/ring.*"):
            (folder,) = glob.glob(f"/dev/shm/sonde-{running.pid}-*")
            return folder
        time.sleep(0.01)
    raise AssertionError("no process opened the session")


def test_session_removed_while_recording(sonde, opencl, tmp_path):
    """The process that has its ring open is recorded on; later ones are not, which a note says."""
    capture = tmp_path / "x.pftrace"
    command = " ".join(opencl(20000))
    running = sonde.start("record", "-q", "-o", capture, "--", "sh", "-c", f"{command}; {' '.join(opencl(10))}")
    folder = session_folder(running)
    maps = Path(f"/proc/{running.pid}/maps")
    end = time.monotonic() + 60
    while f"{folder}/ring." not in maps.read_text():  # until sonde has seen the file
        assert time.monotonic() < end
        time.sleep(0.01)
    shutil.rmtree(folder)
    out, _ = running.communicate(timeout=100)
    before = plain(["sh", "-c", f"{command}; {' '.join(opencl(10))}"])
    assert running.returncode == before.returncode == 5
    assert sorted(out.splitlines()) == sorted(before.stdout.splitlines())
    data = sonde("report", "--json", capture, check=0).json()
    assert any(f"folder {folder} was removed" in note for note in data["notes"])
    part = data["device_work"]
    seen = part["count"] + part["records_lost"] + part["launches"]["without_work"]["too_many_in_flight"]
    assert seen >= 3 * 20000 + 8


@needs_root
def test_another_user_cannot_open_the_session(sonde, opencl, unprivileged, tmp_path):
    running = sonde.start("record", "-q", "-o", tmp_path / "x.pftrace", "--", "sh", "-c",
                          f"{' '.join(opencl(10))}; sleep 60")
    folder = session_folder(running)
    gate, ring = os.path.join(folder, "gate"), glob.glob(f"{folder}/ring.*")[0]
    assert [os.stat(path).st_mode & 0o777 for path in (folder, gate, ring)] == [0o700, 0o600, 0o600]
    for attempt in (["ls", folder], ["cat", gate], ["cat", ring], ["sh", "-c", f": >> {ring}"]):
        done = subprocess.run([*unprivileged, *attempt], capture_output=True, text=True)
        assert done.returncode and "Permission denied" in done.stderr
    # A program of another user that is told of the session has its own results, and no part in it.
    before = plain(opencl(10))
    place = open_folder()
    program = shutil.copy(opencl()[0], place)
    library = shutil.copy(os.path.join(os.path.dirname(sonde.path), "src", "inject", "libsonde-inject.so"), place)
    env = {**os.environ, "OPENCL_LAYERS": library, "SONDE_SESSION": folder, "POCL_CACHE_DIR": place}
    done = subprocess.run([*unprivileged, program, "10"], capture_output=True, text=True, env=env)
    shutil.rmtree(place)
    assert sorted(done.stdout.splitlines()) == sorted(before.stdout.splitlines()) and done.returncode == 5
    assert len(glob.glob(f"{folder}/ring.*")) <= 1


def open_folder():
    """A folder that every user can reach and write; pytest's are not."""
    folder = tempfile.mkdtemp(prefix="sonde-opencl-")
    os.chmod(folder, 0o777)
    return folder


@needs_root
def test_set_user_id_program(sonde, opencl, tmp_path):
    """It does not listen to our variables: it runs as ever, and the report says that there is nothing."""
    folder = open_folder()
    program = os.path.join(folder, "program")
    shutil.copy(opencl()[0], program)
    os.chown(program, pwd.getpwnam("nobody").pw_uid, -1)
    os.chmod(program, 0o4755)
    env = {"POCL_CACHE_DIR": folder}
    before = plain([program, str(LAUNCHES)], env=env)
    capture = tmp_path / "x.pftrace"
    done = sonde("record", "-q", "-o", capture, "--", program, LAUNCHES, env=env)
    shutil.rmtree(folder)
    assert_same(done, before)
    assert done.status == 5
    assert sonde("report", "--json", capture, check=0).json()["device_work"] is None
    assert "set-user-ID" in sonde("report", "--by", "kernel", capture, check=0).stdout


@pytest.fixture
def platforms(opencl_workload, workload_directory, tmp_path):
    """A program that uses two drivers, PoCL and our stand-in, and the environment in which it finds both."""
    command = opencl_workload("opencl_platforms")[0]
    double = workload_directory.parents[1] / "doubles" / "opencl" / "libopencl-double.so"
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    for icd in glob.glob("/etc/OpenCL/vendors/pocl*.icd"):
        shutil.copy(icd, vendors)
    (vendors / "double.icd").write_text(f"{double}\n")
    return command, {"OCL_ICD_VENDORS": str(vendors)}


def without_work(part):
    return {reason: count for reason, count in part["launches"]["without_work"].items() if count}


@needs_root
def test_two_runtimes_in_one_process(device, platforms):
    command, env = platforms
    part, _, done = device(command, 10, env=env)
    before = plain([command, "10"], env=env)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    devices = {used["name"]: used["count"] for used in part["devices"]}
    assert len(devices) == 2 and set(devices.values()) == {10} and "double device" in devices
    assert part["attribution"]["matched"] == part["launches"]["count"] == 20


@needs_root
def test_loader_unloaded_and_loaded_again(device, platforms):
    command, env = platforms
    part, _, done = device(command, 10, 3, env=env)
    before = plain([command, "10", "3"], env=env)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    assert part["attribution"]["matched"] == part["launches"]["count"] == 60


@pytest.mark.parametrize("fault, seen, reasons", [
    ("f", 5, {"failed": 5}),
    ("e", 5, {"failed": 5}),
    ("q", 0, {"no_profiling": 10}),
    ("c", 0, {"no_event": 10}),
    ("t", 0, {"no_times": 10}),
    ("z", 0, {"no_times": 10}),
    ("b", 0, {"no_times": 10}),
])
def test_a_driver_with_faults(device, platforms, fault, seen, reasons):
    """Each launch is counted once, with its reason; the program sees what it would see without us."""
    command, env = platforms
    env = {**env, "OPENCL_DOUBLE": fault}
    part, data, done = device(command, 10, options=("--launch-stacks", "off"), env=env)
    before = plain([command, "10"], env=env)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    assert {used["name"]: used["count"] for used in part["devices"]}.get("double device", 0) == seen
    assert without_work(part) == reasons
    assert part["launches"]["count"] == 20 and part["records_lost"] == 0
    assert not [note for note in data["notes"] if "device" in note]


@needs_root
def test_exit_while_callbacks_are_telling(device, platforms):
    """exit() ends the driver's threads; one that is writing what it saw is waited for."""
    command, env = platforms
    for icd in Path(env["OCL_ICD_VENDORS"]).glob("pocl*"):
        icd.unlink()
    part, _, done = device(command, 10, env={**env, "OPENCL_DOUBLE": "s"})
    assert done.status == 0
    assert part["count"] == part["launches"]["count"] == 10 and without_work(part) == {}


def test_programs_without_opencl_have_none(device, workload):
    part, data, _ = device(*workload("spin", 0.2))
    assert part is None
    assert not [note for note in data["notes"] if "device" in note]


TRAIN = """
import numpy as np
import pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void forward(__global float *x, float w) { x[get_global_id(0)] *= w; }"
                              "__kernel void backward(__global float *x) { x[get_global_id(0)] += 1; }").build()
x = np.ones(4096, dtype=np.float32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)

def step_forward():
    program.forward(queue, x.shape, None, buffer, np.float32(1))

def step_backward():
    program.backward(queue, x.shape, None, buffer)

for _ in range(200):
    step_forward()
    step_backward()
cl.enqueue_copy(queue, x, buffer)
print(x.sum())
"""


@needs_root
def test_python(device, opencl, tmp_path):
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pyopencl, numpy"], capture_output=True).returncode:
        pytest.fail("python3-pyopencl is not installed: run tools/deps test")
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    env = {"PYOPENCL_NO_CACHE": "1", "PYOPENCL_CTX": "0", "PYTHONWARNINGS": "ignore"}
    part, _, done = device(python, script, env=env)
    before = plain([python, str(script)], env=env)
    assert (done.status, done.stdout) == (before.returncode, before.stdout) and done.status == 0
    assert counts(part) == {"forward": 200, "backward": 200, "read": 1}
    assert part["attribution"]["matched"] == 401
    assert part["launches"]["complete_stacks"] >= 0.995 * 401
    lines = {row["function"]: (row["source_file"], row["line"], row["count"]) for row in part["lines"]}
    line = TRAIN.splitlines().index("    program.forward(queue, x.shape, None, buffer, np.float32(1))") + 1
    assert lines["step_forward"] == (str(script), line, 200)
    assert lines["step_backward"][2] == 200


FEED = """
import time
from pathlib import Path
import numpy as np
import pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void add_one(__global float *x) { x[get_global_id(0)] += 1; }").build()
x = np.ones(4096, dtype=np.float32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
add_one = program.add_one
slept_ns = 0

def load_batch():
    global slept_ns
    start_ns = time.monotonic_ns()
    time.sleep(0.04)
    slept_ns += time.monotonic_ns() - start_ns

def train_step():
    add_one(queue, x.shape, None, buffer)
    queue.finish()

train_step()
for _ in range(60):
    load_batch()
    train_step()
print(slept_ns)
"""


@needs_root
@pytest.mark.parametrize("wait", ["sample", pytest.param("exact", marks=pytest.mark.slow)])
def test_why_the_device_was_idle(device, sonde, tmp_path, wait):
    """The device waits for a thread that sleeps a known time between launches."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pyopencl, numpy"], capture_output=True).returncode:
        pytest.fail("python3-pyopencl is not installed: run tools/deps test")
    script = tmp_path / "feed.py"
    script.write_text(FEED)
    env = {"PYOPENCL_NO_CACHE": "1", "PYOPENCL_CTX": "0", "PYTHONWARNINGS": "ignore"}
    _, data, done = device(python, script, options=("-F", "199", "--wait", wait), env=env)
    slept_ns = int(done.stdout)
    (used,), rows = [place for place in data["idle"] if place["of"] == "device"], data["host"]
    assert used["gaps"] == 60 and slept_ns < used["idle_ns"] < data["temporal"][0]["kernel_time_ns"]
    causes = {cause["cause"]: cause["idle_ns"] for cause in used["causes"]}
    assert sum(causes.values()) == sum(row["idle_ns"] for row in rows) == used["idle_ns"]
    # Looked at ten times a second: on a busy machine some looks find the thread on its way.
    tolerance = 0.1 if wait == "exact" else 0.3
    # After a sleep the thread may have to wait for a CPU.
    assert causes["sleep"] + causes.get("cpu", 0) == pytest.approx(slept_ns, rel=tolerance)
    first = rows[0]
    line = FEED.splitlines().index("    time.sleep(0.04)") + 1
    assert (first["cause"], first["function"], first["line"]) == ("sleep", "load_batch", line)
    assert first["gaps"] > 50 and 0 < first["samples"] <= 60
    text = sonde("report", tmp_path / "device.pftrace", check=0).stdout
    assert "Why devices were idle" in text and "Sleep" in text
    check_idle_stacks(sonde, tmp_path / "device.pftrace", used, slept_ns, tolerance)


def check_idle_stacks(sonde, capture, used, slept_ns, tolerance):
    """The idle time as stacks: of what the thread did, ending in the cause."""
    out = sonde("export", "-f", "folded", "--weight", "gpu-idle", "-o", "-", capture, check=0).stdout
    stacks = [(stack, int(ns)) for stack, ns in (line.rsplit(" ", 1) for line in out.splitlines())]
    assert all(re.search(r"\[idle: [a-zA-Z, ]+\]$", stack) for stack, _ in stacks)
    assert sum(ns for _, ns in stacks) == pytest.approx(used["idle_ns"], rel=0.001)
    slept = sum(ns for stack, ns in stacks if "load_batch" in stack and stack.endswith("[idle: sleep]"))
    assert slept == pytest.approx(slept_ns, rel=tolerance)
    graph = sonde("export", "-f", "flamegraph", "--weight", "gpu-idle", "-o", "-", capture, check=0).stdout
    assert "of idle time of devices" in graph and "[idle: sleep]" in graph
    weighed = sonde("report", "--weight", "gpu-idle", capture, check=0).stdout
    assert "Idle time" in weighed and "[idle: sleep]" in weighed and "Why devices were idle" in weighed


JOINS = TRAIN[: TRAIN.index("for _ in range(200)")] + """
import sys
from sonde import _core
step_forward()
queue.finish()
print("ready", flush=True)
for line in sys.stdin:
    _core.open_session(line.strip())
    for _ in range(3):
        step_forward()
    queue.finish()
    print("launched", flush=True)
"""


def test_a_program_goes_from_session_to_session(sonde, opencl, tmp_path):
    """As with CUDA (test_cuda.py): the recordings that it joins have the names of devices, queues and kernels."""
    script, folders = tmp_path / "joins.py", tmp_path / "folders"
    script.write_text(JOINS)
    os.mkfifo(folders)
    first = sonde.start("record", "-q", "-o", tmp_path / "first", "--", "sh", "-c",
                        f"echo $$; exec /usr/bin/python3 {script} < {folders}",
                        env={"PYOPENCL_NO_CACHE": "1", "PYOPENCL_CTX": "0", "PYTHONWARNINGS": "ignore"})
    say = folders.open("w")
    pid = int(first.stdout.readline())
    assert first.stdout.readline() == "ready\n"
    first.kill()
    first.wait(60)
    for folder in glob.glob(f"/dev/shm/sonde-{first.pid}-*"):
        shutil.rmtree(folder)
    capture, session = tmp_path / "joined", tmp_path / "session"
    recording = sonde.start("record", "-p", pid, "--session-file", session, "-o", capture)
    end = time.monotonic() + 60
    while not (session.exists() and session.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.01)
    say.write(session.read_text().strip() + "\n")
    say.flush()
    assert first.stdout.readline() == "launched\n"
    recording.send_signal(signal.SIGINT)
    assert recording.wait(60) == 0
    say.close()
    data = sonde("report", "--json", capture, check=0).json()
    assert [(row["name"], row["count"]) for row in data["kernel"]["kernels"]] == [("forward", 3)]
    assert data["device_work"]["devices"][0]["name"].startswith("pthread")


def test_it_is_said_why_an_attached_program_has_no_device_work(sonde, opencl, tmp_path):
    code = "import ctypes, sys; ctypes.CDLL('libOpenCL.so.1'); print('ready', flush=True); sys.stdin.read()"
    program = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sonde.started.append(program)
    assert program.stdout.readline() == "ready\n"
    done = sonde("record", "-d", "0.2", "-p", program.pid, "-o", tmp_path / "c", check=0)
    program.communicate()
    text = " ".join(done.stderr.split())
    assert f"device work of python3 ({program.pid}), which uses OpenCL, is not recorded" in text, done.stderr
