# SPDX-License-Identifier: Apache-2.0
"""Python runs this at its start in every child of `sonde record --hooks`: its folder leads PYTHONPATH.

It installs the import finder of sonde.hooks, takes its own folder out of sys.path, and runs the sitecustomize that
Python would have run without it, whose errors surface as ever. It adds no module that the program could see but
`sonde`, and that only where the program has none. Any Python may come by here, so this file is also good Python 2.
"""

import os
import sys

OLDEST = (3, 8)


def _finder(folder):
    """The module sonde.hooks.finder, executed from its file: without its package, and without importlib.util."""
    import _frozen_importlib as importlib
    import _frozen_importlib_external as importlib_external

    name = "sonde.hooks.finder"
    spec = importlib_external.spec_from_file_location(name, os.path.join(os.path.dirname(folder), "finder.py"))
    module = sys.modules[name] = importlib.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _say_error(detail):
    """One line for `sonde record`, in the form of finder.say(), which is not there to be asked."""
    path = os.path.join(os.environ.get("SONDE_SESSION", ""), "hooks.%d" % os.getpid())
    try:
        with open(path, "a") as out:
            out.write("python\t-\t-\terror\t%s\n" % detail)
    except (IOError, OSError):
        pass  # the session has ended


def _install(folder):
    groups = os.environ.get("SONDE_HOOKS", "none")
    if groups == "none" or "SONDE_SESSION" not in os.environ:
        return
    if sys.version_info < OLDEST:
        if groups != "auto":
            _say_error("Python %d.%d is too old for hooks: they need 3.8" % sys.version_info[:2])
        return
    try:
        _finder(folder).install_in_child(groups)
    except Exception as error:  # whatever is wrong with us, the program runs
        _say_error(" ".join(("%s: %s" % (type(error).__name__, error)).split()))


def _run_next():
    """Imports the sitecustomize that comes after ours, as the module `site` would have."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize" and "sitecustomize" not in str(error):
            raise
    finally:
        # The import system looks for what it is executing.
        sys.modules.setdefault("sitecustomize", ours)


def _start():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    _install(folder)
    _run_next()


_start()
