/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT code from /tmp/perf-PID.map, which node, Java, .NET, Julia and CPython write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/process_view.h"

struct perf_map;

/*
 * Opens the process's /tmp/perf-PID.map, with the PID that the process knows, or, where there is
 * none, ours with the PID that we know; -ENOENT when there is neither. Lines that are not
 * "HEXSTART HEXSIZE NAME" are skipped. A file that the view's user does not own or may
 * not read is refused, and so is a link. The view's descriptors outlive the map.
 */
int perf_map_open(struct perf_map **ret_map, const struct process_view *view, uint32_t pid,
	struct errmsg *err);
/* The same for a file at another path of the view. */
int perf_map_open_path(struct perf_map **ret_map, const struct process_view *view, const char *path,
	struct errmsg *err);
/*
 * Reads at most `max_bytes` of what was appended since; a file that was replaced or cut short is
 * read anew. Opening reads nothing. Returns 1 when there is more, 0 at the end, or a negative
 * errno, -EFBIG beyond 128 MiB or 4 million names. What was read stays when the file is gone.
 */
int perf_map_read(struct perf_map *map, size_t max_bytes);
/* How much memory the names take, about. */
size_t perf_map_memory(const struct perf_map *map);
struct perf_map *perf_map_free(struct perf_map *map);

/*
 * The name that covers `address`; where entries overlap the last written wins, since JITs reuse the
 * room of dead code. *ret_name is valid until the next read. Bytes of names are as in the file.
 */
bool perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name);

/*
 * A map without a file, fed with text: whole lines and the beginning of one at the end, which the
 * next call completes. What the file readers above are made of. Returns 0, -ENOMEM, or -EFBIG.
 */
struct perf_map *perf_map_new(void);
int perf_map_add_text(struct perf_map *map, const char *text, size_t length);
