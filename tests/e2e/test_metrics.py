# SPDX-License-Identifier: Apache-2.0
"""Metrics of a continuous recording, for Prometheus: in a file and by HTTP, checked by promtool."""

import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from receiver_double import ReceiverDouble
from test_continuous import wait_for, windows
from test_energy import constant_power, write_replay


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "windows"


def check(text):
    """promtool has no complaint."""
    promtool = shutil.which("promtool")
    assert promtool, "promtool (Debian: prometheus) is missing"
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and not done.stdout, done


def values(text):
    found = re.findall(r"^(sonde_\w+)(\{[^\n]*\})? ([\d.e+-]+)$", text, re.M)
    assert len(found) == len([line for line in text.splitlines() if not line.startswith("#")]), "every line is a figure"
    return {name + labels: float(value) for name, labels, value in found}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path="/metrics", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def test_the_file(sonde, report, folder, workload, tmp_path):
    file, double = tmp_path / "sonde.prom", ReceiverDouble()
    try:
        done = sonde("record", "--continuous", "--every", "1s", "-o", folder, "--metrics-file", file, "--keep", "2",
                     "--upload", double.url, "--push", f"otlp={double.url}", "--", *workload("spin", 4), check=0)
    finally:
        double.close()
    text = file.read_text()
    check(text)
    found = values(text)
    made = windows(folder)
    for receiver in (double.url, f"otlp={double.url}"):
        label = f'{{receiver="{receiver}"}}'
        taken = found["sonde_windows_delivered_total" + label]
        # --keep may remove one that was not delivered yet.
        assert taken > 0 and taken + found["sonde_windows_dropped_total" + label] == found["sonde_windows_total"]
    assert len(double.taken()) == sum(found[name] for name in found if name.startswith("sonde_windows_delivered_total"))
    assert found["sonde_windows_removed_total"] == found["sonde_windows_total"] - 2
    assert found["sonde_folder_windows"] == 2 == len(made)
    assert found["sonde_folder_bytes"] == sum(path.stat().st_size for path in made)
    printed = int(re.search(r"sonde: ([\d,]+) samples in", done.stderr)[1].replace(",", ""))
    assert found["sonde_samples_total"] == printed and found["sonde_samples_lost_total"] == 0
    assert found["sonde_collector_cpu_seconds_total"] > 0 and found["sonde_collector_memory_peak_bytes"] > 1e6
    assert list(tmp_path.glob("sonde.prom*")) == [file], "nothing beside it is left"


def test_by_http(sonde, folder, workload):
    port = free_port()
    process = sonde.start("record", "--continuous", "--every", "1s", "-o", folder, "--metrics", f"127.0.0.1:{port}",
                          "--", *workload("spin", 60))
    wait_for(lambda: folder.exists() and windows(folder))
    text = get(port)
    check(text)
    first = values(text)
    assert first["sonde_windows_total"] >= 1 and first["sonde_samples_total"] > 0
    wait_for(lambda: values(get(port))["sonde_windows_total"] > first["sonde_windows_total"])
    for path, headers, status in (("/", {}, 404), ("/metrics", {"Host": "evil.example"}, 421)):
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(port, path, **headers)
        assert raised.value.code == status
    assert process.poll() is None


def test_clients_that_say_nothing_hold_up_nobody(sonde, folder, workload):
    port = free_port()
    process = sonde.start("record", "--continuous", "--every", "1s", "-o", folder, "--metrics", f"127.0.0.1:{port}",
                          "--", *workload("spin", 60))
    wait_for(lambda: folder.exists() and windows(folder))
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(16)]
    idle[0].sendall(b"GET /metrics HTTP/1.1\r\n")
    count = len(windows(folder))
    wait_for(lambda: len(windows(folder)) > count + 1)
    check(get(port))  # after those were closed
    for client in idle:
        client.close()
    garbage = socket.create_connection(("127.0.0.1", port))
    garbage.sendall(b"\0" * 5000)
    assert garbage.recv(100).startswith(b"HTTP/1.1 400")
    garbage.close()
    assert process.poll() is None


@pytest.mark.parametrize("address, sentence", [
    ("0.0.0.0:9477", "would be open to other machines"),
    ("192.168.1.1:9477", "would be open to other machines"),
    ("9477", "is not an address and a port"),
    ("127.0.0.1:", "is not an address and a port"),
    ("127.0.0.1:70000", "is not an address and a port"),
    ("example.com:1", "is not an address and a port"),
])
def test_addresses_that_are_wrong(sonde, folder, workload, address, sentence):
    done = sonde("record", "--continuous", "-o", folder, "--metrics", address, "--", *workload("spin", 1))
    assert done.status != 0 and sentence in done.stderr


def test_a_port_that_is_taken(sonde, folder, workload):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        done = sonde("record", "--continuous", "-o", folder, "--metrics", address, "--", *workload("spin", 1), check=1)
    assert f"cannot listen on --metrics {address}: Address already in use" in done.stderr


def test_a_file_that_cannot_be_written(sonde, folder, workload, tmp_path):
    done = sonde("record", "--continuous", "-o", folder, "--metrics-file", tmp_path / "none" / "x.prom", "--",
                 *workload("spin", 1), check=0)
    assert done.stderr.count("cannot write --metrics-file") == 1


def test_rails(sonde, folder, workload, tmp_path):
    replay = write_replay(tmp_path / "run.jsonl", constant_power(60, 40))
    file = tmp_path / "sonde.prom"
    sonde("record", "--continuous", "--every", "1s", "-o", folder, "--metrics-file", file, "--energy", f"replay:{replay}",
          "--", *workload("spin", 2), check=0)
    text = file.read_text()
    check(text)
    joules = {name: value for name, value in values(text).items() if name.startswith("sonde_energy_joules_total")}
    assert joules and all('source="replay"' in name for name in joules) and any(joules.values())
