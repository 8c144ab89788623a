/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/output_place.h"
#include "base/warn.h"
#include "cli/command.h"
#include "model/format.h"

bool output_is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

static int write_path(const char *path, const struct output_how *how, const void *bytes,
	size_t length, struct errmsg *err)
{
	struct errmsg reason = {""};
	int r = output_place_write(path, how, bytes, length, &reason);

	if (r < 0)
		errmsg_set(err, r, "cannot write %s: %s; %s",
			output_is_standard(path) ? "to standard output" : path, reason.text,
			output_remedy(r));
	return r;
}

int output_write(const char *path, const void *bytes, size_t length, struct errmsg *err)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK};
	_cleanup_strbuf_ struct strbuf size = {0};
	int r;

	fflush(stdout);
	r = write_path(path, &how, bytes, length, err);
	if (r < 0 || output_is_standard(path))
		return r;
	format_bytes(&size, length);
	warn("wrote %s (%s)", path, strbuf_cstr(&size));
	return 0;
}

int output_write_folder(const char *folder, const struct export_files *files, struct errmsg *err)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK, .make_folders = true};
	_cleanup_strbuf_ struct strbuf path = {0}, size = {0};
	uint64_t bytes = 0;

	if (output_is_standard(folder))
		return errmsg_set(err, -EINVAL,
			"this format is a folder of files: name one with -o, not standard output");
	array_foreach (&files->items, file) {
		int r;

		strbuf_clear(&path);
		strbuf_addf(&path, "%s/%s", folder, file->name);
		r = strbuf_status(&path);
		r = r ?: write_path(path.data, &how, file->content.data, file->content.length, err);
		if (r < 0)
			return r;
		bytes += file->content.length;
	}
	format_bytes(&size, bytes);
	warn("wrote %zu files in %s (%s)", files->items.count, folder, strbuf_cstr(&size));
	return 0;
}

int output_result(const struct result *result, enum report_form form)
{
	const struct terminal terminal = terminal_of(stdout);
	_cleanup_strbuf_ struct strbuf out = {0};
	int r = report_render(result, form, &terminal, &out);

	if (r == 0)
		fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return r;
}

int output_schema(int (*write)(struct strbuf *out))
{
	_cleanup_strbuf_ struct strbuf schema = {0};
	struct errmsg err;
	int r = write(&schema);

	if (r < 0) {
		errmsg_set(&err, r, "memory ran out while writing the schema");
		return fail(&err);
	}
	fwrite(strbuf_cstr(&schema), 1, schema.length, stdout);
	return EXIT_OK;
}
