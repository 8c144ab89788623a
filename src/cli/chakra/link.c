/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra link: an execution trace and Kineto's trace of the same run become one. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/parallel.h"
#include "chakra/convert/convert.h"
#include "chakra/link/link.h"
#include "chakra/link/linked_json.h"
#include "cli/chakra/chakra.h"
#include "cli/chakra/say.h"
#include "cli/chakra/view.h"
#include "compat/chakra_converter/chakra_converter.h"
#include "compat/chakra_trace_link/chakra_trace_link.h"
#include "importers/importers.h"
#include "importers/kineto/kineto.h"
#include "importers/pytorch_et/pytorch_et.h"
#include "load/load.h"
#include "load/rank_files.h"

#define NO_RANK UINT64_MAX

static struct {
	const char *host, *device, *output, *format, *level;
	uint64_t rank;
	bool compat, any_process;
} arguments = {.rank = NO_RANK};

/* One pair of traces. */
struct job {
	const char *host, *device, *output;
	uint64_t rank;    /* NO_RANK: not known */
	bool is_et;       /* a Chakra trace is made of it in one step */
	unsigned threads; /* for reading Kineto's trace */
	struct chakra_link_result result;
	struct chakra_convert_result converted;
	struct chakra_read_result read;
	uint64_t skipped_events, repeated_correlations;
	bool is_cut, is_other_rank;
	uint32_t device_rank;
	int status;
	struct errmsg err;
};

/* Kineto's trace, which is read meanwhile. */
struct device_read {
	const char *path;
	unsigned threads; /* as struct trace_read_options */
	struct trace *trace;
	int status;
	struct errmsg err;
};

/* One that a trace was imported into. */
static int read_capture(struct device_read *read)
{
	const struct load_options options = {.rows_only = true};
	_cleanup_model_ struct model *model = NULL;
	int r = load_model(&model, &read->path, 1, &options, &read->err);

	if (r == 0 && model->traces.count != 1)
		return errmsg_set(&read->err, -EINVAL,
			"%s holds traces of %zu ranks: name one of a single rank", read->path,
			model->traces.count);
	if (r == 0)
		read->trace = TAKE_PTR(model->traces.items[0]);
	return r;
}

static void *read_device(void *argument)
{
	struct device_read *read = argument;
	const struct trace_read_options options = {.threads = read->threads};

	if (trace_file_of(read->path) == TRACE_FILE_IMPORTED)
		read->status = read_capture(read);
	else
		read->status = kineto_read(&read->trace, read->path, &options, &read->err);
	return NULL;
}

static int read_pair(struct job *job, struct execution_trace **ret_host, struct trace **ret_device)
{
	struct device_read read = {.path = job->device, .threads = job->threads};
	pthread_t thread;
	bool threaded = pthread_create(&thread, NULL, read_device, &read) == 0;
	int r = pytorch_et_read(ret_host, job->host, NULL, &job->err);

	if (threaded)
		pthread_join(thread, NULL);
	else
		read_device(&read);
	*ret_device = read.trace;
	if (r == 0 && read.status < 0)
		job->err = read.err;
	return r ?: read.status;
}

static void note_damage(
	struct job *job, const struct execution_trace *host, const struct trace *device)
{
	job->read = chakra_read_result_of(host);
	job->skipped_events = device->damage.skipped_events;
	job->repeated_correlations = device->repeated_correlations;
	job->is_cut = host->truncated || device->damage.truncated;
	job->device_rank = device->rank;
	job->is_other_rank =
		job->rank != NO_RANK && device->rank != MODEL_NONE && device->rank != job->rank;
}

static int write_linked(const struct execution_trace *linked, const char *path, struct errmsg *err)
{
	_cleanup_output_file_ struct output_file file = {0};
	struct linked_json_options options = {.is_plain = arguments.compat};
	int r = output_file_open(&file, path, err);

	if (r < 0)
		return r;
	linked_json_write(linked, &options, &file);
	return output_file_close(&file, err);
}

