/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target_options.h"

#include <errno.h>
#include <stdlib.h>

static int parse_pids(const struct option_strings *texts, uint32_t *ret_pids, struct errmsg *err)
{
	for (size_t i = 0; i < texts->count; i++) {
		char *end;
		unsigned long pid;

		errno = 0;
		pid = strtoul(texts->values[i], &end, 10);
		if (errno || *end || end == texts->values[i] || pid == 0 || pid > INT32_MAX)
			return errmsg_set(err, -EINVAL,
				"-p %s is not a process id; give a number, and repeat -p for more",
				texts->values[i]);
		ret_pids[i] = (uint32_t)pid;
	}
	return 0;
}

int target_options_parse(const struct target_options *target, int argument_count, uint32_t *pids,
	struct session_options *options, struct errmsg *err)
{
	int kinds = (argument_count > 0) + (target->pids.count > 0) + target->all;

	if (kinds != 1)
		return errmsg_set(err, -EINVAL,
			kinds ? "give only one of: a command, -p PID, -a"
			      : "nothing to record; give a command (sonde record -- python3 "
				"train.py), -p PID, or -a for the whole machine");
	options->whole_machine = target->all;
	options->pid_count = (uint32_t)target->pids.count;
	return parse_pids(&target->pids, pids, err);
}

int target_exit_status(const struct session_result *result, int error)
{
	if (result->command_status > 0)
		return result->command_status;
	return error < 0 ? EXIT_ERROR : EXIT_OK;
}
