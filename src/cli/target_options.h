/* SPDX-License-Identifier: Apache-2.0 */
/* What record and top share: who is recorded, and what the exit status is. */
#pragma once

#include "cli/command.h"
#include "collect/session/session.h"

struct target_options {
	struct option_strings pids;
	bool all;
};

#define TARGET_MAXIMUM_PIDS ARRAY_SIZE(((struct option_strings *)0)->values)

#define TARGET_OPTIONS(target)                                                                     \
	{.short_name = 'p',                                                                        \
		.long_name = "pid",                                                                \
		.type = OPTION_STRINGS,                                                            \
		.argument = "PID",                                                                 \
		.help = "This running process and its descendants. May be repeated.",              \
		.value = &(target).pids,                                                           \
		.group = "Which processes"},                                                       \
	{                                                                                          \
		.short_name = 'a', .long_name = "all", .type = OPTION_FLAG,                        \
		.help = "Every process of the machine.", .value = &(target).all,                   \
		.group = "Which processes"                                                         \
	}

/*
 * Fills the target's part of `options`: whole_machine, pid_count and what `pids`, room for
 * TARGET_MAXIMUM_PIDS, holds. `argument_count`: words of a command. Returns 0 or -EINVAL with a
 * sentence.
 */
int target_options_parse(const struct target_options *target, int argument_count, uint32_t *pids,
	struct session_options *options, struct errmsg *err);

/* The command's own, else by `error`. */
int target_exit_status(const struct session_result *result, int error);
