# SPDX-License-Identifier: Apache-2.0
"""Profiles of XLA as protobuf (XPlane): those of xplane_profile.py, whose run test_trace_formats.py has as Chrome JSON."""

import gzip
import json

import pytest
import xplane_profile
from test_trace_formats import xla_trace


@pytest.fixture
def profile(tmp_path):
    def write(content, name="host.xplane.pb"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def works(found):
    return sorted((each["name"], each["count"], each["sum_ns"]) for each in found["kernel"]["kernels"])


def test_the_same_run_as_json(profile, report, tmp_path):
    chrome = tmp_path / "host.trace.json"
    chrome.write_text(json.dumps(xla_trace()))
    path = profile(xplane_profile.gpu())
    first, second = report(chrome), report(path)
    assert works(second) == works(first) == [("MemcpyH2D", 1, 20_000), ("loop_add_fusion", 10, 50_000)]
    for section in ("temporal", "queue", "launches"):
        known = [{**row, "device_name": None} for row in second[section]]  # which the JSON does not have
        assert known == [{**row, "device_name": None} for row in first[section]], section
    assert second["traces"][0]["device_works"] == 11 and second["traces"][0]["works_without_launch"] == 1


def test_steps_names_and_shapes(profile, sonde, report, tmp_path):
    whole = report(profile(xplane_profile.gpu()))
    (steps,) = whole["steps"]["rows"]
    assert (steps["name"], steps["count"], steps["p50_ns"], steps["pid"]) == ("train", 10, 50_000, 701)
    assert {row["name"] for row in whole["annotations"]} >= {"jit_step", "add.1"}
    assert {device["device_name"] for device in whole["kernel"]["types"]} == {"NVIDIA A100"}
    assert whole["bandwidth"][0]["bytes"] == 400
    sonde("export", "-f", "chrome", "-o", tmp_path / "out.json", profile(xplane_profile.gpu()), check=0)
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    kernel = next(event["args"] for event in events if event["name"] == "loop_add_fusion")
    assert (kernel["block"], kernel["grid"], kernel["registers per thread"]) == ([128, 1, 1], [4, 2, 1], 32)
    assert kernel["hlo_op"] == "add.1"


def test_packed_and_by_any_name(profile, report):
    plain = report(profile(xplane_profile.gpu()))
    packed = report(profile(gzip.compress(xplane_profile.gpu()), "run.bin"))
    assert works(plain) == works(packed)


def test_a_tpu(profile, sonde, report):
    path = profile(xplane_profile.tpu())
    assert works(report(path)) == [("fusion.3", 4, 2000)]  # not the text of the operator
    assert "1 events that say how often" in sonde("report", path, check=0).stderr


def test_an_import_is_the_same(profile, sonde, report, tmp_path):
    path, capture, again = profile(xplane_profile.gpu()), tmp_path / "run.pftrace", tmp_path / "again.json"
    sonde("import", "-o", capture, path, check=0)
    sonde("export", "-f", "chrome", "-o", again, capture, check=0)
    first = report(path)
    for other in (capture, again):
        found = report(other)
        for section in ("idle", "launches", "queue", "steps", "kernel", "temporal", "bandwidth"):
            assert found.get(section) == first.get(section), (other, section)


def test_of_both_forms_in_a_folder_one_is_read(profile, report, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "host.trace.json.gz").write_bytes(gzip.compress(json.dumps(xla_trace()).encode()))
    (folder / "host.xplane.pb").write_bytes(xplane_profile.gpu())
    assert [trace["path"].rsplit("/", 1)[1] for trace in report(folder)["traces"]] == ["host.xplane.pb"]


@pytest.mark.parametrize("kept", [0.3, 0.7])
def test_a_profile_that_is_cut(profile, sonde, kept):
    whole = xplane_profile.gpu()
    shown = sonde("report", profile(whole[: int(len(whole) * kept)]))
    assert "cut off" in shown.stderr or "a profile of XLA (XPlane) would have" in shown.stderr


def test_another_file_of_that_name(profile, sonde):
    refused = sonde("report", profile(b"\n\5hello"))
    assert refused.status != 0 and "a profile of XLA (XPlane) would have" in refused.stderr
