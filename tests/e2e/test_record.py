# SPDX-License-Identifier: Apache-2.0
"""What `sonde record` finds in programs whose profile is known."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FREQUENCY_HZ = 999  # enough samples in a second or two


def functions(data):
    """Function name -> its row, named functions only."""
    return {row["name"]: row for row in data["tables"]["function"]["rows"] if row["named"]}


def stacks(data):
    """(function names from the thread's entry to the leaf, stop reason, samples)."""
    return [
        ([frame["function"] for frame in row["frames"]], row["stop"], row["self_samples"])
        for row in data["tables"]["stack"]["rows"]
    ]


def share(data, name):
    row = functions(data).get(name)
    return row["self_share"] if row else 0.0


@pytest.fixture
def record(sonde, tmp_path, report):
    """record(command, *options) -> (Finished, the report)."""

    def run(command, *options, name="capture.pftrace", **keywords):
        capture = tmp_path / name
        done = sonde("record", "-o", capture, "-F", FREQUENCY_HZ, *options, "--", *command, check=0, **keywords)
        return done, report(capture, "--limit", 100000)

    return run


needs_bpf = pytest.mark.skipif(os.geteuid() != 0, reason="sampling by BPF needs root")


@needs_bpf
def test_self_times_are_those_of_the_program(record, workload):
    done, data = record(workload("spin", 2))
    assert done.stdout.startswith("ready"), "the command's output is its own"
    assert data["session"]["unwind_mode"] == "bpf"
    assert share(data, "spin_half") == pytest.approx(0.5, abs=0.15)
    assert share(data, "spin_three_tenths") == pytest.approx(0.3, abs=0.15)
    assert share(data, "spin_fifth") == pytest.approx(0.2, abs=0.15)
    assert functions(data)["one_round"]["total_share"] > 0.97
    assert data["completeness"]["complete_share"] > 0.95


@needs_bpf
def test_stacks_reach_from_start_to_leaf_without_frame_pointers(record, workload):
    _, data = record(workload("spin", 1))
    names, stop, _ = max(stacks(data), key=lambda stack: stack[2])
    assert names[0] == "_start"
    assert names[-3:-1] == ["main", "one_round"]
    assert stop == "complete"


@pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_bpf), "user"])
def test_deep_stacks_keep_both_ends(record, workload, mode):
    options = ("--mode", mode)
    _, data = record(workload("deep", 0.5, 490), *options)
    names, stop, _ = max(stacks(data), key=lambda stack: stack[2])
    assert stop == "complete"
    assert names.count("descend") == 490
    _, data = record(workload("deep", 0.5, 700), *options)
    names, stop, _ = max(stacks(data), key=lambda stack: stack[2])
    assert stop == "complete"
    assert names.index("main") < 5 and names[-1] == "bottom_spin"
    assert [name for name in names if "left out" in name] == ["[… 128 to 255 frames left out …]"]
    assert names.index("[… 128 to 255 frames left out …]") == 128
    assert len(names) == 513
    # On a busy machine copies of the stack, which end before main(), are taken for longer: before the unwind table is there.
    whole = [names for names, stop, _ in stacks(data) if stop == "complete" and names[-1] == "bottom_spin"]
    assert whole and all("main" in names for names in whole)
    note = next(note for note in data["notes"] if "deeper than 512" in note)
    left_out = re.search(r"and ([\d,]+) frames between them are left out", note)[1]
    assert re.fullmatch(r"\d{1,3}(,\d{3})+", left_out), "thousands apart, as everywhere"


@needs_bpf
def test_stacks_of_20000_frames_say_that_they_are_cut(record, workload):
    # Before the unwind table is there, copies of the stack end before its outermost frames do.
    _, data = record(workload("deep", 0.5, 10000))
    whole = [names for names, stop, _ in stacks(data) if stop == "complete" and names[-1] == "bottom_spin"]
    assert whole and all("main" in names for names in whole)
    _, data = record(workload("deep", 0.5, 20000))
    cut = [names for names, stop, _ in stacks(data) if stop == "depth"]
    assert cut and not any("main" in names for names in cut)


