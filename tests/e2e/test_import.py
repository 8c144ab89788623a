# SPDX-License-Identifier: Apache-2.0
"""sonde import: logs of vLLM, and traces of the PyTorch profiler. The logs in import-logs have the form of releases 0.6
and 0.20."""

import gzip
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

LOGS = Path(__file__).parent / "import-logs"


@pytest.fixture
def imported(sonde, report, tmp_path):
    """imported(log name) -> (ranges by name, the whole report)"""

    def run(name, modified=None):
        log = tmp_path / name
        shutil.copy(LOGS / name, log)
        if modified:
            os.utime(log, (modified, modified))
        capture = tmp_path / "out.pftrace"
        sonde("import", "--format", "vllm-log", "-o", capture, log, check=0, env={"TZ": "UTC"})
        whole = report(capture)
        return {row["name"]: row for row in whole["ranges"]["rows"]}, whole

    return run


def test_iterations_and_requests(imported):
    ranges, whole = imported("vllm-0.20.log")
    assert ranges["iteration: prefill"]["count"] == ranges["iteration: mixed"]["count"] == 1
    assert ranges["iteration: decode"]["count"] == 2
    assert ranges["iteration: decode"]["total_ns"] == 21_000_000  # durations are the log's
    assert ranges["request"]["count"] == 2
    assert sorted((ranges["request"]["minimum_ns"], ranges["request"]["maximum_ns"])) == [3_000_000_000, 4_000_000_000]
    assert ranges["queued"]["count"] == 2
    counters = {row["name"]: row["last"] for row in whole["counters"]}
    assert counters["KV cache %"] == 3.1 and counters["waiting requests"] == 0
    assert whole["totals"]["processes_in_capture"] == 2


def test_what_the_log_does_not_say_is_said(imported):
    """ProfileMate 14: times of 1 s are called that, and no end of a request is guessed."""
    ranges, whole = imported("vllm-0.20.log")
    notes = " ".join(whole["notes"])
    assert "whole seconds" in notes
    assert "1 of 3 requests have no end" in notes
    assert ranges["request without an end"]["count"] == 1
    assert "1 ends belong to requests" in notes
    assert "1 lines have no time" in notes


def test_milliseconds_and_the_old_form(imported):
    ranges, whole = imported("vllm-0.6-milliseconds.log")
    assert ranges["request"]["total_ns"] == 6_000_000_000
    assert ranges["queued"]["total_ns"] == 250_000_000
    assert ranges["metrics"]["count"] == 1
    assert "whole seconds" not in str(whole)


def test_the_year_is_that_of_the_file(sonde, report, tmp_path):
    """ProfileMate 14: no year is fixed in the program."""
    for new_year in (1767225600, 1798761600):  # of 2026, 2027
        log = tmp_path / "year.log"
        log.write_text("INFO 12-31 23:59:59 [async_llm.py:283] Added request a.\n")
        os.utime(log, (new_year + 10, new_year + 10))
        sonde("import", "-f", "vllm-log", "-o", tmp_path / "year.pftrace", log, check=0, env={"TZ": "UTC"})
        began = report(tmp_path / "year.pftrace")["session"]["start_unix_time_ns"]
        assert began == (new_year - 1) * 1_000_000_000


@pytest.mark.parametrize("text", ["", "no log\n", "INFO 11-21 13:24:53 [api_server.py:1] started\n"])
def test_a_file_without_anything(sonde, tmp_path, text):
    log = tmp_path / "x.log"
    log.write_text(text)
    done = sonde("import", "--format", "vllm-log", log)
    assert done.status == 1
    assert "--enable-log-requests" in done.stderr
    assert not (tmp_path / "x.pftrace").exists()


def test_default_output_and_refusals(sonde, tmp_path):
    log = tmp_path / "server.log"
    shutil.copy(LOGS / "vllm-0.6-milliseconds.log", log)
    sonde("import", "--format", "vllm-log", log, check=0)
    assert (tmp_path / "server.pftrace").exists()
    sonde("import", log, check=0)  # the format is found by itself
    two = sonde("import", "-o", tmp_path / "both.pftrace", log, log)
    assert two.status == 2 and "one by one" in two.stderr
    same = sonde("import", "--format", "vllm-log", "-o", log, log)
    assert same.status == 1 and "overwrite itself" in same.stderr
    assert "Added request" in log.read_text()
    missing = sonde("import", "--format", "vllm-log", tmp_path / "none.log")
    assert missing.status == 1 and "none.log" in missing.stderr


