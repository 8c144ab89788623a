/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra convert: linked execution traces as Chakra traces, several ranks at a time. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chakra/convert.h"
#include "cli/chakra.h"
#include "cli/chakra_view.h"
#include "importers/pytorch_et.h"

static struct {
	struct option_strings inputs, outputs;
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

/* What the threads take their work from. */
struct jobs {
	struct job *items;
	size_t count, next; /* next: atomic */
};

static void convert(struct job *job)
{
	_cleanup_execution_trace_ struct execution_trace *trace = NULL;

	job->status = pytorch_et_read(&trace, job->input, NULL, &job->err);
	if (job->status < 0)
		return;
	job->read = chakra_read_result_of(trace);
	job->status =
		chakra_convert_to_file(trace, job->output, &job->options, &job->result, &job->err);
}

static void *work(void *argument)
{
	struct jobs *jobs = argument;
	size_t i;

	while ((i = __atomic_fetch_add(&jobs->next, 1, __ATOMIC_RELAXED)) < jobs->count)
		convert(&jobs->items[i]);
	return NULL;
}

/* This thread works, too; without others it does all. */
static void run_all(struct jobs *jobs)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[16];
	size_t wanted = MIN(jobs->count, (size_t)MAX(processors, 1)), started = 0;

	while (started + 1 < MIN(wanted, ARRAY_SIZE(threads)) &&
		pthread_create(&threads[started], NULL, work, jobs) == 0)
		started++;
	work(jobs);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* "run/linked.3.json.gz" is rank 3, as in the names that simulators want. */
static bool rank_of_name(const char *path, uint32_t *ret_rank)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *end;
	bool found = false;

	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		char *behind;
		unsigned long number = strtoul(dot + 1, &behind, 10);

		end = dot + 1 + strcspn(dot + 1, ".");
		if (behind != end || end == dot + 1 || dot[1] == '-' || dot[1] == '+' ||
			number > UINT32_MAX)
			continue;
		*ret_rank = (uint32_t)number;
		found = true;
	}
	return found;
}

static void set_rank(struct job *job)
{
	struct chakra_convert_options *options = &job->options;

	if (arguments.rank != UINT64_MAX) {
		options->has_rank = true;
		options->rank = (uint32_t)arguments.rank;
	} else {
		options->has_rank = rank_of_name(job->output, &options->rank);
	}
}

static int check_arguments(struct errmsg *err)
{
	if (arguments.inputs.count == 0)
		return errmsg_set(err, -EINVAL,
			"no input was given: --input names a linked execution trace, of `sonde "
			"chakra link` or chakra_trace_link");
	if (arguments.inputs.count != arguments.outputs.count)
		return errmsg_set(err, -EINVAL,
			"there are %zu inputs and %zu outputs: give one --output for each --input",
			arguments.inputs.count, arguments.outputs.count);
	if (arguments.rank != UINT64_MAX && arguments.inputs.count > 1)
		return errmsg_set(err, -EINVAL,
			"--rank is for one input: with several, the outputs' names tell the rank, "
			"as in model.3.et");
	for (size_t i = 0; i < arguments.outputs.count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(arguments.outputs.values[i], arguments.outputs.values[k]) == 0)
				return errmsg_set(err, -EINVAL,
					"%s is the output of two inputs: name one for each",
					arguments.outputs.values[i]);
		}
	}
	return 0;
}

static int run_convert(int count _unused_, char **positional _unused_)
{
	struct job items[ARRAY_SIZE(arguments.inputs.values)] = {0};
	struct jobs jobs = {.items = items, .count = arguments.inputs.count};
	int status = EXIT_OK;
	struct errmsg err;

	if (check_arguments(&err) < 0)
		return fail_usage(&err);
	for (size_t i = 0; i < jobs.count; i++) {
		items[i] = (struct job){
			.input = arguments.inputs.values[i],
			.output = arguments.outputs.values[i],
			.options = {.size = sizeof(items[i].options),
				.compat = arguments.compat,
				.break_cycles = arguments.break_cycles,
				.no_memory_nodes = arguments.no_memory_nodes},
		};
		set_rank(&items[i]);
	}
	run_all(&jobs);
	for (size_t i = 0; i < jobs.count; i++) {
		if (items[i].status < 0)
			status = fail(&items[i].err);
		else
			chakra_say_converted(
				items[i].input, items[i].output, &items[i].read, &items[i].result);
	}
	return status;
}

static const struct option convert_options[] = {
	{.long_name = "input",
		.type = OPTION_STRINGS,
		.argument = "FILE",
		.help = "A linked execution trace (JSON, plain or compressed). May be given "
			"several times: ranks are converted side by side.",
		.value = &arguments.inputs},
	{.long_name = "output",
		.type = OPTION_STRINGS,
		.argument = "FILE",
		.help = "The Chakra trace, one for each input; simulators want the name "
			"PREFIX.RANK.et. - is standard output.",
		.value = &arguments.outputs},
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
		.help = "Where nodes wait for themselves, take out the dependencies on what began "
			"later, and say how many.",
		.value = &arguments.break_cycles},
	{.long_name = "no-memory-nodes",
		.type = OPTION_FLAG,
		.help = "Copies between host and device are compute nodes, for simulators "
			"without a remote memory.",
		.value = &arguments.no_memory_nodes},
	{.long_name = "compat",
		.type = OPTION_FLAG,
		.help = "Exactly what chakra_converter 1.0.0 makes of it, with its faults.",
		.value = &arguments.compat},
	{0},
};

const struct command chakra_convert_command = {
	.name = "chakra convert",
	.summary = "make a Chakra execution trace of a linked one",
	.usage = "[options] --input FILE --output FILE",
	.description =
		"Writes the protobuf that simulators read: a node for each operator and each piece "
		"of device work, with its times, what it waits for, what it computes, moves or "
		"communicates. What could not be found out is counted and said. `sonde chakra "
		"check` proves that a simulator can run the result.",
	.examples = "sonde chakra convert --input linked.json --output model.0.et\n"
		    "    One rank.\n"
		    "sonde chakra convert --input l0.json --output m.0.et --input l1.json "
		    "--output m.1.et\n    Two ranks side by side.",
	.options = convert_options,
	.maximum_arguments = 0,
	.run = run_convert,
};
