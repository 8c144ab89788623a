/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of source files, as far as they are here to read. The names come from captures, which may
 * name anything: only regular files are read, never through a link, at most SOURCE_TEXT_LARGEST
 * bytes of each; as root only what everyone may read.
 */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"

#define SOURCE_TEXT_LARGEST ((size_t)8 << 20)

struct source_text;

/* `recorded_ns`: CLOCK_REALTIME; files that were changed later are not read; 0: all are. */
int source_text_new(struct source_text **ret_source, uint64_t recorded_ns);
struct source_text *source_text_free(struct source_text *source);
void source_text_freep(struct source_text **source);
#define _cleanup_source_text_ _cleanup_(source_text_freep)

/*
 * Appends line `number`, from 1, without the space around it, tabs as spaces: the bytes are the
 * file's, and may be anything but a newline and NUL. Appends nothing where there is no such line.
 * Returns 0, or -ENOMEM.
 */
int source_text_line(
	struct source_text *source, const char *path, uint32_t number, struct strbuf *out);

/* The whole of a file under the same rules but the time. Returns 0 or a negative errno. */
int source_text_read(const char *path, struct strbuf *ret_text);
