/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces as a capture, which is a Perfetto trace: those that were imported; of a recording its
 * ranges, steps, launches and device work, without the samples.
 */
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

/* The same traces give the same bytes. */
static uint32_t sequence_of(struct trace *const *traces, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++)
		hash = hash_bytes(
			traces[i]->path, strlen(traces[i]->path), hash ^ traces[i]->events.count);
	return (uint32_t)(hash & 0xfffffff) | 1;
}

static int write_traces(
	const char *path, struct trace *const *traces, size_t count, struct errmsg *err)
{
	const struct capture_writer_options options = {
		.size = sizeof(options), .unhurried = true, .sequence = sequence_of(traces, count)};
	const struct capture_stats stats = {.exit_status = -1, .complete = true};
	struct capture_writer *writer;
	int r = capture_writer_open(&writer, path, &options, err);

	if (r < 0)
		return r;
	r = trace_write(writer, traces, count, err);
	r = r ?: capture_writer_stats(writer, &stats);
	if (r == 0)
		return capture_writer_close(writer, err);
	capture_writer_free(writer);
	return r;
}

static int write_through_memory(
	struct trace *const *traces, size_t count, struct strbuf *out, struct errmsg *err)
{
	_cleanup_close_ int fd = memfd_create("pftrace", MFD_CLOEXEC);
	char path[64];
	int r;

	if (fd < 0)
		return errmsg_set(
			err, -errno, "cannot write the pftrace export: %s", strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = write_traces(path, traces, count, err);
	return r < 0 ? r : export_result(read_back(fd, out), out, "pftrace", err);
}

static int pftrace_export(const struct model *model, const struct selection *selection _unused_,
	const struct export_options *options _unused_, struct strbuf *out, struct errmsg *err)
{
	return write_through_memory(model->traces.items, model->traces.count, out, err);
}

const struct exporter pftrace_exporter = {
	.name = "pftrace",
	.description =
		"traces of other tools as a Perfetto trace; recordings without their samples",
	.extension = ".pftrace",
	.takes_traces = true,
	.needs_rows = true,
	.shows = SELECTION_TRACES,
	.is_binary = true,
	.export = pftrace_export,
};
