/* SPDX-License-Identifier: Apache-2.0 */
/* The options of what load/capture.h takes, and of filters: for the tables of commands. */
#pragma once

#include "cli/command.h"
#include "query/options.h"

#define WEIGHT_OPTION(shown)                                                                       \
	{                                                                                          \
		.long_name = "weight", .type = OPTION_CHOICE, .argument = "WHAT",                  \
		.help = "The weight of stacks. cpu: time on a CPU; wait: time waiting, with "      \
			"stacks that end in what was waited for; wall: both; gpu: time of "        \
			"device work, with the stacks of its launches; gpu-idle: time that "       \
			"devices were idle, with the stacks of the thread that launched the "      \
			"next work; gpu-bytes: bytes of device memory in use at the device's "     \
			"peak, with the stacks that allocated them, and of several devices the "   \
			"sum of their peaks; cpu+gpu: cpu and gpu together; energy: the joules "   \
			"of both, with idle and unattributed energy.",                             \
		.value = (void *)&(shown).weight, .choices = weight_choices                        \
	}

#define SHOWN_OPTIONS(shown)                                                                       \
	{.long_name = "stacks",                                                                    \
		.type = OPTION_CHOICE,                                                             \
		.argument = "WHICH",                                                               \
		.help = "user: only frames of programs; kernel: only frames of the kernel. "       \
			"Stacks "                                                                  \
			"with none left are one frame, [kernel] or [user]. modules: nn.Modules, "  \
			"operators and kernels, backward work below the module that it is "        \
			"the gradient of. Default: all.",                                          \
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
		.help = "Show the own functions of the Python interpreter and of sonde, too.",     \
		.value = &(shown).interpreter, .group = "Python stacks"                            \
	}

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
		{.long_name = "step",                                                              \
			.type = OPTION_STRING,                                                     \
			.argument = "N[-M]",                                                       \
			.help = "Only these steps: what ran in them, and device work that was "    \
				"launched in them.",                                               \
			.value = (void *)&(selection).step,                                        \
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
			.help = "Only work that ran, or was launched, in NVTX ranges with this "   \
				"pattern in their names.",                                         \
			.value = (void *)&(selection).range,                                       \
			.group = "Filters (patterns are extended regular expressions)"},           \
	{                                                                                          \
		.long_name = "symbol", .type = OPTION_STRING, .argument = "PATTERN",               \
		.help = "Only samples with this pattern in a function of their stack.",            \
		.value = (void *)&(selection).symbol,                                              \
		.group = "Filters (patterns are extended regular expressions)"                     \
	}
