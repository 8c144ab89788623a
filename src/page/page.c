/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page.h"

#include <errno.h>
#include <string.h>

#include "page/assets.h"

const struct page_asset *page_asset_find(const char *path)
{
	if (strcmp(path, "/") == 0)
		path = "/index.html";
	else if (strcmp(path, PAGE_SPEEDSCOPE) == 0)
		path = PAGE_SPEEDSCOPE "index.html";
	for (const struct page_asset *asset = page_assets; asset->path; asset++) {
		if (strcmp(asset->path, path) == 0)
			return asset;
	}
	return NULL;
}

int page_check(struct errmsg *err)
{
	if (page_assets[0].path)
		return 0;
	return errmsg_set(err, -ENOTSUP,
		"sonde was built without its page, since %s: run 'make' again with Node.js 20.19 "
		"or later and npm, which needs its registry, or install a release, which has the "
		"page; 'sonde report' needs none",
		page_missing);
}

/* JSON has '<' in texts alone, and there it may be escaped: so no text ends the element. */
static void add_data(struct strbuf *out, const char *data, size_t length)
{
	const char *end = data + length;

	while (data < end) {
		const char *next = memchr(data, '<', (size_t)(end - data));

		strbuf_add_bytes(out, data, (size_t)((next ? next : end) - data));
		if (!next)
			return;
		strbuf_add(out, "\\u003c");
		data = next + 1;
	}
}

int page_write_file(struct strbuf *out, const char *data, size_t length, struct errmsg *err)
{
	int r = page_check(err);

	if (r < 0)
		return r;
	strbuf_add_bytes(out, page_single_head.bytes, page_single_head.size);
	strbuf_add(out, "<script type=\"application/json\" id=\"sonde-data\">");
	add_data(out, data, length);
	strbuf_add(out, "</script>");
	strbuf_add_bytes(out, page_single_tail.bytes, page_single_tail.size);
	if (strbuf_status(out) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing the page");
	return 0;
}
