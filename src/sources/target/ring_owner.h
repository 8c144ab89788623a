/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a ring file is, for processes in PID namespaces below ours. */
#pragma once

#include <stdint.h>

/*
 * The process in our PID namespace that maps the file `fd` and says `inner_pid` of itself, in the
 * namespace of that inode (0: not known). `inner_pid` again where none is found: it has ended, or
 * /proc does not show it. Looks through /proc where the namespace is not ours.
 */
uint32_t ring_owner_find(int fd, uint32_t inner_pid, uint64_t pid_namespace);
