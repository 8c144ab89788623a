/* SPDX-License-Identifier: Apache-2.0 */
/* sonde merge: the captures or traces of a run's ranks as one file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/warn.h"
#include "cli/commands.h"
#include "cli/import_trace.h"
#include "load/load.h"

static struct {
	const char *output;
	bool uncompressed, device_slices;
} arguments;

static int merge_recordings(int count, char **positional, struct errmsg *err)
{
	const struct capture_writer_options options = {
		.size = sizeof(options),
		.uncompressed = arguments.uncompressed,
		.device_slices = arguments.device_slices,
		.unhurried = true,
	};
	uint64_t bytes = 0;
	size_t recordings = 0;
	int r = load_merge((const char *const *)positional, (size_t)count, arguments.output,
		&options, &recordings, &bytes, err);

	if (r == 0)
		print_plain("sonde: %zu recordings in %s, %" PRIu64 " bytes\n", recordings,
			arguments.output, bytes);
	return r;
}

static int merge_traces(int count, char **positional, struct errmsg *err)
{
	const struct import_options options = {
		.output = arguments.output, .uncompressed = arguments.uncompressed};

	return import_traces(positional, (size_t)count, &options, err);
}

static int run_merge(int count, char **positional)
{
	struct errmsg err = {{0}};
	int r = 0;

	if (!arguments.output) {
		errmsg_set(&err, -EINVAL, "name the file with -o: sonde merge -o run.pftrace %s",
			positional[0]);
		return fail_usage(&err);
	}
	for (int i = 0; r == 0 && i < count; i++)
		r = import_refuse_same_file(positional[i], arguments.output, &err);
	if (r == 0)
		r = load_is_foreign((const char *const *)positional, (size_t)count)
			    ? merge_traces(count, positional, &err)
			    : merge_recordings(count, positional, &err);
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "merging failed: out of memory");
	return r < 0 ? fail(&err) : EXIT_OK;
}

static const struct option merge_options[] = {
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the capture here.",
		.value = &arguments.output},
	{.long_name = "uncompressed",
		.type = OPTION_FLAG,
		.help = "Write the capture's packets uncompressed, for tools that cannot inflate "
			"them.",
		.value = &arguments.uncompressed},
	{.long_name = "device-slices",
		.type = OPTION_FLAG,
		.help = "Of recordings: write device work and launches also as slices with arrows "
			"between them, for ui.perfetto.dev.",
		.value = &arguments.device_slices},
	{0},
};

const struct command merge_command = {
	.name = "merge",
	.summary = "write the captures or traces of a run's ranks into one file",
	.usage = "-o FILE [options] CAPTURE… | TRACE… | FOLDER",
	.description =
		"Puts the captures of all ranks on one clock, and writes them into one capture. It "
		"opens in the Perfetto UI, and sonde reads it as it reads the captures together. "
		"Clocks of hosts are aligned by what each took for the time of day, and then by the "
		"ends of collectives. Processes of different hosts that have one pid get numbers "
		"above 4,194,304. Traces of PyTorch's profiler are merged, too, with the times "
		"that they have.",
	.examples = "sonde merge -o run.pftrace run/\n    The captures in a folder as one.\n"
		    "sonde merge -o job.pftrace rank0.json rank1.json\n    Traces of PyTorch's "
		    "profiler.",
	.options = merge_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_merge,
};
