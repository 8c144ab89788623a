# SPDX-License-Identifier: Apache-2.0
"""Python runs this at its start in every child of `sonde record --hooks`: its folder leads PYTHONPATH.

It waits for the import of a package that has hooks, removes its own folder from sys.path, and runs the sitecustomize
that Python would have run without it; its errors are reported as usual. It is short, because every Python compiles it
if nothing may be cached, and valid Python 2, because any Python may run it.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Trigger(object):
    """Replaces itself by the finder of sonde.hooks when one of the packages is imported."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name not in self.packages:
            return None
        packages, self.packages = self.packages, ()
        try:
            finder = load_finder().install(packages, self)
        except Exception as error:  # whatever is wrong with us, the program runs
            say_error(packages, "%s: %s" % (type(error).__name__, error))
            return None
        return finder.find_spec(name, path, target)


class Package(object):
    """Finds the package sonde for a program that has none. It comes after all other finders.

    A folder of that name beside the program, such as a checkout, is a package without code to Python. `first` comes before
    all other finders and puts the package into its place; what the folder has can still be imported from it.
    """

    def __init__(self, first):
        self.first = first

    def find_spec(self, name, path=None, target=None):
        if name != "sonde":
            return None
        from _frozen_importlib_external import PathFinder

        folder = PathFinder.find_spec(name, None, target) if self.first else None
        if self.first and (folder is None or folder.has_location):
            return None
        spec = PathFinder.find_spec(name, [os.path.join(FOLDER, "../../..")], target)
        if spec and folder:
            spec.submodule_search_locations += list(folder.submodule_search_locations)
        return spec


def load_finder():
    """The module sonde.hooks.finder from its file: the program may have a sonde of its own."""
    import _frozen_importlib as importlib
    import _frozen_importlib_external as importlib_external

    name = "sonde.hooks.finder"
    path = os.path.join(os.path.dirname(FOLDER), "finder.py")
    spec = importlib_external.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def say_error(groups, detail):
    """Like finder.say(), which cannot be imported here."""
    try:
        with open(os.path.join(os.environ["SONDE_SESSION"], "hooks.%d" % os.getpid()), "a") as out:
            for group in groups:
                out.write("%s\t-\t-\terror\t%s\n" % (group, " ".join(detail.split())[:400]))
    except Exception:
        pass  # there is no session, or it has ended


def install():
    groups = [group.split(":")[0] for group in os.environ.get("SONDE_HOOKS", "none").split(",")]  # without options
    if groups == ["none"] or "SONDE_SESSION" not in os.environ or sys.version_info < (3, 8):
        return
    groups += ["threading", "multiprocessing.util"]  # whose threads get names, and whose children hand over their work
    trigger = Trigger(groups)
    sys.meta_path[:0] = [trigger, Package(True)]
    sys.meta_path.append(Package(False))
    for group in groups:
        if group in sys.modules:  # a .pth file has imported it
            trigger.find_spec(group)
            break


def run_next():
    """Imports the next sitecustomize, as `site` would have."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize" and "sitecustomize" not in str(error):
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)  # the import system looks for what it is executing


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != FOLDER]
install()
run_next()
