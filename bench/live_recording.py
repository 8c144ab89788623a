# SPDX-License-Identifier: Apache-2.0
"""What live messages of a recording cost the recorder, and how old they are when a client has them.

The same program is recorded with --serve and a client that reads all messages, and without, in turn: so many times. It
makes 50 tokens a second with CPU work between them, and energy is replayed at 100 readings a second of three rails. The
age of a token is from the moment that the program took before its mark to that when the client had the message.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from workbench import ROOT, children_of, report_progress

NEEDS = ()

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from live_energy import write_replay  # noqa: E402
from server_client import Server  # noqa: E402

PROGRAM = """
import json, sys, time
import sonde

moments, end = [], time.monotonic() + float(sys.argv[1])
sonde.token(0, request="run", phase="prefill")
while time.monotonic() < end:
    until = time.monotonic() + 0.012
    while time.monotonic() < until:
        sum(range(1000))
    time.sleep(0.008)
    with sonde.range("decode"):
        moments.append(time.monotonic_ns())
        sonde.token(len(moments) - 1, request="run", phase="decode")
json.dump(moments, open(sys.argv[2], "w"))
"""


def cpu_seconds(pid):
    """Of its one thread, by the scheduler: ticks of 10 ms miss what is shorter."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def listen(server, pids):
    """When each token came, how many messages and bytes, and the CPU time of the server's processes until the last one."""
    client, came, messages, cpu_s = server.socket(), {}, 0, 0.0
    while (message := client.next()) is not None:
        now_ns, messages = time.monotonic_ns(), messages + 1
        if message["type"] == "live_tokens":
            came |= {token["index"]: now_ns for token in message["data"]["tokens"]}
        if message["type"] == "live_summary":
            cpu_s = max(cpu_s, sum(map(cpu_seconds, pids())))
        if message["type"] == "live_ended":
            break
    return came, messages, cpu_s


def record(bench, seconds, is_served):
    capture, moments = Path(bench.path("live.pftrace")), Path(bench.path("moments.json"))
    replay = write_replay(Path(bench.path("energy.jsonl")), int(seconds) + 30)
    command = [bench.sonde, "record", "-q", "--energy", f"replay:{replay}", "-o", capture, *(["--serve"] if is_served else []), "--",
               "/usr/bin/python3", "-c", PROGRAM, str(seconds), moments]
    environment = bench.environment() | {"PYTHONPATH": str(bench.build / "python")}
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, env=environment)
    result = {}
    if is_served:
        server = Server(process, process.stderr.readline().split()[-1])

        def pids():
            """The server's process and its follower."""
            own = [pid for pid in children_of(process.pid) if Path(f"/proc/{pid}/comm").read_text().strip() == "sonde"]
            return own + [child for pid in own for child in children_of(pid)]

        came, result["messages"], result["server_cpu_s"] = listen(server, pids)
        process.send_signal(signal.SIGINT)
        process.wait()
        said = json.loads(moments.read_text())
        result["ages_ms"] = [(came[index] - said[index]) / 1e6 for index in came]
        result["tokens"], result["tokens_said"] = len(came), len(said)
    assert process.wait() == 0, process.stderr.read()
    report = json.loads(subprocess.run([bench.sonde, "report", "--json", capture], capture_output=True, check=True, text=True).stdout)
    return result | {"recorder_cpu_s": report["overhead"]["collector_cpu_ns"] / 1e9, "samples": report["totals"]["samples"], "losses": report["losses"]}


def measure(bench):
    seconds, rounds = bench.pick(12, 4, 1), bench.pick(4, 2, 1)
    runs = {False: [], True: []}
    for _ in range(rounds):
        for is_served in (False, True):
            runs[is_served].append(record(bench, seconds, is_served))
    ages = sorted(age for run in runs[True] for age in run["ages_ms"])
    result = {
        "seconds": seconds, "rounds": rounds, "load": os.getloadavg()[0],
        "recorder_cpu_s": statistics.median(run["recorder_cpu_s"] for run in runs[False]),
        "recorder_cpu_served_s": statistics.median(run["recorder_cpu_s"] for run in runs[True]),
        "server_cpu_s": statistics.median(run["server_cpu_s"] for run in runs[True]),
        "messages": statistics.median(run["messages"] for run in runs[True]),
        "tokens": sum(run["tokens"] for run in runs[True]), "tokens_said": sum(run["tokens_said"] for run in runs[True]),
        "age_median_ms": ages[len(ages) // 2], "age_p99_ms": ages[int(0.99 * len(ages))],
    }
    report_progress(f"live recording: {result}")
    return result
