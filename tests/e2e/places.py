# SPDX-License-Identifier: Apache-2.0
"""Where things are that tests are parametrised by. Not in conftest, of which there is another one beside this folder."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def torch_pythons():
    """Every Python with PyTorch that is here, for parametrising: the distribution's, and tools/venv's torch2."""
    candidates = [Path("/usr/bin/python3"), ROOT / ".venv-torch2" / "bin" / "python"]
    probe = ["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return [
        str(python)
        for python in candidates
        if python.exists() and subprocess.run([python, *probe]).returncode == 0
    ]
