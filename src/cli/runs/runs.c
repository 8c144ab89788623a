/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs: the database of runs. */
#include "cli/runs/runs.h"

static const struct command *const subcommands[] = {
	&runs_list_command,
	&runs_add_command,
	&runs_show_command,
	&runs_compare_command,
	&runs_analyse_command,
	&runs_regressions_command,
	&runs_tag_command,
	&runs_note_command,
	&runs_delete_command,
	&runs_retention_command,
	&runs_export_command,
	&runs_import_command,
	&runs_stats_command,
	&runs_check_command,
	&runs_compact_command,
	NULL,
};

const struct command runs_command = {
	.name = "runs",
	.summary = "keep the figures of many runs, list and compare them",
	.usage = "[COMMAND] [options]",
	.description =
		"A database of runs: captures are added once, and their figures are listed, "
		"compared and kept when the captures are gone. Without a command it lists them.",
	.examples = "sonde runs add *.pftrace --experiment batch-size\n"
		    "    Adds captures.\n"
		    "sonde runs --experiment batch-size --sort tokens-per-s\n"
		    "    Lists them, the fastest first.",
	.subcommands = subcommands,
	.otherwise = &runs_list_command,
	.maximum_arguments = 0,
};
