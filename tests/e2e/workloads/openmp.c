/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP with nothing for most threads to do: one works, the others spin at the loop's barrier. */
#include "workload.h"

SPIN_FUNCTION(work)

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);

	ready();
	while (cpu_s() < end) {
#pragma omp parallel for schedule(static, 1) num_threads(2)
		for (int i = 0; i < 2; i++)
			work(i == 0 ? 5000 : 1);
	}
	return 0;
}
