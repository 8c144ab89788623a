# SPDX-License-Identifier: Apache-2.0
"""Runtimes that generate code: their stacks reach from the thread's entry into the generated functions."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

needs_bpf = pytest.mark.skipif(os.geteuid() != 0, reason="sampling by BPF needs root")

JAVASCRIPT = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
let sum = 0;
while (process.cpuUsage().user < 2e6) sum += fib(22);
console.log(sum);
"""

PYTHON = """
import time
def inner(n):
    return sum(i * i for i in range(n))
while time.process_time() < 2:
    inner(2000)
"""


def pythons_with_perf_support():
    """CPython 3.12 and later: in the PATH, and where pyenv keeps them."""
    folder = os.path.expanduser(os.environ.get("PYENV_ROOT", "~/.pyenv")) + "/versions"
    versions = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    candidates = [f"{folder}/{version}/bin/python3" for version in versions] + [shutil.which("python3") or ""]
    for candidate in candidates:
        probe = "import sys; assert sys.version_info >= (3, 12); sys.activate_stack_trampoline('perf')"
        if os.access(candidate, os.X_OK) and subprocess.run([candidate, "-c", probe], capture_output=True).returncode == 0:
            yield candidate


@needs_bpf
def test_node(sonde, report, tmp_path):
    # tools/venv puts one there where the page needs it.
    node = shutil.which("node", path=f"{os.environ['PATH']}:{ROOT}/.venv-page/bin")
    if not node:
        pytest.skip("there is no node here")
    capture = tmp_path / "node.pftrace"
    sonde("record", "-F", 499, "-o", capture, "--", node, "--perf-basic-prof", "-e", JAVASCRIPT, check=0)
    data = report(capture, "--limit", 100000)
    assert any("fib" in row["name"] for row in data["tables"]["function"]["rows"] if row["kind"] == "jit")
    assert data["completeness"]["complete_share"] > 0.9


@needs_bpf
def test_python_with_perf_trampolines(sonde, report, tmp_path):
    found = list(pythons_with_perf_support())
    if not found:
        pytest.skip("there is no CPython 3.12 or later with perf support here")
    for number, python in enumerate(found):
        capture = tmp_path / f"{number}.pftrace"
        sonde("record", "-F", 499, "-o", capture, "--", python, "-X", "perf", "-c", PYTHON, check=0)
        data = report(capture, "--limit", 100000)
        assert any("py::inner" in row["name"] for row in data["tables"]["function"]["rows"]), python
        assert data["completeness"]["complete_share"] > 0.93, python


@pytest.mark.parametrize(
    "runtime, advice",
    [("java", "DumpPerfMapAtExit"), ("node", "--perf-basic-prof"), ("dotnet", "DOTNET_PerfMapEnabled"),
     ("luajit", "LUAJIT_USE_PERFTOOLS"), ("unknown", "/tmp/perf-PID.map")],
)
def test_advice_for_code_without_names(sonde, workload, tmp_path, runtime, advice):
    """A stand-in that is called as the runtime is, and generates code without names."""
    shutil.copy(workload("jit")[0], tmp_path / runtime)
    capture = tmp_path / "capture.pftrace"
    sonde("record", "-F", 499, "-o", capture, "--", tmp_path / runtime, 1, "nomap", check=0)
    text = " ".join(sonde("report", capture, check=0).stdout.split())
    assert "without a name, most in [anon]" in text
    assert advice in text
