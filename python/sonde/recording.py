# SPDX-License-Identifier: Apache-2.0
"""sonde.profile: records a block of a program with sonde, and if asked also with torch.profiler.

    with sonde.profile("run.pftrace") as prof:
        for batch in loader:
            train_step(batch)
            if prof is not None:
                prof.step()

Under `sonde record --window manual` it opens a window of that recording; one that records all the time records the
block, too. Otherwise it starts `sonde record` on this process for the time of the block. The block is also a range.
What fails is reported once, and the program goes on.
"""

import ctypes
import os
import signal
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Type

from . import _core, control
from ._log import describe, warn, warn_once
from ._program import other_distribution, program_path, why_no_program
from .training import DISABLED

if TYPE_CHECKING:
    from typing_extensions import Literal

STEP = "profile"
DOMAIN = "sonde.profile"
_START_S = 30.0
_STOP_S = 60.0
_PR_SET_PTRACER = 0x59616D61


def _program() -> str:
    """The program sonde. Raises ControlError."""
    path = program_path()
    if path is None:
        raise control.ControlError(why_no_program())
    other = other_distribution()
    if other is not None:
        warn_once("other", f"sonde.profile: {other}")
    return path


class _Recorder:
    """A `sonde record` of this process, as its child."""

    def __init__(self, output: str, options: Sequence[str]) -> None:
        import subprocess
        import tempfile

        self.output = output
        self._errors = tempfile.TemporaryFile()
        # sonde writes its session's folder there when it records.
        self._session_file = tempfile.NamedTemporaryFile(prefix="sonde-session-")
        command = [_program(), "record", "-q", "-p", str(os.getpid()), "--window", "manual", "-o", output]
        command += ["--session-file", self._session_file.name, *options]
        # Not of our process group: ^C is for the program, which then ends the recording.
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True
        )
        try:
            self._let_it_trace()
            self.folder = self._wait_for_folder()
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._errors.close()
            raise
        finally:
            self._session_file.close()

    def _let_it_trace(self) -> None:
        """Lets our child trace this process if Yama allows only parents. Elsewhere the call fails and is not needed."""
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(self._process.pid), 0, 0, 0)

    def _wait_for_folder(self) -> str:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            with open(self._session_file.name, encoding="utf-8") as file:
                folder = file.read()
            if folder.endswith("\n"):
                return folder[:-1]
            if self._process.poll() is not None:
                raise control.ControlError("sonde record ended: " + (self._last_words() or "without a word"))
            time.sleep(0.01)
        raise control.ControlError(f"sonde record was not ready within {_START_S:.0f} s")

    def _last_words(self) -> str:
        self._errors.seek(0)
        return " ".join(self._errors.read().decode("utf-8", "replace").split())[-500:]

    def finish(self) -> None:
        """Ends the recording and waits until its capture is written. Raises ControlError if it is not."""
        import subprocess

        try:
            self._process.send_signal(signal.SIGINT)
            status = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise control.ControlError(
                f"sonde record did not end within {_STOP_S:.0f} s and was killed;"
                f" {self.output} holds what it had written"
            ) from None
        else:
            if status != 0:
                raise control.ControlError("sonde record failed: " + (self._last_words() or str(status)))
        finally:
            self._errors.close()


class Profile:
    """What `with sonde.profile(...)` gives."""

    def __init__(self, output: str, options: Sequence[str], label: str, torch_trace: Optional[Any]) -> None:
        # Where the capture is: the file asked for, or None when the block is a window of a recording around us.
        self.output: Optional[str] = output
        self.steps = 0
        self.failure: Optional[str] = None
        self._options = options
        self._label = label
        self._torch_trace = torch_trace
        self._pid = os.getpid()
        self._recorder: Optional[_Recorder] = None
        self._folder: Optional[str] = None
        self._is_open = False

    @property
    def traces(self) -> List[str]:
        """The files that torch.profiler wrote."""
        return [] if self._torch_trace is None else list(self._torch_trace.traces)

    def step(self) -> None:
        """Marks the end of a step."""
        _core.step(STEP)
        self.steps += 1
        if self._torch_trace is not None:
            self._torch_trace.step()

    def __enter__(self) -> "Profile":
        try:
            self._open()
        except Exception as error:
            self._fail(error)
        _core.range_push(self._label or "profile", DOMAIN)
        if self._torch_trace is not None:
            self._torch_trace.__enter__()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> "Literal[False]":
        if os.getpid() == self._pid:
            _core.range_pop(DOMAIN)
            try:
                if self._torch_trace is not None:
                    self._torch_trace.__exit__(kind, error, trace)
            finally:
                self._close()
        return False

    def _fail(self, error: BaseException) -> None:
        self.failure = describe(error) if not isinstance(error, control.ControlError) else str(error)
        warn_once("profile", f"sonde.profile: nothing is recorded: {self.failure}; the program goes on")

    def _open(self) -> None:
        self._folder = control.session_folder()
        if self._folder is None:
            assert self.output is not None
            self._recorder = _Recorder(self.output, self._options)
            self._folder = self._recorder.folder
            _core.open_session(self._folder)
        else:
            self.output = None
        if control.ask(self._folder, "status").get("state") == "whole":
            return  # it records all the time, and so the block
        control.ask(self._folder, "start " + self._label if self._label else "start")
        self._is_open = True

    def _close(self) -> None:
        recorder, self._recorder = self._recorder, None
        try:
            if self._is_open and self._folder is not None:
                self._is_open = False
                control.ask(self._folder, "stop")
        except Exception as error:
            warn(f"sonde.profile: the window could not be closed: {error}")
        try:
            if recorder is not None:
                recorder.finish()
        except Exception as error:
            warn(f"sonde.profile: {error}")


def profile(
    output: str = "sonde.pftrace",
    *,
    enabled: bool = True,
    label: str = "",
    options: Sequence[str] = (),
    torch_trace: bool = False,
    trace_dir: Optional[str] = None,
    record_shapes: bool = False,
    profile_memory: bool = False,
    with_stack: bool = False,
) -> Any:
    """A context manager that records its block with sonde: CPU stacks, waiting, device work, ranges.

    Its block gets an object with .step(), .output and .traces, or None if it is not enabled.

    output       the capture. Under `sonde record` the block is a window of that recording instead, and .output is None
    enabled      False: nothing is imported, allocated or done
    label        names the window
    options      more options of `sonde record`, e.g. ("-F", "499"), if it is started
    torch_trace  also run torch.profiler over the block, and write its *.pt.trace.json to trace_dir, by default the
                 capture's folder; record_shapes, profile_memory and with_stack are for it

    To record this process, sonde needs what `sonde record -p` needs: `sonde doctor` says whether it is available.
    A failure is logged once, through the logger "sonde", and the program goes on without.
    """
    if not enabled:
        return DISABLED
    trace = None
    if torch_trace:
        from .training import TrainingProfiler

        folder = os.fspath(trace_dir) if trace_dir is not None else os.path.dirname(os.path.abspath(output))
        trace = TrainingProfiler(
            folder, None, False, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack
        )
    return Profile(os.fspath(output), tuple(options), " ".join(label.split()), trace)
