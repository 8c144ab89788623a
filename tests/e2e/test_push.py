# SPDX-License-Identifier: Apache-2.0
"""Captures in the formats of other systems, and pushed to them: OTLP profiles and Pyroscope's pprof."""

import email
import json
import re
import subprocess
import urllib.parse
from pathlib import Path

import pytest
from receiver_double import ReceiverDouble
from test_continuous import windows

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"


@pytest.fixture(scope="session")
def otlp():
    """otlp(bytes) -> what OpenTelemetry's own messages make of them."""
    done = subprocess.run([HERE.parents[1] / "tools" / "venv", "otlp"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr.strip())

    def decode(content, folder):
        file = folder / "profile.otlp"
        file.write_bytes(content)
        return json.loads(subprocess.run([done.stdout.strip(), HERE / "otlp_decode.py", file], check=True,
                                         capture_output=True, text=True).stdout)

    return decode


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
def capture(sonde, workload, tmp_path):
    path = tmp_path / "run.pftrace"
    sonde("record", "-F", "499", "-o", path, "--", *workload("spin", 1), check=0)
    return path


def check_profiles(decoded, data):
    assert decoded["first"] == ["", 0, 0, 0, 0, 0, 0] and decoded["unknown"] == 0
    counts, times = decoded["profiles"]
    assert counts["type"] == ["samples", "count"] and times["type"] == ["cpu", "nanoseconds"]
    assert counts["id"] != times["id"] and len(counts["id"]) == 32
    assert sum(sample["values"][0] for sample in counts["samples"]) == data["totals"]["samples"]
    period = data["session"]["period_ns"]
    assert times["period"] == period
    assert sum(sample["values"][0] for sample in times["samples"]) == data["totals"]["samples"] * period
    assert times["time"] == data["session"]["start_unix_time_ns"] and times["duration"] == data["totals"]["duration_ns"]
    assert decoded["scope"][0] == "sonde" and decoded["resource"]["host.name"] == data["session"]["host"]


def test_otlp_of_a_recording(sonde, report, capture, otlp, tmp_path):
    file = tmp_path / "run.otlp.pb"
    sonde("export", "-o", file, capture, check=0)  # by its extension
    data = report(capture)
    decoded = otlp(file.read_bytes(), tmp_path)
    check_profiles(decoded, data)
    leaves = {}
    for sample in decoded["profiles"][0]["samples"]:
        assert sample["attributes"]["process.executable.name"] == "spin" and sample["attributes"]["thread.id"] > 0
        leaf = sample["stack"][0]
        leaves[leaf["functions"][0]] = leaf
    assert "spin_half" in leaves and leaves["spin_half"]["type"] == "native"
    assert leaves["spin_half"]["file"].endswith("/spin") and re.fullmatch("[0-9a-f]{40}", leaves["spin_half"]["build_id"][0])
    assert {"kernel", "native"} >= {frame["type"] for sample in decoded["profiles"][0]["samples"] for frame in sample["stack"]}
    again = tmp_path / "again.pb"
    sonde("export", "-f", "otlp", "-o", again, capture, check=0)
    assert again.read_bytes() == file.read_bytes(), "the same capture gives the same bytes"


@pytest.mark.parametrize("name", ["capture-2-plain", "capture-2-deflated", "windows-2-plain"])
def test_otlp_of_golden_captures(sonde, report, otlp, tmp_path, name):
    path, file = GOLDEN / f"{name}.pftrace", tmp_path / "x.pb"
    sonde("export", "-f", "otlp", "-o", file, path, check=0)
    check_profiles(otlp(file.read_bytes(), tmp_path), report(path))


def test_push_otlp(sonde, report, capture, receiver, otlp, tmp_path):
    double = receiver(503, 200)
    done = sonde("push", "--to", f"otlp={double.url}/", capture, check=0)
    assert "it is tried again" in done.stderr and f"{double.url}/ has {capture}" in done.stderr
    (request,) = double.taken()
    assert (request.method, request.path) == ("POST", "/v1development/profiles")
    assert request.headers["Content-Type"] == "application/x-protobuf"
    check_profiles(otlp(request.body, tmp_path), report(capture))


def form_of(request):
    """The profile in the form, as a library for mail reads it."""
    message = email.message_from_bytes(b"Content-Type: " + request.headers["Content-Type"].encode() + b"\r\n\r\n" + request.body)
    (part,) = message.get_payload()
    assert part.get_param("name", header="content-disposition") == "profile"
    return part.get_payload(decode=True)


def test_push_pprof(sonde, report, capture, receiver, tmp_path):
    double = receiver()
    sonde("push", "--to", f"pprof={double.url}", "-q", capture, check=0)
    (request,) = double.taken()
    url = urllib.parse.urlsplit(request.path)
    query = urllib.parse.parse_qs(url.query)
    data = report(capture)
    assert (request.method, url.path, query["format"]) == ("POST", "/ingest", ["pprof"])
    assert query["name"] == [f"sonde{{host={data['session']['host']}}}"]
    begin = data["session"]["start_unix_time_ns"]
    assert int(query["from"][0]) == begin // 10**9 and int(query["until"][0]) * 10**9 >= begin + data["totals"]["duration_ns"]
    own = tmp_path / "own.pb.gz"
    sonde("export", "-f", "pprof", "-o", own, capture, check=0)
    assert form_of(request) == own.read_bytes()


def test_windows_of_a_continuous_recording(sonde, workload, receiver, otlp, tmp_path):
    profiles, pyroscope, folder = receiver(), receiver(), tmp_path / "windows"
    done = sonde("record", "--continuous", "--every", "1s", "-F", "499", "-o", folder, "--push", f"otlp={profiles.url}",
                 "--push", f"pprof={pyroscope.url}", "--", *workload("spin", 3), check=0)
    made = windows(folder)
    assert len(profiles.taken()) == len(pyroscope.taken()) == len(made), done.stderr
    total = 0
    for request in profiles.taken():
        decoded = otlp(request.body, tmp_path)
        total += sum(sample["values"][0] for sample in decoded["profiles"][0]["samples"])
    assert total == int(re.search(r"sonde: ([\d,]+) samples in", done.stderr)[1].replace(",", ""))


def test_a_capture_that_is_none(sonde, receiver, tmp_path):
    double, broken = receiver(), tmp_path / "broken.pftrace"
    broken.write_bytes(b"nothing")
    for format_name in ("otlp", "pprof"):
        done = sonde("push", "--to", f"{format_name}={double.url}", broken, check=1)
        assert "broken.pftrace cannot be converted: " in done.stderr and not double.requests
    assert "cannot open" in sonde("push", "--to", f"otlp={double.url}", tmp_path / "none", check=1).stderr


def test_it_gives_up(sonde, capture, receiver):
    double = receiver(500)
    done = sonde("push", "--to", f"otlp={double.url}", "--attempts", "2", capture, check=1)
    assert len(double.requests) == 2 and "answers 500" in done.stderr


@pytest.mark.parametrize("to, sentence", [
    ("otlp=127.0.0.1:4318", "is not a URL"),
    ("otlp=http://127.0.0.1:4318/?x=1", "has a query"),
    ("pprof=http://user:secret@127.0.0.1/", "would be seen in lists of processes"),
    (None, "nothing says where to"),
])
def test_receivers_that_are_wrong(sonde, capture, to, sentence):
    done = sonde("push", *(["--to", to] if to else []), capture, check=2)
    assert sentence in done.stderr and "secret" not in done.stderr


def test_a_format_that_is_none(sonde, workload, tmp_path):
    done = sonde("record", "--continuous", "-o", tmp_path / "w", "--push", "zipkin=http://127.0.0.1", "--", *workload("spin", 1))
    assert done.status != 0 and "names no format" in done.stderr