@needs_bpf
def test_threads_have_their_names_and_their_shares(record, workload):
    _, data = record(workload("threads", 2))
    rows = {row["name"]: row for row in data["tables"]["thread"]["rows"]}
    assert len({row["tid"] for row in rows.values()}) == len(rows)
    for number in range(4):  # of CPU time, however long they took
        seconds = rows[f"worker-{number}"]["self_samples"] / FREQUENCY_HZ
        assert seconds == pytest.approx(2 * (number + 1) / 4, rel=0.1, abs=0.05), rows


@needs_bpf
def test_children_forked_and_executed_are_followed(record, workload):
    done, data = record(workload("tree", 2))
    printed = dict(re.findall(r"pid (\S+) (\d+)", done.stdout))
    rows = {row["name"]: row for row in data["tables"]["process"]["rows"]}
    assert set(printed) <= set(rows), rows
    for name, pid in printed.items():
        assert rows[name]["pid"] == int(pid)
    for name in ("parent_spin", "forked_spin", "executed_spin", "grandchild_spin"):
        assert share(data, name) > 0.1
    assert data["completeness"]["complete_share"] > 0.93


@needs_bpf
def test_signal_frames_are_crossed(record, workload):
    _, data = record(workload("signals", 2))
    through = [
        (names, samples)
        for names, stop, samples in stacks(data)
        if "handler_spin" in names and "interrupted_spin" in names and stop == "complete"
    ]
    assert sum(samples for _, samples in through) > 0.2 * data["totals"]["samples"]
    names = through[0][0]
    order = [names.index(name) for name in ("interrupted_spin", "__restore_rt", "on_signal", "handler_spin")]
    assert order == sorted(order)


@pytest.mark.parametrize("mode", [pytest.param("bpf", marks=needs_bpf), "user"])
def test_signal_handlers_on_a_stack_of_their_own(record, workload, mode):
    """Both stacks are unwound in place; of a copy the interrupted stack is no part, which the reason says."""
    _, data = record(workload("signals", 2, "other"), "--mode", mode)
    wanted = "complete" if mode == "bpf" else "other_stack"
    handler = [(names, stop, samples) for names, stop, samples in stacks(data) if "handler_spin" in names]
    crossed = sum(samples for names, stop, samples in handler if stop == wanted and "interrupted_spin" in names)
    assert crossed > 0.9 * sum(samples for _, _, samples in handler) > 0, handler
    assert ("main" in next(names for names, stop, _ in handler if stop == wanted)) == (mode == "bpf")
    reasons = data["completeness"]["samples_by_stop"]
    assert reasons["complete"] + reasons["other_stack"] > 0.97 * data["completeness"]["user_stacks"], reasons


@needs_bpf
def test_jit_code_is_named_by_its_perf_map(record, workload):
    _, data = record(workload("jit", 1))
    names, stop, _ = max(stacks(data), key=lambda stack: stack[2])
    assert names[-2:] == ["jit_outer", "jit_inner"]
    assert names[0] == "_start" and stop == "complete"
    assert [row["kind"] for row in data["tables"]["function"]["rows"] if row["name"] == "jit_inner"] == ["jit"]


@pytest.mark.parametrize("script", ["exec {jit} 1 atexit", "{jit} 1 atexit; {spin} 2"])
def test_jit_code_is_named_by_a_map_written_at_exit(record, workload, script):
    """As Java's DumpPerfMapAtExit does; the process may end long before the recording does."""
    jit, spin = workload("jit")[0], workload("spin")[0]
    _, data = record(["sh", "-c", script.format(jit=jit, spin=spin)])
    for row in data["tables"]["process"]["rows"]:
        Path(f"/tmp/perf-{row['pid']}.map").unlink(missing_ok=True)
    names = {row["name"] for row in data["tables"]["function"]["rows"]}
    assert {"jit_outer", "jit_inner"} <= names
    assert not any(name.startswith("[unknown] [anon]") for name in names)


@needs_bpf
def test_jit_code_without_a_map_keeps_its_callers(record, workload):
    _, data = record(workload("jit", 1, "nomap"))
    assert functions(data)["main"]["total_share"] > 0.9


