/* SPDX-License-Identifier: Apache-2.0 */
/* Which executables and which Python code are the recorded program's own, by who ran them. */
#pragma once

#include "model/model.h"

struct programs {
	bool *modules; /* of the model: executables under a system's folders, run by the program */
	bool has_command_text; /* a Python process ran `python -c TEXT`: TEXT is the user's */
};

/*
 * A process runs the recorded program when nothing but shells and launchers (env, mpirun) is
 * between it and what sonde was asked to record. Of the whole machine no process does. Returns 0 or
 * -ENOMEM.
 */
int programs_init(struct programs *programs, const struct model *model);
void programs_done(struct programs *programs);
#define _cleanup_programs_ _cleanup_(programs_done)
