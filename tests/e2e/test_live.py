# SPDX-License-Identifier: Apache-2.0
"""Live messages of recordings: sonde record --serve, and captures that grow in the folder of sonde serve."""

import json
import math
import os
import shutil
import signal
import threading
import time
from collections import Counter

import pytest
from live_energy import write_replay
from server_client import Server

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LIMIT_S = 120  # for a message

# Two requests, phases, layers and CPU time; then waits until the file that it is given is there.
ENGINE = """
import os, sys, time
import sonde

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

for request in ("first", "second"):
    sonde.token(0, request=request, phase="queued")
    sonde.token(0, request=request, phase="prefill")
    with sonde.range("prefill"):
        spin(0.2)
    for index in range(8):
        with sonde.range("decode"):
            with sonde.range("step", "sonde.model", {"role": "step"}):
                with sonde.range("layer 0", "sonde.model", {"role": "layer", "layer": 0}):
                    spin(0.03)
                spin(0.01)
        sonde.token(index, request=request, phase="decode")
    sonde.token(0, request=request, phase="done")
with sonde.range("waiting for the test"):
    while not os.path.exists(sys.argv[1]):
        spin(0.05)
sys.exit(3)
"""


@pytest.fixture
def engine(sonde_path, tmp_path):
    """(command, environment, a function that lets it end)"""
    done = tmp_path / "done"
    environment = {"PYTHONPATH": str(sonde_path.parent / "python")}
    return ["/usr/bin/python3", "-c", ENGINE, done], environment, done.touch


@pytest.fixture
def replay(tmp_path):
    return f"replay:{write_replay(tmp_path / 'energy.jsonl')}"


@pytest.fixture
def record(sonde, engine, replay, tmp_path):
    """Starts a recording of the engine into the folder captures/."""
    folder = tmp_path / "captures"
    folder.mkdir()

    def start(*options, name="run.pftrace"):
        command, environment, _ = engine
        return sonde.start("record", "--energy", replay, *options, "-o", folder / name, "--", *map(str, command), env=environment)

    start.folder = folder
    return start


@pytest.fixture
def serve(sonde, record):
    server = Server(sonde.start("serve", "--listen", "127.0.0.1:0", record.folder))
    yield server
    assert server.end() == 0


class Live:
    """What a client has received, by type."""

    def __init__(self, server, address="/ws"):
        self.server = server
        self.client = server.socket(address)
        self.messages = []

    def until(self, is_enough):
        """Reads on until a message is enough, and returns it; others may come for ever."""
        end = time.monotonic() + LIMIT_S
        while (message := self.client.next()) is not None:
            self.messages.append(message)
            if is_enough(message):
                return message
            assert message["type"] != "live_ended", message
            assert time.monotonic() < end, f"not in {LIMIT_S} s: {[one['type'] for one in self.messages]}"
        raise AssertionError(f"the connection ended: {[one['type'] for one in self.messages]}")

    def until_type(self, kind):
        return self.until(lambda message: message["type"] == kind)["data"]

    def of(self, kind):
        return [message["data"] for message in self.messages if message["type"] == kind]


