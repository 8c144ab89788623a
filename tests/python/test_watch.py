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
MODELS = HERE / "model_cases.py"


def names_in(path):
    return re.findall(r"^def (case_\w+)\(", path.read_text(), re.MULTILINE)


def python_of_torch2():
    python = TORCH.get("torch2")
    if python is None:
        pytest.skip("there is no PyTorch 2; 'tools/venv torch2' installs it from PyPI")
    return python


def has_transformers(python):
    probe = "import importlib.util as u, sys; sys.exit(not u.find_spec('transformers'))"
    return not subprocess.run([python, "-c", probe]).returncode


def run_cases(path, folder, *names, timeout=600):
    variables = {"PYTHONPATH": str(package_folder()), "TORCHINDUCTOR_CACHE_DIR": str(folder), "HOME": str(folder)}
    done = subprocess.run(
        [python_of_torch2(), "-W", "ignore", path, *names],
        env={**os.environ, **variables, "HF_HUB_OFFLINE": "1", "SONDE_HOOKS": "transformers:component"},
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


# ---- models of transformers ----

# In every run; the others take longer.
QUICK = ("llama", "qwen3_moe", "gemma3_text")


@pytest.fixture(scope="module")
def transformers():
    python = python_of_torch2()
    if not has_transformers(python):
        pytest.skip("there is no transformers for PyTorch 2; 'tools/venv torch2' installs it from PyPI")


@pytest.fixture(scope="module")
def quick_models(transformers, tmp_path_factory):
    names = [name for name in names_in(MODELS) if "slow" not in name]
    return run_cases(MODELS, tmp_path_factory.mktemp("models"), *QUICK, *names)


@pytest.fixture(scope="module")
def slow_models(transformers, tmp_path_factory):
    return run_cases(MODELS, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("name", [*QUICK, *(name for name in names_in(MODELS) if "slow" not in name)])
def test_models_of_transformers(quick_models, name):
    assert quick_models[name] == ""


def families():
    return re.findall(r'^    "(\w+)": ', re.search(r"^FAMILIES = \{(.*?)^\}", MODELS.read_text(), re.M | re.S)[1], re.M)


@pytest.mark.slow  # every family, and what needs more than a second
@pytest.mark.parametrize("name", [*families(), *names_in(MODELS)])
def test_every_model_of_transformers(slow_models, name):
    """Energy, seed log: architectures that were detected wrongly, and hooks that were missing."""
    assert slow_models[name] == ""
