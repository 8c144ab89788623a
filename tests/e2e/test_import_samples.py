# SPDX-License-Identifier: Apache-2.0
"""Samples of other profilers: the text of perf script, folded stacks, profiles of pprof."""

import gzip

import pytest
from protobuf_writer import message

SCRIPT = """# comment
python 3 -m x 100/101 [002] 12.000001:     250000 cpu-clock:pppH:
\t    7f01 read+0x12 (/usr/lib/libc.so.6)
\t    55aa main+0x1 (/usr/bin/program)

program   200 [001] 12.000251:     250000 cpu-clock:pppH:
\tffffffff8100 do_syscall_64 ([kernel.kallsyms])
\t    55ab [unknown] (/usr/bin/program)

"""
FOLDED = "python;main;step 30\npython;main;load;do_read_[k] 10\n"


def pprof(counts=True, line=12):
    texts = ["", "samples", "count", "cpu", "nanoseconds", "main", "step", "train.py", "/usr/bin/python"]
    types = [message((1, 1), (2, 2)), message((1, 3), (2, 4))] if counts else [message((1, 1), (2, 8))]
    locations = [
        message((1, 1), (2, 1), (3, 0x10), (4, message((1, 1), (2, 5)))),
        message((1, 2), (2, 1), (3, 0x20), (4, message((1, 2), (2, line)))),
    ]
    functions = [message((1, 1), (2, 5), (4, 7)), message((1, 2), (2, 6), (4, 7))]
    stacks = [message((1, bytes([2, 1])), (2, bytes([30, 0]))), message((1, 1), (2, 10), (2, 0))]
    return message(
        *((1, one) for one in types),
        *((2, one) for one in stacks),
        (3, message((1, 1), (5, 8))),
        *((4, one) for one in locations),
        *((5, one) for one in functions),
        *((6, text) for text in texts),
        *(((11, message((1, 3), (2, 4))), (12, 10_000_000)) if counts else ()),
    )


@pytest.fixture
def file(tmp_path):
    def write(content, name="profile"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def functions(found):
    return {row["name"]: (row["self_samples"], row["total_samples"]) for row in found["tables"]["function"]["rows"]}


def test_perf_script(file, report):
    path = file(SCRIPT)
    whole = report(path)
    assert whole["totals"]["samples"] == 2 and whole["session"]["period_ns"] == 250_000
    rows = {row["name"]: row for row in report(path, "--by", "function")["tables"]["function"]["rows"]}
    assert rows["read"]["module"] == "libc.so.6" and rows["do_syscall_64"]["kind"] == "kernel"
    threads = report(path, "--by", "thread")
    assert "python 3 -m x" in str(threads) and "program" in str(threads)


def test_folded(file, report, sonde):
    path = file(FOLDED)
    assert functions(report(path, "--by", "function")) == {
        "step": (30, 30),
        "main": (0, 40),
        "python": (0, 40),
        "load": (0, 10),
        "do_read": (10, 10),
    }
    sonde("import", "-o", path.with_suffix(".pftrace"), path, check=0)
    assert "does not say when" in str(report(path.with_suffix(".pftrace"))["notes"])
    for read in (path, path.with_suffix(".pftrace")):
        assert sonde("report", read, check=0).stdout.splitlines()[1] == "40 samples \u00b7 1 process, 1 thread"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pprof(file, report, pack):
    path = file(pack(pprof()))
    whole = report(path)
    assert whole["totals"]["samples"] == 40 and whole["session"]["period_ns"] == 10_000_000
    assert "train.py" in str(report(path, "--by", "line")["tables"])
    assert functions(report(path, "--by", "function")) == {"step": (30, 30), "main": (10, 40)}


def test_pprof_of_something_else_than_time(file, sonde, report):
    path = file(pprof(counts=False))
    sonde("import", "-o", path.with_suffix(".pftrace"), path, check=0)
    assert "no time is known" in str(report(path.with_suffix(".pftrace"))["notes"])


def test_large_weights_are_scaled(file, report):
    path = file("a;b 3000000000\na;c 1000000000\n")
    found = functions(report(path, "--by", "function"))
    assert found == {"a": (0, 1_000_000), "b": (750_000, 750_000), "c": (250_000, 250_000)}


@pytest.mark.parametrize("form", ["folded", "perf-script", "pprof"])
def test_what_sonde_exports_is_read_again(file, sonde, report, tmp_path, form):
    path, again = file(FOLDED), tmp_path / "again"
    sonde("export", "-f", form, "-o", again, path, check=0)
    found = functions(report(again, "--by", "function"))
    assert found["step"] == (30, 30) and found["main"] == (0, 40)


def test_flame_graphs_and_differences(file, sonde):
    first, second = file(FOLDED, "first"), file(FOLDED.replace("30", "90"), "second")
    picture = sonde("export", "-f", "flamegraph", "-o", "-", first, check=0).stdout
    assert "<svg" in picture and 'data-full="40 samples"' in picture
    text = sonde("diff", first, second, check=0).stdout
    assert "step" in text and f"A {first}: 40 samples\n" in text


def test_differences_by_line(file, sonde):
    """Lines are matched by file name and number: the function that did not change has one that moved."""
    before, after = file(pprof(), "before"), file(pprof(line=13), "after")
    found = sonde("diff", "--json", "--by", "line", before, after, check=0).json()["samples"]
    assert found["by"] == "line"
    counts = {row["place"]: (row["self_samples_before"], row["self_samples_after"]) for row in found["rows"]}
    assert counts == {"train.py:5": (10, 10), "train.py:12": (30, 0), "train.py:13": (0, 30)}
    text = sonde("diff", "--by", "line", before, after, check=0).stdout
    assert "1 line did not change significantly" in text and "train.py:12" in text and "train.py:5" not in text
    failed = sonde("diff", "--by", "line", "--fail-above", "5%", before, after, check=1)
    assert "step in train.py:13 got slower by 75.00 %" in failed.stderr
    by_function = sonde("diff", "--json", before, after, check=0).json()["samples"]
    assert by_function["by"] == "function" and {row["place"] for row in by_function["rows"]} == {None}


@pytest.mark.parametrize("text", ["a;b x\n", "no stacks 12\n", "", "a 100 12.5: x:\n"])
def test_text_that_is_none(file, sonde, text):
    assert sonde("report", file(text)).status != 0


def test_a_profile_that_is_cut(file, sonde):
    refused = sonde("report", file(pprof()[:-20]))
    assert refused.status != 0 and "damaged or cut off" in refused.stderr
