# SPDX-License-Identifier: Apache-2.0
"""The first process of a PID namespace, as a node's init: runs what a manifest runs there, and notes the signals that it gets itself.

    unshare --pid --fork --mount-proc --kill-child python3 noting_init.py PLAN.json

The plan:
    main       a command line, or null: runs until it gets `signal`, which it does when `ready` (a pattern of paths) is there
    others     command lines, each run to its end, before main gets its signal
    limit_s    how long main may take to end
Prints JSON: `signals` (those that this process got), `status` (main's; null: it did not end in time), `others`
(the statuses), `errors` (what main wrote).
"""

import glob
import json
import signal
import subprocess
import sys
import time

READY_S = 120
got = []


def run_main(plan):
    main = subprocess.Popen(plan["main"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + READY_S
    while not glob.glob(plan["ready"]) and main.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    others = run_others(plan)
    if main.poll() is None:
        main.send_signal(getattr(signal, plan["signal"]))
    try:
        _, errors = main.communicate(timeout=plan["limit_s"])
    except subprocess.TimeoutExpired:
        main.kill()
        return {"status": None, "errors": main.communicate()[1], "others": others}
    return {"status": main.returncode, "errors": errors, "others": others}


def run_others(plan):
    return [subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60, check=False).returncode
            for command in plan["others"]]


def main():
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, lambda number, _: got.append(signal.strsignal(number)))
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    result = run_main(plan) if plan["main"] else {"status": None, "errors": "", "others": run_others(plan)}
    json.dump({**result, "signals": got}, sys.stdout)


main()
