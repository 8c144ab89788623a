/* SPDX-License-Identifier: Apache-2.0 */
/* sonde import: another tool's traces or log as a capture. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/warn.h"
#include "cli/commands.h"
#include "cli/import_trace.h"
#include "importers/importer.h"
#include "load/log.h"
#include "load/trace_file.h"

#define FORMATS_MAX 32

static struct {
	const char *format;
	struct import_options options;
} arguments;

static void print_result(const char *output, const struct import_result *result)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	if (result->samples)
		print_plain(
			"sonde: %llu samples in %s\n", (unsigned long long)result->samples, output);
	else
		print_plain("sonde: %llu ranges and %llu marks in %s\n",
			(unsigned long long)result->ranges, (unsigned long long)result->marks,
			output);
	for (uint32_t i = 0; i < result->note_count; i++)
		print_plain("  note    %s\n", result->notes[i].text);
	escape_shell(&name, output);
	print_plain("next: sonde report %s%s\n", result->samples ? "" : "--by range ",
		strbuf_cstr(&name));
}

static int import_log(const char *path, const struct importer *importer, struct errmsg *err)
{
	const struct capture_writer_options options = {
		.size = sizeof(options),
		.uncompressed = arguments.options.uncompressed,
	};
	_cleanup_free_ struct import_result *result = calloc(1, sizeof(*result));
	_cleanup_strbuf_ struct strbuf output = {0};
	struct capture_writer *writer = NULL;
	int r = result ? 0 : -ENOMEM;

	if (arguments.options.output)
		strbuf_add(&output, arguments.options.output);
	else
		import_default_output(&output, path);
	r = r ?: strbuf_status(&output);
	r = r ?: import_refuse_same_file(path, strbuf_cstr(&output), err);
	r = r ?: capture_writer_open(&writer, strbuf_cstr(&output), &options, err);
	if (r < 0)
		return r;
	r = import_close(writer, load_log(path, importer, writer, result, err), err);
	if (r == 0)
		print_result(strbuf_cstr(&output), result);
	return r;
}

/* The importer that makes a capture of a file by itself; NULL: the file has rows. */
static const struct importer *importer_of_log(const char *path)
{
	const struct importer *importer = NULL;

	if (arguments.format)
		importer = importer_find(arguments.format);
	else
		trace_file_identify(path, &importer);
	return importer && importer->import ? importer : NULL;
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
		logs += importer_of_log(positional[i]) != NULL;
		r = refuse_capture(positional[i], &err);
	}
	if (r == 0 && logs && (logs < paths || (arguments.options.output && logs > 1))) {
		errmsg_set(&err, 0, "logs are imported one by one, each into its own capture");
		return fail_usage(&err);
	}
	if (logs) {
		for (size_t i = 0; r == 0 && i < paths; i++)
			r = import_log(positional[i], importer_of_log(positional[i]), &err);
	} else {
		r = r ?: import_traces(positional, paths, &arguments.options, &err);
	}
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "importing failed: %s", strerror(-r));
	return r < 0 ? fail(&err) : EXIT_OK;
}

/* ---- -f ---- */

static bool makes_capture(const struct importer *importer)
{
	return importer_has_rows(importer) || importer->import;
}

static const char *const *list_formats(void)
{
	static const char *names[FORMATS_MAX + 1];
	size_t count = 0;

	for (const struct importer *const *importer = importers; *importer; importer++) {
		if (makes_capture(*importer) && count < FORMATS_MAX)
			names[count++] = (*importer)->name;
	}
	return names;
}

static void describe_formats(struct strbuf *out)
{
	const char *before = " ";

	for (const struct importer *const *importer = importers; *importer; importer++) {
		if (!makes_capture(*importer))
			continue;
		strbuf_addf(out, "%s%s: %s", before, (*importer)->name, (*importer)->description);
		before = "; ";
	}
	strbuf_add_char(out, '.');
}

static const struct option import_options[] = {
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "What the files are. Default: by how they begin.",
		.value = (void *)&arguments.format,
		.list_choices = list_formats,
		.describe_choices = describe_formats},
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write one capture of all files here. Default: one for each, beside it, "
			"ending in .pftrace.",
		.value = (void *)&arguments.options.output},
	{.long_name = "arguments",
		.type = OPTION_FLAG,
		.help = "Also write the arguments of operators and kernels where the Perfetto UI "
			"shows them, at two to three times the size. sonde does not need this "
			"copy.",
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
		"Reads what another program wrote and writes a capture, for `sonde report`, `sonde "
		"export` and the Perfetto UI. Nothing is made up: notes in the capture say what is "
		"missing, damaged or coarse.\n\nkineto: traces of the PyTorch profiler, and others "
		"in Chrome's JSON format, plain, gzip or zstd; a folder holds one for each rank. "
		"Everything in them is kept, including the arguments of events: sonde export -f "
		"chrome writes them back. `sonde report` also reads the files "
		"themselves.\n\nnsys: exports of Nsight Systems (nsys export --type sqlite): "
		"kernels, copies, calls of CUDA, NVTX ranges, allocations.\n\nxplane: profiles of JAX and TensorFlow as "
		"protobuf.\n\nrocprofv3: its JSON.\n\ntorch-memory: snapshots of PyTorch's memory.\n\nperf-script, folded, pprof: samples with stacks.\n\nvllm-log: iterations (--enable-logging-iteration-details) are "
		"ranges of their engine, named by what they did: prefill, decode, mixed, idle. "
		"Requests (--enable-log-requests) are ranges if the log has their end, otherwise "
		"marks. The throughput that the engine logs every few seconds is in marks.",
	.examples = "sonde import trace.json.gz\n    Writes trace.pftrace.\n"
		    "sonde import -o run.pftrace rank0.json rank1.json\n    Both ranks in one "
		    "capture.\n"
		    "sonde import server.log\n    Writes server.pftrace, of a vLLM server's log.",
	.options = import_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_import,
};
