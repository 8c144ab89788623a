# SPDX-License-Identifier: Apache-2.0
"""A thread that sleeps, and one that waits for it: docs/dump.md."""
import threading
import time

ready = threading.Event()


def inner():
    time.sleep(60)


def outer():
    inner()
    ready.set()


threading.Thread(target=outer, daemon=True).start()
print("ready", flush=True)
ready.wait()
