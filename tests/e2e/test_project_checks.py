# SPDX-License-Identifier: Apache-2.0
"""The checks of the project itself find what they are there for: each is run on a small tree with one fault."""

import json
import re
import runpy
import subprocess
import sys

import pytest

from conftest import ROOT

TABLE = """
| folder | what | may include |
|---|---|---|
| `src/base/` | text | libc |
| `src/model/` | rows | base |
| `src/cli/` | commands | anything |
"""


def check(name, *arguments):
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / name, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "ARCHITECTURE.md").write_text(TABLE)
    files = {"base/text.h": "", "model/rows.h": "", "model/rows.c": '#include "base/text.h"\n', "cli/main.h": ""}
    for path, text in files.items():
        (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / path).write_text(text)
    return tmp_path


def test_layers_that_are_right(tree):
    assert check("check-layers.py", tree) == (0, "4 files in 3 layers: 0 forbidden\n")


@pytest.mark.parametrize("include", ['"cli/main.h"', '"../cli/main.h"', "<cli/main.h>", '"../base/../cli/main.h"'])
def test_layers_finds_every_spelling_of_an_include(tree, include):
    (tree / "src/model/rows.c").write_text(f"#include <stdio.h>\n#include {include}\n")
    status, text = check("check-layers.py", tree)
    assert status == 1 and "src/model/rows.c:2: model may not include cli; ARCHITECTURE.md allows it base" in text


def test_layers_finds_a_tool_in_an_analysis(tree):
    with (tree / "ARCHITECTURE.md").open("a") as page:
        page.write("| `src/analyses/` | what it means | base, model |\n| `src/compat/` | other tools | base |\n")
    (tree / "src/compat/hta").mkdir(parents=True)
    (tree / "src/analyses").mkdir()
    (tree / "src/analyses/idle.c").write_text("/* HTA's limit (hta/trace_analysis.py) */\nbool chtat_x;\nif (is_hta)\n")
    status, text = check("check-layers.py", tree)
    assert status == 1 and "src/analyses/idle.c:3: is_hta belongs in src/compat/hta/" in text and text.count("idle.c") == 1


def build(tree, layer, name, code):
    """What Meson makes of a layer: objects in a folder beside the library."""
    folder = tree / "build" / "src" / layer
    objects = folder / f"libsonde-{layer}.a.p"
    objects.mkdir(parents=True, exist_ok=True)
    (objects / f"{name}.c").write_text(code)
    compiled, library = objects / f"{name}.c.o", folder / f"libsonde-{layer}.a"
    subprocess.run(["gcc", "-c", objects / f"{name}.c", "-o", compiled], check=True)
    subprocess.run(["ar", "csrDT", library, compiled], check=True)


def test_layers_finds_a_call_without_an_include(tree):
    build(tree, "base", "text", "int text_length(void) { return 0; }")
    build(tree, "cli", "main", "int text_length(void); int command(void) { return text_length(); }")
    assert check("check-layers.py", tree, tree / "build")[0] == 0
    build(tree, "model", "rows", "extern int command(void); int rows(void) { return command(); }")
    status, text = check("check-layers.py", tree, tree / "build")
    assert status == 1 and "model may not call command of cli" in text


@pytest.mark.parametrize(
    "layer, name, code, fault",
    [
        ("analyses", "idle", "int f(void) { return puts(name); }", "analyses prints nothing, and calls puts"),
        ("report", "idle", "int f(void) { return json_key(); }", "a section writes no JSON, and calls json_key"),
        ("collect", "open", "int *f(void) { return &cpu_source; }", "cpu_source is known to the table"),
        ("report", "render_json", "int f(void) { return json_key(); }", None),
        ("sources", "sources", "int *f(void) { return &cpu_source; }", None),
    ],
)
def test_layers_finds_a_misuse(tree, layer, name, code, fault):
    with (tree / "ARCHITECTURE.md").open("a") as page:
        for one in ("analyses", "report", "sources", "collect"):
            page.write(f"| `src/{one}/` | what it does | base, sources |\n")
    build(tree, "base", "json", "const char name[] = \"\"; int json_key(void) { return 0; }")
    build(tree, "sources", "cpu", "int cpu_source;")
    build(tree, "model", "rows", "int json_key(void); int rows(void) { return json_key(); }")
    known = "extern int cpu_source; extern const char name[]; int json_key(void); int puts(const char *);"
    build(tree, layer, name, known + code)
    status, text = check("check-layers.py", tree, tree / "build")
    assert (status, fault in text) == (1, True) if fault else status == 0, text


