# SPDX-License-Identifier: Apache-2.0
"""Inference: what the report says of requests, tokens and phases, against an engine whose times are known.

The engine here is a script that says its tokens at moments that it reads from the marks' own clock before and after
each call: what the report says must lie between, however busy the machine is. "Energy profiler N" names a defect of it
that must not come back, as docs/systems.md numbers them.
"""

import contextlib
import json
import sqlite3

import pytest

SLACK_NS = 50_000  # what a time to first token, or between tokens, may be off beyond the moments themselves

# Prints, for each request, what it was said and the moments before and after: [phase, index, before, after].
ENGINE = """
import json, sys, threading, time
import sonde

def say(moments, request, index, phase):
    before = time.monotonic_ns()
    sonde.token(index, request=request, phase=phase)
    moments.append([phase, index, before, time.monotonic_ns()])

def serve(request, prefill, gaps, moments):
    say(moments, request, 0, "queued")
    time.sleep(0.002)
    say(moments, request, 0, "prefill")
    time.sleep(prefill)
    say(moments, request, 0, "decode")
    for index, gap in enumerate(gaps, 1):
        time.sleep(gap)
        say(moments, request, index, "decode")
    say(moments, request, 0, "done")

requests = json.loads(sys.argv[1])
said = {request: [] for request in requests}
threads = [threading.Thread(target=serve, args=(name, *times, said[name])) for name, times in requests.items()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(said))
"""

REQUESTS = {"first": [0.03, [0.004] * 12], "second": [0.05, [0.007] * 5 + [0.02]], "single": [0.01, []]}


@pytest.fixture(scope="session")
def package(sonde_path):
    return str(sonde_path.parent / "python")


@pytest.fixture
def recorded(sonde, package, tmp_path):
    """(the capture, what the engine said)"""
    capture = tmp_path / "inference.pftrace"
    done = sonde("record", "-o", capture, "--", "/usr/bin/python3", "-c", ENGINE, json.dumps(REQUESTS),
                 env={"PYTHONPATH": package}, check=0)
    return capture, json.loads(done.stdout)


def limits(begin, end):
    """The least and the most time between two moments."""
    return end[2] - begin[3] - SLACK_NS, end[3] - begin[2] + SLACK_NS


def assert_between(value, bounds):
    assert bounds[0] <= value <= bounds[1], (value, bounds)


def test_times_of_a_scripted_engine(recorded, report):
    """Energy profiler seed 4: the first token's time is measured, not 50 ms. Requests of threads stay apart."""
    capture, said = recorded
    data = report(capture)["inference"]
    requests = {request["id"]: request for request in data["requests"]}
    assert set(requests) == set(REQUESTS)
    for name, moments in said.items():
        request = requests[name]
        queued, prefill, *tokens, _ = moments
        assert request["output_tokens"] == request["chunks"] == len(tokens)
        assert request["arrival_known"] is True and request["end"] == "done"
        assert_between(request["queue_ns"], limits(queued, prefill))
        assert_between(request["prefill_ns"], limits(prefill, tokens[0]))
        assert_between(request["ttft_ns"], limits(queued, tokens[0]))
        assert_between(request["e2e_ns"], limits(queued, tokens[-1]))
        assert len(request["itl_ns"]) == len(tokens) - 1
        for gap, begin, end in zip(request["itl_ns"], tokens, tokens[1:]):
            assert_between(gap, limits(begin, end))
        if len(tokens) > 1:
            assert_between(request["ttst_ns"], limits(tokens[0], tokens[1]))
            assert abs(request["tpot_ns"] - sum(request["itl_ns"]) / (len(tokens) - 1)) <= 1
        else:
            assert request["tpot_ns"] is None and request["ttst_ns"] is None and request["decode_ns"] == 0
    assert data["output_tokens"] == 21 and data["itl_ns"]["count"] == 18
    begins, ends = zip(*((moments[0], moments[-2]) for moments in said.values()))
    least = max(end[2] for end in ends) - min(begin[3] for begin in begins)
    most = max(end[3] for end in ends) - min(begin[2] for begin in begins)
    assert_between(data["span_ns"], (least - SLACK_NS, most + SLACK_NS))
    assert data["tokens_per_s"] == pytest.approx(21e9 / data["span_ns"])


