#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an #include "layer/…" under src/ that the table in ARCHITECTURE.md forbids.

The table itself is read, so the page and the check cannot disagree: a row `| `src/LAYER/` | … | a, b |` lets LAYER
include a, b and itself; "anything" lets it include all layers. A folder without a row is an error, too.

    tests/check-layers.py [ROOT]     exit status 0: all is right, 1: something is not, 2: the table is unreadable
"""

import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| `src/(?P<layer>[a-z_]+)/` \|.*\| (?P<allowed>[^|]*?) ?\|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(?P<path>[^"]+)"')
SOURCES = {".c", ".h", ".cc"}


def read_table(page):
    """{layer: the set of layers it may include, or None for all}"""
    rows = filter(None, map(ROW.match, page.read_text(encoding="utf-8").splitlines()))
    words = {row["layer"]: re.findall(r"[a-z_]+", row["allowed"]) for row in rows}
    return {
        layer: None if "anything" in allowed else {layer, *(set(allowed) & set(words))}
        for layer, allowed in words.items()
    }


def included_layers(path, layers):
    """(line number, layer) of every include that begins with the name of a layer."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        first = match and match["path"].split("/")[0]
        if match and "/" in match["path"] and first in layers:
            yield number, first


def check_file(root, path, table):
    layer = path.relative_to(root / "src").parts[0]
    name = path.relative_to(root)
    if layer not in table:
        return [f"{name}: src/{layer}/ has no row in the table of ARCHITECTURE.md"]
    allowed = table[layer]
    return [
        f"{name}:{number}: {layer} may not include {included}; ARCHITECTURE.md allows it "
        f"{', '.join(sorted(allowed - {layer})) or 'no other layer'}"
        for number, included in included_layers(path, table)
        if allowed is not None and included not in allowed
    ]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    table = read_table(root / "ARCHITECTURE.md")
    if "base" not in table or "cli" not in table:
        print("check-layers: found no table of layers in ARCHITECTURE.md", file=sys.stderr)
        return 2
    files = sorted(p for p in (root / "src").rglob("*") if p.suffix in SOURCES)
    faults = [fault for path in files for fault in check_file(root, path, table)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(files)} files in {len(table)} layers, {len(faults)} forbidden includes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
