/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record`: samples a command, processes or the machine into a capture, then accounts for
 * itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "collect/session.h"

#define DEFAULT_OUTPUT "sonde.pftrace"

static const char *record_output;
static uint64_t record_frequency_hz = 99;
static double record_duration_s;
static struct option_strings record_pids;
static bool record_all, record_quiet, record_uncompressed, record_stack_sample;
static const char *record_mode = "auto";

/* ---- what was recorded, and what it cost
 * ------------------------------------------------------------------ */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_stacks(const struct capture_stats *stats)
{
	const char *separator = "; ended early: ";
	uint64_t with_user_stack = stats->samples - stats->stacks_by_stop[WIRE_STOP_NO_USER_STACK];

	fprintf(stderr, "  stacks  %.2f %% reach the thread's entry",
		percent(stats->stacks_by_stop[WIRE_STOP_COMPLETE], with_user_stack));
	for (unsigned stop = WIRE_STOP_NO_USER_STACK + 1; stop < WIRE_STOP_MAX; stop++) {
		if (!stats->stacks_by_stop[stop])
			continue;
		fprintf(stderr, "%s%llu %s", separator,
			(unsigned long long)stats->stacks_by_stop[stop], wire_stop_name(stop));
		separator = ", ";
	}
	if (stats->stacks_unwound_in_user_space && stats->bpf_run_count)
		fprintf(stderr, "; %llu unwound by sonde itself, their table was being built",
			(unsigned long long)stats->stacks_unwound_in_user_space);
	fputc('\n', stderr);
}

static void print_losses(const struct capture_stats *stats)
{
	fprintf(stderr, "  lost    %llu samples", (unsigned long long)stats->samples_lost);
	for (uint32_t i = 0; i < stats->loss_count; i++)
		fprintf(stderr, "%s%llu in %s of CPU %u", i ? ", " : ": ",
			(unsigned long long)stats->losses[i].count, stats->losses[i].where,
			stats->losses[i].cpu);
	fputc('\n', stderr);
}

static void print_cost(const struct session_result *result)
{
	const struct capture_stats *stats = &result->stats;

	fprintf(stderr, "  cost    ");
	if (stats->bpf_run_count && stats->samples)
		fprintf(stderr, "%.1f µs per sample in the kernel, ",
			(double)stats->bpf_run_time_ns / (double)stats->samples / 1000);
	fprintf(stderr, "%.2f s CPU for sonde itself (%.1f %% of one core), %.0f MB peak memory",
		(double)stats->collector_cpu_ns / NS_PER_S,
		percent(stats->collector_cpu_ns, result->duration_ns),
		(double)stats->collector_peak_rss_bytes / 1e6);
	if (stats->tables_built || stats->tables_from_cache)
		fprintf(stderr, "; %llu unwind tables built, %llu from the cache (%.2f s)",
			(unsigned long long)stats->tables_built,
			(unsigned long long)stats->tables_from_cache,
			(double)stats->table_build_ns / NS_PER_S);
	fputc('\n', stderr);
}

static void print_summary(const struct session_result *result, const char *output)
{
	const struct capture_stats *stats = &result->stats;
	struct stat file;
	double bytes = stat(output, &file) == 0 ? (double)file.st_size : 0;

	fprintf(stderr, "sonde: %llu samples in %.1f s, %.2f MB in %s",
		(unsigned long long)stats->samples, (double)result->duration_ns / NS_PER_S,
		bytes / 1e6, output);
	if (stats->samples)
		fprintf(stderr, " (%.0f bytes per sample)", bytes / (double)stats->samples);
	fputc('\n', stderr);
	print_stacks(stats);
	print_losses(stats);
	print_cost(result);
	if (result->mode_reason.text[0])
		fprintf(stderr,
			"  mode    without BPF: %s. With it: every process of the tree however it "
			"starts, -a, kernel stacks, whole stacks beyond the copied part, less "
			"cost\n",
			result->mode_reason.text);
	for (uint32_t i = 0; i < stats->note_count; i++)
		fprintf(stderr, "  note    %s\n", stats->notes[i]);
	fprintf(stderr, "next: sonde report %s\n", output);
}

static void on_finishing(void *context _unused_, const char *what, uint64_t left)
{
	static bool said;

	if (said || record_quiet)
		return;
	said = true;
	fprintf(stderr, "sonde: waiting for %s, needed by %llu samples …\n", what,
		(unsigned long long)left);
}

/* ---- command line
 * ------------------------------------------------------------------------------------------ */

static int parse_pids(uint32_t *ret_pids, size_t *ret_count, struct errmsg *err)
{
	for (size_t i = 0; i < record_pids.count; i++) {
		char *end;
		unsigned long pid;

		errno = 0;
		pid = strtoul(record_pids.values[i], &end, 10);
		if (errno || *end || end == record_pids.values[i] || pid == 0 || pid > INT32_MAX)
			return errmsg_set(err, -EINVAL,
				"-p %s is no process id; give a number, and -p again for each more",
				record_pids.values[i]);
		ret_pids[i] = (uint32_t)pid;
	}
	*ret_count = record_pids.count;
	return 0;
}

static int check_targets(int count, struct errmsg *err)
{
	int kinds = (count > 0) + (record_pids.count > 0) + record_all;

	if (kinds == 1)
		return 0;
	return errmsg_set(err, -EINVAL,
		kinds ? "give only one of: a command, -p PID, -a"
		      : "nothing to record; give a command (sonde record -- python3 train.py), "
			"-p PID, or -a for the whole machine");
}

static enum session_mode parse_mode(void)
{
	if (strcmp(record_mode, "bpf") == 0)
		return SESSION_MODE_BPF;
	return strcmp(record_mode, "user") == 0 ? SESSION_MODE_USER : SESSION_MODE_AUTO;
}

/* The default name is used again and again: the capture before is kept beside it. */
static void keep_previous(const char *output)
{
	if (!record_output && access(output, F_OK) == 0)
		rename(output, DEFAULT_OUTPUT ".old");
}

static int exit_status(const struct session_result *result, int error)
{
	if (result->command_status > 0)
		return result->command_status;
	return error < 0 ? EXIT_ERROR : EXIT_OK;
}

static int run_record(int count, char **arguments)
{
	uint32_t pids[ARRAY_SIZE(record_pids.values)];
	size_t pid_count = 0;
	struct session_result *result = calloc(1, sizeof(*result));
	struct session_options options = {
		.output = record_output ? record_output : DEFAULT_OUTPUT,
		.period_ns = NS_PER_S / record_frequency_hz,
		.duration_ns = (uint64_t)(record_duration_s * NS_PER_S),
		.command = count ? arguments : NULL,
		.pids = pids,
		.whole_machine = record_all,
		.mode = parse_mode(),
		.uncompressed = record_uncompressed,
		.stack_sample = record_stack_sample,
		.on_finishing = on_finishing,
	};
	struct errmsg err = {{0}};
	int error, status;

	if (!result)
		return EXIT_ERROR;
	if (check_targets(count, &err) < 0 || parse_pids(pids, &pid_count, &err) < 0) {
		free(result);
		return fail_usage(&err);
	}
	options.pid_count = (uint32_t)pid_count;
	keep_previous(options.output);
	error = session_run(&options, result, &err);
	if (error < 0 && !err.text[0])
		errmsg_set(&err, error, "recording failed: %s", strerror(-error));
	if (error < 0)
		fail(&err);
	else if (!record_quiet)
		print_summary(result, options.output);
	status = exit_status(result, error);
	session_result_done(result);
	free(result);
	return status;
}

static const char *const record_modes[] = {"auto", "bpf", "user", NULL};

static const struct option record_options[] = {
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the capture here. Default: " DEFAULT_OUTPUT
			", keeping the one before as " DEFAULT_OUTPUT ".old.",
		.value = &record_output},
	{.short_name = 'F',
		.long_name = "frequency",
		.type = OPTION_U64,
		.argument = "HZ",
		.help = "Samples per second and CPU. Default: 99.",
		.value = &record_frequency_hz,
		.minimum = 1,
		.maximum = 20000},
	{.short_name = 'd',
		.long_name = "duration",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.help = "Stop recording after this time; a command runs on and is waited for.",
		.value = &record_duration_s,
		.minimum = 0,
		.maximum = 1e6},
	{.short_name = 'p',
		.long_name = "pid",
		.type = OPTION_STRINGS,
		.argument = "PID",
		.help = "Record this running process and its descendants; may be given again.",
		.value = &record_pids,
		.group = "What to record"},
	{.short_name = 'a',
		.long_name = "all",
		.type = OPTION_FLAG,
		.help = "Record every process of the machine.",
		.value = &record_all,
		.group = "What to record"},
	{.long_name = "mode",
		.type = OPTION_CHOICE,
		.argument = "MODE",
		.help = "bpf: unwind in the kernel; user: without privileges, unwind copied "
			"stacks; "
			"auto: bpf where it can run.",
		.value = &record_mode,
		.choices = record_modes},
	{.long_name = "uncompressed",
		.type = OPTION_FLAG,
		.help = "Write plain packets, for tools that cannot inflate them.",
		.value = &record_uncompressed},
	{.long_name = "stack-sample",
		.type = OPTION_FLAG,
		.help = "Write StackSample packets (Perfetto 58 and later) instead of PerfSample.",
		.value = &record_stack_sample},
	{.short_name = 'q',
		.long_name = "quiet",
		.type = OPTION_FLAG,
		.help = "Do not print the account at the end.",
		.value = &record_quiet},
	{0},
};

const struct command record_command = {
	.name = "record",
	.summary = "sample a command, a process or the whole machine into a capture",
	.usage = "[options] [-- COMMAND [ARGUMENT…]]",
	.description =
		"Samples every thread of the whole process tree, children and exec included, with "
		"user "
		"and kernel stacks, unwound without frame pointers and without any change to the "
		"program. The capture is a Perfetto trace: `sonde report` answers from it, and it "
		"opens in the Perfetto UI.\n"
		"Exits with the command's own status. ^C reaches the command; when it ends, the "
		"capture "
		"is finished. A second ^C finishes it at once.",
	.examples = "sonde record -- python3 train.py\n    Record a training run.\n"
		    "sonde record -F 999 -d 10 -p 4711\n    Ten seconds of a running process, in "
		    "detail.\n"
		    "sudo sonde record -a -d 5 -o machine.pftrace\n    Five seconds of everything.",
	.options = record_options,
	.maximum_arguments = -1,
	.stops_at_first_argument = true,
	.run = run_record,
};
