/* SPDX-License-Identifier: Apache-2.0 */
#include "load/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "importers/rows.h"

int load_log(const char *path, const struct importer *importer, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0}; /* not mapped: a log may be rotated meanwhile */
	struct import_input input = {.path = path};
	struct stat status;
	bool truncated;
	int r = import_read_file(path, NULL, &text, &truncated, err);

	if (r < 0)
		return r;
	if (stat(path, &status) == 0)
		input.modified_s = status.st_mtim.tv_sec;
	input.bytes = strbuf_cstr(&text);
	input.length = text.length;
	r = importer->import(&input, writer, ret_result, err);
	if (r == 0 && truncated)
		import_note(ret_result, "the compressed file is cut off: the part before is here");
	return r < 0 ? r : import_write_account(writer, ret_result, err);
}

static int write_capture(
	const char *capture, const char *path, const struct importer *importer, struct errmsg *err)
{
	const struct capture_writer_options options = {
		.size = sizeof(options), .uncompressed = true};
	_cleanup_free_ struct import_result *result = calloc(1, sizeof(*result));
	struct capture_writer *writer = NULL;
	int r = result ? capture_writer_open(&writer, capture, &options, err) : -ENOMEM;

	if (r == 0)
		r = load_log(path, importer, writer, result, err);
	if (r == 0)
		return capture_writer_close(writer, err);
	capture_writer_free(writer);
	return r;
}

/* By way of a capture in memory: what it says of windows and losses is then that of any other. */
int load_log_model(struct model **ret_model, const char *path, const struct importer *importer,
	const struct window_choice *choice, struct errmsg *err)
{
	_cleanup_close_ int fd = memfd_create("log", MFD_CLOEXEC);
	char capture[64];
	int r;

	if (fd < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	snprintf(capture, sizeof(capture), "/proc/self/fd/%d", fd);
	r = write_capture(capture, path, importer, err);
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while reading %s", path);
	return r < 0 ? r : model_load_windows(ret_model, capture, choice, NULL, NULL, err);
}
