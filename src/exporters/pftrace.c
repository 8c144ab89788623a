/* SPDX-License-Identifier: Apache-2.0 */
/* Imported traces as a capture: a Perfetto trace, which needs no conversion of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "exporters/exporters.h"
#include "model/trace_write.h"

/* What the captures' writer wrote into memory. */
static int read_back(int fd, struct strbuf *out)
{
	off_t length = lseek(fd, 0, SEEK_END);
	char *room = length >= 0 ? strbuf_extend(out, (size_t)length) : NULL;
	size_t done = 0;

	if (length < 0)
		return -errno;
	if (!room)
		return -ENOMEM;
	while (done < (size_t)length) {
		ssize_t got = pread(fd, room + done, (size_t)length - done, (off_t)done);

		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		done += (size_t)got;
	}
	return 0;
}

static int write_traces(const char *path, const struct model *model, struct errmsg *err)
{
	const struct capture_writer_options options = {.size = sizeof(options), .unhurried = true};
	const struct capture_stats stats = {.exit_status = -1, .complete = true};
	struct capture_writer *writer;
	int r = capture_writer_open(&writer, path, &options, err);

	if (r < 0)
		return r;
	r = trace_write(writer, model->traces.items, model->traces.count, err);
	r = r ?: capture_writer_stats(writer, &stats);
	if (r == 0)
		return capture_writer_close(writer, err);
	capture_writer_free(writer);
	return r;
}

static int pftrace_export(const struct model *model, const struct selection *selection _unused_,
	const struct export_options *options _unused_, struct strbuf *out, struct errmsg *err)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	int r;

	if (!model->traces.count)
		return errmsg_set(err, -EINVAL,
			"a recording is a Perfetto trace already: open the capture itself, or copy "
			"it; -f pftrace is for traces of other tools");
	fd = memfd_create("pftrace", MFD_CLOEXEC);
	if (fd < 0)
		return errmsg_set(
			err, -errno, "cannot write the pftrace export: %s", strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = write_traces(path, model, err);
	return r < 0 ? r : export_result(read_back(fd, out), out, "pftrace", err);
}

const struct exporter pftrace_exporter = {
	.name = "pftrace",
	.description = "traces of other tools as a Perfetto trace",
	.extension = ".pftrace",
	.takes_traces = true,
	.export = pftrace_export,
};
