#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the page and writes it as C arrays, or runs its tests:

    build.py FOLDER OUTPUT.c
    build.py --test             exit status 77, which Meson takes for skipped, where there is no Node.js

FOLDER is where Vite writes. What is in web/dist/, as in a release, is taken as it is. Where Node.js is missing or too old, as in
Debian 12, tools/venv gets one from PyPI. Where that fails, or npm gives no packages, an OUTPUT.c without files is written, and a
line says why: the program then says that it was built without its page, and Ninja tries again at every build.
"""

import base64
import fcntl
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent
NODE_NEEDED = (20, 19)
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".json": "application/json", ".woff2": "font/woff2", ".png": "image/png",
         ".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8"}
# Pages of the documentation that advice names, for /docs/.
DOCS = ("gpu.md", "python.md", "record.md", "roofline.md", "trace-report.md")
# speedscope as it is released, for /speedscope/: without what only other formats than ours, its examples and its tool need.
SPEEDSCOPE = WEB / "node_modules/speedscope"
SPEEDSCOPE_FILES = ("index.html", "speedscope-*.js", "speedscope-*.css", "*.woff2", "favicon-*.png")
# Where the report stands in the file that works by itself.
DATA = "<!--sonde-data-->"


class NotBuilt(Exception):
    """Why there is no page."""


def fault_of_node():
    """Why Node.js of PATH does not do; None: it does."""
    if not shutil.which("npm") or not shutil.which("node"):
        return "npm is not installed"
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    release = tuple(int(part) for part in re.findall(r"\d+", printed)[:2])
    return f"Node.js {printed} is too old" if release < NODE_NEEDED else None


def find_node():
    """Sees to it that PATH has Node.js and npm. Not for `sudo make install`: what root makes here its user could not change."""
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "0") == str(WEB.stat().st_uid) != "0":
        raise NotBuilt("sudo would leave root's files in the checkout")
    fault = fault_of_node()
    if fault is None:
        return
    python = subprocess.run([WEB.parent / "tools/venv", "page"], capture_output=True, text=True, check=False)
    if python.returncode != 0:
        raise NotBuilt(f"{fault} and PyPI gave none")
    os.environ["PATH"] = f"{Path(python.stdout.strip()).parent}:{os.environ.get('PATH', '')}"


def run(*command):
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def install():
    """What package-lock.json names, once for each state of that file: builds may run side by side."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    stamp = WEB / "node_modules" / ".sonde-lock"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    done, printed = run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
    if not done:
        lines = [line for line in printed.splitlines() if "complete log of this run" not in line] or ["it says nothing"]
        raise NotBuilt(f"npm could not install its packages ({lines[0]})")
    stamp.write_text(wanted)


