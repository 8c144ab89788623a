# SPDX-License-Identifier: Apache-2.0
"""Live messages of 10,000 tokens a second as binary frames and as text: their bytes, and what reading them costs.

A program marks tokens of 32 requests while energy of three rails is replayed, under sonde record --serve. Two clients have
the same messages, one each way. binary_frames.mjs then reads both with the page's own modules, in V8 (Node).
"""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

from needs import PAGE_PACKAGES, page_node
from workbench import ROOT, report_progress

NEEDS = (PAGE_PACKAGES,)

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from live_energy import write_replay  # noqa: E402
from server_client import Server  # noqa: E402

PER_SECOND = 10_000
BULK = (b'"type":"live_tokens"', b'"type":"live_power"')
PROGRAM = """
import sys, time
import sonde

begin, count = time.monotonic(), int(sys.argv[1])
for at in range(count):
    sonde.token(at // 32, request=f"request-{at % 32}", phase="decode")
    ahead = begin + at / int(sys.argv[2]) - time.monotonic()
    if ahead > 0.002:
        time.sleep(ahead)
"""


def collect(socket, found):
    """Messages of numbers: (how many, as frames; or as text, each by itself)."""
    while (frame := socket.frame()):
        opcode, data = frame
        if opcode == 2:
            found.append(data)
        elif opcode == 1:
            messages = json.loads(data)
            texts = [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in (messages if isinstance(messages, list) else [messages])]
            found += [text for text in texts if any(kind in text for kind in BULK)]
            if any(b'"type":"live_ended"' in text for text in texts):
                return


def write(path, messages):
    path.write_bytes(b"".join(struct.pack("<I", len(message)) + message for message in messages))


def record(bench, seconds):
    replay = write_replay(Path(bench.path("energy.jsonl")), seconds + 30)
    command = [bench.sonde, "record", "-q", "--energy", f"replay:{replay}", "--serve", "-o", bench.path("run.pftrace"), "--",
               "/usr/bin/python3", "-c", PROGRAM, seconds * PER_SECOND, PER_SECOND]
    environment = bench.environment() | {"PYTHONPATH": str(bench.build / "python")}
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, env=environment)
    server = Server(process, process.stderr.readline().split()[-1])
    found = {"text": [], "binary": []}
    threads = [threading.Thread(target=collect, args=(server.socket(f"/ws?binary={str(name == 'binary').lower()}"), found[name])) for name in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0, process.stderr.read()
    return found


def measure(bench):
    bench.take(PAGE_PACKAGES)
    seconds = bench.pick(20, 4, 1)
    found = record(bench, seconds)
    result = {"seconds": seconds, "load": os.getloadavg()[0], "per_second": PER_SECOND}
    for name, messages in found.items():
        write(Path(bench.path(name)), messages)
        result[name] = {"messages": len(messages), "bytes": sum(map(len, messages))}
    times = bench.run(page_node(), ROOT / "bench" / "binary_frames.mjs", bench.path("text"), bench.path("binary"), bench.pick(20, 3, 1)).output
    result |= {"times": json.loads(times.splitlines()[-1])}
    report_progress(f"live frames: {result}")
    return result