def test_the_report_in_words(recorded, sonde):
    capture, _ = recorded
    text = sonde("report", capture, check=0).stdout
    assert "Inference" in text and "to first token (TTFT)" in text and "3 requests, 21 output tokens" in text
    text = sonde("report", "--by", "request", "--slo", "ttft=1ns,tpot=1s", capture, check=0).stdout
    assert "0 of 3 requests (0.0 %)" in text and text.count("broken") == 3
    text = sonde("report", "--by", "request", "--slo", "ttft=1000s", capture, check=0).stdout
    assert "3 of 3 requests (100.0 %)" in text and "p99" in text
    text = sonde("report", "--by", "token", capture, check=0).stdout
    assert "Second" in text and "Mean gap" in text and "All requests" in text
    text = sonde("report", "--by", "phase", capture, check=0).stdout
    assert "prefill" in text and "decode" in text and "Phases of different requests" in text
    assert "There are no layers" in sonde("report", "--by", "layer", capture, check=0).stdout
    refused = sonde("report", "--slo", "ttft=200", capture, check=2)
    assert "give a number and ns, us, ms or s" in refused.stderr


def test_goodput(recorded, report):
    capture, _ = recorded
    data = report(capture, "--slo", "ttft=1000s,tpot=1000s")["inference"]
    goodput = data["goodput"]
    assert (goodput["judged"], goodput["met"], goodput["unjudged"], goodput["share"]) == (3, 3, 0, 1)
    assert goodput["requests_per_s"] == pytest.approx(3e9 / data["span_ns"])
    assert goodput["limits"]["ttft_ns"] == 10**12 and goodput["limits"]["e2e_ns"] is None
    assert report(capture)["inference"]["goodput"] is None
    fastest = min(request["ttft_ns"] for request in data["requests"])
    goodput = report(capture, "--slo", f"ttft={fastest}ns")["inference"]["goodput"]
    assert goodput["met"] == 1


def test_prefill_is_not_part_of_decode(recorded, report):
    """Energy profiler 4: the prefill's section ended when generate() had begun."""
    capture, said = recorded
    rows = {row["phase"]: row for row in report(capture)["phases"]["rows"]}
    assert rows["prefill"]["count"] == 3 and rows["decode"]["count"] == 2  # one token has no decode
    low = sum(limits(moments[1], moments[2])[0] for moments in said.values())
    high = sum(limits(moments[1], moments[2])[1] for moments in said.values())
    assert_between(rows["prefill"]["total_ns"], (low, high))
    assert rows["decode"]["tokens"] == 21 and rows["prefill"]["tokens"] is None


def test_filters(recorded, sonde, report):
    capture, _ = recorded
    assert report(capture, "--time", "900..901")["inference"] is None
    for by in ("request", "token", "phase", "layer", "run"):
        refused = sonde("report", "--by", by, "--symbol", "x", capture, check=2)
        assert "--symbol does not apply to ranges" in refused.stderr


def test_no_tokens(sonde, report, tmp_path):
    capture = tmp_path / "none.pftrace"
    sonde("record", "-o", capture, "--", "/bin/true", check=0)
    data = report(capture)
    assert data["inference"] is None and data["phases"] is None and data["layers"] is None
    for by, what in [("request", "requests"), ("token", "tokens"), ("phase", "phases"), ("layer", "layers")]:
        assert f"There are no {what}" in sonde("report", "--by", by, capture, check=0).stdout


# ---- several runs ----

RUN = """
import sys, time
import sonde
batch, gap = int(sys.argv[1]), float(sys.argv[2])
sonde.mark("run", "sonde.run", {"model": "tiny", "precision": "fp32", "batch_size": batch, "context_length": 64,
                                "parameters": 1000000})
for sequence in range(batch):
    sonde.token(0, request=sequence, phase="prefill")
time.sleep(0.01)
for index in range(4):
    for sequence in range(batch):
        sonde.token(index, request=sequence, phase="decode")
    time.sleep(gap)
"""


@pytest.fixture
def runs(sonde, package, tmp_path):
    captures = []
    for batch, gap in [(1, 0.02), (4, 0.03), (16, 0.2)]:
        captures.append(tmp_path / f"batch-{batch}.pftrace")
        sonde("record", "-o", captures[-1], "--", "/usr/bin/python3", "-c", RUN, batch, gap,
              env={"PYTHONPATH": package}, check=0)
    return captures


