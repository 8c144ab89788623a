/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define COUNTING_THREADS 3

/* What the program and its test share: it is mapped from the file descriptor that the program's
 * argument numbers, and zero when it starts. */
struct counting_shared {
	_Atomic uint64_t counts[COUNTING_THREADS]; /* each goes up while its thread runs */
	_Atomic uint64_t signals;                  /* SIGRTMIN that were handled */
};
