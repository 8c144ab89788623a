/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommands of `sonde chakra`. To add one: a file NAME.c with a `struct command` named
 * "chakra NAME" at its bottom, a line here and in the table in chakra.c, the file in meson.build, a
 * test in tests/e2e/test_chakra.py and a section in docs/chakra.md.
 */
#pragma once

#include "cli/commands.h"

extern const struct command chakra_check_command;
extern const struct command chakra_convert_command;
extern const struct command chakra_dump_command;
extern const struct command chakra_graph_command;
extern const struct command chakra_link_command;
extern const struct command chakra_stat_command;

/* Is the file an execution trace of PyTorch's, linked or not? */
bool chakra_is_execution_trace(const char *path);
