#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the recordings of live messages beside it, which tests of the page replay: what a client of /ws received, a
message a line, from hello to live_ended.

    tests/data/live/make.py NAME -- COMMAND …     writes NAME.jsonl, with the energy of tests/e2e/live_energy.py

generate.jsonl (requests, phases, layers, power; needs transformers and PyTorch 2, see tools/venv torch2):

    tests/data/live/make.py generate --hooks transformers:component:every=4 -- \\
        .venv-torch2/bin/python examples/generate.py --requests 6 --tokens 32 --layers 4

device.jsonl (kernels of an OpenCL device, steps; needs pyopencl):

    tests/data/live/make.py device -- .venv/bin/python examples/train_opencl.py

SONDE names the program; without it that of build/.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from live_energy import write_replay  # noqa: E402
from server_client import Server  # noqa: E402


def main():
    name, *words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        replay = write_replay(Path(folder) / "energy.jsonl")
        command = [os.environ.get("SONDE", str(ROOT / "build" / "sonde")), "record", "--serve", "-q", "--energy", f"replay:{replay}",
                   "-o", str(Path(folder) / f"{name}.pftrace"), *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        line = process.stderr.readline()
        if not line.startswith("sonde: live at "):
            sys.exit(line + process.stderr.read())
        client = Server(process, line.split()[-1]).socket()
        with open(Path(__file__).with_name(f"{name}.jsonl"), "w") as file:
            while (message := client.next()) is not None:
                if message["type"] == "live_session":
                    message["data"]["host"] = "host"
                    message["data"]["command"] = [os.path.basename(word) for word in message["data"]["command"]]
                file.write(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n")
                if message["type"] == "live_ended":
                    break
        process.send_signal(signal.SIGINT)
        process.wait()


if __name__ == "__main__":
    main()
