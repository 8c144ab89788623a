# SPDX-License-Identifier: Apache-2.0
"""sonde.watch: layers and components of a model as ranges. watch_cases.py has what is tested, in one process of
PyTorch 2; "energy N" names a defect of the energy profiler that must not come back, as docs/systems.md numbers them."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import TORCH, package_folder

HERE = Path(__file__).parent
CASES = HERE / "watch_cases.py"


def names_in(path):
    return re.findall(r"^def (case_\w+)\(", path.read_text(), re.MULTILINE)


def python_of_torch2():
    python = TORCH.get("torch2")
    if python is None:
        pytest.skip("there is no PyTorch 2; 'tools/venv torch2' installs it from PyPI")
    return python


def run_cases(path, folder, *names, timeout=600):
    variables = {"PYTHONPATH": str(package_folder()), "TORCHINDUCTOR_CACHE_DIR": str(folder), "HOME": str(folder)}
    done = subprocess.run(
        [python_of_torch2(), "-W", "ignore", path, *names],
        env={**os.environ, **variables, "HF_HUB_OFFLINE": "1"},
        cwd=folder, capture_output=True, text=True, timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What each case of watch_cases.py raised."""
    return run_cases(CASES, tmp_path_factory.mktemp("watch"))


@pytest.mark.parametrize("name", names_in(CASES))
def test_watch(watched, name):
    assert watched[name] == ""