@needs_bpf
def test_libraries_that_come_and_go(record, workload):
    _, data = record(workload("dlopen_loop", 3))
    spin = functions(data)["plugin_inner_spin"]
    assert spin["module"] == "libplugin.so"
    assert spin["total_share"] > 0.5
    assert data["completeness"]["complete_share"] > 0.93


@needs_bpf
def test_return_probes_do_not_cut_stacks(record, workload):
    done, data = record(workload("uretprobe", 2))
    whole = [
        samples
        for names, stop, samples in stacks(data)
        if stop == "complete" and names[-4:] == ["main", "probed_outer", "probed_inner", "probed_spin"]
    ]
    assert sum(whole) > 0.9 * data["totals"]["samples"], done


@needs_bpf
def test_kernel_stacks_continue_user_stacks(record, workload):
    _, data = record(workload("syscalls", 1))
    kernel = [
        (names, samples)
        for names, _, samples in stacks(data)
        if "read_zeroes" in names and any("read_iter_zero" in name or "vfs_read" in name for name in names)
    ]
    assert sum(samples for _, samples in kernel) > 0.7 * data["totals"]["samples"]
    assert all(names[0] == "_start" for names, _ in kernel)


@needs_bpf
@pytest.mark.parametrize("side, other", [("user", "[kernel]"), ("kernel", "[user]")])
def test_stacks_of_one_side(record, sonde, report, tmp_path, workload, side, other):
    """Frames of the other side are gone, their samples are not."""
    _, data = record(workload("syscalls", 1))
    capture = tmp_path / "capture.pftrace"
    cut = report(capture, "--limit", 100000, "--stacks", side)
    assert cut["totals"]["samples"] == data["totals"]["samples"]
    functions = {row["name"]: row for row in cut["tables"]["function"]["rows"]}
    assert {row["kind"] == "kernel" for name, row in functions.items() if name != other} == {side == "kernel"}
    assert ("_start" in functions) == (side == "user")
    everything = sonde("export", "-f", "folded", "-o", "-", "--stacks", side, capture, check=0).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in everything.splitlines()) == data["totals"]["samples"]


@needs_bpf
def test_processes_that_live_for_milliseconds(record, workload):
    done, data = record(workload("short_lived", 2, 5))
    children = int(re.search(r"processes (\d+)", done.stdout).group(1))
    assert children == 400
    assert data["totals"]["processes_in_capture"] > 0.5 * children
    assert functions(data)["short_spin"]["total_share"] > 0.2


@needs_bpf
def test_stacks_of_processes_that_live_for_milliseconds(record, workload):
    # Each is a new program whose mappings sonde does not know when the first samples come.
    for milliseconds in (5, 50):
        _, data = record(workload("short_lived", 1, milliseconds), "-F", 1999)
        by_stop = data["completeness"]["samples_by_stop"]
        assert by_stop["complete"] > 50
        assert by_stop["no_mapping"] + by_stop["new_mapping"] <= 0.01 * by_stop["complete"], by_stop
        assert data["completeness"]["complete_share"] >= 0.99


@needs_bpf
def test_copied_stacks_with_pages_that_nobody_touched(record, workload, tmp_path):
    """Each program is a new file, whose first samples carry copies of the stack."""
    programs = [shutil.copy(workload("untouched")[0], tmp_path / f"program-{number}") for number in range(20)]
    done, data = record(["sh", "-c", "\n".join(map(str, programs))], "-F", 1999)
    by_stop = {}
    for names, stop, samples in stacks(data):
        if "untouched" in names:
            by_stop[names[-1], stop] = by_stop.get((names[-1], stop), 0) + samples
    assert by_stop["untouched", "complete"] > 100 and by_stop["called", "complete"] > 100, by_stop
    assert not any(stop == "stack_copy" for _, stop in by_stop), by_stop
    assert int(re.search(r"(\d+) stacks copied", done.stderr)[1]) > 20


@needs_bpf
def test_programs_that_are_executed_one_after_another(record, tmp_path):
    """Half-way through execve the registers are the old program's: such samples have no user stack."""
    _, data = record(["sh", "-c", "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"], "-F", 4999)
    executing = [
        (names, stop, samples)
        for names, stop, samples in stacks(data)
        if "load_elf_binary" in names and not {"bprm_execve", "search_binary_handler"}.isdisjoint(names)
    ]
    assert sum(samples for *_, samples in executing) > 50
    wrong = [(names, stop) for names, stop, _ in executing if stop not in ("complete", "no_user_stack")]
    assert not wrong


