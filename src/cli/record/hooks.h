/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the Python hooks, for the account at the end of a recording. */
#pragma once

#include "collect/hooks/hook_table.h"

/* Prints the table to standard error; nothing where no process used a group of hooks. */
void record_print_hooks(const struct hook_table *table);
