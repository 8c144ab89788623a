# SPDX-License-Identifier: Apache-2.0
"""A capture in Perfetto's own trace processor, where there is one: SONDE_TRACE_PROCESSOR names the program."""

import csv
import io
import os
import subprocess

import pytest

TRACE_PROCESSOR = os.environ.get("SONDE_TRACE_PROCESSOR")

pytestmark = pytest.mark.skipif(
    not TRACE_PROCESSOR, reason="no trace processor: name Perfetto's trace_processor_shell in SONDE_TRACE_PROCESSOR"
)


def query(capture, sql):
    done = subprocess.run(
        [TRACE_PROCESSOR, "-q", "/dev/stdin", capture], input=sql, capture_output=True, text=True, check=True
    )
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.mark.parametrize("options", [[], ["--uncompressed"], ["--stack-sample"]])
def test_tables_show_our_samples_threads_and_frames(sonde, report, workload, tmp_path, options):
    capture = tmp_path / "capture.pftrace"
    sonde("record", *options, "-o", capture, "--", *workload("threads", 2), check=0)
    data = report(capture, "--limit", 100000)
    errors = query(capture, "select name, value from stats where severity in ('error', 'data_loss') and value > 0;")
    assert errors == []
    table = "stack_sample" if "--stack-sample" in options else "perf_sample"
    assert int(query(capture, f"select count(*) as n from {table};")[0]["n"]) == data["totals"]["samples"]
    threads = {row["name"] for row in query(capture, "select name from thread;")}
    assert {row["name"] for row in data["tables"]["thread"]["rows"]} <= threads
    frames = {row["name"] for row in query(capture, "select distinct name from stack_profile_frame;")}
    assert {row["name"] for row in data["tables"]["function"]["rows"] if row["named"]} <= frames
