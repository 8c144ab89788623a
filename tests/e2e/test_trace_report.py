# SPDX-License-Identifier: Apache-2.0
"""sonde report of PyTorch's traces: the answer, HTA's analyses, several ranks, and what cannot be."""

import csv
import gzip
import json
import os
import subprocess

import pytest

GPU, HOST = 0, 100
SECTIONS = (
    "temporal",
    "idle",
    "host",
    "kernel",
    "bandwidth",
    "launches",
    "queue",
    "operators",
    "cpu-operators",
    "annotations",
)


def row(cat, name, pid, tid, ts, dur, **arguments):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": arguments}


def launch(correlation, call, start, dur, name="gemm", stream=7, cat="kernel", **arguments):
    """A call of 2 us, and its work."""
    place = {"device": GPU, "context": 1, "stream": stream, "correlation": correlation, **arguments}
    return [
        row("cuda_runtime", "cudaLaunchKernel", HOST, HOST, call, 2, correlation=correlation),
        row(cat, name, GPU, stream, start, dur, **place),
    ]


def step(number, at, **changes):
    """1,000 us: 500 compute, 100 of 200 communication beside it, 50 copies, 350 idle; `compute` says how much else."""
    compute = changes.get("compute", 500)
    return [
        row("user_annotation", f"ProfilerStep#{number}", HOST, HOST, at, 1000),
        row("cpu_op", "aten::mm", HOST, HOST, at + 10, 20),
        *launch(number * 10, at + 20, at + 50, compute),
        *launch(number * 10 + 1, at + 30, at + 50 + compute - 100, 200, "ncclDevKernel_AllReduce", 20),
        row("cpu_op", "aten::copy_", HOST, HOST, at + 800, 100),
        *launch(number * 10 + 2, at + 900, at + 950, 50, "Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy", bytes=100000),
        row("gpu_user_annotation", "forward", GPU, 7, at + 50, compute),
    ]


def make(path, rank=0, world=1, steps=3, **changes):
    events = [event for number in range(steps) for event in step(number + 1, number * 1000, **changes)]
    trace = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": world}, "traceEvents": events}
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return path


@pytest.fixture
def trace(tmp_path):
    return make(tmp_path / "trace.json.gz")


