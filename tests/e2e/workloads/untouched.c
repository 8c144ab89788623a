/* SPDX-License-Identifier: Apache-2.0 */
/* `untouched`: spins for about 10 ms in a function whose variables it has not touched yet. */
#include "workload.h"

/* More than a page and less than a copied stack: the page of the stack pointer is not there. */
#define VARIABLE_BYTES 20000

static NOINLINE void above_untouched(uint64_t value)
{
	char variables[VARIABLE_BYTES];

	for (unsigned step = 0; step < 10000000; step++)
		__asm__ volatile("imul %0, %0" : "+r"(value));
	__asm__ volatile("" ::"r"(variables) : "memory");
}

int main(void)
{
	above_untouched(3);
	KEEP_FRAME();
	return 0;
}
