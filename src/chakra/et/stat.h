/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a Chakra trace, in numbers. */
#pragma once

#include "chakra/et/table.h"

#define ET_TYPES 9 /* the schema's, and one for all others */

struct et_collectives {
	int32_t node_type; /* collective, send or receive */
	int64_t comm_type;
	uint32_t group; /* string of the table */
	uint64_t count, bytes, duration_us;
};

struct et_stat {
	struct et_table *table;
	uint64_t types[ET_TYPES];
	uint64_t ctrl_deps, data_deps;
	uint64_t span_us; /* from the first start to the last end; 0: nodes have no times */
	uint64_t host_us, device_us;
	bool has_cycle;              /* then there are none of the next two */
	uint64_t critical_us, depth; /* of the longest chains by time and by nodes */
	ARRAY_OF(struct et_collectives) collectives; /* by bytes, most first */
};

/* Returns 0 or a negative errno with a sentence. */
int et_stat_read(struct et_stat **ret_stat, const char *path, struct errmsg *err);
/* "ALL_REDUCE", "send" … */
const char *et_stat_kind(const struct et_collectives *collectives);
struct et_stat *et_stat_free(struct et_stat *stat);
void et_stat_freep(struct et_stat **stat);
#define _cleanup_et_stat_ _cleanup_(et_stat_freep)
