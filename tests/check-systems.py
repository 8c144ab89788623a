#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/systems.md to what it says: every row of its tables names tests, and each named test exists and ran.

A row ends in a cell of `FILE::TEST` names, or in the words "not yet". Given pytest's JUnit files of a whole run, a named
test that passed in none of them is an error, too: one that is always skipped proves nothing.

    tests/check-systems.py [ROOT [RESULTS.xml …]]
"""

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

NOT_YET = "not yet"
NAME = re.compile(r"`(tests/[\w./-]+)::(\w+)`")


def rows(text):
    """(line number, cells) of every row of every table whose last column is "test"."""
    header = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
        elif header[-1] == "test" and not set(line) <= set("|-: "):
            yield number, cells


def has_test(path, name):
    """Does the file define the test? In C as a function that cmocka runs."""
    if not path.is_file():
        return False
    text = path.read_text()
    if path.suffix == ".py":
        return re.search(rf"^\s*def {name}\(", text, re.MULTILINE) is not None
    return re.search(rf"\b(cmocka_unit_test\w*|TEST)\({name}\b|^{name}\b", text, re.MULTILINE) is not None


def passed_tests(results):
    """{(module, test)} of the tests that passed, without their parameters."""
    passed = set()
    for path in results:
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            if not any(case.find(word) is not None for word in ("skipped", "failure", "error")):
                module = next(part for part in case.get("classname").split(".") if part.startswith("test_"))
                passed.add((module, case.get("name").split("[")[0]))
    return passed


def check(root, results):
    problems, missing, proven = [], 0, 0
    passed = passed_tests(results)
    page = root / "docs" / "systems.md"
    for number, cells in rows(page.read_text()):
        names = NAME.findall(cells[-1])
        proven += bool(names)
        if not names and NOT_YET not in cells[-1]:
            problems.append(f"{page}:{number}: names no test, and is not marked '{NOT_YET}'")
        missing += not names
        for file, name in names:
            if not has_test(root / file, name):
                problems.append(f"{page}:{number}: there is no {file}::{name}")
            elif results and Path(file).name.startswith("test_") and (Path(file).stem, name) not in passed:
                problems.append(f"{page}:{number}: {file}::{name} did not pass in this run: skipped, or not run")
    if not proven:
        problems.append(f"{page}: no row names a test")
    return problems, proven, missing


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
    problems, proven, missing = check(root, sys.argv[2:])
    for problem in problems:
        print(problem)
    print(f"{proven} rows with tests, {missing} '{NOT_YET}'")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