@pytest.fixture
def ranks(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank, compute in enumerate((300, 600)):
        make(folder / f"rank{rank}.json.gz", rank, 2, compute=compute)
    return folder


def read(sonde, *arguments):
    return json.loads(sonde("report", "--json", *arguments, check=0).stdout)


def test_answer_comes_first_then_the_tables(sonde, trace):
    done = sonde("report", trace, check=0)
    lines = done.stdout.splitlines()
    assert "rank 0 of 1" in lines[0] and "30 rows · 3.00 ms · 2.95 ms from first to last GPU work" in lines[0]
    assert lines[2] == "Where the GPU time went"
    # Of 2,950 us: 1,500, 300, 150 and 1,000.
    for words in ("computed for 50.8 %", "only communicated for 10.2 %", "only copied for 5.1 %", "idle for 33.9 %"):
        assert words in done.stdout.replace("\n  ", " ")
    assert "50.0 % ran beside computing" in done.stdout.replace("\n  ", " ")
    for heading in ("Temporal breakdown", "Idle time breakdown", "Kernel breakdown", "Memory bandwidth", "Queue length"):
        assert done.stdout.index(heading) > done.stdout.index("Where the GPU time went")


def test_figures_in_json(sonde, trace):
    document = read(sonde, trace)
    assert document["format"] == "sonde-report" and not document["hta_compatible"]
    assert {name.replace("-", "_") for name in SECTIONS} <= set(document)
    (temporal,) = document["temporal"]
    assert (temporal["kernel_time_ns"], temporal["compute_ns"]) == (2_950_000, 1_500_000)
    assert temporal["idle_ns"] + temporal["compute_ns"] + temporal["non_compute_ns"] == temporal["kernel_time_ns"]
    assert temporal["overlap_share"] == 0.5 and temporal["communication_beside_compute_ns"] == 300_000
    assert temporal["memory_only_ns"] == 150_000 and temporal["communication_kernels"]["name"] == 3
    device = next(place for place in document["idle"] if place["of"] == "device")
    assert device["idle_ns"] == temporal["idle_ns"] == sum(cause["idle_ns"] for cause in device["causes"])
    (copy,) = document["bandwidth"]
    assert (copy["bytes"], copy["gbps"]) == (300_000, 2.0)
    (annotation,) = document["annotations"]
    assert (annotation["name"], annotation["count"], annotation["sum_ns"]) == ("forward", 3, 1_500_000)
    (call,) = document["launches"]
    assert (call["launches"], call["works"]) == (9, 9)
    assert document["queue"][0]["series"] is None
    waits = {waiting["name"]: waiting["idle_ns"] for waiting in document["host"]}
    assert waits["aten::copy_"] == 3 * 100_000


def test_names_of_kernels_that_communicate_can_be_added(sonde, trace):
    assert "recognised: 3 by name" in sonde("report", trace, check=0).stdout.replace("\n  ", " ")
    kernels = read(sonde, "--comm-kernels", "^ge.m$", trace)["kernel"]["kernels"]
    known = {kernel["name"]: (kernel["kernel_type"], kernel["known_by"]) for kernel in kernels}
    assert known["gemm"] == ("communication", "option")
    assert known["ncclDevKernel_AllReduce"] == ("communication", "name")
    assert known["Memcpy DtoH (Device -> Pinned)"] == ("memory", None)
    hta = read(sonde, "--hta-compatible", "--comm-kernels", "^ge.m$", trace)["kernel"]["kernels"]
    assert {kernel["kernel_type"] for kernel in hta if kernel["name"] == "gemm"} == {"COMPUTATION"}
    done = sonde("report", "--comm-kernels", "(", trace, check=2)
    assert "--comm-kernels '('" in done.stderr and "regular expression" in done.stderr


def test_what_blocking_calls_waited_for(sonde, tmp_path):
    """By rows of cuda_sync, which Kineto has with enable_cuda_sync_events: in the table, as a cause, and in the advice."""
    def sync(name, stream, **arguments):
        return row("cuda_sync", name, GPU, stream, 70, 1, cuda_sync_kind=name, device=GPU, context=1, stream=stream, **arguments)

    events = [
        *launch(1, 10, 20, 50), *launch(2, 320, 340, 40, stream=8), *launch(3, 520, 530, 40, stream=9),
        row("cuda_runtime", "cudaStreamSynchronize", HOST, HOST, 30, 270, correlation=10),
        sync("Stream Sync", 7, correlation=10),
        row("cuda_runtime", "cudaDeviceSynchronize", HOST, HOST, 400, 100, correlation=11),
        sync("Context Sync", -1, correlation=11),
        row("cuda_runtime", "cudaStreamWaitEvent", HOST, HOST, 21, 1, correlation=12),
        sync("Stream Wait Event", 8, correlation=12, wait_on_stream=-1, wait_on_cuda_event_record_corr_id=0)]
    trace = tmp_path / "waits.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    document = read(sonde, trace)
    waits = {(wait["kind"], wait["waited_for"]): wait for wait in document["device_waits"]}
    assert {key: wait["waited_ns"] for key, wait in waits.items()} == {
        ("stream", "stream 7"): 270_000, ("device", "GPU 0"): 100_000, ("stream_wait_event", "event"): None}
    assert waits["stream_wait_event", "event"]["unknown"] == 1
    blocked = {part["name"]: (part["idle_ns"], part["waited_for"]) for part in document["host"] if part["cause"] == "blocking_call"}
    assert blocked == {"cudaStreamSynchronize": (230_000, "stream 7"), "cudaDeviceSynchronize": (100_000, "GPU 0")}
    (advice,) = [advice for advice in document["advice"] if advice["id"] == "blocking_calls"]
    assert advice["sentence"].split(" This can")[0].endswith("70 % of the blocked time was waiting for stream 7.")
    assert read(sonde, "--hta-compatible", trace)["device_waits"] is None


def test_what_next_to_nothing_waited_for_is_not_named(sonde, tmp_path):
    """100 ms of cudaFree(), and 60 µs for a stream: "0 % was waiting for stream 7" would say nothing."""
    events = [
        *launch(1, 10, 20, 50), row("cuda_runtime", "cudaFree", HOST, HOST, 80, 100_000, correlation=20),
        *launch(2, 100_090, 100_100, 50),
        row("cuda_runtime", "cudaStreamSynchronize", HOST, HOST, 100_110, 100, correlation=10),
        row("cuda_sync", "Stream Sync", GPU, 7, 100_115, 1, cuda_sync_kind="Stream Sync", device=GPU, context=1, stream=7,
            correlation=10),
        *launch(3, 100_300, 100_310, 50)]
    trace = tmp_path / "free.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    document = read(sonde, trace)
    assert "stream 7" in {part["waited_for"] for part in document["host"] if part["cause"] == "blocking_call"}
    (advice,) = [advice for advice in document["advice"] if advice["id"] == "blocking_calls"]
    assert "cudaFree" in advice["sentence"] and "stream 7" not in advice["sentence"]


def test_copies_that_do_not_say_how_much_they_move(sonde, tmp_path):
    """As in traces of ROCm: how long they took and how fast they were is unknown, not nothing."""
    trace = tmp_path / "copies.json"
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)", "pid": 0, "tid": 7, "dur": 20}
    events = [{**copy, "ts": 100 * at, "args": {"device": 0, "stream": 7, "correlation": at}} for at in range(1, 4)]
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    (row,) = read(sonde, "--by", "bandwidth", trace)["bandwidth"]
    assert (row["count"], row["without_bytes"], row["bytes"], row["time_ns"], row["gbps"]) == (3, 3, None, None, None)
    text = sonde("report", "--by", "bandwidth", trace).stdout
    assert "3 copies and fills do not say how much they move" in text and " 0 s" not in text


