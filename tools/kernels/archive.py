#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of the packages that `apt-cache dumpavail` lists, the newest kernel of each series that is there with all of its files.

    apt-cache dumpavail | archive.py ARCHITECTURE

For each series a line: the series, the kernel's version, and the packages to unpack, the kernel's own first. A series of which
the archive has only parts has "-" for its version, then what is missing of its newest kernel."""

import itertools
import re
import sys

# Packages of newer kernels have their files in others.
PART = re.compile(r"\blinux-(?:binary|modules)-[^ ,]+")


def read_packages(lines):
    """The fields of each package of Linux."""
    fields = {}
    for line in itertools.chain(lines, ["\n"]):
        if line != "\n":
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
            continue
        if fields.get("Package", "").startswith("linux-"):
            yield fields
        fields = {}


def in_order(text):
    """6.12.9 before 6.12.118"""
    return [(int(number), "") if number else (-1, other) for number, other in re.findall(r"(\d+)|(\D+)", text)]


def kernels(packages, architecture):
    """(series, version, packages) of each kernel, the oldest first. Those for clouds have no 9p."""
    image = re.compile(rf"linux-image-((\d+\.\d+)\.\d\S*)-{re.escape(architecture)}")
    found = []
    for package in packages:
        match = image.fullmatch(package["Package"])
        if match and not re.search(r"-(cloud|rt)$", match[1]):
            parts = sorted(set(PART.findall(package.get("Depends", ""))))
            found.append((match[2], package["Version"], [package["Package"], *parts]))
    return sorted(found, key=lambda kernel: (in_order(kernel[2][0]), in_order(kernel[1])))


def newest(packages, architecture):
    packages = list(packages)
    there = {package["Package"] for package in packages}
    whole, partial = {}, {}
    for series, version, names in kernels(packages, architecture):
        missing = [name for name in names if name not in there]
        if missing:
            partial[series] = ("-", missing)
        else:
            whole[series] = (version, names)
    chosen = {**partial, **whole}
    return [(series, *chosen[series]) for series in sorted(chosen, key=in_order)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for series, version, names in newest(read_packages(sys.stdin), sys.argv[1]):
        print(series, version, *names)


if __name__ == "__main__":
    main()