def prepare():
    find_node()
    with open(WEB / "package.json", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install()


def test():
    try:
        prepare()
    except NotBuilt as why:
        print(f"the page is not tested: {why}", file=sys.stderr)
        sys.exit(77)
    sys.exit(subprocess.run(["node_modules/.bin/vitest", "run"], cwd=WEB, check=False).returncode)


def build(folder):
    prepare()
    for command in (["node_modules/.bin/tsc", "--noEmit"],
                    ["node_modules/.bin/vite", "build", "--outDir", str(folder), "--emptyOutDir", "--logLevel", "error"]):
        done, printed = run(*command)
        if not done:
            sys.exit(f"web/build.py: {' '.join(command[:2])} failed:\n{printed}")
    add_speedscope(folder / "speedscope")
    (folder / "docs").mkdir()
    for name in DOCS:
        shutil.copyfile(WEB.parent / "docs" / name, folder / "docs" / name)


def add_speedscope(folder):
    folder.mkdir()
    for pattern in SPEEDSCOPE_FILES:
        files = list((SPEEDSCOPE / "dist/release").glob(pattern))
        if not files:
            sys.exit(f"web/build.py: speedscope's release has no {pattern} any more")
        for path in files:
            shutil.copyfile(path, folder / path.name)
    licenses = [SPEEDSCOPE / "LICENSE", SPEEDSCOPE / "dist/release/source-code-pro.LICENSE.md"]
    (folder / "licenses.txt").write_text("\n\n".join(path.read_text(encoding="utf-8") for path in licenses), encoding="utf-8")


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def single_file(folder):
    """The page with its style and script inside; what it may do stands in its policy."""
    page = (folder / "index.html").read_text(encoding="utf-8")
    script = (folder / "assets/page.js").read_text(encoding="utf-8")
    style = (folder / "assets/page.css").read_text(encoding="utf-8")
    if "</script" in script or "<!--" in script or "</style" in style:
        sys.exit("web/build.py: the script or the style would end the element that it is written into")
    policy = (f"default-src 'none'; script-src '{hash_of(script)}'; style-src '{hash_of(style)}'; style-src-attr 'unsafe-inline'; "
              "img-src data: blob:; base-uri 'none'; form-action 'none'")
    page = re.sub(r"\s*<link rel=\"stylesheet\"[^>]*>", "", page)
    page = re.sub(r"\s*<script type=\"module\"[^>]*></script>", "", page)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    page = page.replace("</head>", head + "</head>")
    return page.replace("</body>", f'{DATA}\n<script type="module">{script}</script>\n</body>')


def write_array(out, name, data):
    out.write(f"static const unsigned char {name}[] = {{\n")
    for start in range(0, len(data), 24):
        out.write("\t" + ",".join(str(byte) for byte in data[start : start + 24]) + ",\n")
    out.write("};\n\n")


def write_assets(folder, out):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    rows = []
    for number, path in enumerate(files):
        content = path.read_bytes()
        write_array(out, f"file_{number}", gzip.compress(content, 9, mtime=0))
        rows.append(f'\t{{"/{path.relative_to(folder)}", "{TYPES[path.suffix]}", "{hashlib.sha256(content).hexdigest()[:16]}", '
                    f"file_{number}, sizeof(file_{number}), {len(content)}}},\n")
    for part, text in zip(("head", "tail"), single_file(folder).split(DATA)):
        write_array(out, f"single_{part}", text.encode())
        out.write(f"const struct page_part page_single_{part} = {{single_{part}, sizeof(single_{part})}};\n\n")
    out.write("const struct page_asset page_assets[] = {\n" + "".join(rows) + "\t{0},\n};\n\nconst char page_missing[] = \"\";\n")


def write_nothing(why, out):
    reason = why.replace("\\", "").replace('"', "'")
    out.write("const struct page_part page_single_head, page_single_tail;\n"
              f'const struct page_asset page_assets[] = {{{{0}}}};\nconst char page_missing[] = "{reason}";\n')


def write_depfile(output, is_built):
    """All that the page is made of, so that Ninja makes it again; what npm brings hangs on the lock.

    A file that is not there makes Ninja try every time: until there is a page, since what was missing may be there then.
    """
    parts = [path for path in WEB.rglob("*") if path.is_file() and not {"node_modules", "dist"} & set(path.relative_to(WEB).parts)]
    parts += [WEB.parent / "docs" / name for name in DOCS]
    parts += [] if is_built else [output.with_name("no-page")]
    Path(f"{output}.d").write_text(f"{output.name}: " + " ".join(sorted(map(str, parts))) + "\n", encoding="utf-8")


def replace(new, path):
    """Nothing is compiled again if the file is as it was."""
    if not path.exists() or path.read_bytes() != Path(new).read_bytes():
        os.replace(new, path)
    else:
        os.remove(new)


def main():
    if sys.argv[1:] == ["--test"]:
        test()
    folder, output = (Path(argument).resolve() for argument in sys.argv[1:])
    is_built = True
    with open(f"{output}.part", "w", encoding="utf-8") as out:
        out.write('/* Generated by web/build.py. */\n#include "page/assets.h"\n\n')
        try:
            if (WEB / "dist/index.html").exists():
                folder = WEB / "dist"
            else:
                build(folder)
            write_assets(folder, out)
        except NotBuilt as why:
            print(f"sonde is built without its page: {why}", file=sys.stderr)
            write_nothing(str(why), out)
            is_built = False
    write_depfile(output, is_built)
    replace(f"{output}.part", output)


if __name__ == "__main__":
    main()
