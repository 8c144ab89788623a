/* SPDX-License-Identifier: Apache-2.0 */
/* `deep SECONDS [DEPTH]`: spins under DEPTH (600) nested calls of descend(). */
#include "workload.h"

SPIN_FUNCTION(bottom_spin)

static NOINLINE void bottom(double end)
{
	while (cpu_s() < end)
		bottom_spin(100);
	KEEP_FRAME();
}

static NOINLINE void descend(unsigned left, double end)
{
	if (left > 1)
		descend(left - 1, end);
	else
		bottom(end);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 600;

	ready();
	descend(depth, end);
	return 0;
}
