/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/kineto/kineto.h"

#include <errno.h>
#include <string.h>

#include "base/processors.h"
#include "importers/importers.h"
#include "importers/kineto/parser.h"
#include "importers/rows.h"

#define PARALLEL_FROM ((size_t)4 * 1024 * 1024)

int kineto_source_check(
	const struct kineto_source *source, const struct kineto_parser *parser, struct errmsg *err)
{
	uint64_t max_bytes = import_max_bytes(source->options);

	if (kineto_parser_bytes(parser) <= max_bytes)
		return 0;
	return errmsg_set(err, -EFBIG,
		"cannot read %s: its first %u events need more than %.3g GB of memory, which is "
		"the limit here; record fewer steps, or read it on a machine with more",
		source->path, parser->position, (double)max_bytes / 1e9);
}

static void tell_progress(const struct kineto_source *source)
{
	uint64_t size, done = text_input_position(source->input, &size);

	if (source->options->progress)
		source->options->progress(source->options->progress_context, done, size);
}

ssize_t kineto_source_read(
	const struct kineto_source *source, char *room, size_t length, struct errmsg *err)
{
	ssize_t got = text_input_read(source->input, room, length, err);

	tell_progress(source);
	return got;
}

/* What is before the events, and short files, are read by this thread alone. */
static int read_windows(
	struct kineto_parser *parser, const struct kineto_source *source, struct errmsg *err)
{
	unsigned thread_count = source->options->threads ?: usable_processors();
	struct text_window window = {0};
	size_t used = 0, done = 0;
	int r = 0;

	while (r == 0 && !window.is_last) {
		if (thread_count > 1 && done >= PARALLEL_FROM && parser->state == KINETO_EVENTS)
			return kineto_read_parts(parser, source, window.bytes + used,
				window.length - used, thread_count, err);
		r = text_input_move(source->input, used, &window, err);
		tell_progress(source);
		if (r == 0)
			r = kineto_parse(parser, &window, &used);
		if (r == 0)
			r = kineto_source_check(source, parser, err);
		done += used;
	}
	return r;
}

int kineto_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	static const struct trace_read_options defaults = {0};
	_cleanup_text_input_ struct text_input *input = NULL;
	struct kineto_source source = {.path = path, .options = options ?: &defaults};
	struct kineto_parser parser;
	int r;

	r = text_input_open(&input, path, err);
	if (r < 0)
		return r;
	source.input = input;
	r = kineto_parser_init(&parser, path, source.options->keep_arguments);
	if (r == 0)
		r = read_windows(&parser, &source, err);
	if (r == 0) {
		parser.trace->damage.truncated = text_input_damage(input) != TEXT_WHOLE;
		parser.trace->damage.skipped_bytes += text_input_trailing(input);
		r = kineto_parser_finish(&parser, ret_trace);
	}
	if (r == -ENOMEM)
		errmsg_set(err, r, "cannot read %s: out of memory", path);
	else if (r == -ENODATA)
		errmsg_set(err, r,
			"cannot read %s: no event of a Kineto or Chrome trace is in it (JSON with "
			"traceEvents)",
			path);
	kineto_parser_done(&parser);
	return r;
}

static const char *const endings[] = {".json", ".json.gz", ".json.zst", NULL};

const struct importer kineto_importer = {
	.name = "kineto",
	.description = "traces of the PyTorch profiler, and others in Chrome's JSON format",
	.endings = endings,
	.knows = import_is_json,
	.read = kineto_read,
	.rank = kineto_rank,
};
