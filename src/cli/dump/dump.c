/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde dump`: where every thread of a process is now, by a recording of a fraction of a second:
 * of BPF, or of one moment in which ptrace stops the process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dump/threads.h"
#include "cli/target_options.h"
#include "collect/session/session.h"
#include "model/builder/builder.h"
#include "model/shown.h"
#include "sources/cpu/sampler.h"
#include "sources/source.h"

/* The first look at sleeping threads comes at once; later ones are for those that it missed. */
#define SHORTEST_NS (250 * NS_PER_MS)
/* A look takes about fifty stacks, ten times a second. */
#define THREAD_NS    (4 * NS_PER_MS)
#define LONGEST_NS   (10 * NS_PER_S)
#define FREQUENCY_HZ 499

enum dump_mode {
	DUMP_MODE_BPF,
	DUMP_MODE_PTRACE,
};

static const char *const mode_names[] = {
	[DUMP_MODE_BPF] = "bpf",
	[DUMP_MODE_PTRACE] = "ptrace",
	NULL,
};

static struct {
	struct target_options target; /* -p alone is in the table */
	const char *mode;             /* NULL: BPF where it can run here, else ptrace */
	bool json, interpreter;
} arguments;

static bool never_ends(void *context, struct session *session)
{
	(void)context;
	(void)session;
	return true;
}

/* With ptrace the process is stopped as soon as its files are known. */
static int record(uint32_t pid, enum dump_mode mode, size_t thread_count,
	struct model_builder *builder, struct session_result *result, struct errmsg *err)
{
	bool is_bpf = mode == DUMP_MODE_BPF;
	const struct session_options options = {
		.period_ns = NS_PER_S / FREQUENCY_HZ,
		.duration_ns = is_bpf ? MIN(SHORTEST_NS + thread_count * THREAD_NS, LONGEST_NS) : 1,
		.pids = &pid,
		.pid_count = 1,
		.mode = is_bpf ? SESSION_MODE_BPF : SESSION_MODE_USER,
		.wait = is_bpf ? SESSION_WAIT_SAMPLE : SESSION_WAIT_OFF,
		.scope = SESSION_SCOPE_CPU,
		.sources = is_bpf ? NULL : stopped_source_table,
		.live = {.visitor = &model_builder_visitor,
			.visitor_context = builder,
			.tick = never_ends,
			.input_fd = -1,
			.is_kept = true},
	};
	struct errmsg reason = {{0}};
	int r = session_run(&options, result, &reason);

	if (r < 0)
		errmsg_set(err, r, "%s", reason.text[0] ? reason.text : strerror(-r));
	return r;
}

/* `ret_why`: why BPF cannot run here, where nobody asked for the other mode. */
static enum dump_mode choose_mode(struct errmsg *ret_why)
{
	if (!arguments.mode)
		return bpf_sampler.probe(ret_why) == 0 ? DUMP_MODE_BPF : DUMP_MODE_PTRACE;
	return strcmp(arguments.mode, mode_names[DUMP_MODE_BPF]) == 0 ? DUMP_MODE_BPF
								      : DUMP_MODE_PTRACE;
}

/* How long it was stopped, and what would do without. */
static void print_notes(const struct session_result *result, const struct errmsg *why)
{
	for (uint32_t i = 0; i < result->stats.note_count; i++) {
		if (strncmp(result->stats.notes[i], STOPPED_NOTE, strlen(STOPPED_NOTE)) == 0)
			fprintf(stderr, "sonde: %s\n", result->stats.notes[i]);
	}
	if (why->text[0])
		fprintf(stderr, "sonde: BPF would read them without a stop: %s\n", why->text);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static int list_threads(uint32_t pid, struct pid_list *tids, struct errmsg *err)
{
	int r = proc_list_threads(pid, tids);

	if (r == 0 && !tids->pids.count)
		r = -ESRCH;
	if (r < 0)
		return errmsg_set(
			err, r, "there is no process %u: ps -e lists those that there are", pid);
	qsort(tids->pids.items, tids->pids.count, sizeof(uint32_t), by_number);
	return 0;
}

static int print_threads(uint32_t pid, enum dump_mode mode, struct model_builder *builder,
	const struct pid_list *tids)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct dump_threads threads = {.pid = pid, .tids = tids, .mode = mode_names[mode]};
	struct model *model;
	int r = model_builder_snapshot(builder, 1, &model);

	if (r < 0)
		return r;
	threads.model = model;
	if (!arguments.interpreter) {
		model_hide_interpreter(model);
		r = model_hide_sonde(model);
	}
	if (r == 0)
		r = arguments.json ? dump_threads_json(&threads, &out)
				   : dump_threads_print(&threads, &out);
	if (r == 0)
		fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return r;
}

static int dump(
	uint32_t pid, enum dump_mode mode, struct session_result *result, struct errmsg *err)
{
	_cleanup_model_builder_ struct model_builder *builder = NULL;
	struct pid_list before = {0}, tids = {0};
	int r = list_threads(pid, &before, err);

	if (r == 0)
		r = model_builder_new(&builder);
	if (r == 0)
		r = record(pid, mode, before.pids.count, builder, result, err);
	if (r == 0)
		r = list_threads(pid, &tids, err);
	if (r == 0)
		r = print_threads(pid, mode, builder, &tids);
	array_done(&before.pids);
	array_done(&tids.pids);
	return r;
}

static int run_dump(int count, char **words)
{
	uint32_t pids[TARGET_MAXIMUM_PIDS] = {0};
	struct session_result *result = calloc(1, sizeof(*result));
	struct session_options options = {0};
	struct errmsg err = {{0}}, why = {{0}};
	enum dump_mode mode;
	int r;

	(void)count;
	(void)words;
	if (!result)
		return EXIT_ERROR;
	r = arguments.target.pids.count == 1
		    ? target_options_parse(&arguments.target, 0, pids, &options, &err)
		    : errmsg_set(&err, -EINVAL, "name one process: sonde dump -p PID");
	if (r < 0) {
		free(result);
		return fail_usage(&err);
	}
	mode = choose_mode(&why);
	r = dump(pids[0], mode, result, &err);
	if (r == 0 && mode == DUMP_MODE_PTRACE)
		print_notes(result, &why);
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "dump failed: %s", strerror(-r));
	session_result_done(result);
	free(result);
	return r < 0 ? fail(&err) : EXIT_OK;
}

static const struct option dump_options[] = {
	{.short_name = 'p',
		.long_name = "pid",
		.type = OPTION_STRINGS,
		.argument = "PID",
		.help = "The running process.",
		.value = &arguments.target.pids},
	{.long_name = "mode",
		.type = OPTION_CHOICE,
		.choices = mode_names,
		.argument = "MODE",
		.help = "bpf: without stopping the process. ptrace: it is stopped for some "
			"milliseconds, which needs no privileges for one's own processes. Else BPF "
			"where it can run, and ptrace where not.",
		.value = &arguments.mode},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON object instead, with the kernel's frames, too.",
		.value = &arguments.json},
	{.long_name = "show-interpreter",
		.type = OPTION_FLAG,
		.help = "Show the own functions of the Python interpreter and of sonde, too.",
		.value = &arguments.interpreter},
	{0},
};

const struct command dump_command = {
	.name = "dump",
	.summary = "print where every thread of a process is now",
	.usage = "-p PID",
	.description =
		"Prints each thread of a running process: its id and name, whether it runs or what "
		"it waits for, whether it holds Python's interpreter lock, and its Python and "
		"native stack, innermost first. With BPF, which needs root or CAP_BPF and "
		"CAP_PERFMON, it records the process for a quarter of a second, and longer with "
		"hundreds of threads, and does not stop it. Without, ptrace stops one's own "
		"process for some milliseconds.",
	.examples = "sudo sonde dump -p 4711\n    Where a program hangs.\n"
		    "sonde dump -p 4711\n    The same of one's own program, which is stopped for "
		    "some milliseconds.\n"
		    "sudo sonde dump --json -p 4711 | jq '.threads[] | select(.waits_for==\"gil\")'"
		    "\n    The threads that wait for Python's interpreter lock.",
	.options = dump_options,
	.run = run_dump,
};
