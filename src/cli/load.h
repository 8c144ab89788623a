/* SPDX-License-Identifier: Apache-2.0 */
/* What report, export and diff share: reading a capture with a progress bar, and the filters. */
#pragma once

#include "analyses/selection.h"
#include "cli/command.h"
#include "model/model.h"

/* model_load() with a bar. Warns when the file is cut off or holds several recordings. */
int load_capture(const char *path, struct model **ret_model, struct errmsg *err);

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
	{                                                                                          \
		.long_name = "symbol", .type = OPTION_STRING, .argument = "PATTERN",               \
		.help = "Only samples with this pattern in a function of their stack.",            \
		.value = (void *)&(selection).symbol,                                              \
		.group = "Filters (patterns are extended regular expressions)"                     \
	}
