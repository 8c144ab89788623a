/* SPDX-License-Identifier: Apache-2.0 */
/* The library that dlopen_loop loads and unloads. */
#include "workload.h"

SPIN_FUNCTION(plugin_inner_spin)

__attribute__((visibility("default"))) NOINLINE void plugin_spin(unsigned rounds);

void plugin_spin(unsigned rounds)
{
	plugin_inner_spin(rounds);
	KEEP_FRAME();
}