@pytest.mark.parametrize("name", SECTIONS)
def test_one_section_alone(sonde, trace, name):
    done = sonde("report", "--by", name, trace, check=0)
    assert "Where the GPU time went" not in done.stdout
    document = read(sonde, "--by", name, trace)
    key = name.replace("-", "_")
    head = {"format", "version", "sonde_version", "hta_compatible", "traces", "advice", f"{key}_total"}
    assert set(document) - head == {key}


def test_details_of_one_section_alone(sonde, trace):
    (stream, *_) = read(sonde, "--by", "queue", trace)["queue"]
    assert stream["series"][0][1] == 1
    (call,) = read(sonde, "--by", "launches", trace)["launches"]
    assert len(call["rows"]) == 9


def test_ranks_are_rows_of_one_table(sonde, ranks):
    done = sonde("report", ranks, check=0)
    assert "2 ranks" in done.stdout.splitlines()[0]
    assert "Idle least: rank 1" in done.stdout and "rank 0" in done.stdout
    assert [each["rank"] for each in read(sonde, ranks)["temporal"]] == [0, 1]
    assert [each["rank"] for each in read(sonde, "--rank", 1, ranks)["temporal"]] == [1]
    files = sorted(ranks.iterdir())
    assert read(sonde, *files)["temporal"] == read(sonde, ranks)["temporal"]


