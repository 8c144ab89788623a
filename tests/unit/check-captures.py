#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at captures from outside: check-captures.py MAKE_CAPTURE PROTOC SCHEMA_FOLDER GOLDEN_FOLDER

Decodes what the writer writes, plain and deflated, with protoc and our schema: no field may be
unknown there. Then reads the golden captures, which must give the same text for ever.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

TRACE_PACKET_TAG = 0x0A
COMPRESSED_PACKETS_TAG = (50 << 3) | 2


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def packets(trace):
    """The contents of the packets of a trace."""
    at = 0
    while at < len(trace):
        assert trace[at] == TRACE_PACKET_TAG, f"no packet at {at}"
        length, at = read_varint(trace, at + 1)
        assert at + length <= len(trace), f"the packet at {at} is cut off"
        yield trace[at : at + length]
        at += length


def inflated(trace):
    """The trace with its compressed packets replaced by what is in them."""
    for packet in packets(trace):
        tag, at = read_varint(packet, 0)
        assert tag == COMPRESSED_PACKETS_TAG, "a plain packet in a compressed capture"
        length, at = read_varint(packet, at)
        assert at + length == len(packet) <= 512 * 1024
        yield zlib.decompress(packet[at:])


def decode(protoc, schema, trace):
    command = [protoc, "--decode=perfetto.protos.Trace", "-I", schema, "sonde.proto"]
    text = subprocess.run(command, input=trace, capture_output=True, check=True, timeout=60)
    assert not text.stderr, text.stderr.decode()
    return text.stdout.decode()


def check_has(text, *parts):
    unknown = re.search(r"^ *\d+(:| \{).*", text, re.MULTILINE)
    assert not unknown, f"unknown field: {unknown[0]}"
    for wanted in parts:
        assert wanted in text, f"{wanted} is missing"


def check_decoded(text, sample):
    check_has(
        text,
        "clock_snapshot {",
        "trace_uuid {",
        "extension_descriptor {",
        "is_incremental: true",
        "[sonde.protos.sonde_session] {",
        'unwind_mode: "user"',
        "[sonde.protos.sonde_process] {",
        "[sonde.protos.sonde_stats] {",
        "[sonde.protos.sonde_stop]: STOP_FRAME_POINTER",
        "[sonde.protos.sonde_verbatim_path]: true",
        "[sonde.protos.sonde_placeholder]: true",
        "kind: KIND_INTERPRETED",
        'thread_name: "pt_autograd_0"',
        "module_symbols {",
        "[sonde.protos.sonde_symbols] {",
        sample + " {",
    )
    assert len(re.findall(rf"^  {sample} {{", text, re.MULTILINE)) == 7


def check_decoded_device(text):
    check_has(
        text,
        "gpu_render_stage_event {",
        "gpu_specifications {",
        "grid_size {",
        "workgroup_size {",
        "[sonde.protos.sonde_device_work] {",
        "[sonde.protos.sonde_launch] {",
        "[sonde.protos.sonde_launch_stack] {",
        "kind: DEVICE_KERNEL",
        "kind: DEVICE_MIGRATE",
        "kind: DEVICE_FINISH",
        "untimed: UNTIMED_NOT_ASKED",
        "untimed: UNTIMED_AFTER_WINDOW",
        "same_as: 201",
        "is_check: true",
        "stacks_known: 14",
        "failed: true",
        "clock_error_ns: 11",
    )
    for packet, count in (("gpu_render_stage_event", 12), (r"\[sonde.protos.sonde_launch\]", 10)):
        assert len(re.findall(rf"^  {packet} {{", text, re.MULTILINE)) == count, packet


def check_decoded_windows(text):
    check_has(
        text,
        "[sonde.protos.sonde_window] {",
        "[sonde.protos.sonde_step] {",
        "[sonde.protos.sonde_repeats]: true",
        "opened_by: TRIGGER_STEPS",
        "closed_by: REASON_SCHEDULE",
        'label: "the second"',
        'name: "Windows"',
        'name: "Steps"',
    )
    begins = len(re.findall("type: TYPE_SLICE_BEGIN", text))
    ends = len(re.findall("type: TYPE_SLICE_END", text))
    # Two windows, three steps and a range; the second window and the step in it did not end.
    assert (begins, ends) == (6, 4), (begins, ends)


def check_decoded_energy(text):
    check_has(
        text,
        "[sonde.protos.sonde_energy_domain] {",
        "[sonde.protos.sonde_energy_interval] {",
        "[sonde.protos.sonde_energy_state] {",
        "[sonde.protos.sonde_energy_absence] {",
        "part: ENERGY_CORES",
        "quality: ENERGY_MODELLED",
        "is_replayed: true",
        "idle_w: 12.5",
        "gap: ENERGY_SUSPENDED",
        "temperature_mc: -1500",
        'name: "power package-0"',
        'name: "power cores (replayed)"',
        'unit_name: "W"',
        "double_counter_value: 100",
    )
    assert len(re.findall("type: TYPE_COUNTER", text)) == 3


def check_written(make_capture, protoc, schema, folder):
    path = f"{folder}/capture"
    subprocess.run([make_capture, path, "uncompressed", "windows"], check=True, timeout=60)
    check_decoded_windows(decode(protoc, schema, pathlib.Path(path).read_bytes()))
    subprocess.run([make_capture, path, "uncompressed", "device"], check=True, timeout=60)
    check_decoded_device(decode(protoc, schema, pathlib.Path(path).read_bytes()))
    subprocess.run([make_capture, path, "uncompressed", "energy"], check=True, timeout=60)
    check_decoded_energy(decode(protoc, schema, pathlib.Path(path).read_bytes()))
    for sample, options in (("perf_sample", []), ("stack_sample", ["stack-sample"])):
        subprocess.run([make_capture, path, "uncompressed", *options], check=True, timeout=60)
        check_decoded(decode(protoc, schema, pathlib.Path(path).read_bytes()), sample)
        subprocess.run([make_capture, path, *options], check=True, timeout=60)
        trace = b"".join(inflated(pathlib.Path(path).read_bytes()))
        check_decoded(decode(protoc, schema, trace), sample)


def check_golden(make_capture, golden):
    captures = sorted(golden.glob("*.pftrace"))
    assert captures, f"no captures in {golden}"
    for capture in captures:
        command = [make_capture, "--text", str(capture)]
        text = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
        version = "-".join(capture.stem.split("-")[:2])
        expected = (golden / f"{version}.txt").read_bytes()
        assert text == expected, f"{capture.name} reads differently"


def main():
    make_capture, protoc, schema, golden = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        check_written(make_capture, protoc, schema, folder)
    check_golden(make_capture, pathlib.Path(golden))


if __name__ == "__main__":
    main()