def test_several_runs(runs, sonde):
    data = sonde("report", "--by", "run", "--json", *runs, check=0).json()
    assert [run["batch_size"] for run in data["runs"]] == [1, 4, 16]
    assert all(run["model"] == "tiny" and run["precision"] == "fp32" for run in data["runs"])
    assert [run["output_tokens"] for run in data["runs"]] == [4, 16, 64]
    assert all(run["joules_per_token"] is None and run["energy_reason"] for run in data["runs"])
    fastest = max(data["runs"], key=lambda run: run["tokens_per_s"])
    assert data["best"]["tokens_per_s"] == fastest["capture"] and data["best"]["joules_per_token"] is None
    (series,) = data["series"]
    assert (series["by"], series["figure"]) == ("batch_size", "tokens_per_s")
    assert series["captures"] == [str(path) for path in runs] and series["best"] == fastest["capture"]
    text = sonde("report", "--by", "run", *runs, check=0).stdout
    assert "Batch size of tiny: 1 " in text and "Most tokens a second" in text


MIXTURE = """
import sonde
sonde.mark("run", "sonde.run", {"model": "mixture", "experts": 8, "parameters": 3000000, "active_parameters": 1000000,
                                "precision": "fp32", "batch_size": 1, "context_length": 64})
sonde.token(0, request=1, phase="prefill")
for index in range(4):
    sonde.token(index, request=1, phase="decode")
"""


def test_a_mixture_of_experts_beside_a_dense_run(sonde, package, tmp_path):
    captures = [tmp_path / "dense.pftrace", tmp_path / "mixture.pftrace"]
    for capture, *program in [(captures[0], RUN, 1, 0.01), (captures[1], MIXTURE)]:
        sonde("record", "-o", capture, "--", "/usr/bin/python3", "-c", *program, env={"PYTHONPATH": package}, check=0)
    data = sonde("report", "--by", "run", "--json", *captures, check=0).json()
    (mixture,) = data["mixtures"]
    assert (mixture["dense"], mixture["capture"]) == tuple(map(str, captures))
    dense, with_experts = data["runs"]
    ratio = with_experts["tpot_p50_ns"] / dense["tpot_p50_ns"]
    assert mixture["ratios"]["tpot_p50_ns"] == pytest.approx(ratio) and mixture["ratios"]["joules_per_token"] is None
    text = " ".join(sonde("report", "--by", "run", *captures, check=0).stdout.split())
    assert f"{captures[1]} (8 experts, 1 of 3 million parameters active) has " in text
    assert "times the time of a token, " in text and f"tokens/s of {captures[0]}, which has no experts" in text


def test_what_runs_cannot_say(runs, sonde, tmp_path):
    refused = sonde("report", "--by", "run", "--predict", "batch_size=8", *runs)
    assert refused.status == 1 and "needs at least 5 runs" in refused.stderr
    refused = sonde("report", "--predict", "batch_size=8", runs[0], check=2)
    assert "give --by run" in refused.stderr
    refused = sonde("report", "--by", "run", "--predict", "size=8", *runs)
    assert refused.status == 1 and "says no label" in refused.stderr
    for option, value in [("--price", "0.25"), ("--co2", "400")]:
        refused = sonde("report", option, value, runs[0], check=2)
        assert "such as" in refused.stderr
    none = tmp_path / "none.pftrace"
    sonde("record", "-o", none, "--", "/bin/true", check=0)
    done = sonde("report", "--by", "run", runs[0], none, check=0)
    assert "has no tokens of requests" in done.stderr and "none.pftrace" in done.stdout


# ---- energy ----

# Two requests one after the other that keep a processor busy, or as many at once; steps and a range around them.
BUSY = """
import sys, threading, time
import sonde

def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

def serve(request):
    with sonde.range("serve"):
        sonde.token(0, request=request, phase="prefill")
        spin(0.2)
        for index in range(20):
            sonde.token(index, request=request, phase="decode")
            spin(0.02)
    sonde.step("request")

threads = [threading.Thread(target=serve, args=(name,)) for name in ("first", "second")]
for thread in threads:
    thread.start()
    if sys.argv[1] == "alone":
        thread.join()
for thread in threads:
    thread.join()
"""

