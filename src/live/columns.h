/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of many numbers as columns, in the form of x-frame of schema/api.json without its
 * header: tables, then the texts that they name. schema/api.py makes the structs of rows
 * (live_rows.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strbuf.h"

struct live_table {
	size_t row_bytes;
	struct {
		size_t offset, bytes; /* bytes 0 ends the list */
	} columns[8];
};

#include "live_rows.h"

/* Of a text that there is not. */
#define LIVE_NO_TEXT UINT32_MAX

/* `out` has a multiple of 8 bytes. */
void live_write_rows(
	struct strbuf *out, const struct live_table *table, const void *rows, size_t count);
/* Its place among the texts; that of "" is LIVE_NO_TEXT. Long ones are cut. Returns 0 or -ENOMEM.
 */
int live_place_text(struct intern *texts, const char *text, uint32_t *ret_place);
/* The end of the message. */
void live_write_texts(struct strbuf *out, const struct intern *texts);
