#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a layer under src/ uses one that the table in ARCHITECTURE.md forbids, by an #include or by a linked symbol.

An analysis has one definition, ours: no name there has the name of a tool (a folder of src/compat/) as one of its words.

The table itself is read, so the page and the check cannot disagree: a row `| `src/LAYER/` | … | a, b |` lets LAYER
include a, b and itself; "anything" lets it include all layers. A folder without a row is an error, too.

Includes are resolved as the compiler does, so that "layer/x.h", <layer/x.h> and "../layer/x.h" are one. With a build folder
the objects are read, too: a function that one layer defines and another refers to is a use, whoever declared it.

    tests/check-layers.py [ROOT [BUILD]]     exit status 0: all is right, 1: something is not, 2: the table is unreadable
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\| `src/(?P<layer>[a-z_]+)/` \|.*\| (?P<allowed>[^|]*?) ?\|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?P<path>[^">]+)[">]')
OBJECT = re.compile(r"src/(?P<layer>[a-z_]+)/(?:\S*/)?(?P<object>[^/:\s]+)\.o:\s*(?:[0-9a-f]+)?\s+(?P<kind>[A-Za-z]) (?P<name>\S+)$")
SOURCES = {".c", ".h", ".cc"}
UNDEFINED = "U"
COMPAT, OURS = "compat", "analyses"


def read_table(page):
    """{layer: the set of layers it may use, or None for all}"""
    rows = filter(None, map(ROW.match, page.read_text(encoding="utf-8").splitlines()))
    words = {row["layer"]: re.findall(r"[a-z_]+", row["allowed"]) for row in rows}
    return {
        layer: None if "anything" in allowed else {layer, *(set(allowed) & set(words))}
        for layer, allowed in words.items()
    }


def layer_of_include(source, path, src):
    """The layer that an include names, None for a system header. src/ and the file's own folder are searched."""
    for folder in (source.parent, src):
        relative = os.path.relpath(os.path.normpath(folder / path), src).split(os.sep)
        if relative[0] != ".." and len(relative) > 1 and (folder / path).exists():
            return relative[0]
    return None


def included_layers(source, src, layers):
    """(line number, layer) of every include of a header of a layer."""
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        layer = match and layer_of_include(source, match["path"], src)
        if layer in layers:
            yield number, layer


def is_forbidden(table, layer, used):
    return table[layer] is not None and used not in table[layer]


def allowance(table, layer):
    return f"ARCHITECTURE.md allows it {', '.join(sorted(table[layer] - {layer})) or 'no other layer'}"


def tool_names(root, path):
    """Faults of names such as hta_compatible, in code or in comments."""
    for tool in sorted(folder.name for folder in (root / "src" / COMPAT).glob("*/")):
        word = re.compile(rf"\b\w*(?<![a-z]){tool}(?![a-z/])\w*")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := word.search(line):
                yield f"{path.relative_to(root)}:{number}: {match[0]} belongs in src/{COMPAT}/{tool}/"


def check_file(root, path, table):
    layer = path.relative_to(root / "src").parts[0]
    name = path.relative_to(root)
    if layer not in table:
        return [f"{name}: src/{layer}/ has no row in the table of ARCHITECTURE.md"]
    faults = list(tool_names(root, path)) if layer == OURS else []
    return faults + [
        f"{name}:{number}: {layer} may not include {included}; {allowance(table, layer)}"
        for number, included in included_layers(path, root / "src", table)
        if is_forbidden(table, layer, included)
    ]


def symbols(build, layers):
    """(layer, object, kind, name) of every global symbol of the layers' static libraries."""
    archives = sorted(path.relative_to(build) for path in (build / "src").rglob("*.a"))
    done = subprocess.run(["nm", "-A", "-g", *archives], capture_output=True, text=True, check=True, cwd=build)
    for match in filter(None, map(OBJECT.search, done.stdout.splitlines())):
        if match["layer"] in layers:
            yield match["layer"], match["object"], match["kind"], match["name"]


def check_symbols(build, table):
    """Faults of linked symbols, and how many uses of other layers there are."""
    found = list(symbols(build, table))
    homes = {}
    for layer, _, kind, name in found:
        if kind != UNDEFINED:
            homes.setdefault(name, set()).add(layer)
    uses = sorted(
        (layer, source, name, home)
        for layer, source, kind, name in set(found)
        if kind == UNDEFINED and layer not in homes.get(name, {layer})
        for home in homes[name]
    )
    faults = [
        f"src/{layer}/{source}: {layer} may not call {name} of {home}; {allowance(table, layer)}"
        for layer, source, name, home in uses
        if is_forbidden(table, layer, home)
    ]
    return faults, len(uses)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    table = read_table(root / "ARCHITECTURE.md")
    if "base" not in table or "cli" not in table:
        print("check-layers: found no table of layers in ARCHITECTURE.md", file=sys.stderr)
        return 2
    files = sorted(p for p in (root / "src").rglob("*") if p.suffix in SOURCES)
    faults = [fault for path in files for fault in check_file(root, path, table)]
    checked = f"{len(files)} files in {len(table)} layers"
    if len(sys.argv) > 2:
        forbidden, uses = check_symbols(Path(sys.argv[2]).resolve(), table)
        if not uses:
            print(f"check-layers: the libraries in {sys.argv[2]} use nothing of one another: build them first", file=sys.stderr)
            return 2
        faults += forbidden
        checked += f", {uses} uses of symbols"
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{checked}: {len(faults)} forbidden")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