def test_steps_and_ranges_of_a_trace(sonde, tmp_path):
    """Profiler steps are steps, other annotations ranges; work of a device counts where it was launched."""
    events = [
        row("user_annotation", "ProfilerStep#3", HOST, HOST, 0, 900),
        row("user_annotation", "forward", HOST, HOST, 10, 300),
        *launch(1, 20, 950, 40),  # runs after its step and its range
        row("user_annotation", "ProfilerStep#4", HOST, HOST, 1000, 1100),
        row("user_annotation", "forward", HOST, HOST, 1010, 500),
        *launch(2, 1020, 1100, 50),
        *launch(3, 1600, 1700, 60),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    document = json.loads(sonde("report", "--by", "step", "--json", path, check=0).stdout)
    (steps,) = document["steps"]["rows"]
    assert (steps["name"], steps["count"], steps["total_ns"]) == ("ProfilerStep", 2, 2_000_000)
    assert steps["device_busy_ns"] == 150_000 and steps["samples"] is None and steps["rank"] is None
    slowest = [(one["number"], one["duration_ns"], one["device_busy_ns"]) for one in document["steps"]["slowest"]]
    assert slowest == [(4, 1_100_000, 110_000), (3, 900_000, 40_000)]
    (forward,) = json.loads(sonde("report", "--by", "range", "--json", path, check=0).stdout)["ranges"]["rows"]
    assert (forward["name"], forward["count"], forward["maximum_ns"]) == ("forward", 2, 500_000)
    assert (forward["device_work_count"], forward["device_busy_ns"]) == (2, 90_000)
    assert "ProfilerStep" in sonde("report", "--by", "step", path, check=0).stdout
    whole = json.loads(sonde("report", "--json", path, check=0).stdout)
    assert whole["steps"]["rows"] == [steps] and whole["ranges"]["rows"] == [forward]
    compatible = json.loads(sonde("report", "--hta-compatible", "--json", path, check=0).stdout)
    assert compatible["steps"] is None and compatible["ranges"] is None


def test_spread_of_steps_over_ranks(sonde, tmp_path):
    for rank, duration in ((0, 100), (1, 150)):
        events = [row("user_annotation", f"ProfilerStep#{n}", HOST, HOST, 1000 * n, duration) for n in (1, 2)]
        trace = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    (steps,) = json.loads(sonde("report", "--by", "rank", "--json", tmp_path, check=0).stdout)["ranks"]["rows"]
    assert (steps["kind"], steps["slowest_rank"], steps["fastest_rank"]) == ("step", 1, 0)
    assert steps["spread_ns"] == 50_000 and [one["count"] for one in steps["ranks"]] == [2, 2]
    assert steps["difference"] is None and steps["ranks"][0]["cpu_time_ns"] is None


def test_traces_without_annotations_have_no_steps(sonde, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": launch(1, 20, 950, 40)}))
    for by in ("step", "range"):
        text = " ".join(sonde("report", "--by", by, path, check=0).stdout.split())
        assert f"There are no {by}s: the trace has no annotations" in text


def test_last_step(sonde, trace):
    """HTA drops it, unless told not to; we keep it, unless told not to."""

    def computed(*options):
        return read(sonde, *options, trace)["temporal"][0]["compute_ns"] // 500_000

    assert computed() == 3
    assert computed("--drop-last-step") == 2
    assert computed("--hta-compatible") == 2
    assert computed("--hta-compatible", "--include-last-step") == 3


def test_imported_capture_has_the_same_report(sonde, trace, tmp_path):
    capture = tmp_path / "trace.pftrace"
    sonde("import", trace, "-o", capture, check=0)
    for options in ((), ("--hta-compatible",)):
        assert read(sonde, *options, capture) == read(sonde, *options, trace)


def test_imported_real_traces_have_the_same_report(sonde, shared_traces, tmp_path):
    for name in ("kineto/critical_path_alexnet", "kineto/timeline_rank0", "kineto/mtia_inference_rank_0"):
        trace, capture = shared_traces / f"{name}.json.gz", tmp_path / "real.pftrace"
        sonde("import", trace, "-o", capture, check=0)
        for options in ((), ("--hta-compatible",)):
            assert read(sonde, *options, capture) == read(sonde, *options, trace), name


def test_traces_without_a_gpu_say_so(sonde, tmp_path):
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"traceEvents": [row("cpu_op", "aten::add", HOST, HOST, 0, 10)]}))
    done = sonde("report", path, check=0)
    assert "There is no device work" in done.stdout
    for name in SECTIONS:
        assert len(sonde("report", "--by", name, path, check=0).stdout.splitlines()) >= 2
    assert read(sonde, path)["summary"] is None


