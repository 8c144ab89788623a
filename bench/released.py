#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three threads that run native code without the interpreter lock most of the time, and Python code in between.

released.py SECONDS
"""

import hashlib
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 4096


def digest(data):
    return hashlib.sha256(data).hexdigest()


def shrink(data):
    return len(zlib.compress(data[: 1 << 17]))


def sort_names(count):
    return sorted((str(i) for i in range(count)), key=len)


def work(until):
    while time.monotonic() < until:
        digest(DATA)
        shrink(DATA)
        sort_names(2000)


def main():
    until = time.monotonic() + float(sys.argv[1])
    threads = [threading.Thread(target=work, args=(until,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
