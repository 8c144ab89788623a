/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/kineto.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "importers/kineto_parser.h"

static uint64_t default_max_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page_bytes <= 0)
		return UINT64_MAX;
	return (uint64_t)pages * (uint64_t)page_bytes / 4 * 3;
}

static int check_size(const struct kineto_parser *parser, const char *path, uint64_t max_bytes,
	struct errmsg *err)
{
	if (kineto_parser_bytes(parser) <= max_bytes)
		return 0;
	return errmsg_set(err, -EFBIG,
		"cannot read %s: its first %u events need more than %.3g GB of memory, which is "
		"the "
		"limit here; record fewer steps, or read it on a machine with more",
		path, parser->position, (double)max_bytes / 1e9);
}

static int read_windows(struct kineto_parser *parser, struct text_input *input, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	uint64_t max_bytes = options->max_bytes ? options->max_bytes : default_max_bytes();
	struct text_window window = {0};
	size_t used = 0;

	while (!window.is_last) {
		int r = text_input_move(input, used, &window, err);

		if (r < 0)
			return r;
		if (kineto_parse(parser, &window, &used) < 0)
			return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
		r = check_size(parser, path, max_bytes, err);
		if (r < 0)
			return r;
		if (options->progress) {
			uint64_t size, done = text_input_position(input, &size);

			options->progress(options->progress_context, done, size);
		}
	}
	return 0;
}

int kineto_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	static const struct trace_read_options defaults = {0};
	_cleanup_text_input_ struct text_input *input = NULL;
	struct kineto_parser parser;
	int r;

	if (!options)
		options = &defaults;
	r = text_input_open(&input, path, err);
	if (r < 0)
		return r;
	r = kineto_parser_init(&parser, path, options->keep_arguments);
	if (r < 0)
		errmsg_set(err, r, "cannot read %s: out of memory", path);
	else
		r = read_windows(&parser, input, path, options, err);
	if (r == 0) {
		parser.trace->damage.truncated = text_input_damage(input) != TEXT_WHOLE;
		parser.trace->damage.skipped_bytes += text_input_trailing(input);
		r = kineto_parser_finish(&parser, ret_trace);
		if (r == -ENODATA)
			errmsg_set(err, r,
				"cannot read %s: no event of a Kineto or Chrome trace is in it "
				"(JSON "
				"with traceEvents)",
				path);
		else if (r < 0)
			errmsg_set(err, r, "cannot read %s: out of memory", path);
	}
	kineto_parser_done(&parser);
	return r;
}
