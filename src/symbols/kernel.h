/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel addresses, from /proc/kallsyms; BPF programs and modules that come later by
 * PERF_RECORD_KSYMBOL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

struct kernel_symbols;

/*
 * Reads text symbols of `path` ("/proc/kallsyms"). When the kernel hides addresses (kptr_restrict,
 * no CAP_SYSLOG) returns -EACCES and a sentence that names the setting.
 */
int kernel_symbols_open(struct kernel_symbols **ret_symbols, const char *path, struct errmsg *err);
/* The same from text in the format of /proc/kallsyms; `name_for_messages` says where it is from. */
int kernel_symbols_parse(struct kernel_symbols **ret_symbols, const char *text, size_t length,
	const char *name_for_messages, struct errmsg *err);
struct kernel_symbols *kernel_symbols_free(struct kernel_symbols *symbols);
/*
 * Adds or, with size 0, removes one symbol (PERF_RECORD_KSYMBOL). An added one covers its size and
 * wins over symbols read earlier; those it overlaps that were added too are dead and dropped.
 * Returns 0 or -ENOMEM.
 */
int kernel_symbols_update(
	struct kernel_symbols *symbols, uint64_t address, uint64_t size, const char *name);
/*
 * The symbol at or below `address`; its module in *ret_module ("" for the kernel proper, "bpf" for
 * BPF programs). False when none. The strings live as long as `symbols`.
 */
bool kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address,
	const char **ret_name, const char **ret_module);