def test_a_log_is_read_as_its_capture_is(sonde, tmp_path):
    log = tmp_path / "server.log"
    shutil.copy(LOGS / "vllm-0.20.log", log)
    sonde("import", log, check=0)
    read, imported = (
        sonde("report", "--json", "--by", "range", path, check=0).json() for path in (log, tmp_path / "server.pftrace")
    )
    assert read["ranges"] == imported["ranges"] and read["ranges"]["rows"]
    assert read["notes"] == imported["notes"]


# ---- traces of the PyTorch profiler ----

KINETO = [
    "kineto/cpu_only.json.gz",
    "kineto/critical_path_alexnet.json.gz",
    "kineto/cuda_event_sync_multi_stream.json.gz",
    "kineto/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "kineto/mtia_inference_rank_0.json.gz",
    "kineto/ns_resolution.json.gz",
    "megatron-tp8-upgraded/kineto_0.json.gz",
]


def document_of(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        return json.loads(file.read().decode("utf-8", "replace"), strict=False)


def events_of(document):
    """All events but names, as texts that are equal when the events are."""
    events = []
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            continue
        if event["ph"] == "i":
            event["s"] = "t"
        event["args"] = event.get("args", {})
        events.append(json.dumps(event, sort_keys=True))
    return Counter(events)


@pytest.mark.parametrize("name", KINETO)
def test_a_trace_comes_back_as_it_was(sonde, shared_traces, tmp_path, name):
    """Every event, with its time to the nanosecond and all of its arguments, and the file's header."""
    source, capture, exported = shared_traces / name, tmp_path / "c.pftrace", tmp_path / "out.json"
    sonde("import", "-o", capture, source, check=0)
    sonde("export", "-f", "chrome", "-o", exported, capture, check=0)
    before, after = document_of(source), document_of(exported)
    assert events_of(before) == events_of(after)
    assert {key: before[key] for key in before if key != "traceEvents"} == {
        key: after[key] for key in after if key != "traceEvents"}


def test_bytes_for_each_slice(sonde, shared_traces, tmp_path):
    """With everything that is in the files, but not the messages that describe the format itself."""
    described = 20_000
    for name, most in (("ns_resolution", 42), ("df_index_resolver", 56)):
        capture = tmp_path / "c.pftrace"
        done = sonde("import", "--uncompressed", "-o", capture, shared_traces / "kineto" / f"{name}.json.gz", check=0)
        slices = int(re.search(r"(\d+) slices", done.stderr).group(1))
        assert (capture.stat().st_size - described) / slices < most, name
        sonde("import", "-o", tmp_path / "small", shared_traces / "kineto" / f"{name}.json.gz", check=0)
        assert (tmp_path / "small").stat().st_size / slices < 16


def test_ranks_of_a_folder(sonde, shared_traces, tmp_path):
    """One capture of both, with the execution traces left aside; which ranks are missing is said."""
    capture = tmp_path / "c.pftrace"
    done = sonde("import", "-o", capture, shared_traces / "megatron-tp8", check=0)
    assert "20238 slices" in done.stderr
    assert "ranks 2, 3, 4, 5 and 2 more of 8 are missing" in done.stderr
    assert "2 files in" in done.stderr and "each is an execution trace" in done.stderr
    refused = sonde("export", "-f", "chrome", "-o", tmp_path / "x.json", capture)
    assert refused.status == 1 and "2 ranks" in refused.stderr
    sonde("export", "-f", "pftrace", "-o", tmp_path / "again.pftrace", capture, check=0)
    assert abs((tmp_path / "again.pftrace").stat().st_size - capture.stat().st_size) < 1000


def test_outputs_of_traces(sonde, tmp_path):
    trace = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 3, "dur": 4}]}
    for name in ("a.json", "b.json.gz", "c.pt.trace.json"):
        (tmp_path / name).write_text(json.dumps(trace))
    sonde("import", tmp_path / "a.json", tmp_path / "b.json.gz", tmp_path / "c.pt.trace.json", check=0)
    assert sorted(path.name for path in tmp_path.glob("*.pftrace")) == ["a.pftrace", "b.pftrace", "c.pt.trace.pftrace"]
    same = sonde("import", "-o", tmp_path / "a.json", tmp_path / "a.json")
    assert same.status == 1 and "overwrite itself" in same.stderr
    again = sonde("import", tmp_path / "a.pftrace", "-o", tmp_path / "d.pftrace", check=0)
    assert "1 slices" in again.stderr
    rows = sonde("export", "-f", "jsonl", "-o", "-", tmp_path / "a.pftrace")
    assert rows.status == 1 and "-f jsonl is for recordings" in rows.stderr
    sonde("export", tmp_path / "a.json", "-f", "pftrace", "-o", tmp_path / "e.pftrace", check=0)
    sonde("import", "-o", "/dev/full", tmp_path / "a.json", check=1)


