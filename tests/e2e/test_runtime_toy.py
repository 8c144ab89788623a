# SPDX-License-Identifier: Apache-2.0
"""A runtime that was added by the steps of docs/adding-a-runtime.md: a double of a driver (tests/doubles/toy), traced by
the injected library with one more line in its table of runtimes."""

import os
import shutil
import subprocess

import pytest

LAUNCHES = 50


@pytest.fixture
def toy(sonde_path, tmp_path):
    """(sonde beside the library that knows the toy, the library, the program)"""
    doubles = sonde_path.parent / "tests" / "doubles" / "toy"
    program = shutil.copy(sonde_path, tmp_path / "sonde")
    library = shutil.copy(doubles / "libsonde-inject.so", tmp_path / "libsonde-inject.so")
    return str(program), str(library), str(doubles / "toy-program")


def record(toy, capture):
    program, library, workload = toy
    done = subprocess.run([program, "record", "-o", capture, "--", workload, str(LAUNCHES)], capture_output=True, text=True,
                          env={**os.environ, "TOY_TRACER": library}, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def test_kernels_of_a_runtime_that_was_added(sonde, toy, tmp_path):
    capture = tmp_path / "toy.pftrace"
    record(toy, capture)
    data = sonde("report", "--json", capture, check=0).json()
    assert data["device_work"]["count"] == LAUNCHES
    kernels = {row["name"]: row["count"] for row in data["kernel"]["kernels"]}
    assert kernels == {"toy_scale": LAUNCHES}
    assert "Toy device" in sonde("report", capture, check=0).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="launch stacks are taken by BPF, which needs root")
def test_its_kernels_have_the_stacks_that_launched_them(sonde, toy, tmp_path):
    capture = tmp_path / "toy.pftrace"
    record(toy, capture)
    out = sonde("export", "-f", "folded", "--weight", "gpu", "-o", "-", capture, check=0).stdout
    stacks = [line for line in out.splitlines() if "toy_scale" in line]
    assert stacks and all("main;train;toy_run" in line for line in stacks), out


def test_without_a_session_it_is_not_traced(toy):
    _, library, workload = toy
    environment = {**os.environ, "TOY_TRACER": library}
    environment.pop("SONDE_SESSION", None)
    done = subprocess.run([workload, "2"], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "done\n" and done.returncode == 0
