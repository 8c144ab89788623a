# SPDX-License-Identifier: Apache-2.0
"""Captures as Perfetto reads them: their packets, decoded here, and its own trace processor, where there is one
(SONDE_TRACE_PROCESSOR names the program)."""

import csv
import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from perfetto_packets import Trace

TRACE_PROCESSOR = os.environ.get("SONDE_TRACE_PROCESSOR")

needs_trace_processor = pytest.mark.skipif(
    not TRACE_PROCESSOR, reason="no trace processor: name Perfetto's trace_processor_shell in SONDE_TRACE_PROCESSOR"
)


def query(capture, sql):
    done = subprocess.run(
        [TRACE_PROCESSOR, "-q", "/dev/stdin", capture], input=sql, capture_output=True, text=True, check=True
    )
    return list(csv.DictReader(io.StringIO(done.stdout)))


@needs_trace_processor
@pytest.mark.parametrize("options", [[], ["--uncompressed"], ["--stack-sample"]])
def test_tables_show_our_samples_threads_and_frames(sonde, report, workload, tmp_path, options):
    capture = tmp_path / "capture.pftrace"
    sonde("record", *options, "-o", capture, "--", *workload("threads", 2), check=0)
    data = report(capture, "--limit", 100000)
    errors = query(capture, "select name, value from stats where severity in ('error', 'data_loss') and value > 0;")
    assert errors == []
    table = "stack_sample" if "--stack-sample" in options else "perf_sample"
    assert int(query(capture, f"select count(*) as n from {table};")[0]["n"]) == data["totals"]["samples"]
    threads = {row["name"] for row in query(capture, "select name from thread;")}
    assert {row["name"] for row in data["tables"]["thread"]["rows"]} <= threads
    frames = {row["name"] for row in query(capture, "select distinct name from stack_profile_frame;")}
    frames |= {row["name"] for row in query(capture, "select distinct name from stack_profile_symbol;")}  # inlined
    assert {row["name"] for row in data["tables"]["function"]["rows"] if row["named"]} - frames == set()


ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0;"
TRACES = ["kineto/ns_resolution.json.gz", "kineto/mtia_inference_rank_0.json.gz", "kineto/critical_path_alexnet.json.gz"]


def check(path):
    """The capture's packets; with a trace processor, it has no errors, and each piece of work is a slice."""
    trace = Trace(path)
    assert trace.faults == []
    if TRACE_PROCESSOR:
        assert query(path, ERRORS) == []
        assert int(query(path, "select count(*) as n from gpu_slice;")[0]["n"]) == trace.stages
        assert query(path, "select id from gpu_slice where upid not in (select upid from process where pid);") == []
    return trace


@pytest.fixture
def kinds(sonde, sonde_path, workload, tmp_path, opencl_program):
    """kinds(kind) -> a capture of that kind."""
    doubles = sonde_path.parent / "tests" / "doubles" / "cupti"
    commands = {
        "cpu": (["--wait", "off"], workload("threads", 1)),
        "stack-sample": (["--stack-sample", "--wait", "off"], workload("threads", 1)),
        "wait": (["--wait", "sample", "-F", "999"], workload("threads", 1)),
        "exact": (["--wait", "exact"], workload("threads", 1)),
        "steps": ([], workload("steps", 0.1, 8)),
        "opencl": ([], opencl_program),
        "cuda": ([], [doubles / "cuda-program", doubles / "libcupti-double-13.so", "20"]),
    }

    def capture(kind):
        options, command = commands[kind]
        path = tmp_path / f"{kind}.pftrace"
        sonde("record", *options, "-o", path, "--", *map(str, command),
              env={"SONDE_CUPTI": str(doubles / "libcupti-double-13.so")})
        return path

    return capture


@pytest.fixture
def opencl_program(workload):
    return workload("opencl", 20)


@pytest.mark.parametrize("kind", ["cpu", "stack-sample", "wait", "exact", "steps", "opencl", "cuda"])
def test_what_perfetto_takes_of_a_recording(kinds, kind):
    """Symbols are of frames that samples have, work has an id and a process, slices have ends."""
    trace = check(kinds(kind))
    if kind in ("cpu", "stack-sample"):
        assert trace.samples and trace.symbols and not trace.other_symbols
    if kind in ("wait", "exact"):
        assert trace.samples and trace.other_symbols
    if kind == "steps":
        assert trace.open, "steps have a track"
    if kind in ("opencl", "cuda"):
        assert trace.stages >= 40 and len(trace.event_ids) == trace.stages
        assert trace.other_symbols, "of launches"
    pid = next(pid for pid, (_, words) in trace.command_lines.items() if words)
    assert trace.processes[pid] and trace.command_lines[pid][0]


@pytest.mark.parametrize("name", TRACES)
def test_what_perfetto_takes_of_a_trace(sonde, shared_traces, tmp_path, name):
    """Each kernel is a slice, also without a correlation; arrows end at work of the trace."""
    if not (shared_traces / name).exists():
        pytest.skip(f"no {name}")
    capture = tmp_path / "c.pftrace"
    sonde("import", "-o", capture, shared_traces / name, check=0)
    trace = check(capture)
    assert trace.stages and trace.submissions <= trace.event_ids.keys()