def test_what_is_no_trace(sonde, shared_traces, tmp_path):
    empty = tmp_path / "folder"
    empty.mkdir()
    assert "one file for each rank" in sonde("import", empty, check=1).stderr
    assert "has no times" in sonde("import", shared_traces / "et/pt2_1.1.1.json.gz", "-o", tmp_path / "x", check=1).stderr
    assert "No such file" in sonde("import", tmp_path / "none.json", check=1).stderr
    (tmp_path / "x.json").write_text('{"traceEvents": "none"}')
    assert "no event" in sonde("import", tmp_path / "x.json", check=1).stderr


def test_damage_is_said_and_kept(sonde, report, tmp_path):
    trace = tmp_path / "cut.json"
    trace.write_text('{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":3,"dur":-4},'
                     '{"ph":"X","cat":"cpu_op","name":"b","pid":1,"ti')
    done = sonde("import", trace, check=0)
    assert "is cut off" in done.stderr and "negative" in done.stderr
    again = sonde("export", "-f", "chrome", "-o", "-", tmp_path / "cut.pftrace", check=0)
    assert "is cut off" in again.stderr and json.loads(again.stdout)["traceEvents"][-1]["name"] == "a"


def test_a_capture_of_old_reads_as_ever(sonde, tmp_path):
    """tests/golden/trace: what this version of the format holds, for all later ones."""
    golden = Path(__file__).resolve().parents[1] / "golden" / "trace"
    sonde("export", "-f", "chrome", "-o", tmp_path / "out.json", golden / "trace-1.pftrace", check=0)
    assert (tmp_path / "out.json").read_text() == (golden / "trace-1.json").read_text()


def test_the_schema_knows_every_field(sonde, tmp_path):
    """protoc decodes an imported capture with our .proto files: slices are balanced, and nothing is unknown."""
    root = Path(__file__).resolve().parents[2]
    capture = tmp_path / "plain.pftrace"
    sonde("import", "--uncompressed", "-o", capture, root / "tests/golden/trace/trace-1.json", check=0)
    with open(capture, "rb") as packets:
        decoded = subprocess.run(
            ["protoc", "-I", root / "schema", "--decode=perfetto.protos.Trace", root / "schema/sonde.proto"],
            stdin=packets, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"^ *\d+(:| \{)", decoded, re.MULTILINE)
    # Of 14 slices 3 are stages; two overlap others of their thread, and have tracks of their own.
    assert decoded.count("TYPE_SLICE_BEGIN") == decoded.count("TYPE_SLICE_END") == 11
    assert decoded.count("gpu_render_stage_event {") == 3 and decoded.count("TYPE_INSTANT") == 2
    assert decoded.count("[sonde.protos.sonde_row_track]: ") == 7 + 2
    assert decoded.count("render_stage_submission_event_ids: ") == 1


@pytest.mark.parametrize("name", ["kineto/critical_path_alexnet", "kineto/ns_resolution", "megatron-tp8-upgraded/kineto_0"])
def test_the_report_of_a_capture_is_that_of_its_trace(sonde, shared_traces, tmp_path, name):
    trace, capture = shared_traces / f"{name}.json.gz", tmp_path / "c.pftrace"
    sonde("import", "-o", capture, trace, check=0)
    for options in [], ["--json"]:
        assert sonde("report", *options, trace, check=0).stdout == sonde("report", *options, capture, check=0).stdout
