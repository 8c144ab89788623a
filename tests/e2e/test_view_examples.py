# SPDX-License-Identifier: Apache-2.0
"""Every view of the page, in light and dark, on recordings of the examples and on a job of eight ranks.

With SONDE_PICTURES=FOLDER each view is kept there as a picture, to be looked at.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from browser import wait_until
from server_client import Server
from trace_files import kineto_of_rank

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PYTHON = "/usr/bin/python3"
WEIGHTS = {"pytorch": ["cpu", "wait", "wall", "energy"], "pyopencl": ["cpu+gpu", "gpu", "gpu-idle"], "inference": ["cpu", "energy"], "ranks": ["gpu", "gpu-idle"]}
# What must be seen in a view of it.
SEEN = {"pytorch": ("/report", "train.py"), "pyopencl": ("/section/kernel", "hidden_forward"), "inference": ("/tokens", "first after"), "ranks": ("/steps/rank", "1 of 8")}
PICTURES = os.environ.get("SONDE_PICTURES")


def rail(folder):
    path = folder / "rail.jsonl"
    domain = {"name": "package-0", "part": "cpu", "parent": None, "quality": "counter", "period_ms": 10}
    lines = [{"sonde_energy": 1, "domains": [domain]}, *({"t_ms": t, "domain": "package-0", "energy_j": 0.05 * t} for t in range(0, 120_000, 10))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def lacks(python, *modules):
    return subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True, check=False).returncode != 0


@pytest.fixture
def example(sonde, tmp_path, request):
    """example(name) is the capture of an example, or the folder with the traces of eight ranks."""

    def record(name, *command, hooks=()):
        capture = tmp_path / f"{name}.pftrace"
        sonde("record", "-q", "--energy", f"replay:{rail(tmp_path)}", *hooks, "-o", capture, "--", *command, check=0)
        return capture

    def make(name):
        if name == "pytorch":
            if lacks(PYTHON, "torch"):
                pytest.skip("python3-torch is not installed")
            return record(name, PYTHON, EXAMPLES / "train.py", "--steps", "10", "--seconds", "3")
        if name == "pyopencl":
            assert not lacks(PYTHON, "pyopencl", "numpy"), "python3-pyopencl is not installed: run tools/deps test"
            return record(name, PYTHON, EXAMPLES / "train_opencl.py", "--steps", "50")
        if name == "inference":
            python = request.getfixturevalue("torch2")
            if lacks(python, "transformers"):
                pytest.skip("PyPI gave no transformers: see tools/venv torch2")
            command = [python, EXAMPLES / "generate.py", "--layers", "2", "--requests", "2", "--tokens", "8"]
            return record(name, *command, hooks=["--hooks", "transformers:component"])
        folder = tmp_path / name
        folder.mkdir()
        for rank in range(8):
            kineto_of_rank(folder / f"rank{rank}.json", rank, 8, shift_us=7 * rank)
        return folder

    return make


def keep_picture(page, *words):
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(PICTURES) / ("-".join(word.strip("/").replace("/", "-") for word in words) + ".png"))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WEIGHTS))
def test_every_view_of_an_example(sonde, open_page, example, name):
    server = Server(sonde.start("view", "--no-browser", "--listen", "127.0.0.1:0", example(name)))
    try:
        for scheme in ("light", "dark"):
            watched = open_page(server.address, scheme=scheme)
            page, base = watched.page, watched.page.url.split("#")[0]
            page.wait_for_selector("main section")
            links = [link.get_attribute("href") for link in page.query_selector_all("header nav a")]
            places = [href[1:] for href in links if href.startswith("#")]
            assert {place.split("?")[0] for place in places} == {"/report", "/flame", "/timeline", "/steps", "/graphs", "/model", "/tokens"}
            for place in [*places, *(f"/flame/{weight}" for weight in WEIGHTS[name]), SEEN[name][0]]:
                page.goto(f"{base}#{place}")
                page.wait_for_selector("main section, main canvas, main table, main p:not([role=status])")
                wait_until(page, "!document.querySelector('[role=status]')?.innerText.includes('being made')")
                assert page.locator("main [role=alert]").count() == 0, (place, page.inner_text("main"))
                assert watched.violations() == [], place
                keep_picture(page, name, place.split("?")[0], scheme)
            assert SEEN[name][1] in page.inner_text("main")
            assert watched.faults == []
    finally:
        server.end()
