# SPDX-License-Identifier: Apache-2.0
"""Waits of known length: docs/python.md."""
import os
import threading
import time


def holder():
    with lock:
        time.sleep(1.2)


def wants():
    time.sleep(0.1)
    with lock:
        pass


def reader():
    os.read(pipe, 1)


def sleeper():
    for _ in range(20):
        time.sleep(0.05)


def short():
    for _ in range(3000):
        time.sleep(0.00001)


lock = threading.Lock()
pipe, end = os.pipe()
threads = [threading.Thread(target=work) for work in (holder, wants, reader, sleeper, short)]
for thread in threads:
    thread.start()
time.sleep(1.2)
os.write(end, b"x")
for thread in threads:
    thread.join()
