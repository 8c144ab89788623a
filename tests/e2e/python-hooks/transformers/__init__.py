# SPDX-License-Identifier: Apache-2.0
"""Names and signatures of transformers 4.57, for hooks; the real one replaces itself in sys.modules, too."""

import importlib
import sys
import types


class _LazyModule(types.ModuleType):
    def __getattr__(self, name):
        return importlib.import_module("." + name, self.__name__)


_module = _LazyModule(__name__)
_module.__path__ = __path__
_module.__spec__ = __spec__
sys.modules[__name__] = _module
