/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splitting a capture: each window to a capture of its own, which can be read by itself. It is read
 * again when it is whole, since names and lines of its code come at its end.
 */
#pragma once

#include "capture/writer/writer.h"

/* "run.pftrace", 3 → "run.w3.pftrace", malloc'ed; NULL: no memory. */
char *capture_split_path(const char *path, uint32_t window);

/*
 * Writes each window of the capture at `path` to capture_split_path(). *ret_count: how many; 0 when
 * it has none. On an error, which comes with a sentence, no file of those is left, and the capture
 * is as it was.
 */
int capture_split(const char *path, const struct capture_writer_options *options,
	uint32_t *ret_count, struct errmsg *err);
