/* SPDX-License-Identifier: Apache-2.0 */
/* What report, export and diff share: reading a capture with a progress bar, and the filters. */
#pragma once

#include "analyses/device/device_idle.h"
#include "analyses/energy/use.h"
#include "analyses/selection.h"
#include "cli/command.h"
#include "model/model.h"
#include "model/shown.h"

/* Which frames of stacks are shown. */
struct shown_options {
	bool interpreter;
	const char *stacks;         /* of stack_choices; NULL: "all" */
	const char *fold_libraries; /* "yes", "no"; NULL: as the command likes */
	const char *weight;         /* of weight_choices; NULL: "cpu" */
};

enum model_weight shown_weight(const struct shown_options *shown);
enum model_side shown_side(const struct shown_options *shown);

/*
 * model_load() of the windows of the selection, with a bar. Warns when the file is cut off or holds
 * several recordings. Hides the interpreter's frames, and folds libraries where that was asked for.
 */
int load_capture(const char *path, const struct shown_options *shown,
	const struct selection *selection, struct model **ret_model, struct errmsg *err);

/*
 * Charges what was recorded with its energy, of the time that is selected. Before the model is
 * narrowed.
 */
int charge_energy(struct model *model, const struct selection *selection,
	struct energy_use *ret_energy, struct errmsg *err);
/*
 * Weighs samples as asked for: once, after load_capture(). `idle` and `energy` are of the model
 * before it was narrowed.
 */
int weigh_capture(struct model *model, const struct shown_options *shown,
	const struct device_idle *idle, const struct energy_use *energy, struct errmsg *err);
/* The same, after selection_narrow(). */
int select_and_weigh(struct model *model, const struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy, struct errmsg *err);

#define WEIGHT_OPTION(shown)                                                                       \
	{                                                                                          \
		.long_name = "weight", .type = OPTION_CHOICE, .argument = "WHAT",                  \
		.help = "What stacks are weighed by: cpu, time on a CPU; wait, time waiting, "     \
			"whose stacks end in what was waited for; wall, both; gpu, time "          \
			"of device work, whose stacks are those of its launches; gpu-idle, "       \
			"time that devices were idle, whose stacks are what the thread did "       \
			"that launched the next work; cpu+gpu, cpu and gpu in one; energy, "       \
			"the joules of both, with what was idle and what no program took.",        \
		.value = (void *)&(shown).weight, .choices = weight_choices                        \
	}

#define SHOWN_OPTIONS(shown)                                                                       \
	{.long_name = "stacks",                                                                    \
		.type = OPTION_CHOICE,                                                             \
		.argument = "WHICH",                                                               \
		.help = "user: only the frames of programs; kernel: only the kernel's. Stacks "    \
			"without any are one frame, [kernel] or [user]. Default: all.",            \
		.value = (void *)&(shown).stacks,                                                  \
		.choices = stack_choices},                                                         \
		{.long_name = "fold-libraries",                                                    \
			.type = OPTION_CHOICE,                                                     \
			.argument = "WHETHER",                                                     \
			.help = "yes: charge what libraries do to the line of your code that "     \
				"called "                                                          \
				"them.",                                                           \
			.value = (void *)&(shown).fold_libraries,                                  \
			.choices = yes_no_choices,                                                 \
			.group = "Python stacks"},                                                 \
	{                                                                                          \
		.long_name = "show-interpreter", .type = OPTION_FLAG,                              \
		.help = "Show the Python interpreter's own functions too.",                        \
		.value = &(shown).interpreter, .group = "Python stacks"                            \
	}

extern const char *const yes_no_choices[];
extern const char *const weight_choices[];
extern const char *const stack_choices[];

/* The option table's lines for a `struct selection`. */
#define FILTER_OPTIONS(selection)                                                                  \
	{.long_name = "process",                                                                   \
		.type = OPTION_STRING,                                                             \
		.argument = "PID|PATTERN",                                                         \
		.help = "Only processes with this pid, or this pattern in their names.",           \
		.value = (void *)&(selection).process,                                             \
		.group = "Filters (patterns are extended regular expressions)"},                   \
		{.long_name = "thread",                                                            \
			.type = OPTION_STRING,                                                     \
			.argument = "TID|PATTERN",                                                 \
			.help = "Only threads with this tid, or this pattern in their names.",     \
			.value = (void *)&(selection).thread,                                      \
			.group = "Filters (patterns are extended regular expressions)"},           \
		{.long_name = "time",                                                              \
			.type = OPTION_STRING,                                                     \
			.argument = "START..END",                                                  \
			.help = "Only this time, in seconds since the recording began; either "    \
				"end may be left out.",                                            \
			.value = (void *)&(selection).time,                                        \
			.group = "Filters (patterns are extended regular expressions)"},           \
		{.long_name = "window",                                                            \
			.type = OPTION_STRING,                                                     \
			.argument = "N[,M|A-B]",                                                   \
			.help = "Only these windows of the recording: numbers, and ranges of "     \
				"them. --by window lists them.",                                   \
			.value = (void *)&(selection).window,                                      \
			.group = "Filters (patterns are extended regular expressions)"},           \
		{.long_name = "range",                                                             \
			.type = OPTION_STRING,                                                     \
			.argument = "PATTERN",                                                     \
			.help = "Only what ran, or was launched, in NVTX ranges with this "        \
				"pattern in their names.",                                         \
			.value = (void *)&(selection).range,                                       \
			.group = "Filters (patterns are extended regular expressions)"},           \
	{                                                                                          \
		.long_name = "symbol", .type = OPTION_STRING, .argument = "PATTERN",               \
		.help = "Only samples with this pattern in a function of their stack.",            \
		.value = (void *)&(selection).symbol,                                              \
		.group = "Filters (patterns are extended regular expressions)"                     \
	}
