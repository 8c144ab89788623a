# SPDX-License-Identifier: Apache-2.0
"""Options and marks of all tests that pytest runs: those here in e2e and those of the Python package."""

import signal

import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config):
    # A shell that runs us in the background may ignore ^C, and what we start would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes long; run by 'make test-all' only")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; 'make test-all' runs it"))
