# SPDX-License-Identifier: Apache-2.0
"""A profile of XLA as protobuf (XPlane), made by hand by the schema that XLA publishes: the same run as xla_trace() of
test_trace_formats.py has as Chrome JSON, with steps, and with a TPU where that is asked for."""

import sys
from pathlib import Path

from protobuf_writer import message

EPOCH_NS = 1_700_000_000_000_000_000


class Plane:
    """Names of events and statistics get numbers when they are first used, and stand behind the lines."""

    def __init__(self, name, number=0):
        self.head, self.lines = [(1, number or None), (2, name)], []
        self.names, self.shown, self.stats, self.values = {}, {}, {}, []

    def stat(self, name, value, reference=False):
        identity = self.stats.setdefault(name, len(self.stats) + 1)
        if reference:
            return message((1, identity), (7, self.stats.setdefault(value, len(self.stats) + 1)))
        number = 2 if isinstance(value, float) else 4 if isinstance(value, int) else 5
        return message((1, identity), (number, value))

    def event(self, name, start_ns, duration_ns, references=(), shown=None, **stats):
        identity = self.names.setdefault(name, len(self.names) + 1)
        self.shown[name] = shown
        values = [(4, self.stat(key, value, key in references)) for key, value in stats.items()]
        return message((1, identity), (2, start_ns * 1000 + 7), (3, duration_ns * 1000), *values)

    def line(self, number, name, events, start_ns=EPOCH_NS):
        self.lines.append(message((1, number), (2, name), (3, start_ns), *((4, event) for event in events)))

    def bytes(self):
        tables = [
            (4, message((1, number), (2, message((1, number), (2, name), (4, self.shown[name])))))
            for name, number in self.names.items()
        ]
        tables += [(5, message((1, number), (2, message((1, number), (2, name))))) for name, number in self.stats.items()]
        return message(*self.head, *((3, line) for line in self.lines), *tables, *((6, value) for value in self.values))


def gpu():
    plane, host = Plane("/device:GPU:0", 1), Plane("/host:CPU", 2)
    work, modules, operators, calls = [], [], [], []
    details = "regs:32 static_shared:1024 dynamic_shared:0 grid:4,2,1 block:128,1,1 occ_pct:50"
    for number in range(10):
        start = 100_000 + number * 100_000
        launch, kernel = {"correlation_id": number + 1}, {"kernel_details": details, "hlo_op": "add.1"}
        calls.append(host.event("$train.py:12 step", start - 10_000, 60_000))
        calls.append(host.event("train", start - 8_000, 50_000, step_num=number, _r=1))
        calls.append(host.event("PjitFunction(step)", start - 5_000, 40_000))
        calls.append(host.event("cuLaunchKernel", start, 10_000, **launch))
        work.append(plane.event("loop_add_fusion", start + 12_000, 5_000, ("kernel_details", "hlo_op"), **launch, **kernel))
        modules.append(plane.event("jit_step", start + 12_000, 5_000))
        operators.append(plane.event("add.1", start + 12_000, 5_000))
    copy = plane.event("MemcpyH2D", 0, 20_000, correlation_id=900, memcpy_details="kind_src:pinned kind_dst:device size:400")
    plane.line(13, "Stream #13(Compute)", work)
    plane.line(14, "Stream #14(MemcpyH2D)", [copy])
    plane.line(2, "XLA Modules", modules)
    plane.line(3, "XLA Ops", operators)
    plane.values = [plane.stat("device_type_string", "NVIDIA A100"), plane.stat("clock_rate", 1.5)]
    host.line(50, "python", calls)
    host.values = [host.stat("process_id", 701)]
    return message((1, plane.bytes()), (1, host.bytes()), (4, "host"))


def tpu():
    plane = Plane("/device:TPU:0")
    text = "%fusion.3 = f32[8]{0} fusion(f32[8]{0} %p), kind=kLoop"
    plane.line(1, "XLA Ops", [plane.event(text, 1000 * i, 500, shown="fusion.3") for i in range(4)])
    plane.line(2, "Steps", [plane.event("0", 0, 4000)])
    plane.lines.append(message((1, 9), (2, "counts"), (4, message((1, 1), (5, 7), (3, 1000)))))
    return message((1, plane.bytes()))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes({"gpu": gpu, "tpu": tpu}[sys.argv[2]]())
