#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/systems.md to what it says: every row of its tables names tests, and each named test exists.

A row ends in a cell of `FILE::TEST` names, or in the words "not yet". Usage: check-systems.py [ROOT]
"""

import re
import sys
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
    return f"cmocka_unit_test({name})" in text or re.search(rf"^{name}\b", text, re.MULTILINE) is not None


def check(root):
    problems, missing, proven = [], 0, 0
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
    if not proven:
        problems.append(f"{page}: no row names a test")
    return problems, proven, missing


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
    problems, proven, missing = check(root)
    for problem in problems:
        print(problem)
    print(f"{proven} rows with tests, {missing} '{NOT_YET}'")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
