# SPDX-License-Identifier: Apache-2.0
"""The tables of kernels in docs/record.md are what the tests gave in those kernels."""

import importlib.util

import pytest

from conftest import ROOT

RESULTS = """<?xml version="1.0"?><testsuites><testsuite>
<testcase name="test_python"><properties><property name="root" value='["bpf", "kernel stacks", ""]'/>
<property name="stacks of the example" value='[3000, {"complete": 2999}]'/></properties></testcase>
<testcase name="test_waits"><failure message="x">x</failure></testcase>
<testcase name="test_lockdown"><failure message="x">x</failure></testcase>
<testcase name="test_dump"><error message="x">x</error></testcase>
<testcase name="test_the_machine"><skipped message="x">x</skipped></testcase>
</testsuite></testsuites>"""


PACKAGES = """Package: linux-image-6.1.0-9-amd64
Version: 6.1.27-1
Depends: kmod, linux-base (>= 4.3~)

Package: linux-image-6.1.0-10-amd64
Version: 6.1.38-1

Package: linux-image-6.1.0-11-rt-amd64
Version: 6.1.38-2

Package: linux-image-6.1.0-11-arm64
Version: 6.1.38-2

Package: linux-image-7.1.8-amd64
Version: 7.1.8-1
Depends: kmod, linux-binary-7.1.8-amd64 (= 7.1.8-1), linux-modules-7.1.8-amd64 (= 7.1.8-1)

Package: linux-binary-7.1.8-amd64
Version: 7.1.8-1

Package: linux-image-7.2.9-amd64
Version: 7.2.9-1
Depends: linux-base (>= 4.3~), linux-modules-7.2.9-amd64 (= 7.2.9-1), linux-binary-7.2.9-amd64 (= 7.2.9-1)

Package: linux-binary-7.2.9-amd64
Version: 7.2.9-1

Package: linux-modules-7.2.9-amd64
Version: 7.2.9-1
Description: modules
 Package: of the kernel

Package: linux-image-7.2.10-amd64
Version: 7.2.10-1
Depends: linux-modules-7.2.10-amd64 (= 7.2.10-1)
"""


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/kernels/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kernels():
    return load("table")


def test_the_newest_kernel_of_each_series():
    """Its packages are those that have its files; one that lacks some cannot be booted."""
    archive = load("archive")
    assert archive.newest(archive.read_packages(PACKAGES.splitlines(keepends=True)), "amd64") == [
        ("6.1", "6.1.38-1", ["linux-image-6.1.0-10-amd64"]),
        ("7.1", "-", ["linux-modules-7.1.8-amd64"]),
        ("7.2", "7.2.9-1", ["linux-image-7.2.9-amd64", "linux-binary-7.2.9-amd64", "linux-modules-7.2.9-amd64"]),
    ]


def result(release, facts, tests=()):
    return {"release": release, "version": "1", "facts": facts, "tests": dict(tests)}


def cells(text, row):
    """column -> cell, of the row that begins so"""
    lines = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in text.splitlines()]
    return dict(zip(lines[0], next(line for line in lines if line[0].startswith(row))))


def test_the_page_has_what_the_kernels_gave(kernels):
    page = kernels.PAGE.read_text(encoding="utf-8")
    assert kernels.page_with(page, kernels.read_kernels()) == page, "run tools/kernels/table.py write"


def test_results_of_tests(kernels, tmp_path, monkeypatch):
    """A failure is in the table, and a new kernel replaces the older one of its series."""
    (tmp_path / "results.xml").write_text(RESULTS)
    monkeypatch.setattr(kernels, "RESULTS", tmp_path / "kernels.json")
    for release in ("6.12.1-amd64", "6.1.0-55-amd64", "6.1.0-56-amd64"):
        kernels.add(tmp_path / "results.xml", release, "2")
    text = kernels.tables(kernels.read_kernels())
    assert "6.1.0-55" not in text and text.index("6.1.0-56") < text.index("6.12.1")
    row = cells(text, "6.1.0-56-amd64 (2)")
    assert row["root's mode"] == "`bpf`" and row["of the example"] == "99.96 % of 3,000"
    assert (row["Python"], row["exact waits"], row["`dump`"], row["`-a`"]) == ("yes", "**no**", "**no**", "–")
    assert row["complete stacks of commands"] == "–"
    assert "On 6.12.1-amd64 these tests failed, too: `test_lockdown`.\n" in text


def test_another_processor_has_rows_of_its_own(kernels, tmp_path, monkeypatch):
    (tmp_path / "results.xml").write_text(RESULTS)
    monkeypatch.setattr(kernels, "RESULTS", tmp_path / "kernels.json")
    for release in ("6.1.0-56-arm64", "6.12.1-amd64", "6.1.0-56-amd64"):
        kernels.add(tmp_path / "results.xml", release, "2")
    releases = [kernel["release"] for kernel in kernels.read_kernels()]
    assert releases == ["6.1.0-56-amd64", "6.12.1-amd64", "6.1.0-56-arm64"]
    less = ["user", "user stacks", "sonde: needs CAP_BPF"]
    text = kernels.tables([result("6.1.0-1-amd64", {}), result("6.1.0-1-arm64", {"level 1": less})])
    assert "| level 1 | 6.1 arm64 | `user` |" in text


def test_what_sonde_does_with_less(kernels):
    """Situations of one outcome share a row; an outcome names its kernels where not all have it."""
    loops = ["user", "kernel stacks", "needs bpf_loop"]
    less = ["user", "user stacks", "sonde: needs CAP_BPF"]
    text = kernels.tables([
        result("5.10.0-1-amd64", {"root": loops, "level 1": less, "level 2": less}),
        result("6.1.0-1-amd64", {"root": ["bpf", "kernel stacks", ""], "level 1": less, "level 2": less}),
    ])
    rows = text.partition("\n\n")[2].splitlines()[2:]
    assert rows == [
        "| root | 5.10 | `user` | kernel stacks | needs bpf_loop |",
        "| level 1, 2 | all | `user` | user stacks | needs CAP_BPF |",
    ]