@needs_bpf
def test_attach_to_a_running_tree(sonde, report, start_workload, tmp_path):
    running = start_workload("tree", 6)
    capture = tmp_path / "attached.pftrace"
    sonde("record", "-o", capture, "-F", FREQUENCY_HZ, "-d", 2, "-p", running.pid, check=0)
    assert running.process.poll() is None, "attaching does not end the target"
    data = report(capture, "--limit", 100000)
    assert share(data, "parent_spin") > 0.05
    assert share(data, "grandchild_spin") > 0.05
    assert data["completeness"]["complete_share"] > 0.93
    assert data["session"]["command"] is None


@pytest.mark.alone
@needs_bpf
def test_whole_machine(sonde, report, start_workload, tmp_path):
    running = start_workload("spin", 6)
    capture = tmp_path / "machine.pftrace"
    sonde("record", "-o", capture, "-F", FREQUENCY_HZ, "-d", 2, "-a", check=0)
    data = report(capture, "--limit", 100000)
    assert running.pid in {row["pid"] for row in data["tables"]["process"]["rows"]}
    assert functions(data)["spin_half"]["self_samples"] > 20


@needs_bpf
def test_second_run_takes_tables_from_the_cache(record, workload):
    _, first = record(workload("spin", 1), name="first.pftrace")
    assert first["overhead"]["tables_built"] > 0
    # A later run may happen to sample a file that none before did: its table is new.
    later = [record(workload("spin", 1), name=f"later-{number}.pftrace")[1] for number in range(3)]
    assert any(data["overhead"]["tables_built"] == 0 for data in later)
    assert all(data["overhead"]["tables_from_cache"] > 0 for data in later)


def test_without_privileges(sonde_unprivileged, workload_directory, sonde):
    """Same output, other mode: the command's children are sampled and their stacks unwound by sonde itself."""
    spin = sonde_unprivileged.directory / "spin"
    spin.write_bytes((workload_directory / "spin").read_bytes())
    spin.chmod(0o755)
    capture = sonde_unprivileged.directory / "user.pftrace"
    done = sonde_unprivileged("record", "-o", capture, "-F", FREQUENCY_HZ, "--", spin, 2, check=0)
    assert "run sonde with sudo" in done.stderr
    data = sonde("report", "--json", "--limit", 100000, capture, check=0).json()
    assert data["session"]["unwind_mode"] == "user"
    assert "CAP_BPF" in data["session"]["unwind_mode_reason"]
    assert share(data, "spin_half") == pytest.approx(0.5, abs=0.15)
    assert data["completeness"]["complete_share"] > 0.95
    # Where the kernel's time could not be sampled, the time is called what it is.
    is_user_time = any("time in the kernel is not sampled" in note for note in data["notes"])
    text = sonde("report", capture, check=0).stdout
    picture = sonde("export", "-f", "flamegraph", "-o", "-", capture, check=0).stdout
    for said in (re.sub(r"^Cost: start-up \S+ \S+ of CPU time", "", text, flags=re.MULTILINE), picture):
        assert (" of user CPU time" in said, " of CPU time" in said) == (is_user_time, not is_user_time), said
    assert ("(user CPU time)" in text) == is_user_time


def test_whole_machine_without_privileges_is_refused(sonde_unprivileged):
    done = sonde_unprivileged("record", "-d", 1, "-a", check=1)
    assert len(done.stderr.strip().splitlines()) == 1
    assert "privileges" in done.stderr or "sudo" in done.stderr


def test_a_command_of_several_lines_is_shown_by_its_first(sonde, tmp_path):
    capture, program = tmp_path / "x.pftrace", "\nfirst = 1\nsum(range(20_000_000))\n"
    sonde("record", "-q", "--mode", "user", "-F", 499, "-o", capture, "--", sys.executable, "-c", program, check=0)
    text = sonde("report", "--by", "process", capture, check=0).stdout
    assert text.splitlines()[0] == f"{sys.executable} -c first = 1 \u2026" and "\\x0a" not in text
    picture = sonde("export", "-f", "flamegraph", "-o", "-", capture, check=0).stdout
    assert f"{sys.executable} -c first = 1 \u2026" in picture and "\\x0a" not in picture
    session = sonde("report", "--json", capture, check=0).json()["session"]
    assert session["command"] == f"{sys.executable} -c {program}"


