/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output_file.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"

static const char *shown_path(const struct output_file *file)
{
	return strcmp(file->path, "-") == 0 ? "standard output" : file->path;
}

static int cannot_write(const struct output_file *file, int error, struct errmsg *err)
{
	return errmsg_set(err, error, "cannot write %s: %s; %s", shown_path(file), strerror(-error),
		output_remedy(error));
}

int output_file_open(struct output_file *file, const char *path, struct errmsg *err)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK};
	struct errmsg reason = {""};
	int r;

	*file = (struct output_file){.place = OUTPUT_PLACE_NONE, .path = strdup(path)};
	if (!file->path)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing %s", path);
	r = output_place_open(&file->place, path, &how, &reason);
	if (r < 0)
		return errmsg_set(err, r, "cannot write %s: %s; %s", shown_path(file), reason.text,
			output_remedy(r));
	return 0;
}

void output_file_flush(struct output_file *file)
{
	int r = strbuf_status(&file->out);

	if (r == 0 && file->error == 0)
		r = write_all(file->place.fd, strbuf_cstr(&file->out), file->out.length);
	if (file->error == 0)
		file->error = r;
	file->bytes += file->out.length;
	strbuf_clear(&file->out);
}

int output_file_close(struct output_file *file, struct errmsg *err)
{
	int r;

	output_file_flush(file);
	r = file->error ?: output_place_close(&file->place);
	return r < 0 ? cannot_write(file, r, err) : 0;
}

void output_file_done(struct output_file *file)
{
	if (file->path)
		output_place_done(&file->place);
	free(file->path);
	strbuf_done(&file->out);
	*file = (struct output_file){0};
}
