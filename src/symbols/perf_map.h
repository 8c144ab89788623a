/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT code from /tmp/perf-PID.map, which node, Java, .NET, Julia and CPython write. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

struct perf_map;

/*
 * Opens /proc/PID/root/tmp/perf-NSPID.map, falling back to /tmp/perf-PID.map; -ENOENT when there is none. Lines that
 * are not "HEXSTART HEXSIZE NAME" are skipped and counted. A file not owned by the process's user or root is refused.
 */
int perf_map_open(struct perf_map **ret_map, uint32_t pid, struct errmsg *err);
/* Reads what was appended since. Returns 0 or a negative errno. */
int perf_map_refresh(struct perf_map *map);
struct perf_map *perf_map_free(struct perf_map *map);
/* Later entries win over earlier ones at the same address. */
bool perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name);