WATTS, IDLE_WATTS = 100, 20


@pytest.fixture
def energy_recorded(sonde, package, tmp_path):
    """The capture of a run with a package of 100 W, of which 20 W are idle, by a replay."""

    def record(kind, period_ms=10, **states):
        domain = {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": period_ms,
                  "idle_w": IDLE_WATTS, "relative_error": 0.05}
        times = range(0, 120_000, period_ms)
        readings = [{"t_ms": t, "domain": "package-0", "energy_j": WATTS * t / 1000, **states} for t in times]
        replay = tmp_path / "replay.jsonl"
        lines = [{"sonde_energy": 1, "domains": [domain]}, *readings]
        replay.write_text("".join(json.dumps(line) + "\n" for line in lines))
        capture = tmp_path / f"{kind}.pftrace"
        sonde("record", "-F", 499, "--energy", f"replay:{replay}", "-o", capture, "--", "/usr/bin/python3", "-c", BUSY,
              kind, env={"PYTHONPATH": package}, check=0)
        return capture

    return record


def assert_energy(energy, duration_ns):
    """The rail's power is constant: what a span had of it lies between its idle share and all of it."""
    seconds = duration_ns / 1e9
    assert energy["reason"] is None and energy["device"]["kind"] == "no_source"
    assert energy["host"]["rail_j"] == pytest.approx(WATTS * seconds, rel=0.05)
    assert energy["average_w"] == pytest.approx(WATTS, rel=0.05)
    assert 0 <= energy["net_j"] <= (WATTS - IDLE_WATTS) * seconds * 1.05
    assert energy["full_j"] - energy["net_j"] == pytest.approx(IDLE_WATTS * seconds, rel=0.05)
    assert energy["uncertainty_j"] > 0


def test_joules_of_tokens_phases_requests_and_steps(energy_recorded, sonde, report):
    """Energy profiler 7 and 8: a kWh is 3.6 MJ; what is idle is kept apart, and each phase has its own."""
    capture = energy_recorded("alone")
    data = report(capture, "--price", "0.25/kWh", "--co2", "400g/kWh")
    inference = data["inference"]
    assert_energy(inference["energy"], inference["span_ns"])
    full_j = inference["energy"]["full_j"]
    assert inference["joules_per_output_token"] == pytest.approx(full_j / 40)
    assert inference["tokens_per_joule"] == pytest.approx(40 / full_j)
    assert inference["energy"]["cost"] == pytest.approx(full_j / 3.6e6 * 0.25)
    assert inference["energy"]["co2_g"] == pytest.approx(full_j / 3.6e6 * 400)
    assert inference["edp_js"] == pytest.approx(full_j * inference["span_ns"] / 1e9)
    assert inference["edp_per_token_js"] == pytest.approx(full_j / 40 * inference["tpot_ns"]["p50"] / 1e9)
    phases = {row["phase"]: row for row in data["phases"]["rows"]}
    for row in phases.values():
        assert_energy(row["energy"], row["covered_ns"])
        assert row["edp_js"] == pytest.approx(row["energy"]["full_j"] * row["covered_ns"] / 1e9)
    assert inference["decode_joules_per_output_token"] == pytest.approx(phases["decode"]["energy"]["full_j"] / 40)
    assert inference["prefill_joules_per_prompt_token"] is None  # nobody said how long the prompts are
    for request in inference["requests"]:
        assert request["energy"]["allocated"] is False
        assert_energy(request["energy"], request["e2e_ns"])
    (row,) = data["steps"]["rows"]
    assert_energy(row["energy"], row["total_ns"])
    (row,) = [row for row in data["ranges"]["rows"] if row["name"] == "serve"]
    assert_energy(row["energy"], row["total_ns"])
    text = " ".join(sonde("report", "--by", "request", "--price", "0.25/kWh", capture, check=0).stdout.split())
    assert "per output token" in text and "It cost" in text and "Energy" in text
    assert "J/token" in sonde("report", "--by", "token", capture, check=0).stdout
    for by in ("token", "phase", "step", "range"):
        assert "Energy" in sonde("report", "--by", by, capture, check=0).stdout


