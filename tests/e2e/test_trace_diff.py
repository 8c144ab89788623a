# SPDX-License-Identifier: Apache-2.0
"""sonde diff of traces by call tree: what got slower, and why."""

import pytest
from test_trace_report import make
from test_trace_stacks import launch, slice_of
from trace_files import write_kineto


def operator(name, start_us, kernel, duration_us, number, dims=None, duration=60):
    arguments = {"Input Dims": dims} if dims else {}
    return [slice_of("cpu_op", name, start_us, duration, **arguments),
            *launch(number, start_us + 5, kernel, duration_us=duration_us)]


def traces(path, **changes):
    """A step of two blocks with one operator of the same name in each."""
    kernel, dims = changes.get("kernel", "gemm_a"), changes.get("dims", [[8, 8], [8, 8]])
    line = changes.get("line", 12)
    events = [
        slice_of("user_annotation", "ProfilerStep#4", 0, 1000),
        slice_of("python_function", f"train.py({line}): step", 1, 990),
        slice_of("python_function", "nn.Module: Block_0", 10, 100),
        *operator("aten::mm", 20, "gemm_a", 40, 1, [[8, 8], [8, 8]]),
        slice_of("python_function", "nn.Module: Block_1", 200, 100),
        *operator("aten::mm", 210, kernel, changes.get("duration_us", 40), 2, dims),
    ]
    for number in range(changes.get("more", 0)):
        events += operator("aten::add", 400 + 70 * number, "add_kernel", 10, 10 + number)
    return write_kineto(path, events)


@pytest.fixture
def tree(sonde, tmp_path):
    before = traces(tmp_path / "before.json")

    def compare(**changes):
        after = traces(tmp_path / "after.json", **changes)
        return sonde("diff", "--json", before, after, check=0).json()["tree"]

    return compare


def test_the_operator_at_its_place_is_named_with_the_reason(tree):
    for changes, why, words in [
        ({"kernel": "gemm_b", "duration_us": 90}, "kernels", "gemm_b runs in place of gemm_a"),
        ({"dims": [[16, 8], [8, 8]], "duration_us": 90}, "shapes", "its inputs are [[16,8],[8,8]] in place of [[8,8],[8,8]]"),
        ({"duration_us": 90}, "duration", "the same kernels take longer"),
    ]:
        found = tree(**changes)
        first = found["rows"][0]
        assert (first["name"], first["why"], first["change_ns"]) == ("aten::mm", why, 50_000)
        assert first["path"] == "train.py: step / nn.Module: Block_1", "the same name in the other block is another row"
        assert words in found["summary"].replace(", ", ",") or words in found["summary"]
        assert sum(row["change_ns"] for row in found["rows"]) == 50_000, "no row is the sum of others"


def test_lines_that_moved_change_nothing(tree):
    found = tree(line=99)
    assert not any(row["change_ns"] for row in found["rows"]) and "No operator changed much" in found["summary"]


def test_what_is_new(tree):
    found = tree(more=3)
    first = found["rows"][0]
    assert (first["name"], first["why"], first["count_before"], first["count_after"]) == ("aten::add", "new", 0, 3)
    assert first["kernels"] == [{"name": "add_kernel", "device_before_ns": 0, "device_after_ns": 30_000,
                                 "count_before": 0, "count_after": 3}]


def test_figures_are_of_one_step(sonde, tmp_path):
    before, after = make(tmp_path / "a.json.gz", steps=3), make(tmp_path / "b.json.gz", steps=6, compute=700)
    found = sonde("diff", "--json", before, after, check=0).json()["tree"]
    assert found["per_step"] and (found["device_before_ns"], found["device_after_ns"]) == (750_000, 950_000)
    changed = [row for row in found["rows"] if row["change_ns"]]
    assert [(row["name"], row["change_ns"]) for row in changed] == [("aten::mm", 200_000)]
    text = sonde("diff", before, after, check=0).stdout
    assert "What got slower or faster, and why" in text and "A step takes as long as before: 1.00 ms." in text


@pytest.mark.parametrize("option", [["--weight", "energy"], ["--weight", "gpu"], ["--per-second"], ["--window", "1"]])
def test_what_traces_do_not_have_is_refused(sonde, tmp_path, option):
    before, after = traces(tmp_path / "before.json"), traces(tmp_path / "after.json")
    done = sonde("diff", *option, before, after, check=2)
    assert done.stderr.count("\n") <= 2 and f"{' '.join(option[:1])}" in done.stderr and "is for recordings, not for traces" in done.stderr
