/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that stands for an open window: whether it is there, watched by inotify. It counts where
 * it is owned by this user, by root, or under sudo by who called it. Its folder need not be there
 * yet.
 */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"

struct window_flag;

/* `path` may be relative: it is made absolute now. Returns 0 or a negative errno with a sentence.
 */
int window_flag_open(struct window_flag **ret_flag, const char *path, struct errmsg *err);
struct window_flag *window_flag_free(struct window_flag *flag);
/* Readable when something may have changed. */
int window_flag_descriptor(const struct window_flag *flag);
/*
 * Is it there? In `ret_note`, which is to be empty, a sentence the first time that its folder is
 * missing, and that it is somebody else's.
 */
bool window_flag_is_up(struct window_flag *flag, struct errmsg *ret_note);
