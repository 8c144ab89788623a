/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the two recordings of a run, the first behind its length: their clocks are put on
 * one, they become one model, its rows are made, and they are merged into one capture, which is
 * read again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "load/load.h"
#include "target.h"

static int make_file(const uint8_t *bytes, size_t length, char *path, size_t size)
{
	int fd = memfd_create("part", MFD_CLOEXEC);

	if (fd < 0 || write_all(fd, bytes, length) < 0)
		abort();
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}

static void check_model(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		if (sample->thread >= model->threads.count)
			abort();
	}
	array_foreach (&model->traces, trace) {
		array_foreach (&(*trace)->events, event) {
			if (event->track >= (*trace)->tracks.count)
				abort();
		}
	}
}

static void load(const char *const *paths, size_t count)
{
	_cleanup_model_ struct model *model = NULL;
	struct errmsg err = {{0}};

	if (load_model(&model, paths, count, NULL, &err) < 0) {
		if (!err.text[0])
			abort();
		return;
	}
	if (model_make_rows(model) == 0)
		check_model(model);
}

/* What is merged reads as the parts do. */
static void merge(const char *const *paths)
{
	static const struct capture_writer_options options = {.size = sizeof(options)};
	char name[] = "/tmp/fuzz-merge.XXXXXX";
	const char *const merged[] = {name};
	struct errmsg err = {{0}};
	int fd = mkstemp(name);
	uint64_t bytes;
	size_t count;

	if (fd < 0)
		abort();
	close(fd);
	if (load_merge(paths, 2, name, &options, &count, &bytes, &err) == 0)
		load(merged, 1);
	else if (!err.text[0])
		abort();
	unlink(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint32_t first = 0;
	char paths[2][64];
	const char *const names[] = {paths[0], paths[1]};
	int files[2];

	if (length < sizeof(first))
		return 0;
	memcpy(&first, bytes, sizeof(first));
	bytes += sizeof(first);
	length -= sizeof(first);
	first = (uint32_t)MIN((size_t)first, length);
	files[0] = make_file(bytes, first, paths[0], sizeof(paths[0]));
	files[1] = make_file(bytes + first, length - first, paths[1], sizeof(paths[1]));
	load(names, 2);
	merge(names);
	close(files[0]);
	close(files[1]);
	return 0;
}
