/* SPDX-License-Identifier: Apache-2.0 */
/* One gzip member from bytes in memory, without name and time, so that equal input gives equal
 * output. */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"

/* Appends the compressed bytes. Returns 0 or -ENOMEM. */
int gzip_add(struct strbuf *out, const void *bytes, size_t length);