def test_joules_of_requests_at_once_are_allocated(energy_recorded, sonde, report):
    capture = energy_recorded("together")
    inference = report(capture)["inference"]
    shares = [request["energy"] for request in inference["requests"]]
    assert all(share["allocated"] for share in shares) and "cost" in inference["energy"]
    assert sum(share["full_j"] for share in shares) == pytest.approx(inference["energy"]["full_j"])
    assert "(allocated)" in " ".join(sonde("report", "--by", "request", capture, check=0).stdout.split())


def test_runs_by_energy(energy_recorded, sonde):
    captures = [energy_recorded(kind) for kind in ("alone", "together")]
    data = sonde("report", "--by", "run", "--json", "--price", "0.25/kWh", *captures, check=0).json()
    for run in data["runs"]:
        assert run["joules_per_token"] == pytest.approx(run["energy_j"] / 40)
        assert run["cost"] == pytest.approx(run["energy_j"] / 3.6e6 * 0.25) and run["energy_reason"] is None
    least = min(data["runs"], key=lambda run: run["joules_per_token"])
    assert data["best"]["joules_per_token"] == least["capture"]
    assert "J/token" in sonde("report", "--by", "run", *captures, check=0).stdout


def test_runs_with_tokens_and_joules_in_the_database(energy_recorded, sonde, report, tmp_path):
    """The same figures as the report's, and rows of their own for tokens, requests and readings of power."""
    captures, store = [energy_recorded(kind) for kind in ("alone", "together")], tmp_path / "runs.db"
    sonde("runs", "add", "--store", store, "--price", "0.25/kWh", *captures, check=0)
    found = sonde("runs", "analyse", "--store", store, "--price", "0.25/kWh", "--json", check=0).json()
    wanted = sonde("report", "--by", "run", "--json", "--price", "0.25/kWh", *captures, check=0).json()
    for run in found["runs"]:  # temperatures and clocks are not kept
        for state in (run.pop("host_state"), run.pop("device_state")):
            assert state["mean_c"] is None and state["temperature_reason"] == "not_in_database"
    for run in wanted["runs"]:
        assert run.pop("host_state") and run.pop("device_state")
    assert {run["capture"]: run for run in found["runs"]} == {run["capture"]: run for run in wanted["runs"]}
    assert found["best"] == wanted["best"]
    with contextlib.closing(sqlite3.connect(store)) as database:
        for capture in captures:
            inference = report(capture)["inference"]
            (number, energy, peak) = database.execute(
                "SELECT number, energy_j, peak_w FROM runs WHERE path = ?", (str(capture),)).fetchone()
            assert energy == pytest.approx(inference["energy"]["full_j"]) and peak > 0
            requests = database.execute(
                "SELECT name, output_tokens, energy_j, first_ns - coalesce(arrival_ns, prefill_ns) FROM requests WHERE run = ? "
                "ORDER BY request",
                (number,)).fetchall()
            assert [row[1] for row in requests] == [row["tokens"] for row in inference["requests"]]
            assert [row[2] for row in requests] == pytest.approx([row["energy"]["full_j"] for row in inference["requests"]])
            assert [row[3] for row in requests if row[3] is not None] == [
                row["ttft_ns"] for row in inference["requests"] if row["ttft_ns"] is not None][: len(requests)]
            tokens = database.execute("SELECT count(*), count(gap_ns) FROM tokens WHERE run = ?", (number,)).fetchone()
            assert tokens[0] == sum(row["tokens"] for row in inference["requests"])
            assert tokens[1] == tokens[0] - len(requests)  # before the first there is none
            (power,) = database.execute("SELECT count(*) FROM power WHERE run = ? AND energy_j > 0", (number,)).fetchone()
            assert power > 0


