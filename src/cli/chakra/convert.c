/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra convert: linked execution traces as Chakra traces, several ranks at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parallel.h"
#include "chakra/convert/convert.h"
#include "cli/chakra/chakra.h"
#include "cli/chakra/say.h"
#include "cli/chakra/view.h"
#include "compat/chakra_converter/chakra_converter.h"
#include "importers/pytorch_et/pytorch_et.h"
#include "load/rank_files.h"

static struct {
	const char *input, *output, *log;
	uint64_t rank;
	bool compat, break_cycles, no_memory_nodes;
} arguments = {.rank = UINT64_MAX};

/* One file and what became of it. */
struct job {
	const char *input, *output;
	struct chakra_convert_options options;
	struct chakra_read_result read;
	struct chakra_convert_result result;
	struct errmsg err;
	int status;
};

static void convert(size_t index, void *jobs)
{
	_cleanup_execution_trace_ struct execution_trace *trace = NULL;
	struct job *job = (struct job *)jobs + index;

	job->status = pytorch_et_read(&trace, job->input, NULL, &job->err);
	if (job->status < 0)
		return;
	job->read = chakra_read_result_of(trace);
	job->status =
		chakra_convert_to_file(trace, job->output, &job->options, &job->result, &job->err);
}

static struct job new_job(const char *input, const char *output)
{
	return (struct job){
		.input = input,
		.output = output,
		.options = {.size = sizeof(struct chakra_convert_options),
			.definition = arguments.compat ? &chakra_converter : NULL,
			.break_cycles = arguments.break_cycles,
			.no_memory_nodes = arguments.no_memory_nodes},
	};
}

/* "run/model.3.et" is rank 3: the names that simulators want. */
static bool rank_of_output(const char *path, uint32_t *ret_rank)
{
	const char *slash = strrchr(path, '/'), *dot = strchr(slash ?: path, '.');
	bool found = false;

	for (; dot; dot = strchr(dot + 1, '.')) {
		size_t digits = strspn(dot + 1, "0123456789");

		if (digits == 0 || digits > 9 || dot[1 + digits] != '.')
			continue;
		*ret_rank = (uint32_t)strtoul(dot + 1, NULL, 10);
		found = true;
	}
	return found;
}

static int convert_file(void)
{
	struct job job = new_job(arguments.input, arguments.output);

	job.options.has_rank = arguments.rank != UINT64_MAX;
	if (job.options.has_rank)
		job.options.rank = (uint32_t)arguments.rank;
	else
		job.options.has_rank = rank_of_output(job.output, &job.options.rank);
	convert(0, &job);
	if (job.status < 0)
		return chakra_fail(&job.err);
	chakra_say_converted(job.input, job.output, &job.read, &job.result);
	return EXIT_OK;
}

/* One after the other, in the order of ranks. */
static int say_all(const struct job *jobs, size_t count)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < count; i++) {
		if (jobs[i].status < 0)
			status = chakra_fail(&jobs[i].err);
		else
			chakra_say_converted(
				jobs[i].input, jobs[i].output, &jobs[i].read, &jobs[i].result);
	}
	return status;
}

static int convert_folder(void)
{
	_cleanup_rank_pairs_ struct rank_pairs ranks = {0};
	_cleanup_free_ struct job *jobs = NULL;
	struct errmsg err;
	size_t count = 0;

	if (rank_pairs_find(&ranks,
		    &(struct rank_pairs_options){
			    .host_folder = arguments.input,
			    .device_folder = arguments.input,
			    .is_host = chakra_is_execution_trace,
			    .is_device = chakra_is_execution_trace,
			    .output = arguments.output,
			    .before = "chakra.",
			    .after = ".et",
		    },
		    &err) < 0)
		return chakra_fail(&err);
	jobs = calloc(ranks.items.count, sizeof(*jobs));
	if (!jobs) {
		errmsg_set(&err, -ENOMEM, "memory ran out");
		return chakra_fail(&err);
	}
	array_foreach (&ranks.items, rank) {
		jobs[count] = new_job(rank->host, rank->output);
		jobs[count].options.has_rank = true;
		jobs[count++].options.rank = rank->rank;
	}
	parallel_each(count, convert, jobs);
	return say_all(jobs, count);
}

static int check_arguments(bool is_folder, struct errmsg *err)
{
	if (!arguments.input || !arguments.output)
		return errmsg_set(err, -EINVAL,
			"%s is missing; usage: sonde chakra convert --input LINKED --output FILE",
			arguments.input ? "--output" : "--input");
	if (is_folder && arguments.rank != UINT64_MAX)
		return errmsg_set(err, -EINVAL,
			"--rank is for one file: in the folder %s the files' names give the rank",
			arguments.input);
	return 0;
}

static int run_convert(int count _unused_, char **positional _unused_)
{
	struct stat status;
	bool is_folder =
		arguments.input && stat(arguments.input, &status) == 0 && S_ISDIR(status.st_mode);
	struct errmsg err;

	if (check_arguments(is_folder, &err) < 0)
		return fail_usage(&err);
	if (arguments.log && chakra_log_open(arguments.log, &err) < 0)
		return fail(&err);
	return chakra_log_close(is_folder ? convert_folder() : convert_file());
}

static const struct option convert_options[] = {
	{.long_name = "input",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "A linked execution trace (JSON, plain or compressed), or a folder with "
			"one for each rank, which are converted in parallel.",
		.value = (void *)&arguments.input},
	{.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "The Chakra trace; simulators want the name PREFIX.RANK.et. - is standard "
			"output. A folder where the input is one.",
		.value = (void *)&arguments.output},
	{.long_name = "rank",
		.type = OPTION_U64,
		.argument = "N",
		.help = "Rank in the world, which sends and receives need. Default: by the "
			"output's name.",
		.value = &arguments.rank,
		.minimum = 0,
		.maximum = 4294967295.0},
	{.long_name = "break-cycles",
		.type = OPTION_FLAG,
		.help = "If nodes wait for each other, remove the dependencies on nodes that began "
			"later, and say how many.",
		.value = &arguments.break_cycles},
	{.long_name = "no-memory-nodes",
		.type = OPTION_FLAG,
		.help = "Copies between host and device are compute nodes, for simulators without "
			"a remote memory.",
		.value = &arguments.no_memory_nodes},
	{.long_name = "log-filename",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the messages to this file, too.",
		.value = (void *)&arguments.log},
	{.long_name = "compat",
		.type = OPTION_FLAG,
		.help = "Write exactly what chakra_converter 1.0.0 writes, including its faults.",
		.value = &arguments.compat},
	{0},
};

const struct command chakra_convert_command = {
	.name = "chakra convert",
	.summary = "make a Chakra execution trace of a linked one",
	.usage = "[options] --input FILE --output FILE",
	.description =
		"Writes the protobuf that simulators read: a node for each operator and each piece "
		"of device work, with its times, its dependencies, and how much it computes, moves "
		"or communicates. What could not be determined is counted and reported. `sonde "
		"chakra check` proves that a simulator can run the result.",
	.examples = "sonde chakra convert --input linked.json --output model.0.et\n"
		    "    One rank.\n"
		    "sonde chakra convert --input linked/ --output chakra/\n"
		    "    All ranks: chakra/chakra.0.et and so on.",
	.options = convert_options,
	.maximum_arguments = 0,
	.run = run_convert,
};
