# SPDX-License-Identifier: Apache-2.0
"""Two threads that both need the interpreter lock: docs/python.md."""
import threading
import time


def hog():
    while time.monotonic() < end:
        sum(range(1000))


def victim():
    while time.monotonic() < end:
        sorted(range(1000))


end = time.monotonic() + 3
threads = [threading.Thread(target=hog), threading.Thread(target=victim)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
