/* SPDX-License-Identifier: Apache-2.0 */
/* Three functions under one caller whose self times are 5 : 3 : 2. One thread. */
#include "workload.h"

SPIN_FUNCTION(spin_half)
SPIN_FUNCTION(spin_three_tenths)
SPIN_FUNCTION(spin_fifth)

static NOINLINE void one_round(void)
{
	spin_half(500);
	spin_three_tenths(300);
	spin_fifth(200);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);

	ready();
	while (cpu_s() < end)
		one_round();
	return 0;
}
