# SPDX-License-Identifier: Apache-2.0
"""The Pythons with PyTorch that are here."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
