# SPDX-License-Identifier: Apache-2.0
"""The Python tools that sonde's traces are compared with: chakra_trace_link, chakra_converter and HTA.

Their sources come from a folder that the bench is given (--peers, or SONDE_PEERS), with a git repository for each:
chakra, HolisticTraceAnalysis, param. The commits that were measured are taken from there; what they need comes from
PyPI, into a virtual environment in the user's cache.
"""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from workbench import Missing

CHAKRA, HTA = "21585d8f2d65603d791d2121e3d4632351120262", "f4d0062c382f42bd8a74838bcdad1916c7d5d2da"
# What chakra asks for.
CHAKRAS_HTA, CHAKRAS_PARAM = "d731cc2e2249976c97129d409a83bd53d93051f6", "7b19f586dd8b267333114992833a0d7e0d601630"
# protobuf as old as the distribution's protoc: a newer one refuses its code.
NEEDS = (
    "pandas==1.5.3",
    "numpy<2",
    "networkx==3.1",
    "protobuf==4.21.12",
    "plotly==5.24.1",
    "pydot==3.0.4",
    "graphviz==0.20.3",
    "psutil==6.1.0",
    "pyyaml==6.0.2",
)
BIG_TRACE = "tests/data/mtia_trace_single_rank/mtia_rank_0.json.gz"
HTA_SCRIPT = Path(__file__).with_name("hta_analyses.py")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command[:4]))} …: {done.stderr.decode(errors='replace')[-300:].strip()}")
    return done.stdout


class TracePeers:
    """`folder`: of the repositories, or None: then `missing` says so and nothing can be run."""

    def __init__(self, bench, folder):
        self.bench = bench
        self.missing = None
        self.site = bench.folder / "peers"
        try:
            self._prepare(Path(folder) if folder else None)
        except Missing as error:
            self.missing = str(error)

    def _prepare(self, folder):
        if folder is None:
            raise Missing("no sources of chakra and HTA: --peers or SONDE_PEERS names their folder")
        self.folder = folder
        self.python = self._environment()
        self._unpack("chakra", CHAKRA, "link/chakra", "src", "schema")
        self._unpack("HolisticTraceAnalysis", CHAKRAS_HTA, "link", "hta")
        self._unpack("param", CHAKRAS_PARAM, "link", "et_replay")
        self._unpack("HolisticTraceAnalysis", HTA, "hta", "hta")
        schema = self.site / "link" / "chakra" / "schema" / "protobuf"
        run("protoc", f"--python_out={schema}", f"--proto_path={schema}", schema / "et_def.proto")

    def _environment(self):
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        place = cache / "sonde-bench" / "trace-peers"
        python = place / "bin" / "python"
        if not python.exists():
            run(sys.executable, "-m", "venv", place)
        run(python, "-m", "pip", "--quiet", "install", "--only-binary", ":all:", *NEEDS)
        return python

    def repository(self, name):
        path = self.folder / name
        if not path.exists():
            raise Missing(f"{self.folder} has no repository {name}")
        return path

    def _unpack(self, name, commit, place, *paths):
        target = self.site / place
        target.mkdir(parents=True, exist_ok=True)
        archive = self.bench.folder / "archive.tar"
        run("git", "-C", self.repository(name), "archive", "-o", archive, commit, *paths)
        with tarfile.open(archive) as content:
            content.extractall(target)
        archive.unlink()

    def file(self, name, commit, path):
        """The bytes of a file of a repository."""
        return run("git", "-C", self.repository(name), "show", f"{commit}:{path}")

    def link(self, et, kineto, out):
        return [
            self.python,
            "-m",
            "chakra.src.trace_link.trace_link",
            "--rank",
            "0",
            "--chakra-host-trace",
            et,
            "--chakra-device-trace",
            kineto,
            "--output-file",
            out,
            "--log-level",
            "ERROR",
        ]

    def convert(self, linked, out):
        return [
            self.python,
            "-m",
            "chakra.src.converter.converter",
            "--log-filename",
            "/dev/null",
            "PyTorch",
            "--input",
            linked,
            "--output",
            out,
        ]

    def analyse(self, kineto):
        return [self.python, HTA_SCRIPT, kineto]

    def environment(self, name):
        return {"PYTHONPATH": str(self.site / name)}