def test_damage_is_said(sonde, trace, tmp_path):
    text = gzip.decompress(trace.read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(text[: len(text) * 2 // 3])
    done = sonde("report", path, check=0)
    assert "cut off" in done.stdout
    assert read(sonde, path)["traces"][0]["damage"]["truncated"]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--by", "cgroup"], "--by cgroup is for recordings"),
        (["--process", "1"], "--process is for tables of samples"),
        (["--weight", "gpu"], "--weight is for tables of samples"),
        (["--regress", "x.pftrace"], "--regress is for recordings"),
        (["--include-last-step", "--drop-last-step"], "opposites"),
    ],
)
def test_options_that_do_not_fit_are_refused(sonde, trace, options, words):
    done = sonde("report", *options, trace)
    assert done.status == 2 and words in done.stderr and not done.stdout


def test_missing_rank_is_an_error(sonde, trace):
    done = sonde("report", "--rank", 7, trace)
    assert done.status == 1 and "no trace of rank 7" in done.stderr


def test_rank_is_said_where_the_file_says_it(sonde, tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": step(1, 0)}))
    assert "rank" not in sonde("report", path, check=0).stdout.splitlines()[0].replace(str(path), "")
    assert "rank 0" not in sonde("report", "--hta-compatible", path, check=0).stdout
    assert read(sonde, path)["traces"][0]["rank"] is None
    assert read(sonde, make(path, rank=3, world=4))["traces"][0]["rank"] == 3


def test_many_missing_ranks_are_counted(sonde, tmp_path):
    for rank in (1, 6):
        make(tmp_path / f"rank{rank}.json.gz", rank, 8)
    done = sonde("report", tmp_path, check=0)
    assert "ranks 0, 2, 3, 4 and 2 more of 8 are missing" in done.stderr
    make(tmp_path / "rank7.json.gz", 3, 2)  # a world that they are not of
    assert sonde("report", tmp_path, check=0).stderr.count("missing") == 1


def test_standard_input(sonde, trace):
    """A pipe can be read once only, and what it holds is looked at before it is read."""
    piped = sonde("report", "--json", "-", stdin=gzip.decompress(trace.read_bytes()).decode(), check=0).json()
    shell = ("sh", "-c", f'exec "$@" <{trace}', "sh")
    redirected = sonde("report", "--json", "-", prefix=shell, check=0).json()
    assert piped["traces"][0]["path"] == "/dev/stdin"
    assert piped == redirected and piped["temporal"] == read(sonde, trace)["temporal"]


def test_folders_are_named_without_a_slash_at_the_end(sonde, ranks):
    first, _ = read(sonde, f"{ranks}//")["traces"]
    assert first["path"].startswith(f"{ranks}/rank0")


def test_why_there_is_no_device_work(sonde, tmp_path):
    capture = tmp_path / "a.pftrace"
    sonde("record", "--cpu-only", "-o", capture, "--", "true", check=0)
    assert "--cpu-only" in sonde("report", "--by", "kernel", capture, check=0).stdout


def test_why_there_is_no_device_work_where_sonde_attached(sonde, start_workload, tmp_path):
    capture = tmp_path / "a.pftrace"
    sonde("record", "-d", 0.5, "-o", capture, "-p", start_workload("spin", 20).pid, check=0)
    text = sonde("report", "--by", "kernel", capture, check=0).stdout
    assert "sonde attached to running processes" in text and "no process" not in text
    assert "sonde attached" in sonde("report", "--weight", "gpu", capture, check=0).stdout


def test_a_folder_of_recordings_says_what_to_type(sonde, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in "ab":
        sonde("record", "-o", folder / f"{name}.pftrace", "--", "true", check=0)
    for paths in ([folder], [folder / "a.pftrace", folder / "b.pftrace"]):
        done = sonde("report", *paths, check=0)
        assert "Recordings of this run" in done.stdout
        assert "one after the other" in done.stderr and "sonde diff" in done.stderr and "--by run" in done.stderr


@pytest.mark.parametrize("command", [["report"], ["report", "--by", "idle"], ["export", "-f", "chrome"], ["diff"]])
def test_execution_traces_are_for_the_linker(sonde, tmp_path, trace, command):
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "nodes": []}')
    done = sonde(*command, path, *([trace] if command == ["diff"] else []))
    assert done.status == 1 and "is an execution trace" in done.stderr and "sonde chakra link" in done.stderr


def test_other_files_are_told_what_is_read(sonde, tmp_path):
    path = tmp_path / "text.json"
    path.write_text("no trace")
    done = sonde("report", path)
    assert done.status == 1 and "traces of PyTorch's profiler" in done.stderr


def cpu_step(number, at):
    """1,000 us of which linear is 600, 400 of that in mm; the collective of another thread is 100."""
    return [
        row("user_annotation", f"ProfilerStep#{number}", HOST, HOST, at, 1000),
        row("cpu_op", "aten::linear", HOST, HOST, at + 100, 600),
        row("cpu_op", "aten::mm", HOST, HOST, at + 200, 400),
        row("user_annotation", "gloo:all_reduce", HOST, HOST + 1, at + 650, 100),
    ]


@pytest.fixture
def cpu_trace(tmp_path):
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"traceEvents": [event for number in range(10) for event in cpu_step(number, number * 1000)]}))
    return path


