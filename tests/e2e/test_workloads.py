# SPDX-License-Identifier: Apache-2.0
"""The workloads themselves: they say when they are ready, run for the time given and end well."""

import subprocess
import time

import pytest

NAMES = ["deep", "dlopen_loop", "jit", "short_lived", "signals", "spin", "syscalls", "threads", "tree"]


@pytest.mark.parametrize("name", NAMES)
def test_runs_for_its_time_and_ends_well(start_workload, name):
    begin = time.monotonic()
    running = start_workload(name, 0.3)
    assert f"ready {running.pid}" in running.lines
    assert running.wait(timeout=30) == 0
    assert time.monotonic() - begin >= 0.3


def test_tree_names_its_processes(start_workload):
    running = start_workload("tree", 0.3)
    running.wait(timeout=30)
    names = [line.split()[1] for line in running.lines if line.startswith("pid ")]
    assert sorted(names) == ["tree", "tree-exec", "tree-fork", "tree-grand"]


def test_a_missing_duration_is_refused(workload):
    done = subprocess.run(workload("spin"), capture_output=True, text=True)
    assert done.returncode == 2 and "usage:" in done.stderr