static int write_et(const struct execution_trace *linked, struct job *job)
{
	struct chakra_convert_options options = {
		.size = sizeof(options),
		.definition = arguments.compat ? &chakra_converter : NULL,
		.has_rank = job->rank != NO_RANK || job->device_rank != MODEL_NONE,
		.rank = job->rank != NO_RANK ? (uint32_t)job->rank : job->device_rank,
	};

	return chakra_convert_to_file(linked, job->output, &options, &job->converted, &job->err);
}

static int link_job(struct job *job)
{
	_cleanup_trace_ struct trace *device = NULL;
	_cleanup_execution_trace_ struct execution_trace *host = NULL;
	struct chakra_link_options options = {
		.size = sizeof(options),
		.definition = arguments.compat ? chakra_trace_link : NULL,
		.any_process = arguments.any_process,
	};
	int r = read_pair(job, &host, &device);

	if (r < 0)
		return r;
	note_damage(job, host, device);
	r = chakra_link(host, device, &options, &job->result, &job->err);
	if (r < 0)
		return r;
	return job->is_et ? write_et(host, job) : write_linked(host, job->output, &job->err);
}

static void run_job(size_t index, void *jobs)
{
	struct job *job = (struct job *)jobs + index;

	job->status = link_job(job);
}

static void say_damage(const struct job *job)
{
	if (job->read.skipped_nodes && !job->is_et)
		chakra_note("%" PRIu64 " damaged nodes of %s were left out",
			job->read.skipped_nodes, job->host);
	if (job->skipped_events)
		chakra_note("%" PRIu64 " damaged events of %s were left out", job->skipped_events,
			job->device);
	if (job->read.repeated_ids)
		chakra_note("%" PRIu64
			    " nodes of %s have the id of another one: they are kept, and children "
			    "of that id are those of the first",
			job->read.repeated_ids, job->host);
	if (job->repeated_correlations)
		chakra_note("%" PRIu64 " calls of %s have the correlation of another one: device "
			    "work with it is that of the last",
			job->repeated_correlations, job->device);
	if (job->is_cut)
		chakra_note("a file is cut off: its end is missing");
	if (job->is_other_rank)
		chakra_note("--rank is %" PRIu64 ", but %s says that it is of rank %u", job->rank,
			job->device, job->device_rank);
}

static void say_losses(const struct chakra_link_result *result)
{
	if (result->matched[EXECUTION_UNMATCHED])
		chakra_note("%" PRIu64
			    " operators of the execution trace are not in the other one: they have "
			    "no times",
			result->matched[EXECUTION_UNMATCHED]);
	if (result->names_differ)
		chakra_note("%" PRIu64 " of them have the id of an operator with another name",
			result->names_differ);
	if (result->without_launch)
		chakra_note("%" PRIu64
			    " pieces of device work have no launch in the trace: left out",
			result->without_launch);
	if (result->without_operator)
		chakra_note("%" PRIu64 " pieces of device work were launched by threads without "
			    "operators: left out",
			result->without_operator);
	if (result->linked_to_threads)
		chakra_note("%" PRIu64
			    " pieces of device work were launched outside of operators: they are "
			    "under their threads",
			result->linked_to_threads);
	if (result->orphans)
		chakra_note("%" PRIu64
			    " operators have parents that are not in the execution trace",
			result->orphans);
}

/* How operators were matched. */
static void add_rule(struct strbuf *out, const struct chakra_link_result *result)
{
	if (result->matched[EXECUTION_BY_RF_ID])
		strbuf_add(out, "by the id of their record function");
	else if (result->matched[EXECUTION_BY_OFFSET])
		strbuf_addf(out,
			"by External id, which is the id of their record function and %" PRId64,
			result->offset);
	else
		strbuf_add(out, "by names along the call tree");
}

