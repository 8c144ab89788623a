/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel addresses, from /proc/kallsyms; BPF programs and modules that come later by PERF_RECORD_KSYMBOL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

struct kernel_symbols;

/*
 * Reads text symbols of `path` ("/proc/kallsyms"). When the kernel hides addresses (kptr_restrict, no CAP_SYSLOG) returns
 * -EACCES and a sentence that names the setting.
 */
int kernel_symbols_open(
	struct kernel_symbols **ret_symbols, const char *path, struct errmsg *err);
struct kernel_symbols *kernel_symbols_free(struct kernel_symbols *symbols);
/* Adds or, with size 0, removes one symbol (PERF_RECORD_KSYMBOL). Returns 0 or -ENOMEM. */
int kernel_symbols_update(
	struct kernel_symbols *symbols, uint64_t address, uint64_t size, const char *name);
/*
 * The symbol at or below `address`; its module in *ret_module ("" for the kernel proper). False when none.
 */
bool kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address,
	const char **ret_name, const char **ret_module);