def test_traces_of_the_cpu_alone_have_an_answer(sonde, cpu_trace, tmp_path):
    said = sonde("report", cpu_trace, check=0).stdout
    words = said.replace("\n  ", " ")
    assert "no device work" in words and "threads were in operators for 65.0 %: 30 operators of 2 threads" in words
    assert "Most self time: aten::mm (57.1 %), aten::linear (28.6 %), gloo:all_reduce (14.3 %)" in words
    assert "→ Few operators take the time" in said
    table = said[said.index("Operators of the CPU") :].splitlines()
    assert ["100", "4.00", "ms", "40.00", "%", "4.00", "ms", "10"] == table[2].split()[1:9]
    assert "There is no device work" in sonde("report", "--hta-compatible", cpu_trace, check=0).stdout

    document = read(sonde, cpu_trace)
    summary = document["cpu_summary"]
    assert (summary["threads"], summary["operators"], summary["span_ns"]) == (2, 30, 10_000_000)
    assert (summary["in_operators_ns"], summary["communication_ns"]) == (6_500_000, 1_000_000)
    assert summary["advice"] == ["heavy_operators"] and summary["heaviest"][0]["name"] == "aten::mm"
    found = {(each["thread"]["tid"], each["name"]): (each["self_ns"], each["total_ns"]) for each in document["cpu_operators"]}
    assert found[HOST, "aten::linear"] == (2_000_000, 6_000_000)
    assert found[HOST + 1, "gloo:all_reduce"] == (1_000_000, 1_000_000)

    capture = tmp_path / "cpu.pftrace"
    sonde("import", "-o", capture, cpu_trace, check=0)
    imported = read(sonde, capture)
    assert (imported["cpu_summary"], imported["cpu_operators"]) == (summary, document["cpu_operators"])


def test_operators_of_the_cpu_beside_a_gpu(sonde, trace):
    """Not in the whole report, which has the operators that launch."""
    assert "Operators of the CPU" not in sonde("report", trace, check=0).stdout
    alone = sonde("report", "--by", "cpu-operators", trace, check=0).stdout
    assert "aten::copy_" in alone and "cudaLaunchKernel" in alone
    document = read(sonde, trace)
    assert document["cpu_summary"] is None and document["cpu_operators"]


def test_traces_without_categories_are_operators(sonde, tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps([{"name": "aten::zeros", "ph": "X", "ts": 1, "dur": 9, "tid": 1, "pid": "CPU functions", "args": {}}]))
    assert "aten::zeros" in sonde("report", path, check=0).stdout


def test_sections_that_are_made_side_by_side_are_the_same(tmp_path):
    """Of 110,000 rows and more they are made by as many threads as there are processors."""
    path = make(tmp_path / "large.json.gz", steps=11_000)
    for option in ([], ["--json"]):
        command = [os.environ["SONDE"], "report", *option, path]
        together = subprocess.run(command, capture_output=True, check=True).stdout
        one = min(os.sched_getaffinity(0))
        after_another = subprocess.run(
            command, capture_output=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {one})
        ).stdout
        assert together == after_another and b"aten::mm" in together


def advice_of(found):
    return {each["id"]: each for each in found["advice"]}


@pytest.mark.parametrize("memory, expected", [("Pageable", True), ("Pinned", False)])
def test_copies_from_memory_that_is_not_pinned(tmp_path, report, memory, expected):
    events = []
    for number in range(30):
        copy = f"Memcpy HtoD ({memory} -> Device)"
        events += launch(2 * number, number * 1000, number * 1000 + 10, 200, copy, cat="gpu_memcpy", bytes=1_000_000)
        events += launch(2 * number + 1, number * 1000 + 20, number * 1000 + 210, 780)
    path = tmp_path / "copies.json"
    path.write_text(json.dumps({"traceEvents": events}))
    found = advice_of(report(path))
    assert ("pageable_copies" in found) == expected
    if expected:
        assert found["pageable_copies"]["saves_ns"] == 30 * 200_000
        assert "pin_memory" in found["pageable_copies"]["sentence"]


