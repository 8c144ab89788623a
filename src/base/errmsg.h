/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished sentence for a person: what failed, where, why, what to try.
 *
 * Library functions whose failure a user can cause take a `struct errmsg *` as their last
 * parameter. It may be NULL. On failure they fill it and return a negative errno; cli/ prints it.
 */
#pragma once

#include "base/macros.h"

struct errmsg {
	char text[1024];
};

/*
 * Stores the formatted sentence (cut at the buffer's end) and returns `error`, a negative errno, so
 * that `return errmsg_set(err, -EINVAL, "...")` is the whole failure path.
 */
int errmsg_set(struct errmsg *err, int error, const char *format, ...) _printf_(3, 4);
