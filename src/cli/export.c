/* SPDX-License-Identifier: Apache-2.0 */
/* sonde export: a capture in another tool's format. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/warn.h"
#include "cli/import_trace.h"
#include "cli/load_options.h"
#include "cli/output.h"
#include "query/export.h"

static struct {
	struct query_export asked;
	const char *format, *output;
} arguments = {.asked = {.roots = "process", .shown.weight = "cpu"}};

/* The format given, or the one whose extension the output has; the longest extension that fits. */
static const struct exporter *wanted_exporter(struct errmsg *err)
{
	const struct exporter *best = NULL;

	if (arguments.format)
		return exporter_find(arguments.format);
	for (const struct exporter *const *exporter = exporters; arguments.output && *exporter;
		exporter++) {
		if (text_ends_in(arguments.output, (*exporter)->extension) &&
			(!best || strlen((*exporter)->extension) > strlen(best->extension)))
			best = *exporter;
	}
	if (!best)
		errmsg_set(err, -EINVAL,
			"no format was given: choose one with -f (folded, flamegraph, speedscope, "
			"firefox, pprof, otlp, chrome, chakra, pftrace, csv, tables, json, jsonl, memory, "
			"collectives, perf-script, roofline, vllm-csv), "
			"or by the output's extension, such as -o profile.svg");
	return best;
}

/* "run.pftrace" becomes "run.svg", "trace.json.gz" "trace.pftrace". */
static void default_output(
	struct strbuf *path, const char *capture, const struct exporter *exporter)
{
	import_base_name(path, capture);
	strbuf_add(path, exporter->extension);
}

static int refuse_terminal(const struct exporter *exporter, struct errmsg *err)
{
	if (!exporter->is_binary || !isatty(STDOUT_FILENO))
		return 0;
	return errmsg_set(err, -EINVAL,
		"a %s file is binary and would garble the terminal: redirect it, or name a file "
		"with -o",
		exporter->name);
}

static int export_run(int count, char **positional)
{
	_cleanup_strbuf_ struct strbuf content = {0};
	_cleanup_strbuf_ struct strbuf path = {0};
	_cleanup_strbuf_ struct strbuf notes = {0};
	_cleanup_export_files_ struct export_files files = {0};
	struct query_export *asked = &arguments.asked;
	const struct exporter *exporter;
	struct errmsg err;
	int r = 0;

	exporter = asked->exporter = wanted_exporter(&err);
	if (!exporter || query_export_check(asked, &err) < 0)
		return fail_usage(&err);
	if (arguments.output)
		strbuf_add(&path, arguments.output);
	else
		default_output(&path, positional[0], exporter);
	if (output_is_standard(strbuf_cstr(&path)))
		r = refuse_terminal(exporter, &err);
	for (int i = 0; r == 0 && i < count; i++)
		r = import_refuse_same_file(positional[i], strbuf_cstr(&path), &err);
	asked->output = strbuf_cstr(&path);
	if (r == 0)
		r = query_export((const char *const *)positional, (size_t)count, asked, &content,
			&notes, &files, &err);
	if (r == 0 && exporter->export_files)
		r = output_write_folder(strbuf_cstr(&path), &files, &err);
	else if (r == 0)
		r = output_write(strbuf_cstr(&path), content.data, content.length, &err);
	if (r < 0)
		return fail(&err);
	if (notes.length)
		warn("%.*s", (int)notes.length - 1, notes.data);
	return EXIT_OK;
}

#define FORMATS_MAX 64

static const char *const *list_formats(void)
{
	static const char *names[FORMATS_MAX + 1];

	for (size_t i = 0; exporters[i] && i < FORMATS_MAX; i++)
		names[i] = exporters[i]->name;
	return names;
}

static const struct option export_options[] = {
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "The format. Default: by the output's extension.",
		.value = (void *)&arguments.format,
		.list_choices = list_formats},
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write here; tables and vllm-csv write a folder; - is standard output. Default: "
			"beside the capture, with the format's extension.",
		.value = (void *)&arguments.output},
	WEIGHT_OPTION(arguments.asked.shown),
	{.long_name = "title",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "Title of the profile. Default: the recorded command.",
		.value = (void *)&arguments.asked.title},
	{.long_name = "peak",
		.type = OPTION_STRING,
		.argument = "FIGURES",
		.help = "With -f roofline: what the device can do at most, as of sonde report.",
		.value = (void *)&arguments.asked.peak_text},
	{.long_name = "roots",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "What stacks of folded and flamegraph begin with: nothing, the process's "
			"name, or the process's and the thread's.",
		.value = (void *)&arguments.asked.roots,
		.choices = roots_choices},
	{.long_name = "min-width",
		.type = OPTION_DOUBLE,
		.argument = "PIXELS",
		.help = "Leave out frames of a flame graph narrower than this in a picture 1200 "
			"pixels wide. Default: 0.1.",
		.value = &arguments.asked.minimum_width_px,
		.minimum = 0.001,
		.maximum = 100},
	SHOWN_OPTIONS(arguments.asked.shown),
	FILTER_OPTIONS(arguments.asked.selection),
	{0},
};

const struct command export_command = {
	.name = "export",
	.summary = "write a capture in another tool's format",
	.usage = "[options] [CAPTURE… | TRACE… | FOLDER]",
	.description =
		"Formats:\n"
		"  folded      one line per stack and its samples, for flame graph tools\n"
		"  flamegraph  one self-contained SVG: open it in a browser\n"
		"  speedscope  for www.speedscope.app\n"
		"  firefox     for profiler.firefox.com; compressed where FILE ends in .gz\n"
		"  pprof       for pprof and the stores that take its profiles\n"
		"  otlp        profiles of OpenTelemetry\n"
		"  chrome      slices per thread, for ui.perfetto.dev, chrome://tracing and tools "
		"for the PyTorch profiler's traces\n"
		"  chakra      an execution trace for simulators, see also sonde chakra\n"
		"  pftrace     traces of other tools, as a capture that ui.perfetto.dev opens\n"
		"  csv         the table of functions\n"
		"  tables      a folder with every table of the report, as CSV for spreadsheets\n"
		"  json        what report --json prints\n"
		"  jsonl       every event as one JSON object per line, in time order\n"
		"  perf-script samples as perf script prints them, for tools that read that\n"
		"  memory      an SVG of the memory of devices over time, of traces with memory events\n"
		"  collectives an SVG of the bandwidth of collectives by size, of the traces of all ranks\n"
		"  roofline    an SVG of operators under the roof of the device, of traces with "
		"sizes of inputs\n"
		"  vllm-csv    a folder of tables of what vLLM did\n\n"
		"CAPTURE may be a trace of the PyTorch profiler, or a folder of them: for chrome, "
		"pftrace and chakra, and for the formats of stacks, where --weight gpu is the time "
		"of device work by what launched it, and wall how long threads were in operators, "
		"calls and Python functions. The capture itself opens in ui.perfetto.dev too. "
		"Every format holds the same samples; the same capture and options give the same "
		"file.",
	.examples = "sonde export -f flamegraph\n    Of " DEFAULT_CAPTURE ": writes sonde.svg.\n"
		    "sonde export -f folded -o - sonde.pftrace | grep malloc\n    Stacks as text.\n"
		    "sonde export -f flamegraph --weight gpu trace.json.gz\n    Kernels of a "
		    "PyTorch trace, below what launched them.\n"
		    "sonde export -o run.pb.gz sonde.pftrace && go tool pprof -http=: run.pb.gz\n"
		    "    In pprof's page.",
	.options = export_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.default_argument = DEFAULT_CAPTURE,
	.run = export_run,
};