@pytest.mark.parametrize("late_us, expected", [(300, True), (0, False)])
def test_a_rank_that_comes_late(tmp_path, report, late_us, expected):
    """Both end each of their all-reduces together; rank 1 begins `late_us` later."""
    for rank in (0, 1):
        late, events = late_us * rank, []
        for number in range(20):
            at = number * 1000
            place = {"Process Group Name": "0", "Collective name": "allreduce", "Group size": 2, "Seq": number}
            events += launch(2 * number, at, at + 10, 400)
            start, end = at + 500 + late, at + 920
            events += launch(2 * number + 1, at + 20, start, end - start, "ncclDevKernel_AllReduce", 20, **place)
        trace = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    found = advice_of(report(tmp_path))
    assert ("straggling_rank" in found) == expected
    if expected:
        assert found["straggling_rank"]["evidence"]["rank"] == 1
        assert found["straggling_rank"]["saves_ns"] == pytest.approx(20 * 300_000, rel=0.01)


def test_every_table_as_csv(sonde, report, ranks, tmp_path):
    """A folder of ranks: each table with rows is a file, and says what the JSON says."""
    folder = tmp_path / "tables"
    sonde("export", "-f", "tables", "-o", folder, ranks, check=0)
    found = {}
    for path in folder.iterdir():
        text = path.read_bytes()
        assert text.startswith(b"\xef\xbb\xbf") and text.endswith(b"\r\n"), path
        found[path.name] = list(csv.DictReader(text.decode("utf-8-sig").splitlines()))
        assert found[path.name], path
    assert {"temporal.csv", "traces.traces.csv", "kernel.kernels.csv"} <= set(found)
    wanted = report(ranks, "--by", "kernel")["kernel"]["kernels"]
    assert [row["name"] for row in found["kernel.kernels.csv"]] == [kernel["name"] for kernel in wanted]
    assert [int(row["sum_ns"]) for row in found["kernel.kernels.csv"]] == [kernel["sum_ns"] for kernel in wanted]
    assert len(found["temporal.csv"]) == 2


def only_advice(sonde, path):
    (advice,) = read(sonde, path)["advice"]
    return advice["id"], advice["sentence"]


def test_data_loading_is_advised_where_the_rows_have_it(sonde, tmp_path):
    """A kernel each millisecond: the host is between launches in the data loader, or in anything else; or in the launch itself."""
    def write(*, around=None, call_us=2):
        events = []
        for i in range(30):
            at = 1000 * i
            events += launch(i + 1, at + 10, at + 20 + call_us, 50)
            events[-2]["dur"] = call_us
            if around:
                events += [row("user_annotation", around, HOST, HOST, at + 100, 800), row("cpu_op", "aten::stack", HOST, HOST, at + 200, 600)]
        path = tmp_path / "idle.json"
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    name, sentence = only_advice(sonde, write(around="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"))
    assert name == "host_bound" and "In 85 % of the time it loaded data: load ahead" in sentence
    for around in ("forward", None):
        name, sentence = only_advice(sonde, write(around=around))
        assert name == "host_bound" and "data" not in sentence
    name, sentence = only_advice(sonde, write(call_us=900))
    assert name == "slow_launches" and "The longest: cudaLaunchKernel, 900 µs." in sentence and "data" not in sentence


def test_idle_time_before_the_first_work_is_apart(sonde, tmp_path):
    """600 us from the first row to the first kernel, 350 of them in a call alone; 40 idle between two kernels of 30."""
    path = tmp_path / "startup.json"
    path.write_text(json.dumps({"traceEvents": [
        row("cpu_op", "aten::empty", HOST, HOST, 0, 590),
        row("cuda_runtime", "cudaFree", HOST, HOST, 100, 450),
        row("cuda_driver", "cuInit", HOST, HOST, 150, 100),
        *launch(1, 595, 600, 30), *launch(2, 660, 670, 30)]}))
    text = " ".join(sonde("report", path, check=0).stdout.split())
    assert "Before its first work it was idle for 600 µs more, from the first row of a thread on" in text
    assert "The host was longest in cudaFree (350 µs)." in text
    summary = read(sonde, path)["summary"]
    assert (summary["startup_idle_ns"], summary["idle_ns"], summary["kernel_time_ns"]) == (600_000, 40_000, 100_000)
    path.write_text(json.dumps({"traceEvents": [event for at in range(1, 9) for event in launch(at, at * 100, at * 100 + 5, 30)]}))
    assert "Before its first" not in sonde("report", path, check=0).stdout and read(sonde, path)["summary"]["startup_idle_ns"] == 5_000


