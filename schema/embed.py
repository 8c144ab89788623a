#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a binary file as a C array: embed.py INPUT NAME > OUTPUT.c (NAME and NAME_length)."""

import sys


def main():
    path, name = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read()
    print(f"/* Generated from {path.rsplit('/', 1)[-1]}. */")
    print('#include "capture/descriptor_set.h"\n')
    print(f"const unsigned char {name}[] = {{")
    for start in range(0, len(data), 16):
        print("\t" + ", ".join(f"0x{byte:02x}" for byte in data[start : start + 16]) + ",")
    print(f"}};\nconst size_t {name}_length = sizeof({name});")


if __name__ == "__main__":
    main()
