/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra check: can a simulator run these traces? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/parallel.h"
#include "chakra/et/check.h"
#include "cli/chakra/chakra.h"
#include "model/format.h"

static struct {
	uint64_t limit;
} arguments = {.limit = 10};

struct job {
	const char *path;
	struct et_check *check; /* NULL: could not be read, see err */
	struct errmsg err;
};

static void check_one(size_t index, void *jobs)
{
	struct job *job = (struct job *)jobs + index;

	et_check(&job->check, job->path, &job->err);
}

/* The first sentences of a kind, and how many more there are. */
static void print_kind(const struct et_check *check, enum et_fault_kind kind)
{
	const char *word = et_fault_is_error(kind) ? "fault" : "note ";
	uint64_t shown = 0;

	array_foreach (&check->faults, fault) {
		_cleanup_strbuf_ struct strbuf text = {0};

		if (fault->kind != kind || shown == arguments.limit)
			continue;
		escape_plain(&text, fault->text);
		printf("  %s   %s\n", word, strbuf_cstr(&text));
		shown++;
	}
	if (check->counts[kind] > shown)
		printf("  %s   %s: %llu more\n", word, et_fault_kind_to_string(kind),
			(unsigned long long)(check->counts[kind] - shown));
}

static void print_check(const struct job *job)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	escape_plain(&text, job->path);
	strbuf_add(&text, ": ");
	format_count(&text, job->check->table->rows.count);
	strbuf_add(&text, " nodes, ");
	format_count(&text, job->check->deps);
	strbuf_addf(&text, " dependencies: %s",
		et_check_is_fine(job->check) ? "a simulator can run it"
					     : "a simulator cannot run it");
	puts(strbuf_cstr(&text));
	for (int kind = 0; kind < ET_FAULT_KIND_MAX; kind++)
		print_kind(job->check, (enum et_fault_kind)kind);
}

/* Those that could be read are compared. */
static int compare(struct job *jobs, size_t count)
{
	_cleanup_free_ struct et_check **checks = calloc(count, sizeof(struct et_check *));
	struct errmsg err;
	size_t read = 0;

	if (!checks) {
		errmsg_set(&err, -ENOMEM, "memory ran out");
		return fail(&err);
	}
	for (size_t i = 0; i < count; i++) {
		if (jobs[i].check)
			checks[read++] = jobs[i].check;
	}
	return et_check_groups(checks, read, &err) < 0 ? fail(&err) : EXIT_OK;
}

static int run_check(int count, char **positional)
{
	_cleanup_free_ struct job *jobs = calloc((size_t)count, sizeof(*jobs));
	struct errmsg err;
	int status;

	if (!jobs) {
		errmsg_set(&err, -ENOMEM, "memory ran out");
		return fail(&err);
	}
	for (int i = 0; i < count; i++)
		jobs[i].path = positional[i];
	parallel_each((size_t)count, check_one, jobs);
	status = compare(jobs, (size_t)count);
	for (int i = 0; i < count; i++) {
		if (!jobs[i].check) {
			status = fail(&jobs[i].err);
			continue;
		}
		print_check(&jobs[i]);
		if (!et_check_is_fine(jobs[i].check))
			status = EXIT_ERROR;
		et_check_free(jobs[i].check);
	}
	return status;
}

static const struct option check_options[] = {
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "COUNT",
		.help = "Faults of each kind that are shown.",
		.value = &arguments.limit,
		.minimum = 1,
		.maximum = 1000},
	{0},
};

const struct command chakra_check_command = {
	.name = "chakra check",
	.summary = "prove that a simulator can run Chakra execution traces",
	.usage = "[options] TRACE.et...",
	.description =
		"Looks for faults that make astra-sim stop or wait for ever: ids that are used "
		"twice, dependencies on nodes that are not in the file, nodes that wait for "
		"themselves, missing attributes, collectives that are not simulated, text that "
		"protobuf refuses. Each fault is printed with the node's id and its place in the "
		"file.\n\nGiven the traces of all ranks of a run, it also compares the process "
		"groups: their ranks, and the collectives that each rank begins, in order.\n\nThe "
		"exit status is 1 if there is a fault. Notes are not faults.",
	.examples = "sonde chakra check chakra/*.et\n    All ranks of a run.",
	.options = check_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_check,
};
