/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/import_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/warn.h"
#include "importers/importer.h"
#include "load/load.h"
#include "model/trace_write.h"

static bool ends_in(const struct strbuf *path, const char *end)
{
	size_t length = strlen(end);

	return path->length > length &&
	       memcmp(path->data + path->length - length, end, length) == 0;
}

void import_base_name(struct strbuf *path, const char *input)
{
	static const char *const endings[] = {".gz", ".zst", ".json", ".log", ".txt", ".pftrace"};

	strbuf_add(path, input);
	while (path->length > 1 && ends_in(path, "/"))
		path->length--;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		if (ends_in(path, endings[i]))
			path->length -= strlen(endings[i]);
	}
}

int import_default_output(struct strbuf *path, const char *input)
{
	import_base_name(path, input);
	strbuf_add(path, ".pftrace");
	return strbuf_status(path);
}

int import_refuse_same_file(const char *input, const char *output, struct errmsg *err)
{
	struct stat in, out;

	if (stat(input, &in) < 0 || stat(output, &out) < 0 || in.st_dev != out.st_dev ||
		in.st_ino != out.st_ino)
		return 0;
	return errmsg_set(err, -EINVAL, "%s would overwrite itself: name a file with -o", input);
}

int import_close(struct capture_writer *writer, int result, struct errmsg *err)
{
	if (result == 0)
		return capture_writer_close(writer, err);
	capture_writer_free(writer);
	return result;
}

/* ---- the account ---- */

static void add_note(
	struct import_result *result, const char *path, uint64_t count, const char *what)
{
	if (count)
		import_note(result, "%s: %llu %s", path, (unsigned long long)count, what);
}

/* Of what is left out, or was not as it should be: kept in the capture. */
static void add_notes(struct import_result *result, const struct trace *trace)
{
	const struct trace_damage *damage = &trace->damage;

	add_note(result, trace->path, damage->truncated,
		"cut off: the file ends too early, and only the part before is here");
	add_note(result, trace->path, damage->skipped_events,
		"events could not be read, and are left out");
	add_note(result, trace->path, damage->mended_events,
		"events were repaired: characters or commas that JSON does not allow");
	add_note(result, trace->path, damage->repaired_times,
		"durations are negative or too large, and count as 0");
	add_note(result, trace->path, damage->unended_events,
		"events have no end, and so no duration");
	array_foreach (&trace->notes, note)
		import_note(result, "%s: %s", trace->path, trace_text(trace, *note));
}

static int write_account(
	struct capture_writer *writer, const struct model *model, struct errmsg *err)
{
	_cleanup_free_ struct import_result *result = calloc(1, sizeof(*result));

	if (!result)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing the capture");
	array_foreach (&model->traces, trace)
		add_notes(result, *trace);
	return import_write_account(writer, result, err);
}

static void print_result(const struct model *model, const char *output, uint64_t bytes)
{
	unsigned long long slices = 0, moments = 0, tracks = 0;

	for (size_t i = 0; i < model->traces.count; i++) {
		const struct trace *trace = model->traces.items[i];

		tracks += trace->tracks.count;
		array_foreach (&trace->events, event) {
			slices += event->duration_ns != TRACE_NO_DURATION;
			moments += event->duration_ns == TRACE_NO_DURATION;
		}
	}
	print_plain("sonde: %llu slices and %llu moments of %llu threads and streams in %s", slices,
		moments, tracks, output);
	print_plain(", %llu bytes\n", (unsigned long long)bytes);
}

/* ---- captures ---- */

static int write_capture(const struct model *model, const char *output,
	const struct import_options *how, uint64_t *ret_bytes, struct errmsg *err)
{
	struct capture_writer_options options = {
		.size = sizeof(options),
		.uncompressed = how->uncompressed,
		.row_arguments = how->arguments,
		.unhurried = true,
	};
	struct capture_writer *writer = NULL;
	int r = capture_writer_open(&writer, output, &options, err);

	if (r < 0)
		return r;
	r = trace_write(writer, model->traces.items, model->traces.count, err);
	if (r == 0)
		r = write_account(writer, model, err);
	r = r ?: capture_writer_flush(writer, err);
	*ret_bytes = capture_writer_bytes(writer);
	return import_close(writer, r, err);
}

static int import_into(char *const *paths, size_t count, const char *output,
	const struct import_options *options, struct errmsg *err)
{
	static const struct load_options load = {.keep_arguments = true, .rows_only = true};
	_cleanup_model_ struct model *model = NULL;
	uint64_t bytes = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = import_refuse_same_file(paths[i], output, err);
	r = r ?: load_model(&model, (const char *const *)paths, count, &load, err);
	r = r ?: write_capture(model, output, options, &bytes, err);
	if (r == 0)
		print_result(model, output, bytes);
	return r;
}

static int import_beside(const char *path, const struct import_options *options, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf output = {0};
	char *const paths[] = {(char *)path};

	if (import_default_output(&output, path) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	return import_into(paths, 1, strbuf_cstr(&output), options, err);
}

int import_traces(
	char *const *paths, size_t count, const struct import_options *options, struct errmsg *err)
{
	int r = 0;

	if (options->output)
		return import_into(paths, count, options->output, options, err);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = import_beside(paths[i], options, err);
	return r;
}
