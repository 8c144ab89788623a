# SPDX-License-Identifier: Apache-2.0
"""Wheels from PyPI for the checks of the vendor suite."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


class Unavailable(Exception):
    """No such wheel can be had."""


def unpack(folder, requirement, wanted):
    """The wheel's files with one of the words in `wanted` in their path, below folder/requirement; fetched when they are
    not there yet."""
    to = folder / requirement
    if to.is_dir():
        return to
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", temporary, requirement],
                              capture_output=True, text=True)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            raise Unavailable(f"{requirement} cannot be had: {done.stderr.strip().splitlines()[-1:]}")
        part = Path(temporary) / "part"
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(part, [name for name in wheel.namelist() if any(word in name for word in wanted)])
        part.rename(to)
    return to