def test_user_mode_finds_the_same_as_bpf(record, workload):
    _, data = record(workload("spin", 2), "--mode", "user")
    assert data["session"]["unwind_mode"] == "user"
    assert share(data, "spin_half") == pytest.approx(0.5, abs=0.15)
    names, stop, _ = max(stacks(data), key=lambda stack: stack[2])
    assert names[0] == "_start" and stop == "complete"


@pytest.mark.parametrize("status", [0, 3, 127])
def test_exit_status_is_the_commands(sonde, tmp_path, status):
    done = sonde("record", "-o", tmp_path / "x.pftrace", "--", "sh", "-c", f"exit {status}")
    assert done.status == status


def test_death_by_signal_gives_the_shells_status(sonde, tmp_path):
    done = sonde("record", "-o", tmp_path / "x.pftrace", "--", "sh", "-c", "kill -TERM $$")
    assert done.status == 128 + 15


@needs_bpf
def test_the_account_is_printed_and_kept(record, workload):
    done, data = record(workload("spin", 2))
    lines = done.stderr.splitlines()
    # What matters to a person comes first: how much, whether it is whole, where it is, and what to do with it.
    assert re.fullmatch(r"sonde: [\d,]+ samples in [\d.]+ s, none lost; [\d.]+ % of stacks are complete", lines[0]), done.stderr
    assert re.fullmatch(r"sonde: [\d.]+ KiB in \S+", lines[1]) and lines[2].startswith("next: sonde report ") and lines[3] == "", lines
    cost = next(line for line in lines if line.startswith("  cost "))
    assert re.fullmatch(r"  cost    start-up [\d.]+ m?s of CPU time, then [\d.]+ % of a core, end [\d.]+ .?s; \d+ MB", cost), cost
    assert any(re.fullmatch(r"  kernel  [\d.]+ µs per sample", line) for line in lines), lines
    # Nothing of note is not said.
    assert not any(line.startswith(("  lost ", "  stacks ", "  mode ")) for line in lines[4:]), lines
    assert all(len(line) <= 80 for line in lines if ".pftrace" not in line), lines
    overhead = data["overhead"]
    parts = overhead["collector_start_cpu_ns"], overhead["collector_end_cpu_ns"]
    assert all(part > 0 for part in parts) and sum(parts) < overhead["collector_cpu_ns"]
    assert overhead["bpf_run_time_ns"] > 0
    assert overhead["collector_cpu_ns"] > 0
    assert overhead["collector_peak_rss_bytes"] > 1 << 20
    assert data["losses"]["samples_lost"] == 0
    assert sum(data["completeness"]["samples_by_stop"].values()) == data["totals"]["samples"]


def test_the_cost_has_all_processes_of_sonde(sonde, tmp_path):
    """Names are read by a child. The kernel counts that child for sonde, which waits for it."""
    busy = subprocess.Popen([sys.executable, "-c", "import json\nwhile True: json.dumps(list(range(1000)))"])
    try:
        command = [sonde.path, "record", "-q", "--mode", "user", "-p", str(busy.pid), "-d", "1", "-o", "x.pftrace", "--json", "x.json"]
        recorder = subprocess.Popen(command, cwd=tmp_path, env=sonde.environment)
        _, status, used = os.wait4(recorder.pid, 0)
    finally:
        busy.kill()
        busy.wait()
    assert status == 0
    counted_ns = json.loads((tmp_path / "x.json").read_text())["collector_cpu_ns"]
    assert 0.8 < counted_ns / 1e9 / (used.ru_utime + used.ru_stime) <= 1.01


