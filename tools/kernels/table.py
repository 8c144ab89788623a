#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernels gave, from the results of tests/e2e/test_kernel.py to the tables in docs/record.md.

    table.py add RESULTS.xml RELEASE VERSION    keeps the results of one kernel, in place of older ones of its series
    table.py write                              writes the tables
    table.py show RESULTS.xml                   prints the shares of complete stacks, keeps nothing
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/data/kernels.json"
PAGE = ROOT / "docs/record.md"
BEGIN, END = "<!-- kernels: written by make test-kernels -->\n", "<!-- end of kernels -->\n"

# Column -> the test that says whether it works.
COLUMNS = {
    "kernel frames": "test_kernel_frames",
    "Python": "test_python",
    "exact waits": "test_waits",
    "stacks of launches: BPF": "test_launches",
    "in the process": "test_launches_in_the_process",
    "`-p`": "test_a_running_process",
    "`-a`": "test_the_machine",
    "`dump`": "test_dump",
    "without privileges": "test_levels_of_the_kernel[2]",
}
CELLS = {"passed": "yes", "failed": "**no**", "skipped": "–"}


def series(release):
    """Of 6.1.0-56-amd64: amd64, 6, 1."""
    numbers = re.match(r"(\d+)\.(\d+)", release).groups()
    return release.rpartition("-")[2], *map(int, numbers)


def series_name(release):
    """6.1, and for other processors than most 6.1 arm64"""
    processor, *numbers = series(release)
    return ".".join(map(str, numbers)) + ("" if processor == "amd64" else f" {processor}")


def outcome(case):
    tags = {child.tag for child in case}
    return "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"


def read_results(text):
    """(tests: name -> outcome, facts: what tests recorded as properties)"""
    tests, facts = {}, {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        tests[case.get("name")] = outcome(case)
        facts.update({item.get("name"): json.loads(item.get("value")) for item in case.iter("property")})
    return tests, facts


def share(stacks):
    """Of (user stacks, stacks by their end): complete ones, rounded down."""
    if not stacks or not stacks[0]:
        return "–"
    return f"{stacks[1]['complete'] * 10000 // stacks[0] / 100:.2f} % of {stacks[0]:,}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def kernel_rows(kernels):
    for kernel in kernels:
        facts, tests = kernel["facts"], kernel["tests"]
        yield [f"{kernel['release']} ({kernel['version']})", f"`{facts['root'][0]}`" if "root" in facts else "**none**",
               share(facts.get("stacks of commands")), share(facts.get("stacks of the example")),
               *(CELLS[tests.get(test, "skipped")] for test in COLUMNS.values())]


def together(situations):
    """For "level 0", "level 1" and "without BTF": level 0, 1; without BTF."""
    values = {}
    for situation in situations:
        what, _, value = situation.rpartition(" ")
        values.setdefault(what, []).append(value)
    return "; ".join(f"{what} {', '.join(found)}".strip() for what, found in values.items())


def situation_rows(kernels):
    """What sonde does with less, and the kernels where it does. Situations of one outcome share a row."""
    where, rows = {}, {}
    for kernel in kernels:
        name = series_name(kernel["release"])
        for situation, fact in kernel["facts"].items():
            if not situation.startswith("stacks of") and fact[2]:
                where.setdefault((situation, *fact), []).append(name)
    for (situation, *fact), names in where.items():
        rows.setdefault((*fact, "all" if len(names) == len(kernels) else ", ".join(names)), []).append(situation)
    for (mode, shows, sentence, names), situations in rows.items():
        yield [together(situations), names, f"`{mode}`" if mode != "none" else mode, shows, sentence.removeprefix("sonde: ")]


def failures(kernels):
    """A line for each kernel where tests failed that have no column."""
    for kernel in kernels:
        failed = [name for name, how in kernel["tests"].items() if how == "failed" and name not in COLUMNS.values()]
        if failed:
            yield f"\nOn {kernel['release']} these tests failed, too: {', '.join(f'`{name}`' for name in failed)}.\n"


def tables(kernels):
    return (
        table(["Debian's kernel", "root's mode", "complete stacks of commands", "of the example", *COLUMNS], kernel_rows(kernels))
        + "\n"
        + table(["with less", "kernels", "mode", "shows", "what sonde says"], situation_rows(kernels))
        + "".join(failures(kernels))
    )


def page_with(page, kernels):
    before, rest = page.split(BEGIN)
    return before + BEGIN + tables(kernels) + END + rest.split(END)[1]


def read_kernels():
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def add(path, release, version):
    tests, facts = read_results(Path(path).read_text(encoding="utf-8"))
    kernels = [kernel for kernel in read_kernels() if series(kernel["release"]) != series(release)]
    kernels.append({"release": release, "version": version, "tests": tests, "facts": facts})
    kernels.sort(key=lambda kernel: series(kernel["release"]))
    RESULTS.write_text(json.dumps(kernels, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def show(path):
    for name, fact in read_results(Path(path).read_text(encoding="utf-8"))[1].items():
        if name.startswith("stacks of"):
            print(f"{name}: {share(fact)} {fact[1]}")


def main():
    if sys.argv[1:2] == ["add"] and len(sys.argv) == 5:
        add(*sys.argv[2:])
    elif sys.argv[1:2] == ["show"] and len(sys.argv) == 3:
        show(sys.argv[2])
    elif sys.argv[1:] == ["write"]:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), read_kernels()), encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
