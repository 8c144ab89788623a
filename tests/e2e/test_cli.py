# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help, version, refusals, completion, manual pages."""

import re
import shutil
import subprocess

import pytest

SHELLS = ["bash", "zsh", "fish"]


def listed_commands(sonde):
    text = sonde("--help", check=0).stdout
    section = text.split("Commands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\S+)", section, re.M)


def tool(name, package):
    path = shutil.which(name)
    if not path:
        pytest.fail(f"{name} is not installed (package {package}; tools/deps test installs it)")
    return path


def test_help_lists_commands_and_explains_each(sonde):
    commands = listed_commands(sonde)
    assert {"doctor", "version", "help", "completion"} <= set(commands)
    assert "man" not in commands, "hidden commands are not listed"
    for command in commands:
        text = sonde(command, "--help", check=0).stdout
        assert text == sonde("help", command, check=0).stdout
        assert text.startswith(f"sonde {command}: ")
        assert "\nUsage:\n" in text and "\nExamples:\n" in text and "-h, --help" in text
        too_wide = [line for line in text.splitlines() if len(line) > 80 and line[0] != " "]
        assert not too_wide


def test_commands_of_two_words(sonde):
    text = sonde("chakra", "--help", check=0).stdout
    words = re.findall(r"^  (\S+)", text.split("Commands:\n")[1].split("\n\n")[0], re.M)
    assert "link" in words
    for word in words:
        text = sonde("chakra", word, "--help", check=0).stdout
        assert text == sonde("help", "chakra", word, check=0).stdout
        assert text.startswith(f"sonde chakra {word}: ") and "\nExamples:\n" in text
        assert f"sonde chakra {word}" in sonde("man", "chakra", check=0).stdout
    assert "Commands:" in sonde("chakra", check=2).stdout


def test_help_without_a_command(sonde):
    assert sonde("help", check=0).stdout == sonde("--help", check=0).stdout == sonde("-h", check=0).stdout


def test_nothing_to_do_shows_three_commands_and_is_a_usage_error(sonde):
    commands = re.findall(r"^  sonde (\w+)", sonde(check=2).stdout, re.M)
    assert commands == ["record", "report", "view"]


@pytest.mark.parametrize("command", ["record", "report", "top", "serve"])
def test_brief_help_has_a_line_for_each_option(sonde, command):
    brief, full = (sonde(command, flag, check=0).stdout for flag in ("-h", "--help"))
    options = re.findall(r"^ {2,6}(?:-\w, )?--([\w-]+)", full, re.M)
    assert re.findall(r"^ {2,6}(?:-\w, )?--([\w-]+)", brief, re.M) == options
    assert len(brief) < len(full) and max(map(len, brief.splitlines())) <= 80
    assert f"'sonde {command} --help' explains" in brief


def test_the_capture_need_not_be_named(sonde, tmp_path):
    assert "there is no sonde.pftrace here" in sonde("report", cwd=tmp_path, check=2).stderr
    sonde("record", "-q", "--", "true", cwd=tmp_path, check=0)
    named, unnamed = (sonde("report", *arguments, cwd=tmp_path, check=0).stdout for arguments in ((), ("sonde.pftrace",)))
    assert named == unnamed
    sonde("export", "-f", "folded", cwd=tmp_path, check=0)
    assert (tmp_path / "sonde.folded").exists()


