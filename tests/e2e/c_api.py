# SPDX-License-Identifier: Apache-2.0
"""Is the C API where pkg-config looks by itself? A program is compiled, linked and run with nothing but `pkg-config … sonde`."""

import os
import subprocess

PROGRAM = """
#include <sonde/sonde.h>

int main(void)
{
	sonde_range_push("work");
	sonde_range_pop();
	sonde_step("step");
	return 0;
}
"""
BUILD_AND_RUN = "cc program.c $(pkg-config --cflags --libs sonde) -o program && ./program"


def own_places():
    """Where pkg-config looks on this system."""
    show = ["pkg-config", "--variable", "pc_path", "pkg-config"]
    return subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip().split(":")


def check_found(folder, root, places):
    """In `folder`, as if the system were the one below `root`, whose pkg-config looks in `places`."""
    (folder / "program.c").write_text(PROGRAM)
    # Without the last two it would take for granted what it found below the root: compilers look there, but not below a root.
    environment = {"PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_LIBDIR": ":".join(f"{root}{place}" for place in places),
                   "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    check_builds(folder, environment)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "sonde"], env={**os.environ, **environment}, capture_output=True, text=True)
    assert f"-L{root}/" in flags.stdout and f"-I{root}/" in flags.stdout, flags


def check_builds(folder, environment):
    (folder / "program.c").write_text(PROGRAM)
    done = subprocess.run(["sh", "-ec", BUILD_AND_RUN], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
