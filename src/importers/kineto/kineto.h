/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading Kineto's traces, and others in Chrome's JSON format, into rows. Files may be compressed,
 * larger than memory, cut off and damaged. These are the functions of kineto_importer.
 */
#pragma once

#include "importers/importer.h"

int kineto_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err);

/* The rank that the trace says it is of ("distributedInfo"), without reading its events. */
bool kineto_rank(const char *path, uint32_t *ret_rank);