static void say(const struct job *job)
{
	const struct chakra_link_result *result = &job->result;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s: %" PRIu64 " of %" PRIu64 " operators matched ", job->output,
		result->host_nodes - result->matched[EXECUTION_UNMATCHED], result->host_nodes);
	add_rule(&text, result);
	strbuf_addf(&text, ", %" PRIu64 " of %" PRIu64 " kernels, copies and fills linked",
		result->linked, result->device_rows);
	if (result->linked_graphs)
		strbuf_addf(&text, ", %" PRIu64 " of them from graphs", result->linked_graphs);
	strbuf_addf(&text,
		"; dependencies: %" PRIu64 " between threads, %" PRIu64 " on the device, %" PRIu64
		" in its order",
		result->inter_thread_deps, result->sync_deps, result->order_deps);
	chakra_say("%s", strbuf_cstr(&text));
	say_damage(job);
	say_losses(result);
	if (job->is_et)
		chakra_say_converted(job->host, job->output, &job->read, &job->converted);
}

/* Returns the exit status. */
static int say_all(const struct job *jobs, size_t count)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < count; i++) {
		if (jobs[i].status < 0)
			status = fail(&jobs[i].err);
		else
			say(&jobs[i]);
	}
	return status;
}

/* The number given, or else the one in the output.s name. */
static bool wants_et(void)
{
	size_t length = strlen(arguments.output);

	if (arguments.format)
		return strcmp(arguments.format, "et") == 0;
	return length > 3 && strcmp(arguments.output + length - 3, ".et") == 0;
}

static int link_pair(void)
{
	struct job job = {
		.is_et = wants_et(),
		.host = arguments.host,
		.device = arguments.device,
		.output = arguments.output,
		.rank = arguments.rank,
	};

	run_job(0, &job);
	return say_all(&job, 1);
}

/* Programs write both kinds of files into one folder. */
static bool is_device(const char *path)
{
	const struct importer *importer;
	enum trace_file file = trace_file_identify(path, &importer);

	return importer == &kineto_importer || file == TRACE_FILE_IMPORTED;
}

/* Kineto's traces say their rank; captures hold them. */
static bool rank_of_device(const char *path, uint32_t *ret_rank)
{
	const struct load_options options = {.rows_only = true};
	_cleanup_model_ struct model *model = NULL;
	struct errmsg err;

	if (trace_file_of(path) == TRACE_FILE_FOREIGN)
		return kineto_rank(path, ret_rank);
	if (load_model(&model, &path, 1, &options, &err) < 0 || model->traces.count != 1 ||
		model->traces.items[0]->rank == MODEL_NONE)
		return false;
	*ret_rank = model->traces.items[0]->rank;
	return true;
}

/* Folders with a file for each rank. */
static int link_folders(void)
{
	_cleanup_rank_pairs_ struct rank_pairs pairs = {0};
	_cleanup_free_ struct job *jobs = NULL;
	bool is_et = wants_et();
	size_t count = 0;
	struct errmsg err;
	int status;

	if (rank_pairs_find(&pairs,
		    &(struct rank_pairs_options){
			    .host_folder = arguments.host,
			    .device_folder = arguments.device,
			    .is_host = chakra_is_execution_trace,
			    .is_device = is_device,
			    .rank_of_device = rank_of_device,
			    .output = arguments.output,
			    .before = is_et ? "chakra." : "linked.",
			    .after = is_et ? ".et" : ".json",
		    },
		    &err) < 0)
		return fail(&err);
	jobs = calloc(pairs.items.count, sizeof(*jobs));
	if (!jobs) {
		errmsg_set(&err, -ENOMEM, "out of memory");
		return fail(&err);
	}
	array_foreach (&pairs.items, pair) {
		struct job *job = &jobs[count++];

		job->host = pair->host;
		job->device = pair->device;
		job->output = pair->output;
		job->rank = pair->rank;
		job->is_et = is_et;
		job->threads = parallel_share(pairs.items.count);
	}
	parallel_each(count, run_job, jobs);
	status = say_all(jobs, count);
	if (!pairs.missing.length)
		return status;
	errmsg_set(&err, 0, "%s", strbuf_cstr(&pairs.missing));
	return fail(&err);
}

