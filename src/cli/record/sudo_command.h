/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind sudo a command may be another program than in the shell that sudo was typed in: sudo takes
 * PATH from its own settings, and so python3 is the system's and not that of a virtual environment.
 */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"

/*
 * True, with a sentence, where the user's PATH leads to another program of this name, or to one
 * where ours leads to none. What the user's PATH was is in the environment that sudo was started
 * with, while sudo is the parent; where it cannot be read, nothing is said.
 */
bool sudo_command_differs(const char *name, struct errmsg *ret_sentence);
