# SPDX-License-Identifier: Apache-2.0
"""Metrics of a continuous recording that are pushed by OTLP, read with OpenTelemetry's own messages."""

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest
from receiver_double import ReceiverDouble
from test_continuous import windows
from test_energy import constant_power, write_replay
from test_metrics import values
from test_upload import queue

HERE = Path(__file__).resolve().parent
UNITS = {"s": "_seconds", "By": "_bytes", "J": "_joules"}


@pytest.fixture(scope="session")
def decode(tmp_path_factory):
    """decode(bytes) -> what OpenTelemetry's own messages make of them."""
    done = subprocess.run([HERE.parents[1] / "tools" / "venv", "otlp"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr.strip())

    def run(content):
        file = tmp_path_factory.mktemp("otlp") / "metrics"
        file.write_bytes(content)
        return json.loads(subprocess.run([done.stdout.strip(), HERE / "otlp_metrics_decode.py", file], check=True,
                                         capture_output=True, text=True).stdout)

    return run


@pytest.fixture
def receiver():
    made = []

    def make(*answers):
        made.append(ReceiverDouble(answers or (200,)))
        return made[-1]

    yield make
    for double in made:
        double.close()


@pytest.fixture
def arguments(tmp_path, workload):
    def make(*options, seconds=3):
        return ["record", "--continuous", "--every", "1s", "-F", 499, "-o", tmp_path / "windows", *options, "--",
                *workload("spin", seconds)]

    return make


def as_prometheus(decoded):
    """The same figures by the names and labels that Prometheus has for them."""
    found = {}
    for name, metric in decoded["metrics"].items():
        base = name.replace(".", "_") + UNITS.get(metric["unit"], "")
        for point in metric["points"]:
            labels = ",".join(f'{key}="{value}"' for key, value in point["labels"].items())
            full = base + ("_total" if metric["kind"] == "sum" else "")
            found[full + (f"{{{labels}}}" if labels else "")] = float(point["value"])
    return found


def test_metrics_of_each_window(sonde, arguments, receiver, decode, tmp_path):
    double, file = receiver(), tmp_path / "sonde.prom"
    done = sonde(*arguments("--push", f"otlp-metrics={double.url}/", "--metrics-file", file), check=0)
    requests = double.taken()
    assert len(requests) == len(windows(tmp_path / "windows")) >= 3, done.stderr
    assert {(request.method, request.path, request.headers["Content-Type"]) for request in requests} == {
        ("POST", "/v1/metrics", "application/x-protobuf")}
    decoded = [decode(request.body) for request in requests]
    for one in decoded:
        assert one["unknown"] == 0 and one["scope"][0] == "sonde" and len(set(one["names"])) == len(one["names"])
        assert one["resource"]["host.name"] == socket.gethostname() == one["resource"]["service.instance.id"]
        assert one["resource"]["service.name"] == "sonde" and one["resource"]["service.version"]
    # Counters are sums since one begin, and never go back.
    for name, metric in decoded[-1]["metrics"].items():
        assert metric["unit"] and metric["help"], name
        series = [point for one in decoded for point in one["metrics"][name]["points"]]
        assert all(point["labels"].keys() == series[0]["labels"].keys() for point in series)
        if metric["kind"] == "sum":
            assert metric["monotonic"] and metric["temporality"] == "AGGREGATION_TEMPORALITY_CUMULATIVE", name
            assert len({point["start"] for point in series}) == 1 and series[0]["start"] > 0
        else:
            assert all(point["start"] == 0 for point in series), name
    times = [one["metrics"]["sonde.samples"]["points"][0]["time"] for one in decoded]
    counts = [one["metrics"]["sonde.samples"]["points"][0]["value"] for one in decoded]
    assert times == sorted(times) and len(set(times)) == len(times) and counts == sorted(counts)
    assert decoded[0]["metrics"]["sonde.samples"]["points"][0]["start"] <= times[0]
    assert decoded[-1]["metrics"]["sonde.samples"]["unit"] == "{sample}"
    # The last one has what the file for Prometheus has, by the same names.
    wanted, found = values(file.read_text()), as_prometheus(decoded[-1])
    assert found.keys() == wanted.keys()
    for name in ("sonde_samples_total", "sonde_samples_lost_total", "sonde_windows_failed_total", "sonde_steps_total",
                 "sonde_recording_start_time_seconds"):
        assert found[name] == pytest.approx(wanted[name]), name
    total = int(re.search(r"sonde: ([\d,]+) samples in", done.stderr)[1].replace(",", ""))
    assert counts[-1] == total == found["sonde_samples_total"]


def test_energy_in_joules(sonde, arguments, receiver, decode, tmp_path):
    replay, double = write_replay(tmp_path / "run.jsonl", constant_power(60, 40)), receiver()
    sonde(*arguments("--push", f"otlp-metrics={double.url}", "--energy", f"replay:{replay}", seconds=2), check=0)
    metric = decode(double.taken()[-1].body)["metrics"]["sonde.energy"]
    assert metric["unit"] == "J" and metric["kind"] == "sum" and metric["points"]
    assert all(point["kind"] == "as_double" and point["labels"]["source"] == "replay" for point in metric["points"])
    assert any(point["value"] > 0 for point in metric["points"])


def test_what_is_not_taken_waits_on_the_disk(sonde, arguments, receiver, decode, tmp_path):
    """As of its own time, also when the next recording delivers it."""
    folder, double = tmp_path / "windows", receiver(503)
    first = sonde(*arguments("--push", f"otlp-metrics={double.url}"), check=0)
    assert queue(folder) and "windows wait in" in first.stderr and not double.taken()
    waiting = [path.read_bytes() for path in sorted((folder / "queue").glob("*/*.pftrace"))]
    double.answers[:] = [200]
    sonde(*arguments("--push", f"otlp-metrics={double.url}", seconds=1), check=0)
    assert queue(folder) == []
    taken = [request.body for request in double.taken()]
    assert taken[: len(waiting)] == waiting and len(taken) > len(waiting)
    starts = [decode(body)["metrics"]["sonde.samples"]["points"][0]["start"] for body in taken]
    assert len(set(starts)) == 2, "the second recording counts from its own begin"


def test_the_queue_is_bounded_by_the_windows(sonde, arguments, receiver, tmp_path):
    double = receiver(503)
    done = sonde(*arguments("--push", f"otlp-metrics={double.url}", "--keep", 1, seconds=4), check=0)
    assert len(queue(tmp_path / "windows")) <= 2 and "windows are dropped" in done.stderr


def test_metrics_are_not_of_a_capture(sonde, tmp_path):
    done = sonde("push", "--to", "otlp-metrics=http://127.0.0.1:1", tmp_path / "x.pftrace", check=2)
    assert "metrics are of a recording that goes on" in done.stderr
