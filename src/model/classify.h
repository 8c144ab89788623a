/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code each function is, by the file that it lies in. */
#pragma once

#include "model/model.h"

/* Sets the class of every function. Returns 0 or -ENOMEM. */
int model_classify(struct model *model);

/*
 * The class of a Python function by its code's file name; of a native one by its module's path.
 * `program` is the session's own executable, "" when unknown.
 */
enum model_class classify_python(const char *file_name);
enum model_class classify_native(const char *path, const char *program);