def test_version(sonde):
    text = sonde("--version", check=0).stdout
    assert re.match(r"sonde \d+\.\d+\.\d+( \([0-9a-f]{12}\))?\n", text)
    assert text == sonde("version", check=0).stdout
    data = sonde("version", "--json", check=0).json()
    assert text.startswith(f"sonde {data['version']}")
    assert data["commit"] is None or data["commit"] in text
    assert "libbpf" in data["parts"]


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["dcotor"], "did you mean 'sonde doctor'?"),
        (["/bin/sh"], "to profile it: sonde record -- /bin/sh"),
        (["--json"], "'--json' must come after a command"),
        (["help", "nothing"], "there is no command 'nothing'"),
        (["doctor", "--jsno"], "did you mean --json?"),
        (["doctor", "--json=1"], "--json takes no value"),
        (["doctor", "x"], "takes at most 0 arguments, but got 1"),
        (["completion"], "needs 1 argument, but got 0"),
        (["completion", "tcsh"], "the shells known are bash, zsh and fish"),
        (["man", "nothing"], "there is no command 'nothing'"),
        (["chakra", "lnik"], "did you mean 'sonde chakra link'?"),
        (["help", "chakra", "nothing"], "there is no command 'sonde chakra nothing'"),
        (["doctor", "\x1b[31m"], "takes at most"),
        (["\x1b[31mred"], "\\x1b[31mred"),
    ],
)
def test_usage_errors(sonde, arguments, part):
    done = sonde(*arguments, check=2)
    assert part in done.stderr
    assert done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr, "control characters do not reach the terminal"
    assert done.stdout == ""


def test_a_full_disk_is_an_error(sonde):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sonde.path, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "sonde: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_valid(sonde, shell, tmp_path):
    path = tmp_path / f"sonde.{shell}"
    path.write_text(sonde("completion", shell, check=0).stdout)
    done = subprocess.run([tool(shell, shell), "-n", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for command in listed_commands(sonde):
        assert command in path.read_text()


def complete_in_bash(sonde, words):
    """What bash offers for the last word."""
    script = f"""
        eval "$({sonde.path} completion bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _sonde
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words],
        capture_output=True, text=True, check=True, cwd=sonde.directory,
    )
    assert "compopt" in done.stderr or done.stderr == ""
    return done.stdout.split()


def test_bash_completes(sonde):
    assert complete_in_bash(sonde, ["sonde", "do"]) == ["doctor"]
    assert complete_in_bash(sonde, ["sonde", "doctor", "--j"]) == ["--json"]
    assert set(complete_in_bash(sonde, ["sonde", "completion", ""])) == set(SHELLS)
    assert "doctor" in complete_in_bash(sonde, ["sonde", "help", ""])
    assert "link" in complete_in_bash(sonde, ["sonde", "chakra", ""])
    assert complete_in_bash(sonde, ["sonde", "chakra", "link", "--chakra-h"]) == ["--chakra-host-trace"]
    (sonde.directory / "a.pftrace").touch()
    if "export" in listed_commands(sonde):
        assert "flamegraph" in complete_in_bash(sonde, ["sonde", "export", "-f", "fl"])
        assert "flamegraph" in complete_in_bash(sonde, ["sonde", "export", "--format", "=", "fl"])
        assert complete_in_bash(sonde, ["sonde", "export", "a."]) == ["a.pftrace"]
    if "record" in listed_commands(sonde):
        assert "ls" in complete_in_bash(sonde, ["sonde", "record", "-o", "x", "--", "ls"])
        assert "a.pftrace" in complete_in_bash(sonde, ["sonde", "record", "ls", "a."])


def test_fish_completes(sonde):
    fish = tool("fish", "fish")
    script = f"{sonde.path} completion fish | source; complete -C 'sonde do'; complete -C 'sonde doctor --js'"
    done = subprocess.run([fish, "--no-config", "-c", script], capture_output=True, text=True,
                          env={**sonde.environment, "HOME": str(sonde.directory)}, cwd=sonde.directory)
    assert done.stderr == ""
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["doctor", "--json"]


def test_manual_pages(sonde):
    groff = tool("groff", "groff")
    for command in [None, *listed_commands(sonde)]:
        page = sonde("man", *([command] if command else []), check=0).stdout
        done = subprocess.run([groff, "-man", "-ww", "-Tutf8", "-P-cbou"], input=page,
                              capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", f"{command}: {done.stderr}"
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"]:
            assert re.search(f"^{heading}$", done.stdout, re.M), f"{command}: no {heading}"
        if command:
            assert re.search("^EXAMPLES$", done.stdout, re.M) and f"sonde-{command}" in done.stdout
