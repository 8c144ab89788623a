/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/source.h"

const struct source *const source_table[] = {
	&cpu_source,
	&process_source,
	&wait_source,
	&launch_source,
	&target_source,
	&energy_source,
	NULL,
};

const struct source *const stopped_source_table[] = {
	&stopped_source,
	NULL,
};
