/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process may not be traced by ptrace, in a sentence with what to try. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

/* What is known of the refused process and of the machine. */
struct refusal {
	uint32_t pid;
	uint32_t own_uid, uid; /* whose sonde is, and whose the process */
	uint32_t tracer_pid;   /* who traces it already; 0: nobody */
	int yama_scope;        /* kernel.yama.ptrace_scope; -1: there is none */
	bool is_dumpable;
};

struct refusal refusal_read(uint32_t pid);
/* Returns `error`, what ptrace() answered. */
int refusal_explain(const struct refusal *refusal, int error, struct errmsg *err);
