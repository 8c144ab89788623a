/* SPDX-License-Identifier: Apache-2.0 */
/* sonde import: another tool's traces or log as a capture. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/warn.h"
#include "cli/commands.h"
#include "cli/import_trace.h"
#include "importers/importer.h"
#include "load/traces.h"

static struct {
	const char *format;
	struct import_options options;
} arguments;

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
	if (!writer)
		return r;
	return import_close(writer, r, err);
}

static void print_result(const char *output, const struct import_result *result)
{
	print_plain("sonde: %llu ranges and %llu marks in %s\n", (unsigned long long)result->ranges,
		(unsigned long long)result->marks, output);
	for (uint32_t i = 0; i < result->note_count; i++)
		print_plain("  note    %s\n", result->notes[i].text);
	print_plain("next: sonde report --by range %s\n", output);
}

static int import_log(const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0}; /* not mapped: a log may be rotated meanwhile */
	_cleanup_free_ struct import_result *result = calloc(1, sizeof(*result));
	_cleanup_strbuf_ struct strbuf output = {0};
	struct import_input input = {.path = path};
	struct stat status;
	int r = result ? 0 : -ENOMEM;

	if (arguments.options.output)
		strbuf_add(&output, arguments.options.output);
	else
		import_default_output(&output, path);
	r = r ?: strbuf_status(&output);
	r = r ?: import_refuse_same_file(path, strbuf_cstr(&output), err);
	r = r ?: read_regular_file(path, &text, err);
	if (r == 0 && stat(path, &status) == 0)
		input.modified_s = status.st_mtim.tv_sec;
	input.bytes = text.data;
	input.length = text.length;
	r = r ?: import_file(importer_find("vllm-log"), &input, strbuf_cstr(&output), result, err);
	if (r == 0)
		print_result(strbuf_cstr(&output), result);
	return r;
}

static bool is_log(const char *path)
{
	if (arguments.format)
		return strcmp(arguments.format, "vllm-log") == 0;
	return trace_file_of(path) == TRACE_FILE_TEXT;
}

/* A capture is what import makes: only its own kind can be joined with others. */
static int refuse_capture(const char *path, struct errmsg *err)
{
	if (arguments.format || trace_file_of(path) != TRACE_FILE_CAPTURE)
		return 0;
	return errmsg_set(err, -EINVAL,
		"%s is a capture already: sonde report and sonde export read it as it is", path);
}

static int run_import(int count, char **positional)
{
	struct errmsg err = {{0}};
	size_t logs = 0, paths = (size_t)count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < paths; i++) {
		logs += is_log(positional[i]);
		r = refuse_capture(positional[i], &err);
	}
	if (r == 0 && logs && (logs < paths || (arguments.options.output && logs > 1))) {
		errmsg_set(&err, 0, "logs are imported one by one, each into its own capture");
		return fail_usage(&err);
	}
	if (logs) {
		for (size_t i = 0; r == 0 && i < paths; i++)
			r = import_log(positional[i], &err);
	} else {
		r = r ?: import_traces(positional, paths, &arguments.options, &err);
	}
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "importing failed: %s", strerror(-r));
	return r < 0 ? fail(&err) : EXIT_OK;
}

static const char *const formats[] = {"kineto", "vllm-log", NULL};

static const struct option import_options[] = {
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "What the files are: kineto, traces of the PyTorch profiler; vllm-log, the "
			"log of a vLLM server. Default: by how they begin.",
		.value = (void *)&arguments.format,
		.choices = formats},
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write one capture of all files here. Default: one for each, beside it, "
			"ending in .pftrace.",
		.value = (void *)&arguments.options.output},
	{.long_name = "arguments",
		.type = OPTION_FLAG,
		.help = "Write the arguments of operators and kernels also where the Perfetto UI "
			"shows them, at two to three times the size. sonde needs no such copy.",
		.value = &arguments.options.arguments},
	{.long_name = "uncompressed",
		.type = OPTION_FLAG,
		.help = "Write the capture's packets uncompressed, for tools that cannot inflate "
			"them.",
		.value = &arguments.options.uncompressed},
	{0},
};

const struct command import_command = {
	.name = "import",
	.summary = "make a capture of another tool's traces or log",
	.usage = "[options] FILE|FOLDER...",
	.description =
		"Reads what another program wrote and writes a capture, for `sonde report`, "
		"`sonde export` and the Perfetto UI. What the file does not tell is not made up: "
		"notes in the capture say what is missing, damaged or coarse.\n\n"
		"kineto: traces of the PyTorch profiler, and others in Chrome's JSON format, "
		"plain, "
		"gzip or zstd; a folder holds one for each rank. Everything in them is kept, with "
		"the arguments of events: sonde export -f chrome gives them back. `sonde report` "
		"reads the files themselves as well.\n\n"
		"vllm-log: iterations (--enable-logging-iteration-details) are ranges of their "
		"engine, named by what they did: prefill, decode, mixed, idle. Requests "
		"(--enable-log-requests) are ranges where the log tells their end, else marks. "
		"The throughput that the engine tells every few seconds is in marks.",
	.examples = "sonde import trace.json.gz\n    Writes trace.pftrace.\n"
		    "sonde import -o run.pftrace rank0.json rank1.json\n    Both ranks in one "
		    "capture.\n"
		    "sonde import server.log\n    Writes server.pftrace, of a vLLM server's log.",
	.options = import_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_import,
};
