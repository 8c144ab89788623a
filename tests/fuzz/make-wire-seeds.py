# SPDX-License-Identifier: Apache-2.0
"""Makes seed inputs of corpus/wire from the records of real recordings, by gdb, as root:

    gdb -q -batch -x tests/fuzz/make-wire-seeds.py build/sonde

They are committed: run this only to add some. What is kept has no address of this machine and no contents of memory: code
is moved to where fuzz-wire.c has generated code, the stack to one place, other words of a stack copy are 0.
"""

import struct
import tempfile
from pathlib import Path

import gdb

OUT = Path.cwd() / "tests/fuzz/corpus/wire"
SAMPLE = 1
HEAD = 128  # of struct wire_sample
CODE, STACK, KERNEL = 0x30000000, 0x70000000, 0xFFFFFFFF81000000  # the first as in fuzz-wire.c
CODE_BYTES, STACK_BYTES = 1 << 20, 1024
EACH = 3  # records of one kind
PYTHON = """
import threading, time
def waits():
    with lock: pass
def works(n):
    return sum(i * i for i in range(n))
lock = threading.Lock()
lock.acquire()
thread = threading.Thread(target=waits)
thread.start()
end = time.process_time() + 1
while time.process_time() < end:
    works(1000)
    time.sleep(0.001)
lock.release()
thread.join()
"""
RUNS = {
    "bpf": "record -q -F 500 --mode bpf",
    "exact": "record -q -F 500 --mode bpf --wait exact",
    "user": "record -q -F 500 --mode user",
}


class Mappings:
    """Where a process has code, and its stacks."""

    def __init__(self, pid):
        self.code, self.stacks = [], []
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            (self.code if "x" in line.split()[1] else self.stacks).append((start, end))

    def moved(self, value, sp):
        """An address as fuzz-wire has it; other values are 0."""
        if any(start <= value < end for start, end in self.code):
            return CODE + value % CODE_BYTES
        if sp <= value < sp + (8 << 20):
            return STACK + value - sp
        return value if value < 1 << 16 else 0


class Records(gdb.Breakpoint):
    def __init__(self, function):
        super().__init__(function, internal=True)
        self.kinds, self.mappings, self.first_ns = {}, {}, None

    def stop(self):
        try:
            record = gdb.parse_and_eval("record")
            length = int(record["length_bytes"])
            self.add(bytes(gdb.selected_inferior().read_memory(int(record), length)))
        except (gdb.error, FileNotFoundError, ProcessLookupError):
            pass  # its process has ended
        return False

    def add(self, record):
        kind = struct.unpack_from("<H", record)[0]
        time_ns = struct.unpack_from("<Q", record, 8)[0]
        self.first_ns = self.first_ns or time_ns
        key = (kind,)
        if kind == SAMPLE:
            user, kernel, stop, flags, python, gil = struct.unpack_from("<HHBBBB", record, 36)
            key = (kind, stop, flags, python, gil, record[82], user > 0, kernel > 0)
            record = self.cleaned(record, user, kernel)
        record = bytearray(record)
        struct.pack_into("<Q", record, 8, time_ns - self.first_ns + 10**9)
        kept = self.kinds.setdefault(key, [])
        if len(kept) < EACH and len(record) < 4096:
            kept.append(bytes(record))

    def cleaned(self, record, user, kernel):
        pid = struct.unpack_from("<I", record, 24)[0]
        if pid not in self.mappings:
            self.mappings[pid] = Mappings(pid)
        moved = self.mappings[pid].moved
        python = struct.unpack_from("<H", record, 80)[0]
        kernel_frames = [KERNEL + value % CODE_BYTES for value in struct.unpack_from(f"<{kernel}Q", record, HEAD)]
        at = HEAD + 8 * kernel + 24 * python
        frames = [moved(value, 0) for value in struct.unpack_from(f"<{user}Q", record, at)]
        end = at + 8 * user
        copy = record[end:]
        if copy:
            words = struct.unpack_from(f"<{len(copy) // 8}Q", copy)
            sp = words[1]
            words = [moved(word, sp) for word in words[: 21 + STACK_BYTES // 8]]
            words[20] = 8 * (len(words) - 21)
            copy = struct.pack(f"<{len(words)}Q", *words)
        out = bytearray(record[:at] + struct.pack(f"<{user}Q", *frames) + copy)
        struct.pack_into(f"<{kernel}Q", out, HEAD, *kernel_frames)
        struct.pack_into("<I", out, 4, len(out))
        out[48:80] = b"thread".ljust(16, b"\0") + b"process".ljust(16, b"\0")
        struct.pack_into("<QQ", out, 96, 0, 0)  # the thread pointer, and who holds the lock
        return bytes(out)


def run(name, options):
    records = Records("pipeline_add_record")
    with tempfile.NamedTemporaryFile("w") as script:
        script.write(PYTHON)
        script.flush()
        command = f"python3 -c 'exec(open(\"{script.name}\").read())'"
        gdb.execute(f"run {options} -o /dev/null -- {command} >/dev/null 2>&1")
    for index, kept in enumerate(records.kinds.values()):
        (OUT / f"real-{name}-{index}").write_bytes(b"".join(struct.pack("<H", len(one)) + one for one in kept))
    records.delete()


gdb.execute("set pagination off")
for name, options in RUNS.items():
    run(name, options)
