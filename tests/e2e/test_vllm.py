# SPDX-License-Identifier: Apache-2.0
"""The hooks of vLLM, with stand-ins of two releases (tests/doubles/vllm), and what is made of what they tell.

Numbers like (9) are those of the defects of ProfileMate that a test keeps out: docs/vllm.md lists them.
"""

import ast
import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOUBLES = ROOT / "tests/doubles/vllm"
PYTHON = "/usr/bin/python3"
RELEASES = ("0.9", "0.33")
FEW_SAMPLES = ("-F", "1")  # of programs with PyTorch: reading its unwind information takes seconds


def environment(release, *more):
    path = [*map(str, more), str(DOUBLES), str(DOUBLES / f"release-{release}")]
    return {"PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def record(sonde, tmp_path):
    """record(release, script, ...) -> what it ended with; the capture is record.capture"""

    def run(release, script, *arguments, options=(), more=(), check=0):
        return sonde("record", "--hooks", "vllm", *options, "-o", run.capture, "--", PYTHON, script, *arguments,
                     env=environment(release, *more), check=check)

    run.capture = tmp_path / "vllm.pftrace"
    return run


@pytest.fixture
def events(sonde, record, tmp_path):
    """events() -> all ranges and marks of the domain, (name, fields), in the order of time"""

    def read():
        out = tmp_path / "trace.json"
        sonde("export", "-f", "chrome", "-o", out, record.capture, check=0)
        found = [event for event in json.loads(out.read_text())["traceEvents"] if event.get("cat") == "vllm"]
        fields = {id(event): {key: value for key, value in event.get("args", {}).items() if key != "range domain"} for event in found}
        return [(event["name"], fields[id(event)]) for event in sorted(found, key=lambda event: event["ts"])]

    return read


@pytest.fixture
def tables(sonde, record, tmp_path):
    """tables() -> {file: rows as dicts, or the object of a JSON file, or a text}"""

    def read():
        folder = tmp_path / "session"
        sonde("export", "-f", "vllm-csv", "-o", folder, record.capture, check=0)
        found = {}
        for path in (path for path in folder.rglob("*") if path.is_file()):
            with open(path, newline="") as source:
                found[str(path.relative_to(folder))] = (
                    list(csv.DictReader(source)) if path.suffix == ".csv"
                    else json.load(source) if path.suffix == ".json" else source.read())
        return found

    return read


# ---- the engine ----


@pytest.mark.parametrize("release", RELEASES)
def test_requests_and_batches(record, events, report, sonde, release):
    """(9) Fields and methods are those of the release; num_scheduled_tokens is by request. (11) All events come."""
    seen = json.loads(record(release, DOUBLES / "serve.py").stdout)
    found = events()
    batches = [fields for name, fields in found if name == "batch"]
    assert [(batch["requests"], batch["tokens"]) for batch in batches] == [
        (len(batch), sum(batch.values())) for batch in seen["batches"]]
    # All prompts are longer than a token; those of pre-empted requests are computed anew.
    phases = ["prefill" if max(batch.values()) > 1 else "decode" for batch in seen["batches"]]
    assert [batch["phase"] for batch in batches] == phases
    assert [fields["phase"] for name, fields in found if name == "forward"] == phases
    told = Counter(name for name, _ in found)
    assert told["kv.eviction"] == seen["evicted"] > 0 and told["request.preempted"] == seen["preempted"] > 0
    assert told["request.resumed"] == seen["preempted"]
    assert (told["request.added"], told["request.finished"], told["request.first_token"]) == (5, 5, 4)
    preempted = [fields for name, fields in found if name == "request.preempted"]
    assert all(fields["reason"] == "kv-cache-full" and fields["computed_tokens"] > 8 for fields in preempted)

    inference = report(record.capture)["inference"]
    assert (inference["requests_ended"], inference["preemptions"]) == (5, seen["preempted"])
    rows = {row["id"]: row for row in inference["requests"]}
    assert {name: (row["output_tokens"], row["end"]) for name, row in rows.items()} == {
        "request-0": (12, "length"), "request-1": (12, "length"), "request-2": (6, "length"),
        "request-3": (1, "length"), "aborted": (0, "abort")}
    assert rows["aborted"]["queue_ns"] is None and rows["request-3"]["ttft_ns"] > 0
    victim = max(rows.values(), key=lambda row: row["preempted_ns"])
    assert victim["preemptions"] and victim["e2e_ns"] > victim["preempted_ns"] > 0
    text = sonde("report", "--by", "request", record.capture, check=0).stdout
    assert "request-3" in text and "Pre-empted" in text and "Hottest" not in text


@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_requests_batches_and_the_cache(record, tables, release):
    """(11) No table is empty without a reason; (12) columns hold what their names say."""
    seen = json.loads(record(release, DOUBLES / "serve.py").stdout)
    found = tables()
    passes = found["forward_pass_timing.csv"]
    assert [(int(row["batch_size"]), int(row["num_tokens"])) for row in passes] == [
        (len(batch), sum(batch.values())) for batch in seen["batches"]]
    assert all(float(row["forward_time_ms"]) > 0 and row["clock"] == "host" for row in passes)
    one = passes[0]
    assert float(one["throughput_tokens_per_sec"]) == pytest.approx(
        int(one["num_tokens"]) / float(one["forward_time_ms"]) * 1000, rel=1e-6)
    summary = found["forward_pass_summary.json"]
    assert summary["prefill"]["count"] + summary["decode"]["count"] == len(passes)
    assert summary["decode"]["min_ms"] <= summary["decode"]["p50_ms"] <= summary["decode"]["p99_ms"]

    lives = {row["request_id"]: row for row in found["request_lifecycle.csv"]}
    assert set(lives) == {"request-0", "request-1", "request-2", "request-3", "aborted"}
    assert not lives["aborted"]["started_sec"] and lives["aborted"]["finished_sec"]
    resumed = [row for row in lives.values() if row["resumed_sec"]]
    assert len(resumed) == seen["preempted"] and all(
        float(row["started_sec"]) < float(row["preempted_sec"]) < float(row["resumed_sec"]) < float(row["finished_sec"])
        for row in resumed)
    told = Counter(row["event"] for row in found["preemption_events.csv"])
    assert told == {"started": 4, "preempted": seen["preempted"], "resumed": seen["preempted"], "finished": 5}
    assert found["preemption_summary.json"]["preemption_reasons"] == {"kv-cache-full": seen["preempted"]}

    use = found["kv_cache_usage.csv"]
    assert {row["total_blocks"] for row in use} == {"9"} and int(use[-1]["num_blocks"]) == 0
    assert all(0 <= float(row["usage_pct"]) <= 100 for row in use)
    evictions = found["kv_cache_evictions.csv"]
    assert len(evictions) == seen["evicted"]
    assert all(float(row["lifetime_sec"]) >= float(row["idle_sec"]) >= 0 for row in evictions)
    text = found["kv_cache_summary.txt"]
    allocated, freed = (line.split(": ")[1] for line in text.splitlines()[1:3])
    assert allocated == freed and int(allocated) > 9 and f"Evictions: {seen['evicted']}" in text

    under = found["batch_utilization_summary.json"]["underutilization_events"]
    assert under == sum(len(batch) < 2 for batch in seen["batches"])
    operations = Counter(row["operation"] for row in found["cpu_operations_timing.csv"])
    assert operations["scheduling"] == operations["model_execution"] == len(passes)
    assert Counter(row["component"] for row in found["encoder_decoder_timing.csv"])["encoder"] == len(passes)
    metadata = found["metadata.json"]
    assert metadata["kv_cache_tracking"] and not metadata["moe_expert_tracking"]
    assert metadata["start_time"].endswith("Z") and metadata["session_id"]


def test_the_names_of_the_old_tables(record, tables):
    """Each file of ProfileMate is there, with its columns first."""
    record("0.33", DOUBLES / "serve.py")
    headers = {
        "cuda_graph_captures.csv": "runtime_mode,num_tokens,num_reqs,uniform,has_lora,capture_time_sec",
        "cuda_graph_usage.csv": "runtime_mode,num_tokens,num_reqs,uniform,has_lora,replay_count",
        "cuda_graph_timeline.csv": "timestamp_sec,descriptor,duration_ms",
        "kv_cache_usage.csv": "timestamp_sec,usage_pct,num_blocks,total_blocks",
        "kv_cache_evictions.csv": "timestamp_sec,lifetime_sec,idle_sec",
        "moe_expert_tracking/moe_expert_activations.csv": "layer_idx,expert_id,activation_count,percentage",
        "moe_expert_tracking/moe_expert_coselection.csv": "layer_idx,expert_id_1,expert_id_2,coselection_count",
        "moe_expert_tracking/moe_routing_weights_hist.csv": "layer_idx,weight_from,weight_to,count",
        "moe_expert_tracking/moe_load_imbalance.csv": "layer_idx,timestamp_sec,std_dev,max_min_ratio",
        "forward_pass_timing.csv":
            "timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,throughput_tokens_per_sec",
        "cpu_operations_timing.csv": "timestamp_sec,operation,duration_ms,context",
        "batch_utilization.csv": "timestamp_sec,num_seqs,max_num_seqs,seq_utilization_pct,num_tokens,max_tokens,"
                                 "token_utilization_pct,phase,running_queue_len,waiting_queue_len",
        "preemption_events.csv": "timestamp_sec,request_id,event,reason,running_time_sec,extra_info",
        "request_lifecycle.csv": "request_id,started_sec,preempted_sec,resumed_sec,finished_sec,total_time_sec,"
                                 "preemption_delay_sec",
        "encoder_decoder_timing.csv": "timestamp_sec,component,duration_ms,context",
    }
    others = {"metadata.json", "kv_cache_summary.txt", "moe_expert_tracking/moe_summary.json",
              "forward_pass_summary.json", "cpu_timing_summary.json", "batch_utilization_summary.json",
              "preemption_summary.json", "encoder_decoder_summary.json"}
    assert set(tables()) == set(headers) | others
    for name, header in headers.items():
        assert (record.capture.parent / "session" / name).read_text().splitlines()[0].startswith(header + ","), name


def test_lifetimes_that_vllm_samples(record, events, tmp_path):
    script = tmp_path / "sampled.py"
    script.write_text("import vllm, engine\n"
                      "from vllm.v1.core.block_pool import BlockPool\n"
                      "from vllm.v1.core.kv_cache_metrics import KVCacheMetricsCollector\n"
                      "collector = KVCacheMetricsCollector(0.25)\n"
                      "pool = BlockPool(4, metrics_collector=collector)\n"
                      "blocks = pool.get_new_blocks(3)\n"
                      "blocks[0].block_hash = 'hash'\n"
                      "pool.free_blocks(iter(blocks))\n"
                      "pool.get_new_blocks(3)\n"
                      "collector.on_block_evicted(blocks[0])\n"
                      "assert len(collector.drain_events()) == 1\n")
    record("0.33", script)
    assert [fields for name, fields in events() if name == "kv.eviction"] == [
        {"lifetime_ns": 2_000_000_000, "idle_ns": 500_000_000, "sample_rate": 0.25}]


def test_a_window_of_steps(record, events, report):
    """Each execute_model is a step. Requests that the window finds have ids, though the warm-up was told of them."""
    seen = json.loads(record("0.33", DOUBLES / "serve.py",
                             options=("--window", "steps:wait=1,warmup=4,active=7,repeat=1")).stdout)
    found = events()
    assert len([name for name, _ in found if name == "forward"]) == 7
    tokens = [fields["tokens"] for name, fields in found if name == "forward"]
    assert tokens == [sum(batch.values()) for batch in seen["batches"][4:11]], "step 0 is before the first"
    rows = report(record.capture)["inference"]["requests"]
    assert {row["id"] for row in rows} == {"request-1", "request-2"}, "those that were pre-empted in it"
    assert all(row["e2e_ns"] is None for row in rows), "they came before the window"


# ---- CUDA graphs ----


def test_graphs(record, events, tables):
    """(7) The device is never waited for: the stand-ins have no way to. (8) Captures and replays are told apart by
    whether there is a graph; other modes count as neither; graphs in pieces count once; captures have a duration."""
    record("0.33", DOUBLES / "graphs.py")
    found = events()
    replays = Counter((fields["mode"], fields["tokens"]) for name, fields in found if name == "graph.replay")
    assert replays == {("PIECEWISE", 8): 4, ("FULL", 64): 2, ("FULL", 1): 3}
    captures = [fields for name, fields in found if name == "graph.capture"]
    assert Counter((fields["mode"], fields["tokens"]) for fields in captures) == {
        ("PIECEWISE", 8): 3, ("FULL", 64): 1, ("PIECEWISE", 16): 1, ("FULL", 1): 1, ("FULL", 2): 1}
    assert [fields["first"] for fields in captures if fields["tokens"] == 8] == [1, 0, 0]
    assert all(fields["duration_ns"] > 0 for fields in captures if fields["tokens"] > 2)
    assert [fields["memory_bytes"] for fields in captures if fields["tokens"] in (8, 64)] == [0, 0, 0, 2 << 20]

    by_descriptor = {(row["runtime_mode"], row["num_tokens"]): row for row in tables()["cuda_graph_captures.csv"]}
    one, full = by_descriptor["PIECEWISE", "8"], by_descriptor["FULL", "64"]
    assert one["pieces"] == "3" and 0 < float(one["capture_time_sec"]) < 1 and one["nodes"] == ""
    assert (full["num_reqs"], full["uniform"], full["has_lora"]) == ("4", "True", "False")
    assert by_descriptor["FULL", "2"]["capture_time_sec"] == "", "one loop captured all: none has a duration"
    usage = {(row["runtime_mode"], row["num_tokens"]): row["replay_count"] for row in tables()["cuda_graph_usage.csv"]}
    assert usage == {("PIECEWISE", "8"): "4", ("FULL", "64"): "2", ("FULL", "1"): "3"}


def test_graphs_of_an_old_release(record, events, tmp_path):
    script = tmp_path / "pieces.py"
    script.write_text("import vllm\n"
                      "from vllm import forward_context\n"
                      "from vllm.compilation.cuda_piecewise_backend import CUDAPiecewiseBackend\n"
                      "class Context:\n    skip_cuda_graphs = False\n"
                      "pieces = [CUDAPiecewiseBackend([4], lambda size: size) for _ in range(2)]\n"
                      "for size in 4, 4, 4, 5:\n"
                      "    forward_context.context = Context()\n"
                      "    assert [piece(size) for piece in pieces] == [size, size]\n")
    record("0.9", script)
    assert Counter(name for name, _ in events()) == {"graph.capture": 2, "graph.replay": 2}


# ---- experts ----


def test_experts(record, tables, report, sonde):
    """(10) The router runs once, with all arguments; (12) all pairs count, and experts that are never chosen."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("no PyTorch for the distribution's Python: install python3-torch")
    seen = json.loads(record("0.33", DOUBLES / "experts.py", options=FEW_SAMPLES).stdout)
    layers = report(record.capture)["experts"]["layers"]
    assert [layer["layer"] for layer in layers] == [3, 11]
    for layer, counts, pairs in zip(layers, seen["counts"], seen["pairs"]):
        assert layer["counts"] == counts and (layer["experts"], layer["top_k"]) == (8, 3)
        assert (layer["calls"], layer["tokens"], layer["chosen"]) == (20, 1000, 3000)
        assert sorted([pair["first"], pair["second"], pair["count"]] for pair in layer["pairs"]) == pairs
        assert sum(layer["weights_by_tenth"]) == 3000 and layer["outside"] == 0
        assert layer["lost_calls"] == 1, "of the window before, which ended before they were read"
        assert layer["used"] == 7 and layer["minimum"] == 0
        assert layer["balance"] == pytest.approx(3000 / 8 / max(counts))
        shares = [count / 3000 for count in counts if count]
        assert layer["entropy_bits"] == pytest.approx(-sum(share * math.log2(share) for share in shares))
        assert layer["entropy_share"] == pytest.approx(layer["entropy_bits"] / 3)
        assert layer["load_balance"] == pytest.approx(8 * sum(share**2 for share in shares))
        assert (layer["load_balance_by"], layer["router_entropy_bits"]) == ("counts", None)
    assert layers[1]["counts"][0] == 1000
    text = sonde("report", "--by", "expert", record.capture, check=0).stdout
    assert re.search(r"7 +8 +87\.5 %", text) and "0 33.3 %" in text and "more than twice" in text

    found = {Path(name).name: rows for name, rows in tables().items()}
    activations = [row for row in found["moe_expert_activations.csv"] if row["layer_idx"] == "3"]
    assert [int(row["activation_count"]) for row in activations] == seen["counts"][0]
    assert sum(float(row["percentage"]) for row in activations) == pytest.approx(100)
    assert sum(int(row["coselection_count"]) for row in found["moe_expert_coselection.csv"]) == 2 * 3000
    assert sum(int(row["count"]) for row in found["moe_routing_weights_hist.csv"]) == 2 * 3000
    assert all(row["max_min_ratio"] == "" and float(row["max_mean_ratio"]) > 1
               for row in found["moe_load_imbalance.csv"]), "one was never chosen: there is no ratio"
    layer = found["moe_summary.json"]["layer_3"]
    assert layer["unique_experts_activated"] == 7 and layer["load_balance_ratio"] is None


READING = """
from types import SimpleNamespace
from sonde._experts import Reading

calls, answers = [], [False, False, True]
class Host:
    def copy_(self, source, non_blocking):
        assert source is counters and non_blocking
        calls.append("copy")
class Event:
    def record(self):
        calls.append("record")
    def query(self):
        return answers.pop(0)
def empty(shape, dtype, pin_memory):
    assert (shape, dtype, pin_memory) == ((3,), "int64", True)
    calls.append("allocate")
    return Host()
torch = SimpleNamespace(empty=empty, cuda=SimpleNamespace(Event=Event))
counters = SimpleNamespace(device=SimpleNamespace(type="cuda"), shape=(3,), dtype="int64")
reading = Reading(torch, counters, None)
assert calls == ["allocate", "copy", "record"]
assert [reading.is_done() for _ in range(3)] == [False, False, True]
Reading(torch, counters, reading.values)
assert calls[3:] == ["copy", "record"], "the pinned memory is used again"
"""


def test_counters_on_a_device_are_read_without_waiting(sonde):
    """(12) The stand-in of PyTorch has nothing that waits: a copy into pinned memory, and an event that is asked."""
    done = subprocess.run([PYTHON, "-B", "-c", READING], capture_output=True, text=True,
                          env={"PYTHONPATH": str(Path(sonde.path).parent / "python")})
    assert done.returncode == 0, done.stderr


# ---- what the program sees ----


PROGRAM = """
import vllm
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.block_pool import BlockPool
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
import engine

calls = []
class Failure(Exception):
    pass
def fail(*arguments):
    calls.append(arguments)
    raise Failure("of the program")
scheduler = Scheduler(BlockPool(8))
scheduler.schedule_batch = fail
try:
    scheduler.schedule()
except Failure as error:
    assert str(error) == "of the program" and error.__context__ is None
else:
    raise AssertionError("swallowed")
assert len(calls) == 1
try:
    BlockPool(3).get_new_blocks(7)
except ValueError as error:
    assert "7 free blocks" in str(error)
else:
    raise AssertionError("swallowed")
runner = GPUModelRunner(lambda _: 1)
output = scheduler.output({}, [], [], set())
assert runner.execute_model(output, "passed on") == "passed on"
try:
    runner.execute_model(object(), intermediate_tensors="not a scheduler's output")  # the hook cannot read it
except AttributeError:
    raise AssertionError("the hook's own")
import inspect
assert list(inspect.signature(Scheduler._preempt_request).parameters)[:3] == ["self", "request", "timestamp"]
assert Scheduler.schedule.__name__ == "schedule"
print("unharmed")
"""


GATE = """
import sonde._core
gate = {"open": False, "window": 0}
sonde._core.is_open, sonde._core.window = lambda: gate["open"], lambda: gate["window"]
import serve, vllm
from vllm.v1.core.block_pool import BlockPool
pool = BlockPool(3)
for gate["window"], gate["open"] in enumerate([False, True, False, True]):
    if gate["window"] in (0, 2):
        serve.serve()
    blocks = pool.get_new_blocks(2)
    for block in blocks:
        block.block_hash = "hash"
    if gate["window"] == 1:
        pool.touch(blocks)
        pool.free_blocks(blocks)
    pool.free_blocks(blocks)
"""


def test_a_closed_gate(record, events, tmp_path):
    """The stand-in of a gate opens twice: what happens between is not told, and nothing is carried over."""
    script = tmp_path / "gate.py"
    script.write_text(GATE)
    record("0.33", script)
    found = events()
    # In each window two cached blocks are evicted, of which it does not know since when they live.
    assert Counter(name for name, _ in found if name.startswith("kv")) == {"kv.eviction": 4}
    assert not any(fields for name, fields in found if name == "kv.eviction")
    assert not [name for name, _ in found if name in ("schedule", "forward", "batch") or name.startswith("request")]


def test_exceptions_and_arguments(record, events, tmp_path):
    """(2) (10) An exception of the program's is its own, one of the hook's goes no further, and is said."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = record("0.33", script)
    assert done.stdout == "unharmed\n", done
    assert "GPUModelRunner.execute_model" in done.stderr and "recording failed" in done.stderr
    assert Counter(name for name, _ in events())["schedule"] == 1, "the range was closed"


def test_a_release_that_lacks_a_function(record, tmp_path):
    """(2) What is missing is said, with its name; the rest works."""
    package = tmp_path / "lacking/vllm/v1/core"
    package.mkdir(parents=True)
    (tmp_path / "lacking/vllm/__init__.py").write_text("")
    (package / "block_pool.py").write_text("class BlockPool:\n    def get_num_free_blocks(self): return 0\n"
                                           "    def get_new_blocks(self, num_blocks): return []\n")
    script = tmp_path / "old.py"
    script.write_text("import vllm\nfrom vllm.v1.core.block_pool import BlockPool\n"
                      "assert BlockPool().get_new_blocks(1) == []\n")
    done = record("0.33", script, more=[tmp_path / "lacking"])
    assert "not found" in done.stderr and "there is no BlockPool.touch" in done.stderr, done


def test_a_module_that_replaces_itself(record, events, tmp_path):
    package = tmp_path / "lazy/vllm/v1/core"
    package.mkdir(parents=True)
    (tmp_path / "lazy/vllm/__init__.py").write_text("")
    (package / "block_pool.py").write_text(
        "import sys, types, engine\n"
        "class BlockPool(engine.BlockPool):\n    pass\n"
        "class Other(types.ModuleType):\n    pass\n"
        "other = sys.modules[__name__] = Other(__name__)\nother.BlockPool = BlockPool\n")
    script = tmp_path / "lazy.py"
    script.write_text("import vllm\nfrom vllm.v1.core.block_pool import BlockPool\n"
                      "pool = BlockPool(4)\nblocks = pool.get_new_blocks(3)\nblocks[0].block_hash = 'hash'\n"
                      "pool.free_blocks(blocks)\nassert len(pool.get_new_blocks(3)) == 3\n")
    record("0.33", script, more=[tmp_path / "lazy"])
    assert [name for name, _ in events()] == ["kv.eviction"]


def test_what_is_there_when_the_program_is_killed(record, events, tmp_path):
    """(6) Nothing waits for the end of the program."""
    script = tmp_path / "killed.py"
    script.write_text("import os, serve\nserve.serve()\nos.kill(os.getpid(), 9)\n")
    done = record("0.33", script, check=128 + signal.SIGKILL)
    assert done.status == 128 + signal.SIGKILL
    assert Counter(name for name, _ in events())["request.finished"] == 5


def test_workers_side_by_side(record, tables, tmp_path):
    """(5) Processes do not overwrite one another."""
    script = tmp_path / "workers.py"
    script.write_text("import serve\nserve.serve()\n")
    both = tmp_path / "both.py"
    both.write_text("import subprocess, sys\n"
                    f"running = [subprocess.Popen([sys.executable, {str(script)!r}]) for _ in range(2)]\n"
                    "sys.exit(max(one.wait() for one in running))\n")
    record("0.33", both)
    lives = tables()["request_lifecycle.csv"]
    assert Counter(row["pid"] for row in lives).most_common() == [(pid, 5) for pid in dict.fromkeys(
        row["pid"] for row in lives)] and len({row["pid"] for row in lives}) == 2


def test_programs_without_vllm(record, sonde, tmp_path):
    """(3) (4) What has a --model, and no vLLM, is left alone."""
    script = tmp_path / "other.py"
    script.write_text("import sys\nassert not [name for name in sys.modules if name.startswith('sonde._core')]\n")
    record("0.33", script, "--model", "vllm.entrypoints")
    assert set(os.listdir(tmp_path)) == {"cache", "other.py", "vllm.pftrace"}
    done = sonde("export", "-f", "vllm-csv", "-o", tmp_path / "out", record.capture)
    assert done.status != 0 and "--hooks vllm" in done.stderr and not (tmp_path / "out").exists()
    assert "no requests" in sonde("report", "--by", "request", record.capture, check=0).stdout
    assert "no experts" in sonde("report", "--by", "expert", record.capture, check=0).stdout


def test_the_folder_that_is_written(record, sonde, tmp_path):
    record("0.33", DOUBLES / "serve.py")
    sonde("export", "-f", "vllm-csv", record.capture, check=0)
    assert (tmp_path / "vllm.vllm/moe_expert_tracking/moe_summary.json").exists()
    assert "not standard output" in sonde("export", "-f", "vllm-csv", "-o", "-", record.capture).stderr
    (tmp_path / "file").write_text("")
    assert "cannot write" in sonde("export", "-f", "vllm-csv", "-o", tmp_path / "file/out", record.capture).stderr
    refused = sonde("export", "-f", "vllm-csv", "-o", tmp_path / "out", "--process", "python", record.capture)
    assert refused.status != 0 and "--process does not apply to tables of vLLM" in refused.stderr


# ---- the names ----


def signatures_tool():
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader = SourceFileLoader("vllm_signatures", str(ROOT / "tools/vllm-signatures"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def known_signatures():
    return json.loads((DOUBLES / "signatures.json").read_text())


@pytest.mark.parametrize("release, known", [("0.9", "0.9.2"), ("0.33", "0.33.0")])
def test_stand_ins_have_the_signatures_of_vllm(release, known):
    ours = signatures_tool().signatures(DOUBLES / f"release-{release}")
    theirs = known_signatures()[known]["functions"]
    same = {name: value for name, value in ours.items() if value is not None}
    assert len(same) >= 13 and {name: theirs[name] for name in same} == same


def test_hooks_are_for_functions_that_exist():
    """(9) Each hook has its function in a release, and one that is not optional in all that have its module."""
    table = known_signatures()
    assert len(table) >= 3
    tree = ast.parse((ROOT / "python/sonde/hooks/vllm.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_hook"]
    targets = signatures_tool().hook_targets()
    assert len(calls) == len(targets) > 20
    for call, (module, attribute) in zip(calls, targets):
        name = f"{module}:{attribute}"
        there = [release for release in table if table[release]["functions"][name] is not None]
        assert there, name
        optional = any(keyword.arg == "optional" for keyword in call.keywords)
        has_module = [release for release in table if any(
            value is not None and other.startswith(module + ":")
            for other, value in table[release]["functions"].items())]
        assert optional or there == has_module, name
    for functions in (release["functions"] for release in table.values()):
        second = functions["vllm.v1.worker.gpu.model_runner:GPUModelRunner.execute_model"]
        assert second is None or second.split(", ")[3] == "dummy_run="


@pytest.mark.slow
@pytest.mark.parametrize("release", sorted(known_signatures()))
def test_the_table_is_that_of_the_wheels(release):
    """Fetches the wheel, some 400 MB; skips where PyPI cannot be reached."""
    tool = signatures_tool()
    try:
        found = tool.uses_of(release)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no wheel of vLLM {release}: {error}")
    assert found == known_signatures()[release]
