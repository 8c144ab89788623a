/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The captures of a run as one file, on one clock. It opens in Perfetto, and reads as the captures
 * do together: its recordings follow one another, each with its session, file and clock.
 */
#pragma once

#include "capture/writer/writer.h"

struct capture_merge_source {
	const char *path;
	struct capture_clock clock;
};

/* Returns 0, with the bytes of the file, or a negative errno with a sentence; then `output` is as
 * it was. */
int capture_merge(const char *output, const struct capture_merge_source *sources, size_t count,
	const struct capture_writer_options *options, uint64_t *ret_bytes, struct errmsg *err);
