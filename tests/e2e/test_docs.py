# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation say what the program does: tests/check-docs.py on all of them, and what only a run shows."""

import re
import runpy
import subprocess
import time

import pytest

from conftest import ROOT

CHECK = runpy.run_path(str(ROOT / "tests" / "check-docs.py"))
PAGES = CHECK["pages"](ROOT)
EXAMPLES = ROOT / "examples"
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def program(sonde_path):
    return CHECK["Program"](sonde_path, ROOT)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The folder in which commands of pages find the captures, and the traces where they are at hand."""
    folder = tmp_path_factory.mktemp("inputs")
    CHECK["prepare"](ROOT, folder)
    return folder


def test_pages_and_sources_agree():
    """Blocks, links, quoted sentences."""
    assert CHECK["check"](ROOT) == []
    assert len(PAGES) > 40 and sum(len(CHECK["blocks"](page)) for page in PAGES) > 140


def test_commands_and_options_are_understood(program):
    problems = [problem for page in PAGES for check in ("check_commands", "check_options") for problem in CHECK[check](page, program)]
    assert problems == []


def replayed(needs_traces):
    return [block for page in PAGES for block in CHECK["replayed"](page) if CHECK["needs_traces"](ROOT, block) == needs_traces]


@pytest.mark.parametrize("needs_traces", [False, True])
def test_quoted_output_is_what_is_printed(program, inputs, needs_traces, request):
    """Of the captures in tests/golden/docs, and of real traces."""
    if needs_traces:
        request.getfixturevalue("shared_traces")
    if not CHECK["can_unshare"]():
        pytest.skip("no mount namespaces here: the pages quote source lines of programs in /home/me")
    blocks = replayed(needs_traces)
    assert len(blocks) > 5
    assert [problem for block in blocks for problem in CHECK["check_output"](block, program, inputs)] == []


# ---- output of a run ----


def quoted(page, command):
    """The lines of a page that a command printed in a run."""
    found = [block for block in CHECK["blocks"](ROOT / "docs" / page) if block.of_run and block.command.startswith(command)]
    assert len(found) == 1, f"{page} has no output of a run of '{command}'"
    return [line for line in found[0].lines if line.strip() and line.strip() != "…"]


def forms(lines):
    return [CHECK["form"](re.sub(r"python3\.\d+", "python3", line)) for line in lines]


def features(lines):
    """What doctor looks at, in order, whether or not it works."""
    return [match[1] for line in lines if (match := re.match(r"  (?:works|partly|no) +(.*)", line))]


def test_doctor(sonde, sonde_unprivileged, is_root):
    done = sonde("doctor").stdout.splitlines()
    wanted = features(quoted("quick-start.md", "sonde doctor"))
    assert len(wanted) > 5 and features(done)[:len(wanted)] == wanted
    asked = quoted("record.md", "sonde doctor")
    printed = forms(sonde_unprivileged("doctor").stdout.splitlines())
    where = re.compile(r"Linux|/sonde$|perf_event_paranoid|[\d,] kernel stacks")
    if is_root:  # else who runs the tests has rights that nobody knows
        assert [line for line in forms(asked) if line not in printed and not where.search(line)] == []


@pytest.mark.skipif("os.geteuid() != 0", reason="the account that is quoted is of the BPF mode, which needs root")
def test_the_account_of_a_recording(sonde, tmp_path):
    """Its lines, by their first words, come in the order in which the page has and explains them."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        pytest.skip("python3-torch is not installed")
    done = sonde("record", "-o", "before.pftrace", "--", PYTHON, EXAMPLES / "train.py", "--steps", "40", "--seconds", "600")
    asked = quoted("quick-start.md", "sonde record")
    lines = done.stderr.splitlines()
    (begin,) = [number for number, form in enumerate(forms(lines)) if form == forms(asked)[0]]
    lines = lines[begin:]  # before it sonde may say that it waits for tables
    labels = [label(line) for line in asked if label(line)]
    printed = [label(line) for line in lines if label(line)]
    assert len(labels) > 5 and [word for word in labels if word not in printed] == []
    assert labels == [word for word in printed if word in labels]
    assert [form for form in forms(asked) if form.startswith("next:")] == [form for form in forms(lines) if form.startswith("next:")]
    table = [form for form in forms(asked) if re.match(r"hooks |torch ", form)]
    assert len(table) == 2 and [form for form in table if form not in forms(lines)] == []


def label(line):
    """Of "  lost    none" lost, of "sonde: 519 samples" sonde:."""
    match = re.match(r"(?:  )?([a-z]+:?) ", line)
    return match and match[1]


@pytest.mark.skipif("os.geteuid() != 0", reason="the dump that is quoted was made by BPF, which needs root")
def test_dump(sonde):
    """The Python lines of both threads, and what they wait for."""
    process = subprocess.Popen([PYTHON, ROOT / CHECK["GOLDEN"] / "fetch.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        asked = [line for line in quoted("dump.md", "sonde dump") if ".py:" in line or not line.startswith(" ")]
        asked = [re.sub(r"/home/me/", "", form) for form in forms(asked)]
        for _ in range(20):  # both threads are soon where they wait
            lines = sonde("dump", "-p", process.pid, check=0).stdout.splitlines()
            printed = forms(re.sub(r"[^\s(]*/fetch.py", "fetch.py", line).replace(PYTHON, "python3") for line in lines)
            missing = [form for form in asked if form not in printed]
            if not missing:
                break
            time.sleep(0.1)
        assert len(asked) > 8 and missing == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif("os.geteuid() != 0", reason="top of Python's lines needs the BPF mode, and so root")
def test_top(sonde):
    asked = quoted("top.md", "sonde top")
    done = sonde("top", "-b", "-n", "1", "-i", "1", "--by", "line", "--fold-libraries", "yes", "--", PYTHON, EXAMPLES / "waiting.py",
                 env={"COLUMNS": "110"}, check=0)
    printed = forms(done.stdout.splitlines())
    assert [form for form in forms(asked[:3]) if form not in printed] == []


def test_what_a_watch_prints(torch2, sonde_path):
    if subprocess.run([torch2, "-c", "import transformers"], capture_output=True, check=False).returncode != 0:
        pytest.skip("PyPI gave no transformers: see tools/venv torch2")
    code = """
from transformers import LlamaConfig, LlamaForCausalLM
import sonde
sizes = dict(hidden_size=64, intermediate_size=64, num_hidden_layers=16, num_attention_heads=2, num_key_value_heads=2, vocab_size=64)
print(sonde.watch(LlamaForCausalLM(LlamaConfig(**sizes)), level="component", every=8))
"""
    done = subprocess.run([torch2, "-c", code], env={"PYTHONPATH": str(sonde_path.parent / "python"), "PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-5:] == quoted("python-package.md", "print(watch)")
