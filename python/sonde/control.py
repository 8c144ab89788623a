# SPDX-License-Identifier: Apache-2.0
"""Talks to a recording through the socket `control` in its session folder, as `sonde ctl` does."""

import json
import os
import socket
from typing import Any, Dict, Optional

TIMEOUT_S = 30.0


class ControlError(Exception):
    """The recording refused or failed; the message is a sentence."""


def session_folder() -> Optional[str]:
    """The folder of the recording that this program runs under; None without one, or when it has ended."""
    folder = os.environ.get("SONDE_SESSION")
    return folder if folder and os.path.exists(os.path.join(folder, "control")) else None


def ask(folder: str, line: str, timeout_s: float = TIMEOUT_S) -> Dict[str, Any]:
    """Sends one line and returns the answer. Raises ControlError if it is a refusal, or does not come."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(os.path.join(folder, "control"))
            connection.sendall(line.encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = stream.readline()
    except OSError as error:
        raise ControlError(f"the recording in {folder} does not answer: {error}") from error
    try:
        parsed = json.loads(answer)
    except ValueError as error:
        raise ControlError(f"the recording in {folder} has ended") from error
    if not isinstance(parsed, dict) or not parsed.get("ok"):
        reason = parsed.get("error") if isinstance(parsed, dict) else None
        raise ControlError(str(reason or f"the recording refused '{line}'"))
    return parsed
