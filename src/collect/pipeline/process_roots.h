/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root directories of processes in containers and chroots, kept open: debug files are found in
 * them also after the process ended.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"

/* Zero-initialise. */
struct process_roots {
	ARRAY_OF(struct process_root *) roots;
};

/*
 * What to put before an absolute path of the process: "" when it lives in our own mount namespace
 * and root, is gone or may not be looked at. The text is valid until process_roots_done().
 */
const char *process_roots_prefix(struct process_roots *roots, uint32_t pid);
void process_roots_done(struct process_roots *roots);
