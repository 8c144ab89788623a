#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says whether the recordings that an arm64 guest printed are right.

    check-recordings.py CONSOLE FOLDER SONDE…    FOLDER gets the captures; SONDE… is the command that reads them
"""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path


def captures(console, folder):
    """name -> path of each capture on the console"""
    found = {}
    for name, text in re.findall(r"==== begin (\w+)\n(.*?)==== end \1\n", console, re.DOTALL):
        found[name] = folder / f"{name}.pftrace"
        found[name].write_bytes(base64.b64decode(text))
    return found


class Reader:
    def __init__(self, command):
        self.command = command

    def run(self, *arguments):
        done = subprocess.run([*self.command, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode in (0, 3), f"{arguments}: {done.stderr}"
        return done.stdout

    def report(self, path):
        return json.loads(self.run("report", "--json", path))

    def stacks(self, path):
        """(frames, outermost first; samples)"""
        for line in self.run("export", "-f", "folded", "-o", "-", path).splitlines():
            frames, _, count = line.rpartition(" ")
            yield frames.split(";"), int(count)


def check_stacks(reader, path, depth, mode):
    """Of `deep`: one frame for each nested call, below main()."""
    report = reader.report(path)
    complete = report["completeness"]
    assert report["session"]["architecture"] == "aarch64", report["session"]
    assert report["session"]["unwind_mode"] == mode, report["session"]
    assert complete["user_stacks"] > 20 and complete["complete_share"] >= 0.9, complete
    busy = [(frames, count) for frames, count in reader.stacks(path) if "bottom_spin" in frames]
    right = sum(count for frames, count in busy if frames.count("descend") == depth and "main" in frames)
    total = sum(count for _, count in busy)
    assert right >= 0.98 * total > 0, f"{right} of {total} stacks have {depth} nested calls"
    return f"{complete['complete_share']:.2%} of {complete['user_stacks']} stacks are complete"


def check_waits(reader, path):
    waiting = reader.report(path)["waiting"]
    times = waiting["time_by_reason_ns"]
    assert waiting["mode"] == "exact" and waiting["waits"] >= 5, waiting
    for reason in ("sleep", "lock", "pipe", "socket", "poll"):
        assert 0.29e9 <= times[reason] <= 3e9, (reason, times)
    return f"{waiting['waits']} waits"


def check_launches(reader, path):
    """Emulated, the program goes on before the probe is there: its first launches have no stack."""
    work = reader.report(path)["device_work"]
    launches, lines = work["launches"], {line["function"] for line in work["lines"]}
    assert launches["complete_stacks"] == launches["stacks"] > 0, launches
    assert work["attribution"]["matched"] > 0 and "cuda_launch_kernel" in lines, (work["attribution"], lines)
    return f"{launches['stacks']} stacks of launches, all complete"


CHECKS = {
    "samples": lambda reader, path: check_stacks(reader, path, 100, "bpf"),
    "copies": lambda reader, path: check_stacks(reader, path, 20, "user"),
    "waits": check_waits,
    "launches": check_launches,
}


def main():
    console, folder = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace").replace("\r", ""), Path(sys.argv[2])
    reader, found, failed = Reader(sys.argv[3:]), captures(console, folder), False
    for name, check in CHECKS.items():
        try:
            assert name in found, "the guest printed no capture"
            print(f"{name}: {check(reader, found[name])}")
        except (AssertionError, KeyError) as problem:
            failed = True
            print(f"{name}: FAILED: {problem}")
    if failed:
        print(f"the guest's messages are in {sys.argv[1]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
