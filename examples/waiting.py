#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Six threads that each wait for something else, and one that computes: what a table of waiting looks like.

    python3 examples/waiting.py --seconds 2
"""

import argparse
import os
import select
import socket
import threading
import time


def sleep(seconds):
    time.sleep(seconds)


def wait_for_lock(lock):
    with lock:
        pass


def wait_for_event(event):
    event.wait()


def read_pipe(descriptor):
    os.read(descriptor, 1)


def receive(connection):
    connection.recv(1)


def poll(descriptor, seconds):
    select.select([descriptor], [], [], seconds)


def compute(end):
    total = 0
    while time.monotonic() < end:
        total += sum(range(1000))
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="how long the threads wait (2)")
    seconds = parser.parse_args().seconds

    lock, event = threading.Lock(), threading.Event()
    pipe_out, pipe_in = os.pipe()
    silent_out, silent_in = os.pipe()
    near, far = socket.socketpair()
    waits = [(sleep, seconds), (wait_for_lock, lock), (wait_for_event, event), (read_pipe, pipe_out), (receive, near),
             (poll, silent_out, seconds)]
    lock.acquire()
    threads = [threading.Thread(target=wait, args=arguments) for wait, *arguments in waits]
    for thread in threads:
        thread.start()
    compute(time.monotonic() + seconds)
    lock.release()
    event.set()
    os.write(pipe_in, b".")
    far.send(b".")
    for thread in threads:
        thread.join()
    os.close(silent_in)


if __name__ == "__main__":
    main()
