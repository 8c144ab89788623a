# SPDX-License-Identifier: Apache-2.0
"""Options and marks of all tests that pytest runs: those here in e2e and those of the Python package.

Files of tests run side by side (pytest-xdist, which tests/e2e/run asks for). What watches the whole machine, or measures how
long a thread waits, is marked `alone`.
"""

import contextlib
import fcntl
import signal
import tempfile
from pathlib import Path

import pytest

# A test that hangs fails, in place of the whole run. A busy machine takes several times what a quiet one does.
LIMIT_S = 600
LIMIT_OF_SLOW_S = 1800


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config):
    # A shell that runs us in the background may ignore ^C, and what we start would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, take_too_long)
    config.addinivalue_line("markers", "slow: takes long; run by 'make test-all' only")
    config.addinivalue_line("markers", "alone: no other test runs meanwhile")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; 'make test-all' runs it"))


def take_too_long(_signal, _frame):
    pytest.fail("the test took longer than LIMIT_S in tests/conftest.py: does it hang?")


@contextlib.contextmanager
def locked(run, name, how):
    path = Path(tempfile.gettempdir()) / f"sonde-tests-{run}-{name}"
    with path.open("w") as file:
        fcntl.flock(file, how)
        yield


@contextlib.contextmanager
def company(item):
    """Waits until the test may run beside those of the other processes."""
    worker = getattr(item.config, "workerinput", None)
    if not worker:
        yield
        return
    run = worker["testrunuid"]
    if "alone" in item.keywords:
        # Whoever waits for this test waits at the door, so that those that run come to an end.
        with locked(run, "door", fcntl.LOCK_EX), locked(run, "room", fcntl.LOCK_EX):
            yield
    else:
        with contextlib.ExitStack() as room:
            with locked(run, "door", fcntl.LOCK_SH):
                room.enter_context(locked(run, "room", fcntl.LOCK_SH))
            yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    with company(item):
        signal.alarm(LIMIT_OF_SLOW_S if "slow" in item.keywords else LIMIT_S)
        yield
        signal.alarm(0)
