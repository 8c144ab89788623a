# SPDX-License-Identifier: Apache-2.0
"""Where the program sonde is, which pip installs with this package, and what else has its name.

On PyPI another project is called sonde, with a package and a script of that name; ours is the distribution sonde-profiler.
"""

import os
from typing import List, Optional

# From the package's folder: lib/pythonX/site-packages/sonde, lib/sonde/python/sonde, pip's --target, a build folder.
_BESIDE = ("../../../../bin/sonde", "../bin/sonde", "../../sonde")


_SCRIPT_BYTES = 2048  # what pip writes as a script is shorter


def is_other_project(path: str) -> bool:
    """Is the file a script of Python that imports a package sonde which is not this one? As src/cli/doctor/name.c has it."""
    try:
        with open(path, "rb") as file:
            text = file.read(_SCRIPT_BYTES)
    except OSError:
        return False
    return text.startswith(b"#!") and b"python" in text and b"sonde" in text and b"sonde.__main__" not in text


def _candidates() -> List[str]:
    """Programs that are called sonde: beside the package, then on PATH."""
    folder = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.normpath(os.path.join(folder, place)) for place in _BESIDE]
    paths += [os.path.join(place, "sonde") for place in os.get_exec_path() if place]
    return [path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)]


def program_path() -> Optional[str]:
    """The path that SONDE names, otherwise the program installed with the package, otherwise the one on PATH."""
    if os.environ.get("SONDE"):
        return os.environ["SONDE"]
    return next((path for path in _candidates() if not is_other_project(path)), None)


def why_no_program() -> str:
    """A sentence, where program_path() has none."""
    others = [path for path in _candidates() if is_other_project(path)]
    if others:
        return f"{others[0]} is a script of another project called sonde; install the wheel sonde_profiler again, or name the program in SONDE"
    return (
        "the program sonde is neither beside the package nor on PATH; 'pip install .' of a checkout gives the package alone: install the"
        " wheel of a release, or run 'make' in the checkout and name its build/sonde in SONDE"
    )


def other_distribution() -> Optional[str]:
    """A sentence, where pip has installed the other project beside this package."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        names = [name for name in os.listdir(folder) if name.startswith("sonde-") and name.endswith(".dist-info")]
    except OSError:  # in an archive
        return None
    if not names:
        return None
    return (
        f"{os.path.join(folder, names[0])} is another project, whose files take the place of this one's and the other way round:"
        " pip uninstall sonde, and install the wheel sonde_profiler again"
    )
