# SPDX-License-Identifier: Apache-2.0
"""`python -m sonde ARGUMENT…` is `sonde ARGUMENT…`."""

import os
import sys

from sonde._program import other_distribution, program_path, why_no_program


def main() -> None:
    path = program_path()
    if path is None:
        sys.exit("sonde: " + why_no_program())
    other = other_distribution()
    if other is not None:
        sys.stderr.write(f"sonde: {other}\n")
    try:
        os.execv(path, ["sonde", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sonde: {path} cannot be run ({error.strerror}); install sonde again, or name another in SONDE")


if __name__ == "__main__":
    main()
