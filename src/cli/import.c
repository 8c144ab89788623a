/* SPDX-License-Identifier: Apache-2.0 */
/* sonde import: another tool's trace or log as a capture. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "importers/importer.h"

static struct {
	const char *format, *output;
} arguments;

/* "server.log" becomes "server.pftrace". */
static int default_output(struct strbuf *path, const char *input)
{
	const char *slash = strrchr(input, '/');
	const char *dot = strrchr(slash ? slash + 1 : input, '.');
	size_t length =
		dot && dot > (slash ? slash + 1 : input) ? (size_t)(dot - input) : strlen(input);

	strbuf_add_bytes(path, input, length);
	strbuf_add(path, ".pftrace");
	return strbuf_status(path);
}

/* Not over what is being read. */
static int refuse_same_file(const char *input, const char *output, struct errmsg *err)
{
	struct stat in, out;

	if (stat(input, &in) < 0 || stat(output, &out) < 0 || in.st_dev != out.st_dev ||
		in.st_ino != out.st_ino)
		return 0;
	return errmsg_set(
		err, -EINVAL, "%s would be written over itself: name a file with -o", input);
}

/* How complete it is: what `sonde report` says of it. */
static int write_account(
	struct capture_writer *writer, const struct import_result *result, struct errmsg *err)
{
	const char *notes[IMPORT_NOTES_MAX];
	struct capture_stats stats = {
		.end_time_ns = result->end_ns,
		.ranges = {.ranges = result->ranges, .marks = result->marks},
		.notes = notes,
		.note_count = result->note_count,
		.exit_status = -1,
		.complete = true,
	};

	for (uint32_t i = 0; i < result->note_count; i++)
		notes[i] = result->notes[i].text;
	if (capture_writer_stats(writer, &stats) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing the capture");
	return 0;
}

static int import_file(const struct importer *importer, const struct import_input *input,
	const char *output, struct import_result *result, struct errmsg *err)
{
	struct capture_writer_options options = {.size = sizeof(options)};
	struct capture_writer *writer = NULL;
	int r = capture_writer_open(&writer, output, &options, err);

	r = r ?: importer->import(input, writer, result, err);
	r = r ?: write_account(writer, result, err);
	if (r == 0)
		return capture_writer_close(writer, err);
	if (writer) {
		capture_writer_free(writer);
		unlink(output); /* there is nothing in it */
	}
	return r;
}

static void say(const char *output, const struct import_result *result)
{
	fprintf(stderr, "sonde: %llu ranges and %llu marks in %s\n",
		(unsigned long long)result->ranges, (unsigned long long)result->marks, output);
	for (uint32_t i = 0; i < result->note_count; i++)
		fprintf(stderr, "  note    %s\n", result->notes[i].text);
	fprintf(stderr, "next: sonde report --by range %s\n", output);
}

static int run_import(int count _unused_, char **positional)
{
	_cleanup_(file_mapping_done) struct file_mapping mapping = {0};
	_cleanup_free_ struct import_result *result = calloc(1, sizeof(*result));
	_cleanup_strbuf_ struct strbuf path = {0};
	struct import_input input = {.path = positional[0]};
	struct errmsg err = {{0}};
	struct stat status;
	int r = result ? 0 : -ENOMEM;

	if (!arguments.format) {
		errmsg_set(&err, 0, "no format was given: --format vllm-log is the one there is");
		return fail_usage(&err);
	}
	if (arguments.output)
		strbuf_add(&path, arguments.output);
	else
		default_output(&path, input.path);
	r = r ?: strbuf_status(&path);
	r = r ?: refuse_same_file(input.path, strbuf_cstr(&path), &err);
	r = r ?: file_mapping_open(&mapping, input.path, &err);
	if (r == 0 && stat(input.path, &status) == 0)
		input.modified_s = status.st_mtim.tv_sec;
	input.bytes = (const char *)mapping.bytes;
	input.length = mapping.length;
	r = r
		    ?: import_file(importer_find(arguments.format), &input, strbuf_cstr(&path),
			       result, &err);
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "importing failed: %s", strerror(-r));
	if (r < 0)
		return fail(&err);
	say(strbuf_cstr(&path), result);
	return EXIT_OK;
}

static const char *const formats[] = {"vllm-log", NULL};

static const struct option import_options[] = {
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "What the file is: vllm-log, the log of a vLLM server.",
		.value = (void *)&arguments.format,
		.choices = formats},
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the capture here. Default: beside the file, ending in .pftrace.",
		.value = (void *)&arguments.output},
	{0},
};

const struct command import_command = {
	.name = "import",
	.summary = "make a capture of another tool's log",
	.usage = "--format FORMAT [-o CAPTURE] FILE",
	.description =
		"Reads what another program wrote and writes a capture, for `sonde report`, "
		"`sonde export` and the Perfetto UI. What the file does not tell is not made up: "
		"notes in the capture say what is missing or coarse.\n\n"
		"vllm-log: iterations (--enable-logging-iteration-details) are ranges of their "
		"engine, named by what they did: prefill, decode, mixed, idle. Requests "
		"(--enable-log-requests) are ranges where the log tells their end, else marks. "
		"The throughput that the engine tells every few seconds is in marks.",
	.examples =
		"sonde import --format vllm-log server.log\n    Writes server.pftrace.\n"
		"sonde report --by range server.pftrace\n    Where the time of the engine went.",
	.options = import_options,
	.minimum_arguments = 1,
	.maximum_arguments = 1,
	.run = run_import,
};
