/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees memory of many sizes, and does nothing with it. One thread. */
#include "workload.h"

#define BLOCKS 4096

static NOINLINE void churn(void **blocks, unsigned *random)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		*random = *random * 1664525U + 1013904223U;
		free(blocks[*random >> 20]);
		blocks[*random >> 20] = malloc(1100 + (*random >> 8) % 8192);
	}
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);
	static void *blocks[BLOCKS];
	unsigned random = 1;

	ready();
	while (cpu_s() < end)
		churn(blocks, &random);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return 0;
}
