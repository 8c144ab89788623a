# SPDX-License-Identifier: Apache-2.0
"""What measurements need beside the build: how to see whether it is here, and how to get it.

A measuring module declares NEEDS, without which it measures nothing, and NEEDS_OF_PARTS, without which it leaves a part
out. run.py looks for all of them before the first measurement. What is not declared is not given out: see
Workbench.take().

`make bench` gets what it can, with apt (tools/deps bench) and from PyPI (tools/venv). What is `given` it cannot get: a
run without it has not failed.
"""

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTION_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Need:
    """`is_there` takes the workbench. `get`: what to do. `environment`: the name that tools/venv makes it by; `packages`: those of
    which tools/deps bench installs one that the distribution has, or all."""

    name: str
    is_there: Callable
    get: str
    environment: str | None = None
    packages: tuple = ()
    is_given: Callable = lambda: False


def always():
    return True


def by_apt(name, is_there, *packages, then="", **more):
    return Need(name, is_there, f"tools/deps bench (installs {' '.join(packages)}){then}", packages=packages, **more)


def program(name, *packages):
    return by_apt(name, lambda bench: shutil.which(name) is not None, *packages)


def imports(python, *modules):
    """Whether this Python has the modules, and they can be loaded."""
    if not os.access(python, os.X_OK):
        return False
    return subprocess.run([python, "-W", "ignore", "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0


def environment_python(name):
    """Of the virtual environment that tools/venv makes under this name."""
    folder = ".venv" if name == "tests" else f".venv-{name}"
    return str(ROOT / folder / "bin" / "python")


def environment(need, name, *modules):
    return Need(need, lambda bench: imports(environment_python(name), *modules), f"tools/venv {name} (from PyPI)", environment=name)


def traces_folder():
    return Path(os.environ.get("SONDE_TRACES", ROOT.parent / "shared" / "traces"))


def trace_processor():
    return os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")


def perf_pythons():
    """CPythons with -X perf."""
    return sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python3"))


def page_folder(bench):
    """The page's files, as they are in the program."""
    release = ROOT / "web" / "dist"
    return release if (release / "index.html").exists() else bench.build / "src" / "page" / "page_assets.c.p"


def page_node():
    """The Node.js that builds the page: PyPI's where that was taken, see web/build.py."""
    own = Path(environment_python("page")).with_name("node")
    return str(own) if own.exists() else shutil.which("node")


def has_peers(bench):
    """One at least: PyPI does not have each for every Python."""
    folder = Path(environment_python("peers")).parent
    return any((folder / name).exists() for name in ("py-spy", "austin", "memray", "pyinstrument", "scalene"))


def has_opencl(bench):
    return (bench.build / "bench" / "launch-cost").exists() and (bench.build / "tests/e2e/workloads/opencl").exists()


def has_opencl_device(bench):
    code = "import numpy, pyopencl; assert any(platform.get_devices() for platform in pyopencl.get_platforms())"
    return subprocess.run([DISTRIBUTION_PYTHON, "-c", code], capture_output=True).returncode == 0


def has_clickhouse(bench):
    return shutil.which("clickhouse-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") is not None


def has_no_package(name):
    """Of the distribution."""
    return not shutil.which("apt-cache") or subprocess.run(["apt-cache", "show", name], capture_output=True).returncode != 0


PRIVILEGES = Need("privileges of root, for sonde's BPF mode and for perf", lambda bench: os.geteuid() == 0, "sudo make bench")
PERF = program("perf", "linux-perf", "linux-tools-generic")
DISTRIBUTION_TORCH = by_apt("the distribution's PyTorch", lambda bench: imports(DISTRIBUTION_PYTHON, "torch"), "python3-torch",
                            is_given=lambda: has_no_package("python3-torch"))
TORCH2 = environment("PyTorch 2", "torch2", "torch")
TRANSFORMERS = environment("transformers", "torch2", "transformers")
PEERS = Need("other profilers of Python", has_peers, "tools/venv peers (from PyPI)", environment="peers")
PLAYWRIGHT = environment("Playwright", "tests", "playwright.sync_api")
PYTEST = by_apt("pytest", lambda bench: importlib.util.find_spec("pytest") is not None, "python3-pytest")
CHROMIUM = by_apt("Chromium", lambda bench: shutil.which("chromium") or shutil.which("chromium-browser"), "chromium")
OPENCL = by_apt("the programs that use OpenCL", has_opencl, "ocl-icd-opencl-dev", "opencl-headers", then=", then make everything")
PYOPENCL = by_apt("PyOpenCL and a device for it", has_opencl_device, "python3-pyopencl", "pocl-opencl-icd")
CLICKHOUSE = by_apt("ClickHouse", has_clickhouse, "clickhouse-server", is_given=lambda: has_no_package("clickhouse-server"))
VALGRIND = program("valgrind", "valgrind")
REDIS_SERVER = program("redis-server", "redis-server")
REDIS_BENCHMARK = program("redis-benchmark", "redis-tools")
FFMPEG = program("ffmpeg", "ffmpeg")
NODE = program("node", "nodejs")
SQLITE = program("sqlite3", "sqlite3")
GDB = program("gdb", "gdb")

BUILT_PAGE = "make everything, which takes Node.js from PyPI where there is none"
PAGE = Need("the page, in the program", lambda bench: (page_folder(bench) / "index.html").exists(), BUILT_PAGE)
PAGE_PACKAGES = Need("the packages that the page is built with", lambda bench: page_node() and (ROOT / "web" / "node_modules" / "vite").is_dir(), BUILT_PAGE)
TRACES = Need("published traces", lambda bench: traces_folder().is_dir(),
              "SONDE_TRACES=DIR, or ../shared/traces beside the checkout: see docs/benchmarks.md", is_given=always)
TRACE_PEERS = Need("the sources of chakra and HTA", lambda bench: bench.peers is not None,
                   "SONDE_PEERS=DIR, a folder with their git repositories: see docs/benchmarks.md", is_given=always)
TRACE_PROCESSOR = Need("trace_processor_shell", lambda bench: trace_processor() is not None,
                       "TRACE_PROCESSOR=PROGRAM, from Perfetto's releases", is_given=always)
PERF_PYTHON = Need("a CPython from 3.12 on", lambda bench: bool(perf_pythons()), "pyenv install 3.12", is_given=always)
