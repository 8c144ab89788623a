# SPDX-License-Identifier: Apache-2.0
"""Hooks in Python children: the bootstrap, the finder and the wrappers (python/sonde/hooks).

Most children here have a stand-in for the extension and for a framework (python-hooks/), so that every Python that
is installed can be one; the last tests record real programs. "ProfileMate N" names a defect of it that must not come
back, as docs/systems.md numbers them.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).parent / "python-hooks"
PACKAGE = ROOT / "python" / "sonde"


def pythons():
    """One Python of each release since 3.8 that is here: the system's, and those of pyenv."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = {}
    for python in ["/usr/bin/python3", sys.executable, *sorted(glob.glob(f"{root}/versions/3.*/bin/python"))]:
        show = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        release = subprocess.run(show, capture_output=True, text=True).stdout.strip()
        if release and tuple(map(int, release.split("."))) >= (3, 8):
            found.setdefault(release, python)
    return found


PYTHONS = pythons()


class Child:
    """Runs Python code as a child of `sonde record --hooks` would run."""

    def __init__(self, folder):
        self.folder = folder
        self.session = folder / "session"
        self.events_file = folder / "events"
        self.work = folder / "work"
        self.modules = folder / "modules"
        package = folder / "package" / "sonde"
        shutil.copytree(PACKAGE / "hooks", package / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
        for path in PACKAGE.glob("_[!_]*.py"):
            shutil.copy(path, package)
        shutil.copy(STAND_INS / "core.py", package / "_core.py")
        shutil.copy(STAND_INS / "group.py", package / "hooks" / "demo.py")
        self.bootstrap = package / "hooks" / "bootstrap"
        for place in (self.session, self.work, self.modules):
            place.mkdir()
        shutil.copytree(STAND_INS / "demo", self.modules / "demo", ignore=shutil.ignore_patterns("__pycache__"))

    def environment(self, **more):
        return {
            **os.environ,
            "SONDE_SESSION": str(self.session),
            "SONDE_HOOKS": "demo",
            "EVENTS": str(self.events_file),
            "PYTHONPATH": f"{self.bootstrap}:{self.modules}",
            **more,
        }

    def run(self, code, *options, python=sys.executable, **environment):
        return subprocess.run(
            [python, *options, "-c", code],
            env=self.environment(**environment),
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def json(self, code, **options):
        """What the code prints, as JSON."""
        done = self.run(code, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def events(self):
        return [tuple(json.loads(line)) for line in self.events_file.read_text().splitlines()]

    def states(self):
        """{(module, attribute): (state, detail)} of all processes, the last line about each."""
        lines = [line for file in sorted(self.session.iterdir()) for line in file.read_text().splitlines()]
        return {tuple(line.split("\t")[1:3]): tuple(line.split("\t")[3:]) for line in lines}


@pytest.fixture
def child(tmp_path):
    return Child(tmp_path)


EVERY_KIND = """
import asyncio, inspect, json
from demo import work

async def stream():
    source = work.Worker().stream(3)
    got = [await source.asend(None), await source.athrow(KeyError("x"))]
    async for item in source:
        got.append(item)
    return got

def several():
    source = work.Worker().several(2)
    got = [next(source), source.send("sent")]
    try:
        source.send("last")
    except StopIteration as end:
        got.append(end.value)
    return got

worker = work.Worker()
results = [worker.method(1, b=3), work.Worker.static(2), worker.static(2), work.Worker.made(3), worker.inherited(4),
           asyncio.run(worker.later(5)), several(), asyncio.run(stream()),
           work.function("f", self="s", args=(1,), kwargs={}), work.guarded(6)]
kinds = [inspect.iscoroutinefunction(work.Worker.later), inspect.isgeneratorfunction(work.Worker.several),
         inspect.isasyncgenfunction(work.Worker.stream), work.function.__doc__ is not None,
         work.Worker.method.__qualname__, str(inspect.signature(work.Worker.method))]
print(json.dumps([results, kinds, work.calls]))
"""


@pytest.mark.parametrize("release", PYTHONS)
def test_every_kind_of_function_on_every_python(child, release):
    """ProfileMate 1: a finder of find_module is never asked since Python 3.12; ours is one of find_spec.
    ProfileMate 10: every call reaches the original once, with exactly its arguments."""
    plain = child.json(EVERY_KIND, python=PYTHONS[release], SONDE_HOOKS="none")
    assert not list(child.session.iterdir()) and not child.events_file.exists()
    hooked = child.json(EVERY_KIND, python=PYTHONS[release])
    assert hooked == plain
    events = child.events()
    pushed = [(event[1], event[3]) for event in events if event[0] == "push"]
    assert pushed == [
        ("method", {"arguments": 3}),
        ("older", None),
        ("static", {"arguments": 1}),
        ("older", None),
        ("static", {"arguments": 1}),
        ("made", {"arguments": 2}),
        ("inherited", {"arguments": 2}),
        ("function", None),
    ]
    assert [event[1] for event in events if event[0] == "start"] == ["later", "several", "stream"]
    assert len([event for event in events if event[0] == "pop"]) == len(pushed)
    assert len([event for event in events if event[0] == "end"]) == 3


def test_with_a_closed_gate_nothing_is_told(child):
    child.json(EVERY_KIND, GATE="closed")
    assert not child.events_file.exists()
    assert child.states()["demo.work", "Worker.method"][0] != "waiting"


def test_table_of_states(child):
    """ProfileMate 2: what could not be patched is said, with the attribute that is missing. ProfileMate 9."""
    child.json(EVERY_KIND)
    states = child.states()
    assert states["demo.work", "Worker.made"] == ("applied", "")
    assert states["demo.work", "Worker.gone"] == ("not found", "there is no Worker.gone")
    assert states["demo.work", "Worker.method"] == ("not found", "there is no Worker.needed")
    assert states["demo.work", "Worker.older"] == ("applied", "")  # by its fallback
    assert states["demo.work", "Worker.unmade"] == ("error", "RuntimeError: cannot be made")
    state, detail = states["demo.work", "Worker.number"]
    assert state == "error" and "cannot be called" in detail
    assert states["demo.never", "function"] == ("waiting", "")
    assert ("demo.work", "Worker.elsewhere") not in states
    # The hook's own failure is said, and has not reached the program.
    assert states["demo.work", "guarded"][0] == "error"
    assert "recording failed 2 times: KeyError: 'in the hook'" in states["demo.work", "guarded"][1]


def test_an_exception_is_the_programs_own(child):
    code = """
import json, traceback
from demo import work
try:
    work.Worker().fails()
except ValueError as error:
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    print(json.dumps([str(error), names, error.__cause__ is None and error.__context__ is None]))
"""
    plain = child.json(code, SONDE_HOOKS="none")
    hooked = child.json(code)
    assert plain == ["of the program", ["<module>", "fails"], True]
    assert hooked == ["of the program", ["<module>", "wrapper", "fails"], True]


def test_a_failing_import_is_the_programs_own_and_may_be_tried_again(child):
    code = """
import json
try:
    import demo.fails_once
except ImportError as error:
    first = str(error)
import demo.fails_once
print(json.dumps([first, demo.fails_once.function()]))
"""
    assert child.json(code) == ["not yet", "imported"]
    assert child.states()["demo.fails_once", "function"] == ("applied", "")


def test_a_module_that_replaces_itself(child):
    code = "import json, demo.swapped, sys; print(json.dumps(sys.modules['demo.swapped'].function()))"
    plain = child.json(code, SONDE_HOOKS="none")
    assert child.json(code) == plain == "replaced"
    # It is an instance: the hook is on the instance, so that the call is recorded.
    assert ("push", "swapped", "demo", None) in child.events()


def test_a_lazy_module(child):
    code = """
import importlib.util, json, sys
import demo
spec = importlib.util.find_spec("demo.work")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = importlib.util.module_from_spec(spec)
sys.modules["demo.work"] = module
spec.loader.exec_module(module)

print(json.dumps([module.Worker().method(1), type(module).__name__, type(module.__loader__).__name__]))
"""
    for release, python in PYTHONS.items():
        plain = child.json(code, python=python, SONDE_HOOKS="none")
        assert child.json(code, python=python) == plain == [3, "module", "SourceFileLoader"], release


def test_a_reloaded_module_is_patched_again(child):
    code = """
import importlib, json
from demo import work
work.function(1)
importlib.reload(work)
print(json.dumps([work.function(2), type(work.__loader__).__name__, type(work.__spec__.loader).__name__]))
"""
    assert child.json(code) == [2, "SourceFileLoader", "SourceFileLoader"]
    assert [event[1] for event in child.events() if event[0] == "push"] == ["function", "function"]


def test_modules_that_were_imported_before(child):
    """ProfileMate: what is in sys.modules already is patched, too."""
    (child.modules / "sitecustomize.py").write_text("")
    code = """
import json
from demo import work
from sonde.hooks import install
install(["demo"])
print(json.dumps(work.Worker().method(1)))
"""
    assert child.json(code, SONDE_HOOKS="none", PYTHONPATH=f"{child.bootstrap.parents[2]}:{child.modules}") == 3
    assert ("push", "method", "demo", {"arguments": 2}) in child.events()


def test_asking_whether_a_package_is_there_loads_nothing(child):
    code = "import importlib.util, json, sys; importlib.util.find_spec('demo');"
    code += "print(json.dumps([name for name in sys.modules if name.startswith('sonde')]))"
    assert child.json(code) == ["sonde.hooks.finder"]
    assert not list(child.session.iterdir())


# ---- names of threads ----

THREAD_NAMES = """
import glob, json, os, threading

def comm(*ignored):
    with open("/proc/thread-self/comm", "rb") as file:
        names.append(file.read().decode()[:-1])

def renames():
    threading.current_thread().name = "later"
    comm()

class Mine(threading.Thread):
    def run(self):
        comm()

names = []
threads = [threading.Thread(target=comm, name=name) for name in ("loader", "ThreadPoolExecutor-0_12", "\\u00e4" * 9)]
threads += [threading.Thread(target=renames), Mine(name="of a subclass"), threading.Thread(target=comm, name=7)]
for thread in threads:
    thread.start()
    thread.join()
threads[0].name = "ended"
threading.main_thread().name = "first"
import _thread, time
_thread.start_new_thread(lambda: (threading.current_thread(), comm()), ())
while len(names) < 7:
    time.sleep(0.001)
comm()
print(json.dumps([names, [thread.name for thread in threads]]))
"""


@pytest.mark.parametrize("release", PYTHONS)
def test_threads_have_the_names_that_the_program_gives_them(child, release):
    names, kept = child.json(THREAD_NAMES, python=PYTHONS[release])
    own = os.path.basename(PYTHONS[release])
    assert names[:6] == ["loader", "ThreadPool-0_12", "\u00e4" * 7, "later", "of a subclass", "7"]
    assert names[6:] == [names[7]] * 2 and names[7].startswith(own[:6]), "the process's, also of foreign threads"
    assert kept == ["ended", "ThreadPoolExecutor-0_12", "\u00e4" * 9, "later", "of a subclass", "7"]
    assert not list(child.session.iterdir()), "nothing to say"


def test_names_of_threads_are_in_the_report(sonde, report, tmp_path):
    script = tmp_path / "named.py"
    script.write_text("""
import threading, time

def spin():
    while time.thread_time() < 0.3:
        pass

threads = [threading.Thread(target=spin, name="loader-%d" % i) for i in range(3)]
for thread in threads:
    thread.start()
""")
    capture = tmp_path / "named.pftrace"
    sonde("record", "-F", "999", "-o", capture, "--", sys.executable, script, check=0)
    rows = report(capture, "--by", "thread")["tables"]["thread"]["rows"]
    assert {"loader-0", "loader-1", "loader-2"} <= {row["name"] for row in rows}


# ---- the bootstrap ----


@pytest.mark.parametrize("release", PYTHONS)
def test_a_process_without_targets_leaves_no_trace(child, release):
    """ProfileMate 3: nothing is guessed from the command line. ProfileMate 4: nothing is made at an import."""
    code = "import json, sys; print(json.dumps([sys.path, sorted(set(sys.modules) - {'sitecustomize'})]))"
    plain = child.json(code, python=PYTHONS[release], SONDE_HOOKS="none", PYTHONPATH=str(child.modules))
    hooked = child.json(code, python=PYTHONS[release])
    assert hooked[0] == plain[0]
    assert hooked[1] == plain[1]
    assert not list(child.session.iterdir()) and not list(child.work.iterdir())


@pytest.mark.parametrize("where", ["path", "venv"])
def test_an_existing_sitecustomize_runs(child, where, tmp_path):
    python = sys.executable
    if where == "venv":
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
        python = str(tmp_path / "venv" / "bin" / "python")
        (target,) = glob.glob(f"{tmp_path}/venv/lib/python3*/site-packages")
    else:
        target = child.modules
    Path(target, "sitecustomize.py").write_text("import demo.work\nmine = 'the program own'\n")
    code = """
import json, sitecustomize
from demo import work
work.function(1)
print(json.dumps([getattr(sitecustomize, "mine", None), sitecustomize.__file__]))
"""
    plain = child.json(code, python=python, PYTHONPATH=str(child.modules))
    assert child.json(code, python=python) == plain
    assert where == "venv" or plain[0]  # a distribution's own may come before that of a venv
    assert ("push", "function", "demo", None) in child.events()


@pytest.mark.parametrize("error", ["raise ValueError('mine')", "import not_there", "sys.exit(3)"])
def test_errors_of_an_existing_sitecustomize_surface_as_ever(child, error):
    (child.modules / "sitecustomize.py").write_text(f"import sys\n{error}\n")
    plain = child.run("print('ran')", PYTHONPATH=str(child.modules))
    hooked = child.run("print('ran')")
    assert (hooked.returncode, hooked.stdout) == (plain.returncode, plain.stdout)
    last = plain.stderr.splitlines()[-1:]
    assert hooked.stderr.splitlines()[-1:] == last


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_pythons_that_read_no_environment_are_left_alone(child, option):
    done = child.run("import sys; print([n for n in sys.modules if n.startswith('sonde')])", option)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_without_site_the_folder_holds_what_takes_it_away(child):
    """Nothing of it runs with -S, so that it stays in sys.path; whoever asks for a sitecustomize gets the program's."""
    (child.modules / "sitecustomize.py").write_text("mine = True\n")
    code = """
import json, sys, sitecustomize
import demo.work
print(json.dumps([sitecustomize.mine, [entry for entry in sys.path if "bootstrap" in entry]]))
"""
    done = child.run(code, "-S")
    assert done.stdout == "[true, []]\n", done.stderr
    assert child.states()["demo.work", "function"] == ("applied", "")


def test_children_of_children(child):
    """ProfileMate 5: each process writes a file of its own."""
    code = """
import json, os, subprocess, sys
import demo.work
inner = "from demo import work; work.function(7)"
subprocess.run([sys.executable, "-c", inner], check=True)
pid = os.fork()
if pid == 0:
    demo.work.function(8)
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps("done"))
"""
    child.json(code)
    assert len(list(child.session.iterdir())) == 2  # the forked one had nothing new to say
    assert [event[1] for event in child.events() if event[0] == "push"] == ["function", "function"]


def test_states_outlive_a_killed_process(child):
    """ProfileMate 6: nothing waits for the end of the process."""
    done = child.run("import os, signal\nfrom demo import work\nos.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -9
    assert child.states()["demo.work", "Worker.made"] == ("applied", "")


def test_a_module_of_the_program_that_is_called_sonde(child):
    (child.work / "sonde.py").write_text("mine = 'the program own'\n")
    script = child.work / "main.py"
    script.write_text("import json, demo.work, sonde\nprint(json.dumps([sonde.mine, demo.work.function(1)]))\n")
    done = subprocess.run([sys.executable, script], env=child.environment(), capture_output=True, text=True)
    assert json.loads(done.stdout) == ["the program own", 1], done.stderr
    state, detail = child.states()["-", "-"]
    assert state == "error" and "sonde" in detail


def test_a_folder_beside_the_program_that_is_called_sonde(child):
    """A checkout of sonde is one. The hooks do not miss their package, and what the program has there it finds."""
    (child.bootstrap.parents[1] / "__init__.py").write_text("")
    (child.work / "sonde").mkdir()
    (child.work / "sonde" / "mine.py").write_text("text = 'the program own'\n")
    script = child.work / "main.py"
    script.write_text("import json, demo.work, sonde.mine\nprint(json.dumps([sonde.mine.text, demo.work.function(1)]))\n")
    done = subprocess.run([sys.executable, script], env=child.environment(), capture_output=True, text=True)
    assert json.loads(done.stdout) == ["the program own", 1], done.stderr
    assert ("-", "-") not in child.states()
    assert child.states()["demo.work", "function"] == ("applied", "")


def install_package(child):
    """A copy of the package, as pip would put one where the program finds it: the path of its registry."""
    installed = child.modules / "sonde"
    shutil.copytree(child.bootstrap.parents[1], installed, ignore=shutil.ignore_patterns("bootstrap"))
    (installed / "__init__.py").write_text("")
    return installed / "hooks" / "registry.py"


def test_an_installed_package_of_the_same_interface_is_used(child):
    registry = install_package(child)
    show = "print(json.dumps(sys.modules['sonde.hooks.registry'].__file__))"
    code = "import json, sys, demo.work\ndemo.work.function(1)\n" + show
    assert child.json(code) == str(registry)
    assert child.events() == [("push", "function", "demo", None), ("pop", "demo")]
    assert child.states()["demo.work", "function"] == ("applied", "")


@pytest.mark.parametrize(
    "line, number, update", [("", 0, "package"), ("INTERFACE = 0", 0, "package"), ("INTERFACE = 99", 99, "program")]
)
def test_an_installed_package_of_another_interface_is_said(child, line, number, update):
    registry = install_package(child)
    registry.write_text(re.sub(r"^INTERFACE = .*$", line, registry.read_text(), flags=re.M))
    assert child.json("import json, demo.work\nprint(json.dumps(demo.work.function(1)))") == 1
    state, detail = child.states()["-", "-"]
    assert state == "error" and f"{registry.parent} has hooks of interface {number}" in detail
    assert f"update the {update}" in detail and "uninstall the package" in detail


def test_without_the_extension_the_program_runs_as_ever(child):
    os.unlink(child.bootstrap.parents[1] / "_core.py")
    assert child.json(EVERY_KIND)[0] == child.json(EVERY_KIND, SONDE_HOOKS="none")[0]
    state, detail = child.states()["-", "-"]
    assert state == "error" and "_core" in detail


def test_unknown_groups_are_said(child):
    child.json("import json; print(json.dumps(1))", SONDE_HOOKS="demo,jax")
    assert not list(child.session.iterdir())
    (child.modules / "jax.py").write_text("")
    child.json("import json, jax; print(json.dumps(1))", SONDE_HOOKS="demo,jax")
    state, detail = child.states()["-", "-"]
    assert state == "error" and "No module named 'sonde.hooks.jax'" in detail


def test_older_pythons_run_as_ever(child):
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = glob.glob(f"{root}/versions/2.7*/bin/python") + glob.glob(f"{root}/versions/3.[67].*/bin/python")
    if not found:
        pytest.skip("there is no Python before 3.8 here")
    for python in found:
        done = child.run("print('ran')", python=python)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_finder_and_registry_are_of_one_interface():
    numbers = {re.search(r"^INTERFACE = (\d+)", (PACKAGE / "hooks" / name).read_text(), re.M)[1]
               for name in ("finder.py", "registry.py")}
    assert len(numbers) == 1


def test_groups_are_the_same_in_c_and_in_python():
    source = (ROOT / "src" / "collect" / "hooks" / "python_hooks.c").read_text()
    names = re.findall(r'"(\w+)"', re.search(r"python_hook_groups\[\] = \{(.*?)\}", source).group(1))
    sys.path.insert(0, str(PACKAGE / "hooks"))
    try:
        import finder
    finally:
        sys.path.pop(0)
    assert names == list(finder.GROUPS)


def generate_events(request, prompt, tokens):
    """What one call of generate() records."""
    return [
        ("push", "generate", "transformers", {"request": request, **prompt}),
        ("push", "prefill", "transformers", None),
        ("token", 0, request, "prefill"),
        ("pop", "transformers"),
        ("push", "decode", "transformers", None),
        *(("token", token, request, "decode") for token in range(tokens)),
        ("pop", "transformers"),
        ("pop", "transformers"),
    ]


def test_transformers(child):
    shutil.copytree(STAND_INS / "transformers", child.modules / "transformers")
    code = """
import json, types
import transformers, transformers.generation.utils
trainer, model = transformers.trainer.Trainer(), transformers.generation.utils.GenerationMixin()
prompt = types.SimpleNamespace(shape=(2, 7))
print(json.dumps([trainer.training_step("m", "i", num_items_in_batch=3), trainer.prediction_step("m", "i", True),
                  model.generate(prompt, max_new_tokens=2), model.generate(input_ids=None)]))
"""
    plain = child.json(code, SONDE_HOOKS="none")
    assert child.json(code, SONDE_HOOKS="transformers") == plain
    assert child.events() == [
        ("push", "training_step", "transformers", None),
        ("pop", "transformers"),
        ("push", "prediction_step", "transformers", None),
        ("pop", "transformers"),
        *generate_events(1, {"batch": 2, "prompt_tokens": 7}, 2),
        *generate_events(2, {}, 3),
    ]
    found = {name: state for name, (state, _) in child.states().items()}
    batching = {name for name in found if "continuous_batching" in str(name)}  # which this transformers has not
    assert {found[name] for name in found if name not in batching} == {"applied"}


def test_generate_of_several_threads(sonde, report, tmp_path):
    """One request a call, each with its time to the first token; both calls are in their first pass at once."""
    code = """
import sys, threading
import transformers.generation.utils
both = threading.Barrier(2)
def generate(tokens):
    transformers.generation.utils.GenerationMixin().generate(None, max_new_tokens=tokens, before_token=both.wait)
threads = [threading.Thread(target=generate, args=(4,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    capture = tmp_path / "a.pftrace"
    env = {"PYTHONPATH": str(STAND_INS)}
    sonde("record", "-o", capture, "--", "/usr/bin/python3", "-c", code, env=env, check=0)
    requests = report(capture, "--by", "token")["inference"]["requests"]
    assert sorted((row["id"], row["tokens"]) for row in requests) == [("1", 4), ("2", 4)]
    assert all(row["ttft_ns"] > 0 and row["between_tokens_ns"]["count"] == 3 for row in requests)
    ranges = report(capture, "--by", "range")["ranges"]["rows"]
    counts = {row["name"]: row["count"] for row in ranges if row["domain"] == "transformers"}
    assert counts == {"generate": 2, "prefill": 2, "decode": 2}


def test_tokens_of_an_assisted_generation(child):
    """Several tokens of one forward pass are several tokens."""
    shutil.copytree(STAND_INS / "transformers", child.modules / "transformers")
    code = """
import json, transformers.generation.utils
class Assisted(transformers.generation.utils.GenerationMixin):
    def _update_model_kwargs_for_generation(self, outputs, kwargs):
        return super()._update_model_kwargs_for_generation(outputs, kwargs, num_new_tokens=2)
print(json.dumps(Assisted().generate(None, max_new_tokens=2)))
"""
    child.json(code, SONDE_HOOKS="transformers")
    assert child.events() == generate_events(1, {}, 4)


# ---- recorded ----

TRAINING = """
import os, sys
import torch, torch.distributed as distributed
from torch.utils.data import DataLoader, TensorDataset

rank = int(sys.argv[1]) if len(sys.argv) > 1 else 0
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4):
    optimizer.zero_grad()
    ((model(x) - y) ** 2).mean().backward()
    optimizer.step()
distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
distributed.all_reduce(torch.ones(1000))
distributed.all_gather([torch.ones(10), torch.ones(10)], torch.ones(10))
distributed.destroy_process_group()
"""


def torch_pythons():
    """The Pythons with PyTorch that are here: the distribution's, and tools/venv's torch2, which is slow."""
    candidates = [(Path("/usr/bin/python3"), []), (ROOT / ".venv-torch2" / "bin" / "python", [pytest.mark.slow])]
    probe = ["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return [
        pytest.param(str(python), marks=marks)
        for python, marks in candidates
        if python.exists() and subprocess.run([python, *probe]).returncode == 0
    ]


def hook_rows(stderr):
    """{group: (applied, waiting, not found, error)} of the table of sonde record."""
    rows = re.findall(r"^  (\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", stderr, re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in rows}


@pytest.mark.parametrize("python", torch_pythons())
def test_torch(sonde, report, tmp_path, python):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    both = f"{python} {script} 1 {tmp_path}/store & {python} {script} 0 {tmp_path}/store; s=$?; wait; exit $s"
    capture = tmp_path / "torch.pftrace"
    done = sonde("record", "-o", capture, "--", "sh", "-c", both, check=0)
    rows = hook_rows(done.stderr)
    assert rows["torch"][0] >= 19 and rows["torch"][2:] == (0, 0), done.stderr
    ranges = {(row["domain"], row["name"]): row for row in report(capture, "--by", "range")["ranges"]["rows"]}
    assert ranges["torch", "backward"]["count"] == 6
    assert ranges["torch", "dataloader"]["count"] == 8  # the last of each loader is its end
    assert ranges["torch", "all_reduce"]["count"] == 2
    assert ranges["torch", "all_gather"]["count"] == 2


GRADIENTS = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters()}], lr=0.0)
for step in range(8):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    if step == 7:
        model[1].weight.grad[0, 0] = float("nan")
    if step == 0:
        print(*(torch.cat([p.grad.flatten() for p in part.parameters()]).norm().item() for part in model))
    optimizer.step()
"""


@pytest.mark.parametrize("python", torch_pythons())
def test_gradients(sonde, report, tmp_path, python):
    """Norms of each group of parameters, and the tensor that holds NaN at the last step; nothing without being asked."""
    capture = tmp_path / "c.pftrace"
    done = sonde("record", "--hooks", "torch:gradients", "-o", capture, "--", python, "-c", GRADIENTS, check=0)
    counters = {row["name"]: row for row in report(capture)["counters"]}
    for group, norm in enumerate(map(float, done.stdout.split())):
        row = counters[f"gradient.norm group {group}"]
        assert row["count"] == 8 and row["minimum"] == pytest.approx(norm, rel=1e-5) == row["maximum"]
    assert counters["gradient.norm group 1"]["not_numbers"] == 1
    assert [counters[f"gradient.not_finite group {group}"]["maximum"] for group in range(2)] == [0, 1]
    sonde("record", "--hooks", "torch:gradients:every=3", "-o", capture, "--", python, "-c", GRADIENTS, check=0)
    assert {row["count"] for row in report(capture)["counters"] if row["name"].startswith("gradient")} == {3}
    sonde("record", "--hooks", "torch", "-o", capture, "--", python, "-c", GRADIENTS, check=0)
    assert not any(row["name"].startswith("gradient") for row in report(capture)["counters"] or [])


def test_options_of_torch(sonde):
    for options in ("torch:gradient", "torch:every=0", "torch:layer"):
        done = sonde("record", "--hooks", options, "--", "true")
        assert done.status == 2 and "give gradients" in " ".join(done.stderr.split())
    assert "takes" not in sonde("record", "--hooks", "vllm:gradients", "--", "true").stdout


COMPILING = """
import torch
torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(8))
"""


@pytest.mark.slow  # Inductor and a C++ compiler
@pytest.mark.parametrize("python", [python for python in torch_pythons() if "torch2" in python.values[0]])
def test_torch_compile(sonde, report, tmp_path, python):
    """torch 2.13 says that it compiles as long as Dynamo does: the hooks of the compiler itself do not ask."""
    capture = tmp_path / "compile.pftrace"
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    sonde("record", "-o", capture, "--", python, "-c", COMPILING, env=env, check=0, timeout=300)
    names = {row["name"] for row in report(capture, "--by", "range")["ranges"]["rows"] if row["domain"] == "torch"}
    assert {"compile: trace", "compile: generate code"} <= names


def test_nothing_is_said_where_no_group_is_used(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "c", "--", "/usr/bin/python3", "-c", "pass", check=0)
    assert "hooks" not in done.stderr


def test_hooks_none(sonde, tmp_path):
    show = "import os; print(os.environ.get('PYTHONPATH'), os.environ.get('SONDE_HOOKS'))"
    done = sonde("record", "--hooks", "none", "-o", tmp_path / "c", "--", "/usr/bin/python3", "-c", show, check=0)
    assert done.stdout == "None None\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--hooks", "jax", "--", "true"],
        ["--hooks", "torch", "-p", "1"],
        ["--hooks", "torch", "--cpu-only", "--", "true"],
    ],
)
def test_hooks_that_cannot_be(sonde, arguments):
    done = sonde("record", *arguments)
    assert done.status == 2
    assert "--hooks" in done.stderr and len(done.stderr.splitlines()) <= 2


def test_doctor_says_whether_hooks_can_work(sonde):
    checks = {check["name"]: check for check in sonde("doctor", "--json").json()["checks"]}
    assert checks["python-hooks"]["status"] == "works"
