# SPDX-License-Identifier: Apache-2.0
"""How far times to first token, and between tokens, are from those that an engine knows.

The engine marks tokens at moments that it reads from CLOCK_MONOTONIC just before; the error is what `sonde report` says
less the difference of these. A call during which the engine lost the processor, so that it took more than 50 us by the
clock, says nothing of the error: such times are left out, and counted.
"""

import json

from needs import PRIVILEGES
from workbench import report_progress

NEEDS = (PRIVILEGES,)

LONGEST_CALL_NS = 50_000
ENGINE = """
import json, sys, time
import sonde
moments = {}
for request in range(int(sys.argv[1])):
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


def errors_of(moments, requests):
    """By metric, in nanoseconds; and how many times are left out."""
    errors, left_out = {"first": [], "between": []}, 0
    for request in requests:
        times = moments[request["id"]]
        said = [("first", request["ttft_ns"])] + [("between", gap) for gap in request["itl_ns"]]
        for (name, value), begin, end in zip(said, times, times[1:]):
            if max(begin[1] - begin[0], end[1] - end[0]) > LONGEST_CALL_NS:
                left_out += 1
            else:
                errors[name].append(abs(value - (end[0] - begin[0])))
    return errors, left_out


def measure(bench):
    program = ["env", f"PYTHONPATH={bench.build / 'python'}", "/usr/bin/python3", "-c", ENGINE, bench.pick(200, 20, 5)]
    done = bench.record("tokens.pftrace", "--", *program)
    moments = json.loads(next(line for line in done.output.splitlines() if line.startswith("{")))
    errors, left_out = errors_of(moments, bench.report("tokens.pftrace")["inference"]["requests"])
    found = {name: {"count": len(values), "p50_ns": percentile(values, 50), "p99_ns": percentile(values, 99),
                    "largest_ns": max(values)} for name, values in errors.items()}
    report_progress(f"token_times: {found}, {left_out} left out")
    return {**found, "left_out": left_out}