def test_gradients_are_arrows(sonde, tmp_path):
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": 5, "args": {}}
              for name, tid, ts in (("aten::mm", 8, 1), ("MmBackward0", 9, 20))]
    events += [{"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 3, "pid": 7, "tid": 8, "ts": 1},
               {"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": 3, "pid": 7, "tid": 9, "ts": 20}]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    sonde("import", "-o", tmp_path / "c.pftrace", tmp_path / "t.json", check=0)
    trace = check(tmp_path / "c.pftrace")
    assert len(trace.flows) == 1 and trace.flows == trace.ended_flows


def test_arguments_for_viewers(sonde, tmp_path):
    """Asked for, they are in words where Perfetto shows them; sonde reads the same rows either way."""
    operator = {"External id": 7, "Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"], "Ev Idx": 1}
    kernel = {"External id": 7, "correlation": 9, "stream": 7, "device": 0, "registers per thread": 32, "grid": [1, 1, 1]}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": 1, "dur": 5, "args": operator},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": 9, "dur": 5, "args": operator},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 4, "dur": 2, "args": kernel},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    captures = {}
    for name, options in (("plain", []), ("words", ["--arguments"])):
        captures[name] = tmp_path / f"{name}.pftrace"
        sonde("import", *options, "-o", captures[name], tmp_path / "t.json", check=0)
        sonde("export", "-f", "chrome", "-o", tmp_path / f"{name}.json", captures[name], check=0)
    assert (tmp_path / "plain.json").read_bytes() == (tmp_path / "words.json").read_bytes()
    assert check(captures["plain"]).arguments == []
    first, second, work = check(captures["words"]).arguments
    assert first == second and first["External id"] == 7
    assert json.loads(first["Input Dims"]) == operator["Input Dims"]
    assert json.loads(first["Input type"]) == operator["Input type"]
    assert (work["registers per thread"], work["correlation"], work["stream"]) == ("32", "9", "7")
    if TRACE_PROCESSOR:
        shown = "select display_value as value from {} join args using (arg_set_id) where key = '{}';"
        dims = query(captures["words"], shown.format("slice", "debug.Input Dims"))
        assert [json.loads(row["value"]) for row in dims] == [operator["Input Dims"]] * 2
        assert query(captures["words"], shown.format("gpu_slice", "registers per thread")) == [{"value": "32"}]


def test_joined_captures_share_no_ids(kinds, sonde, shared_traces, tmp_path):
    """Two of one program, and two imports of one file, as `cat` joins them: no work of one has an id of another's."""
    parts = [kinds("cuda").rename(tmp_path / "a"), kinds("cuda").rename(tmp_path / "b")]
    for number in range(2):
        parts.append(tmp_path / f"import-{number}.pftrace")
        sonde("import", "-o", parts[-1], shared_traces / TRACES[0], check=0)
    traces = [Trace(part) for part in parts]
    joined = tmp_path / "joined.pftrace"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    both = check(joined)
    assert both.stages == sum(trace.stages for trace in traces)
    assert len(both.event_ids) == sum(len(trace.event_ids) for trace in traces)


SPIN = """
#include <time.h>
static inline __attribute__((always_inline)) unsigned inlined_work(unsigned n) { return n * 2654435761u ^ n >> 7; }
int main(void) { unsigned n = 1; while (clock() < CLOCKS_PER_SEC / 2) for (int i = 0; i < 1 << 20; i++) n = inlined_work(n);
return n == 7; }
"""


def test_lines_of_inlined_functions_are_kept(sonde, tmp_path):
    """Perfetto has them in stack_profile_symbol: more lines than one for an address."""
    capture, program = tmp_path / "c.pftrace", tmp_path / "program"
    subprocess.run(["cc", "-O2", "-g", "-x", "c", "-o", program, "-"], input=SPIN, text=True, check=True)
    sonde("record", "-o", capture, "--", program, check=0)
    assert check(capture).inlined
    if TRACE_PROCESSOR:
        names = {row["name"] for row in query(capture, "select name from stack_profile_symbol;")}
        assert "inlined_work" in names


def test_run_takes_paths():
    """tests/e2e/run FILE runs that file; options alone run everything."""
    here = Path(__file__).resolve().parent

    def collected(*arguments):
        done = subprocess.run([here / "run", "--collect-only", "-q", *arguments], capture_output=True, text=True)
        return int(re.search(r"(\d+)(?:/\d+)? tests? collected", done.stdout).group(1))

    few = collected(here / "test_regress.py")
    assert 0 < few == collected(here / "test_regress.py", "--slow") < 100
    assert collected("-k", "test_run_takes_paths or test_find_spec or regress", "-m", "not slow") >= few
    assert collected("--color", "no") > 500
