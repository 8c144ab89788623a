/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture in the format of another system, made by a process of its own: what it takes is given
 * back at once, and a capture that cannot be read ends nothing else.
 */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"

struct converted {
	int fd; /* of the bytes, to read from its begin */
	uint64_t length;
	uint64_t begin_realtime_ns, duration_ns;
	char title[128]; /* the recorded command, or "" */
	char host[128];
};

#define CONVERTED_NONE ((struct converted){.fd = -1})

/*
 * `capture` reads a capture from its begin; `format` is an exporter's name (exporters/exporter.h).
 * Returns 0 or a negative errno with a sentence.
 */
int convert_capture(
	int capture, const char *format, struct converted *ret_converted, struct errmsg *err);
void converted_done(struct converted *converted);
