# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package can ask for. The package is the one beside the program that SONDE names.

package                    the folder for PYTHONPATH
run(text, ...)             runs a program of Python with the package, returns a subprocess.CompletedProcess
torch                      a Python with PyTorch, once for each release that is here
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def package_folder():
    program = Path(os.environ.get("SONDE", ROOT / "build" / "sonde")).resolve()
    return program.parent / "python"


# For the tests that need no process of their own.
sys.path.insert(0, str(package_folder()))


@pytest.fixture(scope="session")
def package():
    folder = package_folder()
    if not (folder / "sonde" / "_core.abi3.so").exists():
        pytest.exit(f"there is no built package in {folder}; build it with 'make' or name the program in SONDE", 2)
    return folder


def _of_torch():
    """Debian's torch 1.13 always, torch 2 of tools/venv with --slow; each module's smoke test runs on both."""
    pythons = {"torch1": Path("/usr/bin/python3"), "torch2": ROOT / ".venv-torch2" / "bin" / "python"}
    probe = ["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return {
        name: python
        for name, python in pythons.items()
        if python.exists() and not subprocess.run([python, *probe]).returncode
    }


TORCH = _of_torch()


@pytest.fixture(
    params=[
        pytest.param(python, id=name, marks=[pytest.mark.slow] * (name == "torch2")) for name, python in TORCH.items()
    ]
    or [pytest.param(None, marks=pytest.mark.skip(reason="there is no Python with PyTorch"))]
)
def torch(request):
    return request.param


@pytest.fixture(params=list(TORCH.values()) or [None], ids=list(TORCH) or ["none"])
def every_torch(request):
    """As torch, but all of them also without --slow: for one test of each part."""
    if request.param is None:
        pytest.skip("there is no Python with PyTorch")
    return request.param


@pytest.fixture
def environment(package, tmp_path):
    """Without what the machine's own job says of ranks, with a home of its own."""
    ours = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_", "OMPI_", "PMIX_", "SONDE", "VLLM_CHAKRA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONPATH": str(package), "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def run(environment, tmp_path):
    def run_text(text, *arguments, python=sys.executable, env=None, check=0, timeout=120, prefix=()):
        done = subprocess.run(
            [*prefix, str(python), "-c", textwrap.dedent(text), *map(str, arguments)],
            env={**environment, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check is not None:
            assert done.returncode == check, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run_text