def test_the_next_command_is_as_this_one_was_typed(sonde, tmp_path):
    """In a checkout the name alone is not found, or is another program."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/sonde").symlink_to(sonde.path)
    done = subprocess.run(["build/sonde", "record", "--", "true"], cwd=tmp_path, env=sonde.environment, capture_output=True, text=True)
    assert "next: build/sonde report sonde.pftrace" in done.stderr.splitlines(), done.stderr


@needs_bpf
def test_default_output_keeps_the_capture_before(sonde, tmp_path):
    sonde("record", "--", "true", check=0)
    first = (tmp_path / "sonde.pftrace").read_bytes()
    sonde("record", "--", "true", check=0)
    assert (tmp_path / "sonde.pftrace.old").read_bytes() == first


@needs_bpf
def test_a_copy_on_another_machine_still_reads(sonde, report, record, workload, tmp_path):
    """Frames are named in the capture: nothing of this machine is needed to read it."""
    program = tmp_path / "spin-that-goes"
    program.write_bytes(open(workload("spin")[0], "rb").read())
    program.chmod(0o755)
    _, before = record([str(program), "1"], name="moved.pftrace")
    program.unlink()
    after = sonde("report", "--json", "--limit", 100000, tmp_path / "moved.pftrace", env={"XDG_CACHE_HOME": str(tmp_path / "empty")}).json()
    assert functions(after).keys() == functions(before).keys()
    assert "spin_half" in functions(after)


def test_protoc_decodes_every_packet(sonde, tmp_path, workload):
    """The file is what schema/ says: no unknown field in any packet."""
    schema = os.path.join(os.path.dirname(__file__), "..", "..", "schema")
    capture = tmp_path / "plain.pftrace"
    sonde("record", "--uncompressed", "-o", capture, "--", *workload("spin", 1), check=0)
    decoded = subprocess.run(
        ["protoc", "-I", schema, "--decode=perfetto.protos.Trace", os.path.join(schema, "sonde.proto")],
        stdin=open(capture, "rb"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert decoded.count("perf_sample {") > 50
    assert "spin_half" in decoded
    unknown = re.findall(r"^\s*\d+: .*$", decoded, re.MULTILINE)
    assert unknown == []


MUSL_LIBRARIES = Path("/usr/lib/x86_64-linux-musl")  # of Debian's musl-tools


def build_with_musl(kind, program):
    options, files = {"static": ["-static"], "dynamic": []}.get(kind), []
    if kind == "static-pie":  # musl-gcc knows no such option
        options = ["-fPIE", "-nostartfiles", "-static", "-Wl,-pie", "-Wl,--no-dynamic-linker"]
        files = [MUSL_LIBRARIES / name for name in ("rcrt1.o", "crti.o", "crtn.o")]
    source = Path(__file__).resolve().parent / "workloads" / "musl.c"
    subprocess.run(["musl-gcc", "-O2", *options, "-o", program, source, *files], check=True)
    return program


@needs_bpf
@pytest.mark.parametrize("kind", ["static", "static-pie", "dynamic"])
def test_musl_stacks_reach_their_threads_entry(record, tmp_path, kind):
    """musl's C code has no call frame information: its instructions alone tell."""
    program = build_with_musl(kind, tmp_path / "musl")
    _, data = record([program, 0.7])
    found = [(names, stop, samples) for names, stop, samples in stacks(data) if "spin_here" in names]
    total = sum(samples for *_, samples in found)
    assert sum(samples for _, stop, samples in found if stop == "complete") >= 0.99 * total > 500
    by_main = sum(samples for names, _, samples in found if "main" in names and names[0] == "_start")
    assert by_main == pytest.approx(0.5 * total, rel=0.15)
    # The thread's: of the stripped library __clone() has no name, and what is before it no size.
    assert not any(names[0].startswith("mem") for names, _, _ in found)


@needs_bpf
def test_callbacks_of_musls_qsort(record, tmp_path):
    """Static functions of the stripped libc.so lie between; each ends in a call that does not return."""
    _, data = record([build_with_musl("dynamic", tmp_path / "musl"), 0.5, "sort"])
    found = [(names, stop, samples) for names, stop, samples in stacks(data) if "compare" in names]
    total = sum(samples for *_, samples in found)
    whole = [names for names, stop, samples in found for _ in range(samples) if stop == "complete"]
    assert len(whole) >= 0.99 * total > 100
    assert all(names.index("main") < names.index("qsort_r") < names.index("compare") for names in whole)
