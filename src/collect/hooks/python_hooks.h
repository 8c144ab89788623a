/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks in the Python children of a command: which there are, where the package is that has them,
 * and the environment that starts them. The package does the rest (python/sonde/hooks).
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

#define PYTHON_HOOKS_AUTO "auto"
#define PYTHON_HOOKS_NONE "none"

/* The names of all groups, NULL-ended: those of GROUPS in python/sonde/hooks/finder.py. */
extern const char *const python_hook_groups[];

/*
 * The groups of a list such as "torch,transformers:layer:every=8", "auto" or "none". Returns 0 or
 * -EINVAL with a sentence.
 */
int python_hooks_check(const char *list, struct errmsg *err);
/*
 * The folder of the package `sonde` beside this program, to be freed; with `err` a sentence on what
 * is missing. Returns 0 or -ENOENT.
 */
int python_package_find(char **ret_folder, struct errmsg *err);
/* Appends the groups of the list, with their options and commas between them: what "auto" stands
 * for. */
int python_hooks_groups(const char *list, struct strbuf *out);
/* Appends the value of PYTHONPATH: the bootstrap of the package in `folder` before what is there.
 */
int python_hooks_path(const char *folder, struct strbuf *out);
