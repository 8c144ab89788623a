# SPDX-License-Identifier: Apache-2.0
"""Prints code objects and, by Python itself, the line of each of their instructions; then waits for a line.

Each: "code ADDRESS VERSION FIRST_LINE NAME FILE_IN_HEX TABLE_IN_HEX", then "OFFSET LINE" for every
instruction (0: none), then "end".
"""
import dis
import sys

SOURCE = """
def plain(a,
          b=1):
    x = (a +
         b)

    return [y
            for y in range(x)
            if y]

class Größe:
    def 模型(self):
        with open("x") as f:
            try:
                return f.read(
                    10)
            finally:
                f.close()

    @property
    def value(self): return lambda: self

async def task():
    async for item in other():
        yield item
    await other(1,
                2,
                3)

def %s():
    a = 1
%s
    return (
        a
    )
""" % ("n" * 3000, "\n" * 700 + "    a = 2\n" + "\n" * 130 + "    a = " + " + ".join(["a"] * 300))


def all_codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from all_codes(constant)


def lines_of(code):
    """The line of each instruction, as tracebacks have it."""
    size = len(code.co_code)
    if hasattr(code, "co_lines"):
        lines = {}
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                lines[offset] = line or 0
        return [(offset, lines.get(offset, 0)) for offset in range(0, size, 2)]
    starts, line, result = dict(dis.findlinestarts(code)), code.co_firstlineno, []
    for offset in range(0, size, 2):
        line = starts.get(offset, line)
        result.append((offset, line))
    return result


codes = list(all_codes(compile(SOURCE, "/tmp/fünf/\N{SNOWMAN}.py", "exec")))
codes += list(all_codes(compile(open(dis.__file__).read(), dis.__file__, "exec")))
for code in codes:
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    name = getattr(code, "co_qualname", code.co_name)
    print("code", id(code), sys.hexversion >> 16, code.co_firstlineno, name.encode().hex(),
          code.co_filename.encode().hex(), table.hex() or "-")
    for offset, line in lines_of(code):
        print(offset, line)
    print("end")
print("done", flush=True)
sys.stdin.readline()
