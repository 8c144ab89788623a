# SPDX-License-Identifier: Apache-2.0
"""What Perfetto's trace processor makes of a capture, as far as its importers refuse or misread packets without an
error that anyone sees. Packets are decoded here, by their numbers: no code of sonde's is used."""

import zlib

from pprof import varint

PROCESS_TREE, TRACK_EVENT, INTERNED, COMPRESSED, STAGE, DESCRIPTOR, SYMBOLS = 2, 11, 12, 50, 53, 60, 61
PERF_SAMPLE, STACK_SAMPLE, OTHER_SYMBOLS = 66, 135, 1731
SLICE_BEGIN, SLICE_END = 1, 2


def fields(data):
    """{number: [values]}: messages as bytes."""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length = 8 if kind == 1 else 4
            if kind == 2:
                length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


def packets(trace):
    """The packets of a trace, those in compressed ones, too."""
    for packet in fields(trace).get(1, []):
        packet = fields(packet)
        if COMPRESSED in packet:
            yield from packets(zlib.decompress(packet[COMPRESSED][0]))
        else:
            yield packet


class Sequence:
    """The interned data of one packet sequence."""

    def __init__(self):
        self.frames, self.stacks, self.mappings, self.contexts = {}, {}, {}, {}
        self.paths, self.build_ids, self.track = {}, {}, None
        self.argument_names, self.argument_texts = {}, {}

    def take(self, data):
        for name, number in (("paths", 17), ("build_ids", 16), ("argument_names", 3), ("argument_texts", 29)):
            for entry in map(fields, data.get(number, [])):
                getattr(self, name)[entry[1][0]] = entry.get(2, [b""])[0]
        for entry in map(fields, data.get(19, [])):
            path = b"".join(b"/" + self.paths[iid] for iid in entry.get(7, []))
            path = path[1:] if path.startswith(b"//") else path
            self.mappings[entry[1][0]] = (path, self.build_ids[entry[2][0]] if 2 in entry else b"")
        for entry in map(fields, data.get(6, [])):
            self.frames[entry[1][0]] = (self.mappings[entry[3][0]], entry.get(4, [0])[0])
        for entry in map(fields, data.get(7, [])):
            self.stacks[entry[1][0]] = [self.frames[iid] for iid in entry.get(2, [])]
        for entry in map(fields, data.get(23, [])):
            self.contexts[entry[1][0]] = entry[2][0]


class Trace:
    """What is in a file, and `faults`: sentences on what Perfetto would drop or misread."""

    def __init__(self, path):
        self.faults, self.sequences, self.places = [], {}, set()
        self.symbols = self.inlined = self.other_symbols = self.stages = self.samples = 0
        self.event_ids, self.submissions, self.processes, self.open = {}, set(), {}, {}
        self.command_lines, self.flows, self.ended_flows = {}, set(), set()
        self.arguments = []  # of each slice and stage that has any
        with open(path, "rb") as file:
            for packet in packets(file.read()):
                self.take(packet)
        self.faults += [f"a slice of track {track:x} has no end" for track, depth in self.open.items() if depth]
        for pid in {pid for _, pid in self.event_ids.values()} - self.processes.keys():
            self.faults.append(f"no process {pid}, which work is of")

    def take(self, packet):
        number = packet.get(10, [0])[0]
        if packet.get(13, [0])[0] & 1 or number not in self.sequences:
            self.sequences[number] = Sequence()
        sequence = self.sequences[number]
        for data in packet.get(INTERNED, []):
            sequence.take(fields(data))
        for defaults in packet.get(59, []):
            for events in fields(defaults).get(11, []):
                sequence.track = fields(events)[11][0]
        for number, take in (
            (PERF_SAMPLE, self.take_sample), (STACK_SAMPLE, self.take_sample), (SYMBOLS, self.take_symbols),
            (STAGE, self.take_stage), (TRACK_EVENT, self.take_event), (DESCRIPTOR, self.take_track),
            (PROCESS_TREE, self.take_tree),
        ):
            for message in packet.get(number, []):
                take(sequence, fields(message), *([number] if take == self.take_sample else []))
        self.other_symbols += sum(len(fields(m).get(3, [])) for m in packet.get(OTHER_SYMBOLS, []))

    def take_sample(self, sequence, sample, number):
        self.samples += 1
        for iid in sample.get(4 if number == PERF_SAMPLE else 6, []):
            self.places.update(sequence.stacks[iid])

    def take_symbols(self, _, module):
        mapping = (module.get(1, [b""])[0], module.get(2, [b""])[0])
        for address in map(fields, module.get(3, [])):
            self.symbols += 1
            self.inlined += len(address.get(2, [])) > 1
            if (mapping, address[1][0]) not in self.places:
                self.faults.append(f"symbols of {mapping[0]} at {address[1][0]:#x}, where no sample is")

    def take_stage(self, sequence, stage):
        self.stages += 1
        if 1 not in stage:
            self.faults.append("device work without an event id")
            return
        pid = sequence.contexts.get(stage.get(5, [None])[0])
        if not pid:
            self.faults.append(f"device work {stage[1][0]} without a process")
            return
        self.event_ids.setdefault(stage[1][0], (len(self.event_ids), pid))
        extra = [fields(data) for data in stage.get(6, [])]
        self.arguments += [{data[1][0].decode(): data[2][0].decode() for data in extra}] if extra else []

    def take_event(self, sequence, event):
        track = event.get(11, [sequence.track])[0]
        kind = event.get(9, [0])[0]
        self.open[track] = self.open.get(track, 0) + (kind == SLICE_BEGIN) - (kind == SLICE_END)
        if 1700 in event:
            self.faults.append("arguments that are differences from other rows")
        for arrow in event.get(3000, []):
            self.submissions.update(fields(arrow).get(1, []))
        arguments = {}
        for argument in map(fields, event.get(4, [])):
            plain = [argument[number][0] for number in (3, 4, 5, 6) if number in argument]
            value = plain[0] if plain else sequence.argument_texts[argument[17][0]].decode()
            arguments[sequence.argument_names[argument[1][0]].decode()] = value
        self.arguments += [arguments] if arguments else []
        self.flows.update(event.get(47, []))
        self.ended_flows.update(event.get(48, []))

    def take_track(self, _, track):
        for process in map(fields, track.get(3, [])):
            self.processes[process[1][0]] = process.get(6, [b""])[0].decode()

    def take_tree(self, _, tree):
        for process in map(fields, tree.get(1, [])):
            self.command_lines[process[1][0]] = (process[2][0], [word.decode() for word in process[3]])
