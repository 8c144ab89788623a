# SPDX-License-Identifier: Apache-2.0
"""Reads `sonde export -f pprof`: stacks with functions, files and lines."""

import gzip
from collections import namedtuple

Frame = namedtuple("Frame", "function file line")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field; messages and packed numbers as bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, value


def packed(data):
    at, numbers = 0, []
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers


def read(path, value_type=0):
    """[(frames from the outermost on, number of samples, or the value of another type)]"""
    with gzip.open(path) as file:
        profile = list(fields(file.read()))
    texts = [value.decode(errors="replace") for number, value in profile if number == 6]
    functions, locations = {}, {}
    for number, value in profile:
        if number == 5:
            function = dict(fields(value))
            functions[function[1]] = (texts[function.get(2, 0)], texts[function.get(4, 0)])
    for number, value in profile:
        if number == 4:
            location, lines = 0, []
            for field, content in fields(value):
                if field == 1:
                    location = content
                elif field == 4:
                    line = dict(fields(content))
                    lines.append(Frame(*functions[line[1]], line.get(2, 0)))
            locations[location] = lines
    samples = []
    for number, value in profile:
        if number == 2:
            sample = list(fields(value))
            ids = [i for field, content in sample if field == 1 for i in packed(content)]
            counts = [i for field, content in sample if field == 2 for i in packed(content)]
            frames = [frame for i in ids for frame in locations[i]]
            samples.append((tuple(reversed(frames)), counts[value_type]))
    return samples
