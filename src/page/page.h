/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that web/ is built into, inside the program: its files for a server, and one file that
 * works by itself. Where npm was missing when sonde was built, there is none.
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

struct page_asset {
	const char *path; /* "/assets/page.js" */
	const char *type; /* for Content-Type */
	const char *etag; /* of the content, without quotes */
	const unsigned char *gzip;
	size_t gzip_size, size;
};

/* Where speedscope's released app is: a page of its own. */
#define PAGE_SPEEDSCOPE "/speedscope/"

/* NULL: there is no such file. "/" is "/index.html", of speedscope's folder likewise. */
const struct page_asset *page_asset_find(const char *path);

/* Returns 0, or -ENOTSUP with a sentence: sonde was built without the page. */
int page_check(struct errmsg *err);

/*
 * Appends the page as one HTML file that needs no server. `data` is JSON, which the page finds
 * in place of a server's answers (web/src/source.ts says what). Returns 0, -ENOTSUP as above, or
 * -ENOMEM, with a sentence.
 */
int page_write_file(struct strbuf *out, const char *data, size_t length, struct errmsg *err);
