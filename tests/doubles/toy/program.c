/* SPDX-License-Identifier: Apache-2.0 */
/* toy-program LAUNCHES: runs so many kernels of 100 us, from one line. */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

static __attribute__((noinline)) void train(int launches)
{
	for (int i = 0; i < launches; i++)
		toy_run("toy_scale", 100000);
}

int main(int argc, char **argv)
{
	train(argc > 1 ? atoi(argv[1]) : 1);
	puts("done");
	return 0;
}
