/* SPDX-License-Identifier: Apache-2.0 */
/* Every command, each defined at the bottom of its own file. */
#pragma once

#include "cli/command.h"

extern const struct command chakra_command;
extern const struct command completion_command;
extern const struct command ctl_command;
extern const struct command diff_command;
extern const struct command mcp_command;
extern const struct command doctor_command;
extern const struct command dump_command;
extern const struct command merge_command;
extern const struct command export_command;
extern const struct command help_command;
extern const struct command import_command;
extern const struct command man_command;
extern const struct command push_command;
extern const struct command record_command;
extern const struct command report_command;
extern const struct command runs_command;
extern const struct command serve_command;
extern const struct command top_command;
extern const struct command version_command;
extern const struct command view_command;
