/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code each function is, by the file that it lies in. */
#pragma once

#include "model/model.h"

/* Sets the class of every function. Returns 0 or -ENOMEM. */
int model_classify(struct model *model);

/*
 * The class of a Python function by its code's file name; of a native one by its module's path.
 * `is_program`: the module is an executable that the recorded program runs.
 */
enum model_class classify_python(const char *file_name);
enum model_class classify_native(const char *path, bool is_program);
/*
 * The class of a Python file as PyTorch's profiler names it: without the folder of sys.path that it
 * lies in, "torch/nn/modules/module.py", "threading.py", "train.py". An installed package that is
 * no framework cannot be distinguished from a folder of the program then, and counts as the user's.
 */
enum model_class classify_trimmed_python(const char *file_name);

/* A folder of the system's packages: not a user's own. */
bool classify_is_system_path(const char *path);
