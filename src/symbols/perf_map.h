/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT code from /tmp/perf-PID.map, which node, Java, .NET, Julia and CPython write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

struct perf_map;

/*
 * Opens /proc/PID/root/tmp/perf-NSPID.map, falling back to /tmp/perf-PID.map; -ENOENT when there is
 * none. Lines that are not "HEXSTART HEXSIZE NAME" are skipped and counted. A file not owned by the
 * process's user or root is refused.
 */
int perf_map_open(struct perf_map **ret_map, uint32_t pid, struct errmsg *err);
/* Opens the file at `path`, which `owner` or root must own; symbolic links are not followed. */
int perf_map_open_path(
	struct perf_map **ret_map, const char *path, uint32_t owner, struct errmsg *err);
/*
 * Reads what was appended since; a file that was replaced or cut short is read anew. Returns 0 or a
 * negative errno, -EFBIG beyond 1 GiB. What was read stays when the file is gone.
 */
int perf_map_refresh(struct perf_map *map);
struct perf_map *perf_map_free(struct perf_map *map);

/*
 * The name that covers `address`; where entries overlap the last written wins, since JITs reuse the
 * room of dead code. *ret_name is valid until the next refresh. Bytes of names are as in the file.
 */
bool perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name);
/* Lines read that were not entries. */
size_t perf_map_skipped(const struct perf_map *map);

/*
 * A map without a file, fed with text: whole lines and the beginning of one at the end, which the
 * next call completes. What the file readers above are made of. Returns 0, -ENOMEM, or -EFBIG.
 */
struct perf_map *perf_map_new(void);
int perf_map_add_text(struct perf_map *map, const char *text, size_t length);
