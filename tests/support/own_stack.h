/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that know who called them, for unwinding a stack of this process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OWN_STACK_MAX 64

/* Return addresses that each function on the way looked up itself, outermost first. */
struct own_stack {
	uint64_t callers[OWN_STACK_MAX];
	size_t count;
};

extern struct own_stack own_stack;

typedef void own_stack_function(void);

/* Runs `inner` at the end of calls of many shapes. */
int own_stack_plain(own_stack_function *inner);
/* From libc, whose frames are in between. */
int own_stack_called_back(own_stack_function *inner);
/* In a signal handler that interrupted a function which calls nothing and saved nothing. */
int own_stack_interrupted(own_stack_function *inner);
