# SPDX-License-Identifier: Apache-2.0
"""--schema describes the JSON of reports and comparisons, of recordings and of traces; --csv prints rows."""

import csv
import io
import json

import jsonschema
import pytest
from test_trace_report import make


@pytest.fixture
def validator(sonde):
    schema = json.loads(sonde("report", "--schema", check=0).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def capture(sonde, workload, tmp_path):
    path = tmp_path / "spin.pftrace"
    sonde("record", "-q", "-F", 499, "-o", path, "--", *workload("spin", 0.3), check=0)
    return path


def names_of_by(sonde):
    refusal = sonde("report", "--by", "nothing", "x", check=2).stderr
    return refusal.split("one of ")[1].split(", not ")[0].split(", ")


def test_a_recording_fits_the_schema(sonde, validator, capture):
    document = sonde("report", "--json", capture, check=0).json()
    validator.validate(document)
    assert document["tables"]["function"]["rows"]
    for by in names_of_by(sonde):
        done = sonde("report", "--json", "--by", by, capture)
        if done.status == 0 and by != "run":  # which is a document of its own
            validator.validate(done.json())
    assert not validator.is_valid({**document, "timeline": {"interval_ns": "1"}})
    assert not validator.is_valid({**document, "undescribed": 1})
    assert not validator.is_valid({**document, "totals": {**document["totals"], "undescribed": 1}})


def test_limit_says_how_many_rows_there_are(sonde, capture):
    whole = sonde("report", "--json", capture, check=0).json()["tables"]["function"]
    assert whole["rows_total"] == len(whole["rows"]) > 2
    few = sonde("report", "--json", "--limit", 2, capture, check=0).json()["tables"]["function"]
    assert (few["rows_total"], few["rows"]) == (whole["rows_total"], whole["rows"][:2])
    text = sonde("report", "--by", "function", "--limit", 2, capture, check=0).stdout
    assert f"… {whole['rows_total'] - 2:,} more functions" in text


def test_a_trace_fits_the_schema(sonde, validator, tmp_path):
    trace = make(tmp_path / "trace.json.gz")
    document = sonde("report", "--json", trace, check=0).json()
    validator.validate(document)
    few = sonde("report", "--json", "--limit", 1, trace, check=0).json()
    kernels = document["kernel"]["kernels"]
    assert few["kernel"]["kernels_total"] == len(kernels) > 1 and few["kernel"]["kernels"] == kernels[:1]
    assert few["host_total"] == len(document["host"]) and len(few["host"]) <= 1
    text = sonde("report", "--by", "kernel", "--limit", 1, trace, check=0).stdout
    assert f"… {len(kernels) - 1} more kernels" in text


def test_csv_has_the_rows_of_json(sonde, capture):
    rows = sonde("report", "--json", "--by", "function", capture, check=0).json()["tables"]["function"]["rows"]
    text = sonde("report", "--csv", "--by", "function", capture, check=0).stdout
    found = list(csv.DictReader(io.StringIO(text)))
    assert [row["name"] for row in found] == [row["name"] for row in rows]
    assert [int(row["self_samples"]) for row in found] == [row["self_samples"] for row in rows]
    assert found[0]["self_energy_uj"] == ""
    few = sonde("report", "--csv", "--by", "function", "--limit", "2", capture, check=0).stdout
    assert len(few.splitlines()) == 3


def test_csv_says_what_it_cannot_print(sonde, capture):
    assert "name it with --by" in sonde("report", "--csv", capture, check=2).stderr
    assert "--json exclude each other" in sonde("report", "--csv", "--json", "--by", "line", capture, check=2).stderr
    assert "has no rows here" in sonde("report", "--csv", "--by", "counter", capture, check=1).stderr
    assert "sonde report CAPTURE" in sonde("report", check=2).stderr


def test_help_says_what_each_section_is(sonde):
    text = " ".join(sonde("report", "--help", check=0).stdout.split())
    for by in names_of_by(sonde):
        assert f" {by}: " in text, by
    assert "(null)" not in text


def test_comparisons_fit_their_schemas(sonde, capture, tmp_path):
    trace = make(tmp_path / "trace.json.gz")
    commands = (["diff", capture], ["diff", trace], ["report", "--by", "run"], ["report", "--regress", capture])
    for command in commands:
        schema = json.loads(sonde(*command, "--schema", check=0).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        last = trace if trace in command else capture
        document = sonde(*command, "--json", last, check=0).json()
        jsonschema.Draft202012Validator(schema).validate(document)
        assert set(schema["required"]) == set(document)


def test_comparisons_as_csv(sonde, capture):
    for command, rows in (
        (["diff", capture], lambda document: document["samples"]["rows"]),
        (["diff", "--by", "work", capture], lambda document: document["work"]["rows"]),
        (["report", "--by", "run"], lambda document: document["runs"]),
        (["report", "--regress", capture], lambda document: document["rows"]),
    ):
        document = sonde(*command, "--json", capture, check=0).json()
        found = list(csv.DictReader(io.StringIO(sonde(*command, "--csv", capture, check=0).stdout)))
        assert len(found) == len(rows(document)), command
    assert "exclude each other" in sonde("diff", "--csv", "--json", capture, capture, check=2).stderr
    assert "needs two" in sonde("diff", capture, check=2).stderr
