#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the pages of the documentation to the program: what they quote is printed, what they link to is there.

    tests/check-docs.py [--renew] [ROOT [PROGRAM]]

Without PROGRAM, of every page:

- a block is code (```sh, ```python, ```c …), a drawing of boxes, or output, with `<!-- output: COMMAND -->` above it;
- files and headings that links name are there, and so are those that the sources name; pictures are of the program alone;
- quoted messages are in the sources: `code` of four words or more that is no command, "words" of three or more in straight
  quotes, the first column of a table that begins with "note" or "advice", and output of a run (below).

With PROGRAM also:

- every `sonde …` of a block of commands is understood, and so is every --option in the text;
- output is what the command prints now, line by line, for the inputs in tests/golden/docs and, where they are at hand, the traces
  in SONDE_TRACES. A line "…" stands for lines that are left out. --renew writes the pages anew.

`<!-- output of a run: COMMAND -->` is output that nobody can print again to the letter. The words between its figures are
looked for in the sources; test_docs.py runs what a machine without devices can run, and compares the form of the lines.
"""

import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "python/README.md", "docs/*.md")
CODE = {"sh", "console", "python", "c", "json", "sql", "nginx"}
GOLDEN = "tests/golden/docs"
# Where the programs of the captures were: their source is shown from there. See in_home().
HOME = "/home/me"
COLUMNS = "100"
MARKER = re.compile(r"^ *<!-- output( of a run)?: (.*) -->$")
ELLIPSIS = "…"


class Block:
    """A fenced block of a page: where, the word behind its fence, its lines, and the command of its marker."""

    def __init__(self, page, line, info, marker):
        self.page, self.line, self.info = page, line, info
        self.lines = []
        self.of_run = bool(marker and marker[1])
        self.command = marker[2] if marker else None

    def __str__(self):
        return f"{self.page.name}:{self.line}"

    @property
    def is_output(self):
        return self.command is not None or (self.info == "console" and len(self.lines) > 1)


@functools.cache
def read(path):
    return path.read_text(encoding="utf-8")


def pages(root):
    return sorted(path for pattern in PAGES for path in root.glob(pattern))


def blocks(page):
    found, block, marker, indent = [], None, None, 0
    for number, line in enumerate(read(page).splitlines(), 1):
        fence = re.match(r"^( *)```(\S*) *$", line)
        if fence and not block:
            block, indent = Block(page, number, fence[2], marker), len(fence[1])
        elif fence:
            if block.info == "console" and not block.command and block.lines[0].startswith("$ "):
                block.command = block.lines[0][2:] if len(block.lines) > 1 else None
            found.append(block)
            block = None
        elif block:
            block.lines.append(line[indent:])
        if line.strip() and not fence:
            marker = MARKER.match(line)
    return found


def prose(page):
    """The page without its blocks and comments, which are empty lines here, so that lines keep their numbers."""
    text = re.sub(r"^ *```.*?^ *``` *$", lambda found: "\n" * found[0].count("\n"), read(page), flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


# ---- blocks ----


def check_blocks(page):
    for block in blocks(page):
        if block.info and block.info not in CODE:
            yield f"{block}: a block of '{block.info}'; these are known: {', '.join(sorted(CODE))}"
        if not block.info and not block.command and "┌" not in "".join(block.lines):
            yield f"{block}: output without <!-- output: COMMAND --> above it, or commands without ```sh"
        if block.info and block.info != "console" and block.command:
            yield f"{block}: output has no word behind its fence"


# ---- links ----


def anchor(heading):
    """As GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@functools.cache
def anchors(page):
    found, seen = set(), {}
    for heading in re.findall(r"^#+ +(.*)$", prose(page), re.M):
        name = anchor(heading)
        seen[name] = seen.get(name, -1) + 1
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
    return found


def check_target(root, folder, where, target):
    path, _, name = target.partition("#")
    page = (folder / path).resolve() if path else where
    if not page.exists():
        return f"there is no {path}"
    if root not in page.parents and page != root:
        return f"{path} is outside of the project"
    if name and page.suffix == ".md" and name not in anchors(page):
        return f"{page.relative_to(root)} has no heading #{name}"
    return None


def check_links(root, page):
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for found in re.finditer(r"\]\(\s*([^)\s]+)\)", text):
        problem = None if re.match(r"[a-z]+:", found[1]) else check_target(root, page.parent, page, found[1])
        if problem:
            yield f"{page.name}:{line_of(text, found.start())}: {problem}"


def check_named_pages(root):
    """Pages that sentences of the program name."""
    for path in sorted(source for suffix in ("c", "h", "py", "ts", "tsx") for source in (root / "src").rglob(f"*.{suffix}")):
        for found in re.finditer(r"\bdocs/[\w-]+\.md(#[\w-]+)?", read(path)):
            problem = check_target(root, root, root / "README.md", found[0])
            if problem:
                yield f"{path.relative_to(root)}:{line_of(read(path), found.start())}: {problem}"


def check_pictures(root):
    """What is drawn is the program's: no frames of sonde's hooks, no folder of the machine. Every picture stands in a page."""
    linked = "".join(read(page) for page in pages(root))
    for picture in sorted((root / "docs" / "images").glob("*")):
        if picture.name not in linked:
            yield f"docs/images/{picture.name}: no page shows it"
        found = picture.suffix == ".svg" and re.search(r"\b_around_\w+|(?<![\w.])/(?:work|tmp|root)/\S*", read(picture))
        if found:
            yield f"docs/images/{picture.name}: it has {found[0]}; tools/pictures makes it anew"


# ---- messages ----

CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)((?:(?!\n\n).)+?)(?<!`)\1(?!`)", re.S)

FIGURE = r"[-+±]?\d[\d.,]*(?:e[-+]?\d+)?"
# What a figure or a name stands for in a quoted sentence.
PLACE = re.compile(rf"{ELLIPSIS}|\S*/\S*|\S+\.(?:pftrace|py|so)\b\S*|\b[A-Z]\b|\b[A-Z][A-Z_]{{2,}}\b|(?<![\w.]){FIGURE}(?![\w])")
COMMANDS = re.compile(
    r"(?:\w+=\S* )*(?:sudo |\$ )*(?:\S*/)?(?:sonde|source|xz|dot|ninja|git|python3?|claude|codex|pip|vllm|curl|valgrind|run(?:\.py)?|gn|ranks\.py"
    r"|unwind-compare|dpkg|rpm|setcap|apt-get|docker|kubectl|srun|mpirun|mpiexec|torchrun|chrt|tests/e2e/run|export|graph|report|record|diff|top|doctor|mcp|view|serve|ctl)\b"
)


# Said by whom, or why it is not found.
KNOWN = {
    "assertion failed at util/build-id.c": "perf",
    "assertion failed at util/build-id.c:1010": "perf",
    "this record has a build-id": "perf",
    "from the cache": "bench",
    "parse and model": "bench",
    "why is the gpu idle in the newest capture?": "a user",
    "what got slower from before.pftrace to after.pftrace?": "a user",
    "no trace captured (ran n steps …)": "esper",
    "hardware flops utilization": "what HFU stands for",
    "ts comm pid tid cpu stack": "BPF scripts of others",
    "event of stream 7": "put together of three words",
    "block lifetime above 10 s, idle below 5 s": "vLLM",
}


def is_sentence(words):
    """No command, no code: what a program may have said."""
    return not COMMANDS.match(words) and not re.search(r"[=<>{}$|;]|\w\(|^-|::|_\w", words)


def fold(text):
    return re.sub(r"\s+", " ", text).strip(" .,:;").casefold()


def c_strings(text):
    """Strings of C and Python, those that stand side by side as one."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'" PRI\w+ "', "d", text)
    for run in re.finditer(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        string = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run[0]))
        yield re.sub(r"(?:\\x[0-9a-f]{2})+", lambda code: bytes.fromhex(code[0].replace("\\x", "")).decode(errors="replace"), string)


@functools.cache
def literals(root):
    """All sentences of the program in one text: what is printed into them is a NUL."""
    found = []
    for folder, pattern in (("src", "*.c"), ("src", "*.h"), ("python", "*.py"), ("python", "*.c"), ("web/src", "*.ts"), ("web/src", "*.tsx")):
        for path in sorted((root / folder).rglob(pattern)):
            text = read(path)
            found += [fold(re.sub(r"%[-+#0 ]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]|\{[^{}]*\}", "\0", string.replace("\\n", "\n"))) for string in c_strings(text)]
            if path.suffix != ".c":
                found += [fold(string) for string in re.findall(r"'([^'\n]+)'|`[^`]*`", text)] + [fold(text)] * (path.suffix in (".ts", ".tsx"))
    return "\0\0".join(found)


@functools.cache
def long_literals(root):
    return [part for part in map(fold, literals(root).split("\0")) if part.count(" ") > 0]


def is_printed(root, part):
    """Is it a part of a sentence, or are most of its words one? The rest may be printed into it."""
    words = re.findall(r"[a-z']{2,}", part)
    if len(words) < 2 or part in literals(root):
        return True
    most = 2 / 3 if len(words) < 4 else 1 / 2
    return any(literal in part and len(literal.split()) >= most * len(words) for literal in long_literals(root))


def missing_parts(root, words):
    """The parts between the figures that no sentence of the program has."""
    return [part for part in map(fold, PLACE.split(words)) if not is_printed(root, part)]


def quotes(page):
    """(line, words) of what reads like a sentence of the program."""
    text = prose(page)
    for found in CODE_SPAN.finditer(text):
        words = " ".join(found[2].split())
        if len(words.split()) > 3 and is_sentence(words):
            yield line_of(text, found.start()), words
    plain = CODE_SPAN.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)
    for found in re.finditer(r'(?<![\w"])"([^"|]+)"', plain):
        words = " ".join(found[1].split())
        if "\n\n" not in found[1] and len(words.split()) > 2 and is_sentence(words):
            yield line_of(text, found.start()), words
    for table in re.finditer(r"^\| (?:note|advice) \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        for row in re.finditer(r"^\| `([^`]+)`", table[1], re.M):
            yield line_of(text, table.start(1) + row.start()), row[1]


def check_messages(root, page):
    for line, words in quotes(page):
        missing = missing_parts(root, words)
        if missing and fold(words) not in KNOWN:
            yield f"{page.name}:{line}: no sentence of the program has '{missing[0]}', of '{words}'"


# ---- commands ----


def words_of(line):
    try:
        return shlex.split(line.replace("…", "x").replace("$(which sonde)", "sonde").replace("\\\n", " "), comments=True)
    except ValueError:
        return None


def command_lines(block):
    text = re.sub(r"\\\n\s*", " ", "\n".join(block.lines))
    for line in text.splitlines():
        if block.info == "sh":
            yield line
        elif line.startswith("$ "):
            yield line[2:]


def sonde_commands(line):
    """The arguments of each sonde in a line, up to what the shell begins next."""
    words = words_of(re.sub(r"(\||&&|;|>|2>&1)", r" \1 ", line) if "'" not in line else line)
    if words is None:
        yield None
        return
    begin = None
    for at, word in enumerate([*words, ";"]):
        if word in ("|", "&&", ";", ">", "2>&1", "&"):
            if begin is not None:
                yield words[begin:at]
            begin = None
        elif begin is None and Path(word).name == "sonde" and "--" not in words[:at]:
            begin = at + 1


class Program:
    """sonde, asked whether it understands a command and what it prints."""

    def __init__(self, path, root):
        self.path, self.root = Path(path).resolve(), root
        self.subcommands = {}

    def help(self, *words):
        return subprocess.run([self.path, *words, "--help"], capture_output=True, text=True, check=False).stdout

    @functools.cached_property
    def commands(self):
        names = re.findall(r"^  ([a-z]+) ", self.help().partition("Commands:")[2], re.M)
        return {name: re.findall(r"^  ([a-z]+) ", self.help(name).partition("Commands:")[2], re.M) for name in names}

    @functools.cached_property
    def options(self):
        texts = [self.help(name, *([inner] if inner else [])) for name, inside in self.commands.items() for inner in [None, *inside]]
        return set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", "\n".join(texts))) | {"--version"}

    def misunderstands(self, words):
        """What it says of a command, or None. With --help it reads the options and runs nothing."""
        if not words or words[0].startswith("-"):
            return None
        at = 1
        if self.commands.get(words[0]) and len(words) > 1 and not words[1].startswith("-"):
            at = 2
        elif self.commands.get(words[0]) and "list" in self.commands[words[0]]:
            words = [words[0], "list", *words[1:]]
            at = 2
        done = subprocess.run([self.path, *words[:at], "--help", *words[at:]], capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else done.stderr.strip().splitlines()[0]


def check_commands(page, program):
    for block in blocks(page):
        if block.info not in ("sh", "console"):
            continue
        for line in command_lines(block):
            for words in sonde_commands(line):
                problem = "the shell does not understand it" if words is None else program.misunderstands(words)
                if problem:
                    yield f"{block}: {line.strip()}: {problem}"


# Options of other programs that the text names.
OTHERS = {
    "--args": "gn",
    "--filter-time": "nsys",
    "--gil": "py-spy",
    "--image": "kubectl",
    "--kernel-threads-only": "bcc's profile",
    "--nonblocking": "py-spy",
    "--privileged": "docker",
    "--profile": "kubectl",
    "--python-sampling": "nsys",
    "--switch-output": "perf",
    "--user-threads-only": "bcc's profile",
    "--yjit-perf": "ruby",
}


def check_options(page, program):
    text = prose(page)
    for code in re.finditer(r"`([^`\n]+)`", text):
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]*)", code[1]):
            if option not in program.options and option not in others(program.root):
                yield f"{page.name}:{line_of(text, code.start())}: no command has {option}"


