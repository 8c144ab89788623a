#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes text files as C strings: embed.py FILE... > OUTPUT.c (a.css becomes a_css)."""

import json
import os
import sys


def main():
    print('#include "exporters/flamegraph/assets.h"')
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "]]>" in text:
            sys.exit(f"{path}: ']]>' would end the CDATA section that it is written into")
        name = os.path.basename(path)
        print(f"\n/* Generated from {name}. */")
        print(f"const char {name.replace('.', '_')}[] =")
        lines = (json.dumps(line, ensure_ascii=False) for line in text.splitlines(keepends=True))
        print("\t" + "\n\t".join(lines) + ";")


if __name__ == "__main__":
    main()