@pytest.fixture(scope="session")
def check_schema():
    """Each message fits schema/api.json."""
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI gives no jsonschema")
    document = json.load(open(os.path.join(ROOT, "schema", "api.json")))
    names = {schema["x-message"]["type"]: name for name, schema in document["components"]["schemas"].items() if "x-message" in schema}

    def closed(schema):
        """No member that the schema does not name."""
        if isinstance(schema, list):
            return [closed(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        made = {key: closed(value) for key, value in schema.items()}
        return made | {"additionalProperties": False} if "properties" in schema and isinstance(schema["properties"], dict) else made

    schemas = closed(document["components"]["schemas"])

    def check(messages):
        for message in messages:
            schema = {"$ref": f"#/components/schemas/{names[message['type']]}", "components": {"schemas": schemas}}
            jsonschema.Draft202012Validator(schema).validate(message["data"])

    return check


def server_of(process):
    """Of record --serve: its address is the first thing that it says on standard error."""
    line = process.stderr.readline()
    assert line.startswith("sonde: live at "), line + process.stderr.read()
    return Server(process, line.split()[-1])


def test_a_recording_that_serves_itself(record, engine, report, check_schema):
    process = record("--serve", "-F", "199")
    server = server_of(process)
    live, binary = Live(server), Live(server, "/ws?binary=true")
    capture = live.until_type("live_session")["capture"]
    assert capture == server.capture("run.pftrace")
    live.until(lambda message: message["type"] == "live_summary" and message["data"]["tokens"] == 16)
    live.until(lambda message: message["type"] == "live_current" and message["data"]["rows"] and
               message["data"]["rows"][0]["name"] == "waiting for the test")
    live.until_type("live_functions")
    engine[2]()
    ended = live.until_type("live_ended")
    assert ended["reason"] == "end" and ended["exit_status"] == 3
    check_schema(live.messages)
    check_binary(binary, live)
    check_figures(live, report(record.folder / "run.pftrace"))
    # Who comes late gets the latest of what only counts by that, and can ask for the rest.
    late = Live(server)
    late.until_type("live_ended")
    assert {"live_session", "live_summary", "live_functions", "live_layers"} <= {message["type"] for message in late.messages}
    history = server.get(f"/api/captures/{capture}/live").json()
    tokens = [message for message in live.messages if message["type"] == "live_tokens"]
    assert [message for message in history["messages"] if message["type"] == "live_tokens"] == tokens
    assert server.get(f"/api/captures/{capture}/report?by=function").status == 200
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 3
    assert "Ctrl-C ends it" in process.stderr.read()


def check_binary(binary, live):
    """The same messages with the same numbers, those of columns in binary frames; and so when they are sent again."""
    binary.until_type("live_ended")
    text = {message["seq"]: message for message in live.messages if message["seq"]}
    came = [message for message in binary.messages if message["seq"]]
    assert all(is_same(message, text[message["seq"]]) for message in came)
    bulk = [message for message in came if message["type"] in ("live_power", "live_tokens")]
    assert binary.client.binary == len(bulk) > 2 and live.client.binary == 0
    again = Live(live.server, f"/ws?binary=true&epoch={came[0]['epoch']}&seq=0")
    again.until_type("live_ended")
    assert [message for message in again.messages if message["type"] in ("live_power", "live_tokens")] == [
        message for message in bulk if message["seq"] >= again.messages[1]["seq"]]
    assert again.client.binary == len(bulk)


def is_same(left, right):
    """Power and gaps are 32 bits wide in columns, and written with six digits in text."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return math.isclose(left, right, rel_tol=1e-5) if isinstance(left, float) and right is not None else left == right


def check_figures(live, report):
    """In order, growing, and in the end what the report says."""
    summaries = live.of("live_summary")
    assert [one["samples"] for one in summaries] == sorted(one["samples"] for one in summaries)
    assert [one["t_ms"] for one in summaries] == sorted(one["t_ms"] for one in summaries)
    last = summaries[-1]
    assert last["samples"] == report["totals"]["samples"]
    assert last["tokens"] == report["inference"]["tokens"] == 16
    assert (last["requests_running"], last["requests_done"]) == (0, 2)
    rails = {rail["rail"]: rail["name"] for rail in live.of("live_session")[-1]["rails"]}
    joules = {rails[rail["rail"]]: rail["joules"] for rail in last["rails"]}
    assert joules == {rail["name"]: pytest.approx(rail["measured_j"]) for rail in report["energy"]["domains"]}
    check_power(live, joules, {name: rail for rail, name in rails.items()})
    tokens = [token for message in live.of("live_tokens") for token in message["tokens"]]
    assert [(token["request"], token["index"]) for token in tokens] == [(name, i) for name in ("first", "second") for i in range(8)]
    assert all((token["gap_ms"] is None) == (token["index"] == 0) for token in tokens)
    events = [event["event"] for message in live.of("live_tokens") for event in message["requests"]]
    assert events == ["queued", "prefill", "done"] * 2
    ended = {one["id"]: one for message in live.of("live_phases") for one in message["phases"]}
    assert [one["name"] for one in ended.values()] == (["prefill"] + ["decode"] * 8) * 2
    assert all(one["end_ms"] > one["t_ms"] for one in ended.values())
    layers = {(row["layer"], row["component"]): row for row in live.of("live_layers")[-1]["rows"]}
    assert {key: (row["calls"], round(row["own_ms"] * 1000)) for key, row in layers.items()} == {
        (row["layer"], row["role"]): (row["calls"], round(row["own_ns"] / 1000)) for row in report["layers"]["rows"]}
    assert not live.of("live_summary")[-1]["losses"]


def check_power(live, joules, rail_of):
    """The intervals have the energy that the summary has."""
    points = [(t, w) for message in live.of("live_power") for rail in message["rails"] if rail["rail"] == rail_of["package-0"]
              for t, w in zip(rail["t_ms"], rail["w"])]
    assert points == sorted(points)
    between = [(t - before) * w / 1000 for (before, _), (t, w) in zip(points, points[1:])]
    assert sum(between) == pytest.approx(joules["package-0"], rel=0.1)


def test_functions_are_those_of_the_report(record, engine, report):
    """Of the same samples, the same rows."""
    process = record("--serve", "-F", "499")
    live = Live(server_of(process))
    live.until_type("live_functions")
    engine[2]()
    live.until_type("live_ended")
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    rows = report(record.folder / "run.pftrace")["tables"]["function"]["rows"]
    shown = live.of("live_functions")[-1]["rows"]
    self_samples, live_samples = Counter(), Counter()  # files have functions of one name, <module> first of all
    for row in rows:
        self_samples[row["name"]] += row["self_samples"]
    for row in shown:
        live_samples[row["name"]] += round(row["self_ms"] * 499 / 1000)
    for name, samples in self_samples.items():
        if samples and len(shown) < 30:
            assert live_samples[name] == samples, name


def test_a_capture_that_grows_in_a_folder(record, engine, serve, check_schema):
    live = Live(serve)
    process = record()
    session = live.until_type("live_session")
    assert session["name"] == "run.pftrace" and session["generation"] == 1
    assert session["command"][0] == "/usr/bin/python3"
    engine[2]()
    assert live.until_type("live_ended")["reason"] == "end"
    check_schema(live.messages)
    assert process.wait(60) == 3


def test_another_recording_of_the_same_name(record, engine, serve):
    """It does not take the name of one that goes on: both are followed."""
    live = Live(serve)
    processes = [record()]
    live.until_type("live_session")
    processes.append(record())
    live.until(lambda message: message["type"] == "live_session" and message["data"]["name"] == "run.2.pftrace")
    assert [session["generation"] for session in live.of("live_session")] == [1, 1]
    engine[2]()
    for process in processes:
        assert live.until_type("live_ended")["reason"] == "end"
        process.wait(60)


def test_a_recording_that_takes_the_place_of_one_that_was_killed(record, engine, serve):
    live = Live(serve)
    first = record()
    capture = live.until_type("live_session")["capture"]
    first.kill()
    first.wait(60)
    second = record()
    ended = live.until_type("live_ended")
    assert ended["capture"] == capture and ended["reason"] == "unreadable" and "another file" in ended["message"]
    session = live.until_type("live_session")
    assert session["capture"] == capture and session["generation"] == 2
    engine[2]()
    second.wait(60)


def test_a_link_is_not_followed(sonde, record, engine, serve, tmp_path):
    """Who writes in the folder does not choose what the server reads."""
    command, environment, finish = engine
    elsewhere = tmp_path / "elsewhere.pftrace"
    (record.folder / "link.pftrace").symlink_to(elsewhere)
    live = Live(serve)
    linked = sonde.start("record", "-o", elsewhere, "--", *map(str, command), env=environment)
    process = record()
    live.until_type("live_summary")
    finish()
    live.until_type("live_ended")
    assert {one["name"] for one in live.of("live_session")} == {"run.pftrace"}
    assert process.wait(60) == linked.wait(60) == 3


def followers_of(server):
    """Pids of the server's children that follow captures."""
    found = []
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        for pid in open(f"/proc/{server.process.pid}/task/{task}/children").read().split():
            if open(f"/proc/{pid}/comm").read().strip() == "sonde-follower":
                found.append(int(pid))
    return found


def test_a_follower_that_is_killed(record, engine, serve):
    """It is said, and the capture is followed again, from its beginning."""
    live = Live(serve)
    process = record()
    live.until_type("live_summary")
    (pid,) = followers_of(serve)
    os.kill(pid, signal.SIGKILL)
    assert live.until_type("live_ended")["reason"] == "crashed"
    assert live.until_type("live_session")["generation"] == 2
    engine[2]()
    assert live.until_type("live_ended")["reason"] == "end"
    assert process.wait(60) == 3


def test_a_recorder_that_is_killed(record, engine, serve):
    """What it wrote stays, and the page learns that no more comes."""
    live = Live(serve)
    process = record()
    live.until_type("live_summary")
    process.kill()
    process.wait(60)
    engine[2]()
    ended = live.until_type("live_ended")
    assert ended["reason"] == "stalled" and "has not grown" in ended["message"]
    assert serve.get(f"/api/captures/{ended['capture']}/report").status == 200


def test_a_server_that_is_killed_costs_the_recording_nothing(record, engine):
    process = record("--serve")
    server = server_of(process)
    Live(server).until_type("live_summary")
    (child,) = [int(pid) for task in os.listdir(f"/proc/{process.pid}/task")
                for pid in open(f"/proc/{process.pid}/task/{task}/children").read().split()
                if open(f"/proc/{pid}/comm").read().strip() == "sonde"]
    os.kill(child, signal.SIGKILL)
    engine[2]()
    assert process.wait(60) == 3


def test_a_capture_that_is_damaged_while_it_grows(record, serve, sonde, engine, tmp_path):
    """The sentence of the reader; then nothing, however it grows."""
    source = tmp_path / "whole.pftrace"
    process = record(name="source.pftrace")
    engine[2]()
    process.wait(60)
    shutil.copy(record.folder / "source.pftrace", source)
    live = Live(serve)
    damaged = record.folder / "damaged.pftrace"
    stop = threading.Event()

    def grow():
        with open(damaged, "wb", buffering=0) as file:
            file.write(source.read_bytes()[: source.stat().st_size // 2])
            while not stop.is_set():
                file.write(b"\xff" * 4096)  # more than is missing of the packet that was cut
                time.sleep(0.2)

    writer = threading.Thread(target=grow, daemon=True)
    writer.start()
    ended = live.until_type("live_ended")
    assert ended["reason"] == "unreadable" and "is corrupt at offset" in ended["message"]
    assert serve.capture("damaged.pftrace") == ended["capture"]
    # Two recordings later it has been looked at several times.
    for name in ("next.pftrace", "last.pftrace"):
        # It goes on until it is followed: one that begins and ends between two looks at the folder sends nothing.
        os.remove(engine[0][-1])
        process = record(name=name)
        live.until_type("live_summary")
        engine[2]()
        process.wait(60)
        assert live.until_type("live_ended")["reason"] == "end"
    assert [one["capture"] for one in live.of("live_ended")].count(ended["capture"]) == 1
    stop.set()
    writer.join()


def test_the_recordings_that_tests_of_the_page_replay(check_schema):
    """Real ones, which fit the schema, and have every type of live message."""
    document = json.load(open(os.path.join(ROOT, "schema", "api.json")))
    types = {schema["x-message"]["type"] for schema in document["components"]["schemas"].values() if "x-message" in schema}
    seen = set()
    for name in ("generate", "device"):
        with open(os.path.join(ROOT, "tests", "data", "live", f"{name}.jsonl")) as file:
            messages = [json.loads(line) for line in file]
        check_schema(messages)
        seen |= {message["type"] for message in messages}
    assert {name for name in types if name.startswith("live_")} <= seen


@pytest.mark.parametrize("options, reason", [
    (["--serve", "--view"], "exclude each other"),
    (["--serve", "--continuous"], "serves one capture"),
    (["--listen", "127.0.0.1:0"], "belongs to --serve"),
    (["--serve", "--listen", "nowhere"], "nowhere"),
])
def test_options_that_do_not_go_together(sonde, tmp_path, options, reason):
    done = sonde("record", *options, "-o", tmp_path / "run.pftrace", "--", "true")
    assert done.status == 2 and reason in done.stderr


def test_a_command_that_does_not_start(sonde, tmp_path):
    done = sonde("record", "--serve", "-o", tmp_path / "run.pftrace", "--", tmp_path / "nothing", timeout=60)
    assert done.status == 127
