# SPDX-License-Identifier: Apache-2.0
"""Where the program sonde is, which pip installs with this package."""

import os
import shutil
from typing import Optional

# From the package's folder: lib/pythonX/site-packages/sonde, lib/sonde/python/sonde, pip's --target, a build folder.
_BESIDE = ("../../../../bin/sonde", "../bin/sonde", "../../sonde")


def program_path() -> Optional[str]:
    """The path that SONDE names, otherwise the program installed with the package, otherwise the one on PATH."""
    if os.environ.get("SONDE"):
        return os.environ["SONDE"]
    folder = os.path.dirname(os.path.abspath(__file__))
    for place in _BESIDE:
        path = os.path.normpath(os.path.join(folder, place))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("sonde")
