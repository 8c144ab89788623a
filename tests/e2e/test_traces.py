# SPDX-License-Identifier: Apache-2.0
"""From a PyTorch program to answers and Chakra: execution traces and Kineto traces that PyTorch 2 made here."""

import json

import pytest

KINDS = ["train", "threads", "gloo", pytest.param("compile", marks=pytest.mark.slow)]


def attribute(node, name):
    return next((each["value"] for each in node["attrs"] if each["name"] == name), None)


def read_pair(folder, rank=0):
    et = json.loads((folder / f"et_{rank}.json").read_text())
    kineto = json.loads((folder / f"kineto_{rank}.json").read_text())
    return et["nodes"], [event for event in kineto["traceEvents"] if event.get("ph") == "X"]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_what_the_other_tests_take_them_for(pairs, kind):
    """One run: each operator of the Kineto trace has the record-function id and the name of a node."""
    nodes, events = read_pair(pairs(kind))
    names = {attribute(node, "rf_id"): node["name"] for node in nodes}
    operators = [event for event in events if event["cat"] in ("cpu_op", "user_annotation")]
    assert len(operators) > 250
    assert all(names[event["args"]["Record function id"]] == event["name"] for event in operators)
