# SPDX-License-Identifier: Apache-2.0
"""What the server takes: sonde view of a trace of 1 GB, and live messages to many clients of which some are stalled.

The trace is a published one, repeated in time (trace_scale.py). It needs the shared traces. The clients of live
messages are one program (tests/doubles/server).
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import trace_scale
from needs import TRACES, traces_folder
from workbench import ROOT, Missing, children_of, report_progress

NEEDS = ()
NEEDS_OF_PARTS = (TRACES,)

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from server_client import Server  # noqa: E402

GB = 994_000_000
COLUMNS = 1920
SPANS = 14  # each zooms in twice as far as the one before


def memory_bytes(pid, what):
    """Of the server and what it has open the largest: each by itself, since they share memory."""
    found = []
    for one in [pid, *children_of(pid)]:
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:")]
    return max(found)


def peak_bytes(pid):
    return memory_bytes(pid, "VmHWM")


def kept_bytes(pid):
    """What it answers from: memory of its own, without the program and the file."""
    return memory_bytes(pid, "RssAnon")


def timed(ask):
    begin = time.monotonic()
    answer = ask()
    seconds = time.monotonic() - begin
    assert answer.status == 200, answer.body[:300]
    return seconds, answer


def first_view(bench, path):
    """From the start of the command to the whole report, and what the server has then."""
    begin = time.monotonic()
    command = [bench.sonde, "view", "--no-browser", path]
    server = Server(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bench.environment()))
    capture = server.capture()
    _, answer = timed(lambda: server.get(f"/api/captures/{capture}/report?format=page"))
    return server, capture, {"seconds": time.monotonic() - begin, "bytes": len(answer.body), "memory_bytes": peak_bytes(server.process.pid),
                             "rows_bytes": kept_bytes(server.process.pid)}


def tiles(server, capture, count):
    pid = server.process.pid
    seconds, answer = timed(lambda: server.get(f"/api/captures/{capture}/timeline"))
    kept, peak = kept_bytes(pid), peak_bytes(pid)
    timeline = answer.json()
    tracks = [track["id"] for track in timeline["tracks"]]
    source, found, sizes = random.Random(1), [], []
    for _ in range(count):
        span = max(timeline["duration_ns"] >> source.randrange(SPANS), COLUMNS)
        begin = source.randrange(max(timeline["duration_ns"] - span, 1))
        path = f"/api/captures/{capture}/timeline/tile?track={source.choice(tracks)}&from={begin}&to={begin + span}&columns={COLUMNS}"
        took, tile = timed(lambda: server.get(path))
        found.append(took)
        sizes.append(len(tile.body))
    found.sort()
    return {
        "slices": sum(track["slices"] for track in timeline["tracks"]), "index_s": seconds, "tiles": count,
        "index_bytes": kept, "memory_bytes": peak, "memory_ratio": peak / kept,
        "median_s": statistics.median(found), "p99_s": found[int(0.99 * count)], "largest_bytes": max(sizes),
    }


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def live(bench, good=30, stalled=20, per_second=10_000, message_bytes=60):
    """From when a message was due to when a client has it, with the CPU time of the server."""
    programs = bench.build / "tests" / "doubles" / "server"
    count = per_second * bench.pick(30, 5)
    process = subprocess.Popen([programs / "server-publisher"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server = Server(process)
    clients = subprocess.Popen([programs / "live-clients", str(server.port), server.token, str(good), str(stalled), str(count)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert clients.stdout.readline() == "connected\n"
    cpu = cpu_seconds(process.pid)
    process.stdin.write(f"rate token 0 {count} {message_bytes} {per_second}\n")
    process.stdin.flush()
    _, newest, late_ns, publish_ns = process.stdout.readline().split()
    assert int(newest) == count
    cpu = cpu_seconds(process.pid) - cpu
    found, _ = clients.communicate("\n")
    result = json.loads(found)
    result |= {"good": good, "stalled": stalled, "per_second": per_second, "load": os.getloadavg()[0], "seconds": count / per_second,
               "server_cpu_share": cpu / (count / per_second), "publisher_late_ms": int(late_ns) / 1e6, "publish_us": int(publish_ns) / 1e3,
               "memory_bytes": peak_bytes(process.pid)}
    assert server.end() == 0
    return result


def measure(bench):
    messages = live(bench)
    report_progress(f"live messages: {messages}")
    try:
        return {"live": messages} | trace(bench)
    except Missing as missing:
        bench.leave_out("a trace of 1 GB", missing)
        return {"live": messages}


def trace(bench):
    bench.take(TRACES)
    path = Path(bench.path("big.json"))
    trace_scale.scale_kineto(traces_folder() / "kineto" / "df_index_resolver.json.gz", bench.pick(GB, GB // 10), path)
    views, result = [], {"file_bytes": path.stat().st_size, "load": os.getloadavg()[0]}
    for last in range(bench.pick(5, 2) - 1, -1, -1):
        server, capture, view = first_view(bench, path)
        views.append(view)
        if not last:
            result["timeline"] = tiles(server, capture, bench.pick(2000, 300))
            result["status_s"] = statistics.median(timed(lambda: server.get("/api/status"))[0] for _ in range(100))
        server.end()
    path.unlink()
    result["first_view_s"] = statistics.median(view["seconds"] for view in views)
    result["rows_bytes"] = max(view["rows_bytes"] for view in views)
    result["memory_bytes"] = max(view["memory_bytes"] for view in views)
    result["report_bytes"] = views[0]["bytes"]
    report_progress(f"serving: {result}")
    return result
