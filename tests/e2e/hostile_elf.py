# SPDX-License-Identifier: Apache-2.0
"""ELF files that cost their reader far more than their writer, made of sound ones."""

import struct
import zlib

SHT_SYMTAB = 2
SHF_COMPRESSED = 0x800
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")


class Elf:
    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        header = HEADER.unpack_from(self.bytes)
        self.sections_at, self.count, self.names = header[6], header[12], header[13]

    def section(self, index):
        return list(SECTION.unpack_from(self.bytes, self.sections_at + index * SECTION.size))

    def contents(self, index):
        section = self.section(index)
        return bytes(self.bytes[section[4] : section[4] + section[5]])

    def find(self, name):
        names = self.contents(self.names)
        for index in range(1, self.count):
            at = self.section(index)[0]
            if names[at : names.index(b"\0", at)] == name:
                return index
        raise KeyError(name)

    def append(self, more):
        self.bytes += bytes(-len(self.bytes) % 16)
        at = len(self.bytes)
        self.bytes += more
        return at


def deflated_zeros(length):
    """zlib's stream of so many zeros, at the cost of a few megabytes of them."""
    piece = 1 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(piece))
    packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(piece)) + packer.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    end = last.compress(bytes(length % piece)) + last.flush()
    checksum = length % 65521 << 16 | 1
    return b"\x78\x9c" + block * (length // piece) + end + struct.pack(">I", checksum)


def pack_section(elf, name, stream, length):
    """The section's contents are zlib's stream of so many bytes."""
    index = elf.find(name)
    section = elf.section(index)
    contents = struct.pack("<IIQQ", 1, 0, length, 1) + stream
    section[2] |= SHF_COMPRESSED
    section[4], section[5] = elf.append(contents), len(contents)
    SECTION.pack_into(elf.bytes, elf.sections_at + index * SECTION.size, *section)


def write_program(elf, target):
    target.write_bytes(elf.bytes)
    target.chmod(0o755)


def inflate_section(source, target, name, length):
    """A copy of `source` whose section `name` is a stream of `length` zeros."""
    elf = Elf(source)
    pack_section(elf, name, deflated_zeros(length), length)
    write_program(elf, target)


def add_blocks(source, target, count):
    """A copy of `source` whose debug information has one function, with so many blocks that say nothing."""
    # DW_TAG_compile_unit, _subprogram (both with low_pc and high_pc), _lexical_block
    ranged = b"\x11\x01\x12\x07\0\0"
    abbreviations = b"\1\x11\1" + ranged + b"\2\x2e\1" + ranged + b"\3\x0b\0\0\0\0"
    all_code = struct.pack("<QQ", 0x1000, 1 << 20)
    entries = b"\1" + all_code + b"\2" + all_code + b"\3" * count + b"\0\0"
    information = struct.pack("<IHIB", 7 + len(entries), 4, 0, 8) + entries
    elf = Elf(source)
    for name, contents in (b".debug_abbrev", abbreviations), (b".debug_info", information):
        pack_section(elf, name, zlib.compress(contents, 1), len(contents))
    write_program(elf, target)


def share_symbols(source, target, count):
    """A copy of `source` with `count` more section headers, each of the same .symtab."""
    elf = Elf(source)
    symbols = elf.section(elf.find(b".symtab"))
    assert symbols[1] == SHT_SYMTAB
    headers = elf.bytes[elf.sections_at : elf.sections_at + elf.count * SECTION.size]
    at = elf.append(bytes(headers) + SECTION.pack(*symbols) * count)
    struct.pack_into("<Q", elf.bytes, 40, at)
    struct.pack_into("<H", elf.bytes, 60, elf.count + count)
    write_program(elf, target)