static bool is_folder(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int run_link(int count _unused_, char **positional _unused_)
{
	const char *missing = !arguments.host     ? "--chakra-host-trace"
			      : !arguments.device ? "--chakra-device-trace"
			      : !arguments.output ? "--output-file"
						  : NULL;
	enum chakra_level level = chakra_level_from_string(arguments.level ?: "INFO");
	struct errmsg err;

	if (missing) {
		errmsg_set(&err, 0,
			"%s is missing; usage: sonde chakra link --rank N --chakra-host-trace ET "
			"--chakra-device-trace KINETO --output-file OUT",
			missing);
		return fail_usage(&err);
	}
	if (level < 0) {
		errmsg_set(&err, 0,
			"there is no --log-level %s: name DEBUG, INFO, WARNING, ERROR or CRITICAL",
			arguments.level);
		return fail_usage(&err);
	}
	chakra_set_level(level);
	if (is_folder(arguments.host) != is_folder(arguments.device)) {
		errmsg_set(&err, 0,
			"of %s and %s, one is a folder: name two files, or two folders with a file "
			"for each rank",
			arguments.host, arguments.device);
		return fail_usage(&err);
	}
	return is_folder(arguments.host) ? link_folders() : link_pair();
}

static const char *const formats[] = {"json", "et", NULL};

static const struct option link_options[] = {
	{.long_name = "rank",
		.type = OPTION_U64,
		.argument = "N",
		.help = "The rank of the traces; a trace with another rank is reported.",
		.value = &arguments.rank},
	{.long_name = "chakra-host-trace",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "The execution trace of PyTorch's ExecutionTraceObserver, or a folder with "
			"one for each rank.",
		.value = (void *)&arguments.host},
	{.long_name = "chakra-device-trace",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Kineto's trace of the same run, or a folder with one for each rank.",
		.value = (void *)&arguments.device},
	{.short_name = 'o',
		.long_name = "output-file",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write here; \"-\" is standard output. A folder where the traces are.",
		.value = (void *)&arguments.output},
	{.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "json, a linked trace, or et, the Chakra trace that `sonde chakra convert` "
			"makes of it. Default: et for names that end in .et, otherwise json.",
		.value = (void *)&arguments.format,
		.choices = formats},
	{.long_name = "log-level",
		.type = OPTION_STRING,
		.argument = "LEVEL",
		.help = "INFO, the default, prints results and notes; WARNING only notes; ERROR "
			"only failures. DEBUG and CRITICAL are the same as INFO and ERROR.",
		.value = (void *)&arguments.level},
	{.long_name = "compat",
		.type = OPTION_FLAG,
		.help = "Write what chakra_trace_link and chakra_converter write, including their "
			"faults.",
		.value = &arguments.compat},
	{.long_name = "any-process",
		.type = OPTION_FLAG,
		.help = "Link traces that say they are of two processes, too.",
		.value = &arguments.any_process},
	{0},
};

const struct command chakra_link_command = {
	.name = "chakra link",
	.summary = "join an execution trace and Kineto's trace of the same run",
	.usage = "[--rank N] --chakra-host-trace ET --chakra-device-trace KINETO --output-file OUT",
	.description =
		"Gives the operators of the execution trace their times, and puts nodes of device "
		"work under the operators that launched them: kernels, copies, fills, and "
		"everything that a graph runs. Operators are matched by the id of their record "
		"function. If Kineto's trace has none, they are matched by External id with a "
		"constant offset, or by names along the call tree. The output says how many were "
		"matched by which rule, and what was left out and why. Nothing matched is an "
		"error.\n\nThe result is JSON, for `sonde chakra convert`; chakra_converter reads "
		"it, too. Of two folders, the files of one rank belong together; they are linked "
		"in parallel, and OUT is a folder. One folder may hold both: each option takes the "
		"files of its kind.",
	.examples =
		"sonde chakra link --rank 0 --chakra-host-trace et_0.json --chakra-device-trace "
		"kineto_0.json.gz --output-file linked_0.json\n    One rank.\n"
		"sonde chakra link --chakra-host-trace et/ --chakra-device-trace kineto/ "
		"--output-file linked/\n    All ranks: linked/linked.0.json and so on.\n"
		"sonde chakra link --chakra-host-trace et/ --chakra-device-trace kineto/ "
		"--output-file run/ --format et\n    Chakra traces of all ranks in one step.",
	.options = link_options,
	.run = run_link,
};
