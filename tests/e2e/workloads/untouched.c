/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `untouched`: spins for about 10 ms in a function whose variables it has not touched yet, and as
 * long in one that it calls.
 */
#include "workload.h"

/* Some pages, less than a copied stack: the inner ones are not there. */
#define VARIABLE_BYTES 20000

SPIN_FUNCTION(called)

static NOINLINE void untouched(uint64_t value, unsigned rounds)
{
	char variables[VARIABLE_BYTES];

	if (rounds)
		called(rounds);
	else
		for (unsigned step = 0; step < 10000000; step++)
			__asm__ volatile("imul %0, %0" : "+r"(value));
	__asm__ volatile("" ::"r"(variables) : "memory");
}

int main(void)
{
	untouched(3, 0);
	untouched(3, 10000);
	KEEP_FRAME();
	return 0;
}
