/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/escape.h"
#include "base/new_file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/warn.h"
#include "capture/split/split.h"
#include "cli/record/continuous.h"
#include "cli/record/hooks.h"
#include "model/format.h"

#define ITEM_INDENT 10 /* columns before an item's text */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_plural(struct strbuf *out, uint64_t count, const char *noun)
{
	format_count(out, count);
	strbuf_addf(out, " %s%s", noun, count == 1 ? "" : "s");
}

/* One item of the account; broken into lines only for a terminal, so that a log can be searched. */
static void print_item(const char *label, const struct strbuf *text)
{
	_cleanup_strbuf_ struct strbuf lines = {0}, plain = {0};
	size_t width = isatty(STDERR_FILENO) ? text_terminal_width(stderr) : SIZE_MAX;

	strbuf_addf(&lines, "  %-*s", ITEM_INDENT - 2, label);
	escape_plain(&plain, strbuf_cstr(text));
	text_wrap(&lines, strbuf_cstr(&plain), ITEM_INDENT, ITEM_INDENT, width);
	fputs(strbuf_cstr(&lines), stderr);
}

/* "sonde: 519 samples in 5.76 s, none lost; 100.00 % of stacks are complete" */
static void print_amount(const struct session_result *result)
{
	const struct capture_stats *stats = &result->stats;
	uint64_t with_user_stack = stats->samples - stats->stacks_by_stop[WIRE_STOP_NO_USER_STACK];
	_cleanup_strbuf_ struct strbuf text = {0};

	add_plural(&text, stats->samples, "sample");
	strbuf_add(&text, " in ");
	if (result->window_count) {
		add_plural(&text, result->window_count, "window");
		strbuf_add(&text, " of ");
		format_duration(&text, result->windows_ns);
		strbuf_add(&text, ", of ");
	}
	format_duration(&text, result->duration_ns);
	if (stats->samples_lost) {
		strbuf_add(&text, ", ");
		format_count(&text, stats->samples_lost);
		strbuf_add(&text, " lost");
	} else if (stats->samples) {
		strbuf_add(&text, ", none lost");
	}
	/* Rounded down: less is never shown as "100 %". */
	if (with_user_stack)
		strbuf_addf(&text, "; %.2f %% of stacks are complete",
			floor(100 * percent(stats->stacks_by_stop[WIRE_STOP_COMPLETE],
					    with_user_stack)) /
				100);
	print_plain("sonde: %s\n", strbuf_cstr(&text));
}

/* What --window asks for, with what it left to its defaults. */
static void print_windows(const struct session_options *options)
{
	const struct wire_schedule *schedule = &options->window.schedule;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (options->window.trigger != CAPTURE_TRIGGER_STEPS)
		return;
	strbuf_addf(&text,
		"wait=%llu, warmup=%llu, active=%llu, repeat=%llu; %llu samples a second and CPU",
		(unsigned long long)schedule->wait, (unsigned long long)schedule->warmup,
		(unsigned long long)schedule->active, (unsigned long long)schedule->repeat,
		(unsigned long long)(NS_PER_S / options->period_ns));
	print_item("windows", &text);
}

/* Those that are not complete, by their reason. */
static void print_stacks(const struct capture_stats *stats)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *separator = "ended early: ";

	for (unsigned stop = WIRE_STOP_NO_USER_STACK + 1; stop < WIRE_STOP_MAX; stop++) {
		if (!stats->stacks_by_stop[stop])
			continue;
		strbuf_add(&text, separator);
		format_count(&text, stats->stacks_by_stop[stop]);
		strbuf_addf(&text, " %s", wire_stop_name(stop));
		separator = ", ";
	}
	if (text.length)
		print_item("stacks", &text);
}

static void print_losses(const struct capture_stats *stats)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *separator = "; by place: ";

	if (!stats->samples_lost && !stats->loss_count)
		return;
	add_plural(&text, stats->samples_lost, "sample");
	for (uint32_t i = 0; i < stats->loss_count; i++) {
		const struct capture_loss *loss = &stats->losses[i];

		strbuf_addf(&text, "%s%s", separator, loss->where);
		if (strcmp(loss->where, "sample_ring") == 0)
			strbuf_addf(&text, " of CPU %u", loss->cpu);
		strbuf_add_char(&text, ' ');
		format_count(&text, loss->count);
		separator = ", ";
	}
	print_item("lost", &text);
}

static void print_cost(const struct session_result *result)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_collector_cpu(&text, &result->stats, result->duration_ns);
	strbuf_addf(&text, "; %.0f MB", (double)result->stats.collector_peak_rss_bytes / 1e6);
	print_item("cost", &text);
}

/* What is taken from the programs. */
static void print_kernel_cost(const struct session_result *result)
{
	const struct capture_stats *stats = &result->stats;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!stats->samples || result->mode_reason.text[0])
		return;
	if (stats->bpf_run_count)
		strbuf_addf(&text, "%.1f µs per sample",
			(double)stats->bpf_run_time_ns / (double)stats->samples / 1000);
	else
		strbuf_add(&text, "time per sample is not measured, that needs CAP_SYS_ADMIN");
	print_item("kernel", &text);
}

static void print_waiting(const struct capture_stats *stats, bool exact)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!stats->wait_samples)
		return;
	format_duration(&text, stats->waited_ns);
	strbuf_add(&text, " of all threads");
	if (stats->wait_run_time_ns) {
		strbuf_add(&text, exact ? "; measuring it took " : "; sampling them took ");
		format_duration(&text, stats->wait_run_time_ns);
		strbuf_add(&text, " in the kernel");
	}
	print_item("waited", &text);
}