def test_runs_at_other_temperatures(energy_recorded, sonde):
    """Each figure has the temperature and clock that it was taken at; runs that differ in them are said to."""
    cool = energy_recorded("alone", temperature_c=45, clock_mhz=3000)
    warm = energy_recorded("together", temperature_c=71, clock_mhz=3000)
    for capture, degrees in ((cool, 45), (warm, 71)):
        for row in sonde("report", "--json", capture, check=0).json()["phases"]["rows"]:
            state = row["energy"]["host"]["state"]
            assert (state["mean_c"], state["highest_c"], state["mean_mhz"]) == (degrees, degrees, 3000), row
            assert row["energy"]["device"]["state"]["temperature_reason"] == "not_read"
    runs = sonde("report", "--by", "run", "--json", cool, warm, check=0).json()["runs"]
    assert [run["host_state"]["mean_c"] for run in runs] == [45, 71]
    text = " ".join(sonde("report", "--by", "run", cool, warm, check=0).stdout.split())
    assert "Processors were not in the same state: 45 °C in" in text and "MHz" not in text, text
    assert "not in the same state" not in sonde("report", "--by", "run", cool, cool, check=0).stdout


def test_what_is_too_short_has_no_energy(energy_recorded, sonde, report):
    """Energy profiler seed 8: no energy of a duration of nothing, or of less than a sensor sees."""
    capture = energy_recorded("alone", period_ms=1000)
    inference = report(capture)["inference"]
    for energy in [inference["energy"], *(request["energy"] for request in inference["requests"])]:
        if energy["reason"] is None:  # a machine so busy that it took ten seconds
            continue
        assert energy["reason"] in ("shorter_than_sensor", "not_measured") and energy["full_j"] is None
    if inference["energy"]["reason"]:
        assert inference["joules_per_output_token"] is None
        assert inference["energy"]["reason"] in sonde("report", capture, check=0).stdout


def bench_result(path, sent, **more):
    """What `vllm bench serve --save-result --save-detailed` writes, of {start, ttft, itl, tokens, error} in seconds."""
    lists = {"ttfts": "ttft", "itls": "itl", "output_lens": "tokens", "errors": "error", "start_times": "start"}
    data = {"backend": "vllm", "completed": len(sent), **{name: [each[key] for each in sent] for name, key in lists.items()}}
    path.write_text(json.dumps({**data, **more}))
    return path


def test_the_load_generators_view_beside_the_servers(recorded, report, sonde, tmp_path):
    capture, _ = recorded
    requests = sorted(report(capture)["inference"]["requests"], key=lambda request: request["begin_ns"])
    sent = [{"start": 100 + 0.001 * i, "ttft": request["ttft_ns"] / 1e9 + 0.005, "itl": [gap / 1e9 for gap in request["itl_ns"]],
             "tokens": request["output_tokens"], "error": ""} for i, request in enumerate(requests)]
    found = report(capture, "--load-results", bench_result(tmp_path / "r.json", sent))["client"]
    assert [found[key] for key in ("requests", "failed", "joined", "same_tokens")] == [3, 0, 3, 3]
    rows = {(row["what"], row["seen_by"]): row for row in found["rows"]}
    assert rows["TTFT", "way"]["p50_ns"] == pytest.approx(5e6, abs=2) and rows["TTFT", "way"]["maximum_ns"] == pytest.approx(5e6, abs=2)
    assert rows["TTFT", "server"]["maximum_ns"] == max(request["ttft_ns"] for request in requests)
    assert rows["E2E", "client"]["count"] == 3 and rows["ITL", "client"]["p50_ns"] == pytest.approx(rows["ITL", "server"]["p50_ns"], abs=1)
    # A request that others sent before, and one that failed: the rest is joined by its tokens.
    failed = {"start": 101, "ttft": 0.0, "itl": [], "tokens": 0, "error": "refused"}
    found = report(capture, "--load-results", bench_result(tmp_path / "r.json", sent[1:]))["client"]
    assert (found["joined"], found["same_tokens"]) == (2, 2)
    found = report(capture, "--load-results", bench_result(tmp_path / "r.json", [*sent, failed]))["client"]
    assert (found["failed"], found["joined"]) == (1, 3)
    shown = sonde("report", "--by", "client", "--load-results", tmp_path / "r.json", capture, check=0).stdout
    assert "3 of 4 requests" in " ".join(shown.split())
    assert report(capture)["client"] is None


def test_a_result_without_lists_and_of_a_trace(recorded, sonde, tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"completed": 3}')
    refused = sonde("report", "--load-results", path, recorded[0])
    assert refused.status == 1 and "--save-detailed" in refused.stderr
    assert sonde("report", "--load-results", tmp_path / "none.json", recorded[0]).status == 1
