#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far times to first token, and between tokens, are from those that an engine knows.

    bench/token_times.py [SONDE]

The engine marks tokens at moments that it reads from CLOCK_MONOTONIC just before; the error is what `sonde report` says
less the difference of these. A call during which the engine lost the processor, so that it took more than 50 us by the
clock, says nothing of the error: such times are left out, and counted.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

LONGEST_CALL_NS = 50_000
ROOT = pathlib.Path(__file__).resolve().parents[1]
ENGINE = """
import json, time
import sonde
moments = {}
for request in range(200):
    times = moments[str(request)] = []
    for index in range(-1, 10):
        until = time.monotonic_ns() + 1_000_000
        while time.monotonic_ns() < until:
            pass
        before = time.monotonic_ns()
        sonde.token(max(index, 0), request=request, phase="prefill" if index < 0 else "decode")
        times.append([before, time.monotonic_ns()])
print(json.dumps(moments))
"""


def percentile(values, percent):
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def main():
    sonde = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "sonde").resolve()
    with tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "tokens.pftrace"
        done = subprocess.run([sonde, "record", "-o", capture, "--", "/usr/bin/python3", "-c", ENGINE], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                              env={"PYTHONPATH": str(sonde.parent / "python"), "PATH": "/usr/bin:/bin"})
        report = subprocess.run([sonde, "report", "--json", capture], text=True, stdout=subprocess.PIPE, check=True)
    moments = json.loads(done.stdout)
    errors, left_out = {"first token": [], "between tokens": []}, 0
    for request in json.loads(report.stdout)["inference"]["requests"]:
        times = moments[request["id"]]
        said = [("first token", request["ttft_ns"])] + [("between tokens", gap) for gap in request["itl_ns"]]
        for (name, value), begin, end in zip(said, times, times[1:]):
            if max(begin[1] - begin[0], end[1] - end[0]) > LONGEST_CALL_NS:
                left_out += 1
            else:
                errors[name].append(abs(value - (end[0] - begin[0])))
    print(f"{left_out} times are left out: the engine lost the processor in the call")
    for name, values in errors.items():
        print(f"{name}: {len(values)} times, error p50 {percentile(values, 50) / 1000:.2f} us, "
              f"p99 {percentile(values, 99) / 1000:.2f} us, max {max(values) / 1000:.2f} us")


if __name__ == "__main__":
    main()
