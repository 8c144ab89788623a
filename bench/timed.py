# SPDX-License-Identifier: Apache-2.0
"""timed.py FILE COMMAND…: runs a command and writes the seconds it took, as JSON, to a file.

It stands between a profiler and its target, so that the target's time is known without the profiler's start and end.
"""

import json
import os
import subprocess
import sys
import time


def main():
    begin = time.monotonic()
    child = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    with open(sys.argv[1], "w") as file:
        json.dump({"wall_s": seconds, "cpu_s": usage.ru_utime + usage.ru_stime}, file)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