def test_layers_finds_a_runtime_in_the_recording_half(tree):
    with (tree / "ARCHITECTURE.md").open("a") as page:
        page.write("| `src/wire/` | records | libc |\n| `src/inject/` | runtimes | wire |\n")
    files = {"inject/cuda/runtime.h": "struct cuda_call;\n", "wire/device.h": '/* CUDA */\n#define A "CUDA"\nint cudaq;\n'}
    for path, text in files.items():
        (tree / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / "src" / path).write_text(text)
    status, text = check("check-layers.py", tree)
    assert status == 1 and "src/wire/device.h:3: cudaq belongs in src/inject/" in text and text.count("belongs") == 1


def test_layers_finds_what_is_too_long(tree):
    (tree / "src/model/rows.c").write_text("int f(void)\n{\n" + "\tg();\n" * 61 + "}\n" + "\n" * 537)
    status, text = check("check-layers.py", tree)
    assert status == 1 and "rows.c: 601 lines" in text and "rows.c:2: a function of 61 lines" in text


def test_layers_says_that_nothing_was_built(tree):
    build(tree, "base", "text", "int text_length(void) { return 0; }")
    status, text = check("check-layers.py", tree, tree / "build")
    assert status == 2 and "build them first" in text


SYSTEMS = """
| feature | test |
|---|---|
| rows | `tests/e2e/test_rows.py::test_rows` |
"""
RESULTS = """<testsuites><testsuite>
<testcase classname="e2e.test_rows" name="test_rows[1]">{0}</testcase>
<testcase classname="e2e.test_rows" name="test_rows[2]">{1}</testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    "outcomes, status",
    [(("", ""), 0), (("<skipped/>", ""), 0), (("<skipped/>", "<skipped/>"), 1), (("<failure/>", "<skipped/>"), 1)],
)
def test_systems_wants_a_test_that_ran(tmp_path, outcomes, status):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/systems.md").write_text(SYSTEMS)
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / "tests/e2e/test_rows.py").write_text("def test_rows():\n    pass\n")
    (tmp_path / "results.xml").write_text(RESULTS.format(*outcomes))
    assert check("check-systems.py", tmp_path)[0] == 0
    assert check("check-systems.py", tmp_path, tmp_path / "results.xml")[0] == status


def test_tidy_looks_at_what_changed_and_once_at_each_header(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    choose = runpy.run_path(str(ROOT / "tools" / "tidy"))["choose"]
    parts = {"a.c": {"a.c", "a.h", "all.h"}, "b.c": {"b.c", "b.h", "all.h"}, "c.c": {"c.c", "b.h"}, "d.c": {"d.c", "all.h"}}
    assert choose(parts, {"a.c", "a.h", "all.h", "b.h"}) == ["a.c", "b.c"]
    assert choose(parts, {"all.h"}) == ["a.c"]
    assert choose(parts, {"d.c", "README.md"}) == ["d.c"]


def test_nothing_is_skipped_that_tools_deps_installs():
    """A test that is skipped for want of a package would be skipped for good, and nobody would see it."""
    listed = re.search(r"^test_packages=\((.*?)\)", (ROOT / "tools" / "deps").read_text(), re.M | re.S)[1].split()
    words = ["tools/deps", "OpenCL", *(f"package {package}" for package in listed)]
    tests = [*(ROOT / "tests" / "e2e").glob("*.py"), *(ROOT / "tests" / "python").glob("*.py")]
    skips = [reason for test in tests for reason in re.findall(r'(?:\.skip\(|reason=)f?"([^"]*)"', test.read_text())]
    assert len(skips) > 20
    assert not [reason for reason in skips if any(word in reason for word in words)]


def test_every_section_answers_a_question():
    """Each stands in the table of ARCHITECTURE.md, in its column: there is one for each question."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\? \|[^|]*\|([^|]*)\|([^|]*)\|$", page, re.M)
    named = set()
    for cells in rows:
        folder = ""
        for name in re.findall(r"`([\w/]+\.c)`", " ".join(cells)):
            folder = name.rpartition("/")[0] or folder
            named.add(name if "/" in name else f"{folder}/{name}".lstrip("/"))
    report = ROOT / "src/report"
    defined = re.compile(r"^const struct report_section \w+ = \{", re.M)
    sections = {str(path.relative_to(report)) for path in report.rglob("*.c") if defined.search(path.read_text())}
    assert len(sections) > 30
    assert sorted(sections - named) == []


