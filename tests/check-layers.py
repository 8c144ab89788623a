#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a layer under src/ uses one that the table in ARCHITECTURE.md forbids, by an #include or by a linked symbol.

Beside them it holds what the layers are for:
- An analysis has one definition, ours: no name there has the name of a tool (a folder of src/compat/) as one of its words.
- The recording half knows no runtime (a folder of src/inject/ with a runtime.h): no name of its code has its word.
- Analyses, sections and exporters print nothing, and what a section found is written as JSON by the renderers alone.
- A source and an exporter are known to their table alone.
- A file has at most 600 lines, a function at most 60 between its braces.

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

NEUTRAL = {"bpf", "wire", "sources", "collect"}
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
FILE_LINES, FUNCTION_LINES = 600, 60
SILENT = {"analyses", "compat", "report", "exporters"}
PRINTS = re.compile(r"(?:__)?[vf]{0,2}d?printf(?:_chk)?|puts|fputs|fputc|putc|putchar|fwrite|write|stdout|stderr")
RENDERERS = ("render_", "document.")
IN_TABLES = {"sources": re.compile(r"[a-z0-9_]+_source"), "exporters": re.compile(r"[a-z0-9_]+_exporter")}


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


def runtime_names(root, path):
    """Faults of names such as cuda_clock, in code; comments and sentences may say CUDA."""
    runtimes = sorted(folder.parent.name for folder in (root / "src/inject").glob("*/runtime.h"))
    if not runtimes:
        return
    word = re.compile(rf"\w*(?<![a-z])(?:{'|'.join(runtimes)}|cupti)\w*", re.I)
    code = NO_CODE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
    for number, line in enumerate(code.splitlines(), 1):
        if match := word.search(line):
            yield f"{path.relative_to(root)}:{number}: {match[0]} belongs in src/inject/: here names are those of any runtime"


def check_lengths(name, lines):
    """Faults of a file and of its functions, whose braces stand at the begin of their lines."""
    if len(lines) > FILE_LINES:
        yield f"{name}: {len(lines)} lines; a file has at most {FILE_LINES}"
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > FUNCTION_LINES:
                yield f"{name}:{start}: a function of {number - start - 1} lines; it has at most {FUNCTION_LINES}"
            start = None


def check_file(root, path, table):
    layer = path.relative_to(root / "src").parts[0]
    name = path.relative_to(root)
    if layer not in table:
        return [f"{name}: src/{layer}/ has no row in the table of ARCHITECTURE.md"]
    faults = list(check_lengths(name, path.read_text(encoding="utf-8").splitlines()))
    faults += tool_names(root, path) if layer == OURS else runtime_names(root, path) if layer in NEUTRAL else []
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


def misuse(layer, source, name, homes):
    """What is wrong with a use that the table of layers allows; None: nothing."""
    if layer in SILENT and PRINTS.fullmatch(name):
        return f"{layer} prints nothing, and calls {name}: what is found is data, src/cli/ writes it"
    if layer == "report" and name.startswith("json_") and "base" in homes and not source.startswith(RENDERERS):
        return f"a section writes no JSON, and calls {name}: renderers make it of its columns"
    for home, part in IN_TABLES.items():
        if home in homes and part.fullmatch(name) and (layer, source) != (home, f"{home}.c"):
            return f"{name} is known to the table in src/{home}/{home}.c alone"
    return None


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
    faults += [
        f"src/{layer}/{source}: {fault}"
        for layer, source, kind, name in sorted(set(found))
        if kind == UNDEFINED and (fault := misuse(layer, source, name, homes.get(name, ())))
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
