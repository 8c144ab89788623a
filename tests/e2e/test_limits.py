# SPDX-License-Identifier: Apache-2.0
"""sonde report --fail-if: limits for figures of the report, and the exit status."""

import pytest
from test_trace_stacks import launch
from trace_files import write_kineto


@pytest.fixture
def trace(tmp_path):
    """A GPU that works for 30 of 100 us; two kernels, one of them named as templates are."""
    return write_kineto(tmp_path / "t.json", [
        *launch(1, 0, "gemm<float[4]>", duration_us=20), *launch(2, 90, "add \"x\"", duration_us=10)])


def test_what_holds_fails(sonde, trace):
    for condition in ("temporal.idle_share>30%", "temporal.idle_share > 0.3", "kernel.kernels.sum_ns>=20us",
                      "kernel.kernels[name=gemm<float[4]>].count<2", 'kernel.kernels[name=add "x"].sum_ns<=10000ns',
                      "summary.devices>0"):
        done = sonde("report", "--fail-if", condition, trace)
        assert done.status == 1 and condition in " ".join(done.stderr.split()), condition
        assert done.stdout == sonde("report", trace, check=0).stdout, "the report is printed as without"


def test_what_does_not_hold_is_no_failure(sonde, trace):
    for condition in ("temporal.idle_share>0.999", "kernel.kernels.sum_ns>1s", "kernel.kernels[name=gemm<float[4]>].sum_ns>20us",
                      "summary.devices<1"):
        sonde("report", "--fail-if", condition, trace, check=0)
    sonde("report", "--json", "--by", "queue", "-n", 1, "--fail-if", "kernel.kernels.sum_ns>20us", trace, check=0)


def test_the_worst_row_is_named(sonde, trace):
    said = " ".join(sonde("report", "--fail-if", "kernel.kernels.sum_ns>5us", trace).stderr.split())
    assert "2 of 2 rows are beyond it, most 20000" in said and "gemm<float[4]>" in said
    said = sonde("report", "--fail-if", "temporal.idle_share>30%", trace).stderr
    assert said.endswith("it is 0.7 of rank 0, device 0\n")


def test_several_conditions_and_html(sonde, trace, tmp_path):
    page = tmp_path / "r.html"
    done = sonde("report", "--html", page, "--fail-if", "summary.devices>5", "--fail-if", "summary.devices<5", trace)
    assert done.status == 1 and done.stderr.count("--fail-if") == 1 and page.exists()


@pytest.mark.parametrize("condition", ["temporal.no_such>1", "kernel.kernels[name=nothing].sum_ns>1", "summary>1", "cpu_summary.x>1",
                                       "temporal.>1", "kernel.kernels[name].sum_ns>1"])
def test_a_figure_that_is_not_there_fails(sonde, trace, condition):
    done = sonde("report", "--fail-if", condition, trace)
    assert done.status == 1 and "no number of this name" in " ".join(done.stderr.split())


@pytest.mark.parametrize("condition, said", [
    ("temporal.idle_share", "is no condition"), (">3", "is no condition"), ("a.b>", "no number"), ("a.b>x", "no number"),
    ("a.b>nan", "no number"), ("temporal.idle_share>3ms", "end in _ns"), ("temporal.idle_ns>3%", "end in _share"),
    ("a.b>3 parsecs", "is no unit")])
def test_wrong_conditions(sonde, trace, condition, said):
    done = sonde("report", "--fail-if", condition, trace)
    assert done.status == 2 and said in " ".join(done.stderr.split()) and not done.stdout


def test_one_report_only(sonde, trace):
    assert sonde("report", "--by", "run", "--fail-if", "a>1", trace).status == 2