FOLDERS = ("src", ".", "src/analyses", "src/exporters", "src/report")


def test_files_that_the_architecture_names():
    """ARCHITECTURE.md leads from file to file: each of them is there."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:c|h|py))`", page))
    assert len(names) > 25
    assert not [name for name in names if not any((ROOT / folder / name).exists() for folder in FOLDERS)]


def test_the_table_of_distributions_is_what_was_seen():
    page = runpy.run_path(str(ROOT / "tools/distributions"), run_name="distributions")
    results = json.loads(page["RESULTS"].read_text())
    assert {result["name"] for result in results} <= set(page["DISTRIBUTIONS"])
    assert page["BEGIN"] + page["table"](results) + page["END"] in page["PAGE"].read_text()


# ---- tests/check-docs.py ----

PAGE = """# A page

See [the other](other.md#a-heading).

```sh
sonde report --by line run.pftrace     # lines
```

`samples were lost because the ring was full`

| note | what |
|---|---|
| `N files could not be read` | why |
"""


@pytest.fixture
def documented(tmp_path, monkeypatch):
    """A small tree whose pages are right, and a program that prints "2 samples", a row and help. No traces."""
    monkeypatch.setenv("SONDE_TRACES", str(tmp_path / "none"))
    files = {
        "docs/page.md": PAGE,
        "docs/other.md": "## A heading\n\n<!-- output: sonde report x.pftrace -->\n```\n2 samples\n…\n1 ms  main\n```\n",
        "src/cli/say.c": 'say("%u samples were lost because the " /* not here */ "ring was full");\nsay("%u files could not be read, see docs/page.md");\n',
        "sonde": "#!/bin/sh\ncase \"$*\" in\n--help) echo 'Commands:'; echo '  report  say' ;;\n*--help*) case \"$*\" in *--bye*) echo no option --bye >&2; exit 2 ;; *) echo '  --by WHAT' ;; esac ;;\n*) echo 2 samples; echo; echo '1 ms  main' ;;\nesac\n",
        "tests/golden/docs/x.pftrace": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "sonde").chmod(0o755)
    return tmp_path


def test_docs_that_are_right(documented):
    assert check("check-docs.py", documented, documented / "sonde") == (0, "2 pages, 2 blocks: 0 problems\n")


@pytest.mark.parametrize(
    "page, old, new, said",
    [
        ("page", "```sh", "```", "page.md:5: output without <!-- output: COMMAND --> above it"),
        ("page", "```sh", "```text", "page.md:5: a block of 'text'"),
        ("page", "other.md#a", "others.md#a", "page.md:3: there is no others.md"),
        ("page", "#a-heading", "#the-heading", "page.md:3: docs/other.md has no heading #the-heading"),
        ("page", "--by line", "--bye line", "page.md:5: sonde report --bye line run.pftrace     # lines: no option --bye"),
        ("page", "`samples", "`--bye` samples `samples", "page.md:9: no command has --bye"),
        ("page", "were lost because", "are lost because", "page.md:9: no sentence of the program has 'samples are lost because the ring was full'"),
        ("page", "files could", "folders could", "page.md:13: no sentence of the program has 'folders could not be read'"),
        ("other", "2 samples", "3 samples", "other.md:4: 'sonde report x.pftrace' does not print '3 samples' here"),
        ("other", "…\n", "", "other.md:4: 'sonde report x.pftrace' prints other lines between these"),
        ("other", "output: sonde report x.pftrace -->\n```\n", "output of a run: sonde -->\n```\nit went well this time\n", "no sentence of the program has 'it went well this time'"),
        ("other", "x.pftrace", "y.pftrace", "other.md:4: not looked at without the traces of"),
    ],
)
def test_docs_finds_what_is_no_longer_so(documented, page, old, new, said):
    path = documented / "docs" / f"{page}.md"
    assert path.read_text().count(old) >= 1
    path.write_text(path.read_text().replace(old, new, 1))
    status, text = check("check-docs.py", documented, documented / "sonde")
    assert said in text and status == (0 if "not looked at" in said else 1), text


def test_docs_finds_a_page_that_the_program_names(documented):
    (documented / "src/cli/say.c").write_text((documented / "src/cli/say.c").read_text().replace("docs/page.md", "docs/pages.md"))
    status, text = check("check-docs.py", documented)
    assert status == 1 and "src/cli/say.c:2: there is no docs/pages.md" in text


@pytest.mark.parametrize(
    "frame, page, said",
    [
        ("_around_traced.&lt;locals&gt;.wrapper", "![](images/flame.svg)", "flame.svg: it has _around_traced; tools/pictures"),
        ("train (/tmp/x/train.py)", "![](images/flame.svg)", "flame.svg: it has /tmp/x/train.py)"),
        ("train (train.py)", "", "flame.svg: no page shows it"),
    ],
)
def test_docs_finds_what_no_picture_should_have(documented, frame, page, said):
    (documented / "docs/images").mkdir()
    (documented / "docs/images/flame.svg").write_text(f"<title>{frame} </title>")
    (documented / "docs/third.md").write_text(page)
    status, text = check("check-docs.py", documented)
    assert status == 1 and said in text


def test_docs_writes_output_anew(documented):
    page = documented / "docs/other.md"
    right = page.read_text()
    page.write_text(right.replace("2 samples", "3 samples").replace("1 ms", "20 s"))
    assert check("check-docs.py", "--renew", documented, documented / "sonde")[0] == 0
    assert page.read_text() == right
    page.write_text(right.replace("2 samples", "two samples"))
    status, text = check("check-docs.py", "--renew", documented, documented / "sonde")
    assert status == 1 and "prints no line like 'two samples'" in text and "two samples" in page.read_text()


# ---- tools/first-hour ----


@pytest.fixture
def first_hour(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return runpy.run_path(str(ROOT / "tools/first-hour"), run_name="first-hour")


def test_the_first_hour_is_tested_when_its_parts_change(first_hour):
    parts = ["README.md", "Makefile", "meson.build", "tests/e2e/workloads/meson.build", "tools/deps", "web/package-lock.json", "pyproject.toml"]
    assert all(first_hour["PARTS"].fullmatch(name) for name in parts)
    assert not any(first_hour["PARTS"].fullmatch(name) for name in ("src/cli/main.c", "docs/README.md", "tests/e2e/test_opencl.py"))
    assert all((ROOT / name.partition("::")[0]).exists() for name in first_hour["TESTS"])


@pytest.mark.parametrize("wrong, found", [
    ({}, []),
    ({"demo.log": "train.py:3\n2"}, ["demo-test: make demo ended with status 2"]),
    ({"demo.log": "no line\n0"}, ["demo-test: the report of make demo names no line of train.py"]),
    ({"test.end": None}, ["demo-test: make test did not end"]),
    ({"tests.xml": None}, ["demo-test: no test of tests/e2e ran"]),
    ({"tests.xml": RESULTS.format("", '<skipped message="needs root"/>')}, []),
    ({"tests.xml": RESULTS.format("", '<skipped message="no musl-gcc"/>')},
     ["demo-test: skipped for want of something: test_rows[2]: no musl-gcc"]),
])
def test_the_first_hour_finds_what_went_wrong(first_hour, tmp_path, wrong, found):
    files = {"typed": "", "demo.log": "train.py:3\n0", "demo.end": "1", "test.log": "5 passed\n0", "test.end": "2",
             "tests.xml": RESULTS.format("", "")}
    for name, text in {**files, **wrong}.items():
        if text is not None:
            (tmp_path / name).write_text(text)
    assert first_hour["faults_of"]("demo-test", tmp_path) == found
