/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a process, each with the newest stack that a short recording has of it. */
#pragma once

#include "base/strbuf.h"
#include "model/model.h"
#include "sources/process/proc_info.h"

struct dump_threads {
	const struct model *model;
	uint32_t pid;
	const char *mode;            /* how the stacks were read: "bpf" or "ptrace" */
	const struct pid_list *tids; /* of the process, when the recording ended; sorted */
};

/* As text, in which threads with the same state and stack are one entry, or as one JSON object.
 * Return 0 or -ENOMEM. */
int dump_threads_print(const struct dump_threads *threads, struct strbuf *out);
int dump_threads_json(const struct dump_threads *threads, struct strbuf *out);
