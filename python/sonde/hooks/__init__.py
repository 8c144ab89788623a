# SPDX-License-Identifier: Apache-2.0
"""Hooks: record what frameworks do, without changing the program.

`sonde record --hooks torch,transformers,vllm` puts the folder `bootstrap` in front of PYTHONPATH. Its
sitecustomize installs the import finder of `finder`, which loads a group of hooks, `sonde.hooks.<group>`, when the
package of that name is imported. A group is a table of `registry.Hook`; `wrap` makes the wrappers.

To add a hook: a line in the table HOOKS of its group; a test with a stand-in for the module in
tests/e2e/python-hooks. To add a group: a module here with such a table, named as the package, and its name in GROUPS
of `finder` and in python_hook_groups of src/collect/hooks/python_hooks.c.
"""

from .finder import GROUPS, install

__all__ = ["GROUPS", "install"]
