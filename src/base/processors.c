/* SPDX-License-Identifier: Apache-2.0 */
#include "base/processors.h"

#include <sched.h>
#include <unistd.h>

#include "base/macros.h"

unsigned usable_processors(void)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		return (unsigned)MAX(CPU_COUNT(&allowed), 1);
	/* More of them than the set has room for. */
	return (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}
