/* SPDX-License-Identifier: Apache-2.0 */
/* What web/build.py writes into page_assets.c: for page.c. */
#pragma once

#include "page/page.h"

struct page_part {
	const unsigned char *bytes;
	size_t size;
};

extern const struct page_asset page_assets[]; /* ended by a path that is NULL; empty: not built */
extern const char page_missing[];             /* why it was not */
/* The file that works by itself, before and after its data. */
extern const struct page_part page_single_head, page_single_tail;