static void print_device(const struct capture_device_stats *stats)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!stats->launches && !stats->works)
		return;
	format_count(&text, stats->works);
	strbuf_add(&text, " kernels, copies and the like, ");
	add_plural(&text, stats->stacks, "launch stack");
	if (stats->stack_run_count)
		strbuf_addf(&text, " of %.1f µs each in the kernel",
			(double)stats->stack_run_time_ns / (double)stats->stack_run_count / 1000);
	if (stats->stacks_known) {
		strbuf_add(&text, ", ");
		format_count(&text, stats->stacks_known);
		strbuf_add(&text, " known from earlier ones");
	}
	print_item("device", &text);
}

static void print_ranges(const struct capture_range_stats *stats)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!stats->ranges && !stats->marks)
		return;
	add_plural(&text, stats->ranges, "range");
	strbuf_add(&text, ", ");
	add_plural(&text, stats->marks, "mark");
	print_item("nvtx", &text);
}

static void print_energy(const struct session_result *result)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!result->energy.text[0])
		return;
	strbuf_add(&text, result->energy.text);
	print_item("energy", &text);
}

/* The first recording of a program has tables to build; what it does meanwhile is not lost. */
static void print_tables(const struct capture_stats *stats)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!stats->tables_built)
		return;
	format_count(&text, stats->tables_built);
	strbuf_add(&text, " built in ");
	format_duration(&text, stats->table_build_ns);
	if (stats->stacks_unwound_in_user_space && stats->bpf_run_count) {
		strbuf_add(&text, "; ");
		add_plural(&text, stats->stacks_unwound_in_user_space, "stack");
		strbuf_add(&text, " copied meanwhile");
	}
	print_item("tables", &text);
}

static void print_mode(const struct session_result *result, bool asked_for)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!result->mode_reason.text[0])
		return;
	strbuf_addf(
		&text, "stacks are copied and unwound in user space: %s", result->mode_reason.text);
	if (!asked_for)
		strbuf_add(&text,
			". BPF would unwind stacks of any depth in place, at less cost, and could "
			"record other users' processes and the whole machine");
	print_item("mode", &text);
}

static void print_notes(const struct capture_stats *stats)
{
	for (uint32_t i = 0; i < stats->note_count; i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_add(&text, stats->notes[i]);
		print_item("note", &text);
	}
}

/* Behind sudo, a capture in a folder where the user may make no files. */
static bool is_only_roots(const char *path)
{
	struct stat file;
	uid_t user;
	gid_t group;

	return sudo_user(&user, &group) && stat(path, &file) == 0 && file.st_uid != user;
}

/* Where the recording is. */
static void print_files(const char *output, const char *first, uint32_t parts)
{
	_cleanup_strbuf_ struct strbuf size = {0};
	struct stat file;

	if (first)
		print_plain("sonde: %u window%s, each in its own file, from %s on\n", parts,
			parts == 1 ? "" : "s", first);
	if (first || stat(output, &file) < 0 || !S_ISREG(file.st_mode) || file.st_size == 0)
		return;
	format_bytes(&size, (uint64_t)file.st_size);
	print_plain("sonde: %s in %s\n", strbuf_cstr(&size), output);
}

/* As it was typed in a folder such as a checkout, where no shell finds the name alone. */
static const char *typed_program(void)
{
	const char *name = program_invocation_name;

	return name[0] != '/' && strchr(name, '/') ? name : "sonde";
}

/* What matters comes first: where the recording is, and how it is read. */
static void print_next(const struct session_result *result, const struct session_options *options,
	bool is_one_of_ranks)
{
	const char *output = session_output(options, result);
	_cleanup_free_ char *first = result->part_count ? capture_split_path(output, 1) : NULL;
	_cleanup_strbuf_ struct strbuf name = {0}, program = {0};
	bool needs_sudo = options->how.access != OUTPUT_GROUP;

	print_files(output, first, result->part_count);
	if (strcmp(output, "-") == 0 || options->live.visitor)
		return;
	escape_shell(&name, first ? first : output);
	escape_shell(&program, typed_program());
	needs_sudo = needs_sudo && is_only_roots(first ? first : output);
	print_plain("next: %s%s report %s", needs_sudo ? "sudo " : "", strbuf_cstr(&program),
		strbuf_cstr(&name));
	if (is_one_of_ranks)
		print_plain(", or of all ranks: %s report", strbuf_cstr(&program));
	print_plain("\n");
}

static void print_summary(const struct session_result *result,
	const struct session_options *options, bool is_one_of_ranks)
{
	print_amount(result);
	print_next(result, options, is_one_of_ranks);
	print_plain("\n");
	print_stacks(&result->stats);
	print_losses(&result->stats);
	print_windows(options);
	print_waiting(&result->stats, result->waits_are_exact);
	print_device(&result->stats.device);
	print_ranges(&result->stats.ranges);
	print_energy(result);
	print_cost(result);
	print_kernel_cost(result);
	print_tables(&result->stats);
	print_mode(result, options->mode == SESSION_MODE_USER);
	record_print_hooks(&result->hooks);
	print_notes(&result->stats);
}

void record_print_end(const struct session_result *result, const struct session_options *options,
	int error, const struct continuous *continuous, bool is_one_of_ranks)
{
	if (error >= 0)
		print_summary(result, options, is_one_of_ranks);
	if (continuous)
		continuous_print(continuous);
}