@functools.cache
def others(root):
    """Options that the project's own scripts, examples and Python package have."""
    found = set(OTHERS)
    for folder in ("tools", "bench", "examples", "python", "tests", ".ci", "src/bpf"):
        for path in (root / folder).rglob("*"):
            if path.is_file() and path != root / "tests/check-docs.py" and path.stat().st_size < 200_000 and "golden" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="ignore")
                found |= set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", text))
    return found


# ---- output ----


def shown(text):
    """Without what differs from machine to machine."""
    return re.sub(r"(Linux \d+\.\d+\.\d+)-[\w.-]+", r"\1", text)


def printed(program, command, folder):
    """What a command prints in the folder of the inputs, on both streams."""
    environment = {**os.environ, "COLUMNS": COLUMNS, "LC_ALL": "C.UTF-8"}
    words = shlex.split(command)
    while "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if Path(words[0]).name != "sonde":
        raise ValueError(f"'{command}' is no command of sonde")
    done = subprocess.run([*in_home(folder), program.path, *words[1:]], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False, timeout=60)
    return shown(done.stdout + done.stderr)


@functools.cache
def can_unshare():
    command = ["unshare", "--mount", *unmapped(), "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmapped():
    return [] if os.geteuid() == 0 else ["--map-root-user"]


def in_home(folder):
    """A prefix that runs a command with folder/home in place of /home: there is the source of the programs that were recorded."""
    script = 'mount --bind home /home && exec 3<"$1" && shift && exec /proc/self/fd/3 "$@"'
    return ["unshare", "--mount", *unmapped(), "sh", "-c", script, "sh"] if can_unshare() else []


def traces_of(root):
    return Path(os.environ.get("SONDE_TRACES", root.parent / "shared" / "traces"))


def prepare(root, folder):
    """Puts the inputs into a folder, and the sources of the programs that were recorded, older than every capture."""
    traces = traces_of(root)
    (folder / "home").mkdir()
    for path in (root / GOLDEN).glob("*"):
        if path.suffix != ".py":
            (folder / path.name).symlink_to(path)
    for path in [*traces.glob("megatron-tp8"), *traces.glob("kineto/*")]:
        (folder / path.name).symlink_to(path)
    for source in [*(root / "examples").glob("*.py"), *(root / GOLDEN).glob("*.py")]:
        place = "sonde/examples" if source.parent.name == "examples" else ""
        copy = folder / "home" / Path(HOME).name / place / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
        os.utime(copy, (0, 0))


def inputs_of(command):
    return [word for word in shlex.split(command) if re.search(r"\.(json|gz|pftrace)$|^(megatron-tp8|run)$", word)]


def parts_of(lines):
    """Runs of lines between those that are left out."""
    part = []
    for line in [*lines, ELLIPSIS]:
        if line.strip() == ELLIPSIS:
            if part:
                yield part
            part = []
        else:
            part.append(line)


def find_part(part, lines, begin):
    for at in range(begin, len(lines) - len(part) + 1):
        if lines[at:at + len(part)] == part:
            return at
    return None


def compare(block, text):
    """What differs between a block and what is printed, or None."""
    lines = [line.rstrip() for line in text.splitlines()]
    quoted = block.lines[1:] if block.info == "console" else block.lines
    begin = 0
    for part in parts_of([line.rstrip() for line in quoted]):
        at = find_part(part, lines, begin)
        if at is None:
            absent = next((line for line in part if line not in lines[begin:]), None)
            if absent is None:
                return f"'{block.command}' prints other lines between these, which need a line '{ELLIPSIS}': '{part[0].strip()}'"
            return f"'{block.command}' does not print '{absent.strip()}' here"
        begin = at + len(part)
    return None


def replayed(page):
    """Blocks whose command can be run again."""
    return [block for block in blocks(page) if block.is_output and not block.of_run]


def needs_traces(root, block):
    return any(not (root / GOLDEN / name).exists() for name in inputs_of(block.command))


def check_output(block, program, folder):
    missing = [name for name in inputs_of(block.command) if not (folder / name).exists()]
    if missing:
        yield f"{block}: there is no {missing[0]}"
        return
    problem = compare(block, printed(program, block.command, folder))
    if problem:
        yield f"{block}: {problem}"


def check_runs(root, page):
    """Of output of a run the words between the figures, of which the program has those of its sentences."""
    for block in blocks(page):
        if not block.of_run:
            continue
        for line in block.lines:
            words = re.split(rf"{PLACE.pattern}|  +|[,:;] |\(", line)
            missing = [part for part in map(fold, words) if len(part.split()) > 3 and not is_printed(root, part)]
            if missing:
                yield f"{block}: no sentence of the program has '{missing[0]}'"


def write_anew(block, text):
    """The same parts, found by their first line with other figures. Returns what is still wrong with it, or None."""
    lines = [line.rstrip() for line in text.splitlines()]
    head = block.lines[:1] if block.info == "console" else []
    quoted, made, begin = block.lines[len(head):], [], 0
    skipped = [number for number, line in enumerate(quoted) if line.strip() == ELLIPSIS]
    for part in parts_of(quoted):
        at = next((at for at in range(begin, len(lines)) if form(lines[at]) == form(part[0])), None)
        if at is None:
            return f"{block}: '{block.command}' prints no line like '{part[0].strip()}'"
        made += [*([ELLIPSIS] if made or 0 in skipped else []), *lines[at:at + len(part)]]
        begin = at + len(part)
    if len(quoted) - 1 in skipped:
        made.append(ELLIPSIS)
    page = block.page.read_text(encoding="utf-8").splitlines(keepends=True)
    indent = re.match(" *", page[block.line - 1])[0]
    page[block.line:block.line + len(block.lines)] = [f"{indent}{line}".rstrip() + "\n" for line in head + made]
    block.page.write_text("".join(page), encoding="utf-8")
    read.cache_clear()
    print(f"{block}: written anew")
    return None


UNITS = r"(?: ?(?:%|ns|µs|ms|s|min|h|B|KiB|MiB|GiB|KB|MB|GB|J|mJ|µJ|W))?(?![\w])"


def form(line):
    """A line without its figures, units and spaces."""
    return re.sub(r"\s+", " ", re.sub(FIGURE + UNITS, "#", line)).strip()


# ---- all ----


def check(root, program=None, renew=False):
    """All problems, as sentences."""
    found = [*check_named_pages(root), *check_pictures(root)]
    for page in pages(root):
        found += [*check_blocks(page), *check_links(root, page), *check_messages(root, page), *check_runs(root, page)]
        if program:
            found += [*check_commands(page, program), *check_options(page, program)]
    if program:
        with tempfile.TemporaryDirectory() as name:
            prepare(root, Path(name))
            for page in pages(root):
                for number, block in enumerate(replayed(page)):
                    if needs_traces(root, block) and not traces_of(root).is_dir():
                        print(f"{block}: not looked at without the traces of {traces_of(root)}")
                        continue
                    problems = list(check_output(block, program, Path(name)))
                    if problems and renew:
                        left = write_anew(replayed(page)[number], printed(program, block.command, Path(name)))
                        problems = [left] if left else []
                    found += problems
    return found


def main():
    arguments = sys.argv[1:]
    renew = "--renew" in arguments
    arguments = [word for word in arguments if word != "--renew"]
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parents[1]).resolve()
    found = check(root, Program(arguments[1], root) if len(arguments) > 1 else None, renew)
    for problem in found:
        print(problem)
    print(f"{len(pages(root))} pages, {sum(len(blocks(page)) for page in pages(root))} blocks: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