def test_idle_time_before_the_first_work_of_a_step(sonde, trace):
    """Steps of 1,000 us whose first kernel starts after 50."""
    assert read(sonde, "--step", 2, trace)["summary"]["startup_idle_ns"] == 50_000


def python_steps(*, with_work=True):
    """30 times 1,000 us of main(): 700 us of them in load(), below it PyTorch's own code and an operator; then a kernel."""
    events = []
    for i in range(30):
        at = 1000 * i
        events += [
            row("python_function", "train.py(5): main", HOST, HOST, at, 1000),
            row("python_function", "data/own.py(12): load", HOST, HOST, at + 100, 700),
            row("python_function", "torch/nn/modules/module.py(1501): _call_impl", HOST, HOST, at + 150, 600),
            row("cpu_op", "aten::copy_", HOST, HOST, at + 200, 500),
        ]
        events += launch(i + 1, at + 900, at + 910, 50) if with_work else []
    return events


def test_the_answer_names_python_functions_and_their_lines(sonde, tmp_path):
    """The user's own, not PyTorch's, with what they call; where time goes to launches, who launched."""
    path = tmp_path / "stacks.json"
    path.write_text(json.dumps({"traceEvents": python_steps()}))
    text = " ".join(sonde("report", path, check=0).stdout.split())
    # A gap of 950: 700 are in load(); the other 240 before the launch are in main().
    assert "Of your Python functions it was in load (data/own.py:12) (74.5 %), main (train.py:5) (25.5 %)." in text
    (advice,) = read(sonde, path)["advice"]
    assert advice["id"] == "host_bound" and "Most of it is in aten::copy_. 74 % is in load (data/own.py:12)." in advice["sentence"]
    busy = [event for i in range(40) for event in launch(i + 1, 100 * i, 100 * i + 5, 95)]
    path.write_text(json.dumps({"traceEvents": [row("python_function", "train.py(5): main", HOST, HOST, 0, 5000), *busy]}))
    (advice,) = read(sonde, path)["advice"]
    assert advice["id"] == "kernels" and "work. 100 % is launched from main (train.py:5)." in advice["sentence"]


def test_the_answer_of_the_cpu_names_python_functions_and_their_lines(sonde, tmp_path):
    path = tmp_path / "stacks.json"
    path.write_text(json.dumps({"traceEvents": python_steps(with_work=False)}))
    text = " ".join(sonde("report", path, check=0).stdout.split())
    assert "Of your Python functions most time was in load (data/own.py:12) (70.0 %), main (train.py:5) (30.0 %), with what they call." in text
    advice = {advice["id"]: advice["sentence"] for advice in read(sonde, path)["advice"]}
    assert set(advice) == {"outside_of_operators", "heavy_operators"}
    assert all("70 % of the time is in load (data/own.py:12)" in text and "with_stack" not in text for text in advice.values())


def test_a_median_is_one_thing_in_every_table(sonde, tmp_path):
    """Two kernels of 100 and 300 us, a step each, which last 500 and 900: of two values it is their mean."""
    path = tmp_path / "medians.json"
    path.write_text(json.dumps({"traceEvents": [
        row("user_annotation", "ProfilerStep#1", HOST, HOST, 0, 500), *launch(1, 10, 20, 100),
        row("user_annotation", "ProfilerStep#2", HOST, HOST, 1000, 900), *launch(2, 1010, 1020, 300)]}))
    document = read(sonde, "--include-last-step", path)
    assert document["kernel"]["kernels"][0]["median_ns"] == 200_000
    assert document["launches"][0]["gpu_duration_ns"]["p50"] == 200_000
    (steps,) = document["steps"]["rows"]
    assert steps["p50_ns"] == 700_000
