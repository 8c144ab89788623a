# SPDX-License-Identifier: Apache-2.0
"""`python -m sonde ARGUMENT…` is `sonde ARGUMENT…`."""

import os
import sys

from sonde._program import program_path


def main() -> None:
    path = program_path()
    if path is None:
        sys.exit("sonde: the program is neither beside the package nor on PATH; install it, or name it in SONDE")
    try:
        os.execv(path, ["sonde", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sonde: {path} cannot be run ({error.strerror}); install sonde again, or name another in SONDE")


if __name__ == "__main__":
    main()
