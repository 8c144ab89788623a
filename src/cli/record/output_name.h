/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of captures with what tells one recording of a job from the others: "run/%h-%r.pftrace".
 *
 *   %h  the host's name
 *   %r  the rank, as torchrun, Open MPI, MPICH, PMIx or Slurm set it in sonde's environment
 *   %p  the process id of sonde
 *   %t  the time: 20261124-155900, UTC
 *   %%  a percent sign
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

/* What the marks stand for. */
struct output_name_facts {
	const char *host;
	int64_t rank; /* -1: none is set */
	uint32_t pid;
	time_t time;
};

/*
 * The capture of one rank of several has both in its name where none was given, so that ranks do
 * not replace one another's.
 */
#define OUTPUT_NAME_OF_RANKS "sonde-%h-%r.pftrace"
/* Does the environment say that this process is one rank of several? */
bool output_name_is_of_ranks(void);

/* Those of this process. */
struct output_name_facts output_name_facts_now(char *host, size_t host_size);

/* Does the name have marks? */
bool output_name_has_marks(const char *pattern);

/* Appends the name. Returns 0, -ENOMEM, or -EINVAL with a sentence: no such mark, or no rank. */
int output_name_expand(struct strbuf *out, const char *pattern,
	const struct output_name_facts *facts, struct errmsg *err);

/*
 * The name for now; its folder is made, since every rank of a job begins with the same command.
 * Returns 0 or a negative errno with a sentence.
 */
int output_name_make(struct strbuf *out, const char *pattern, struct errmsg *err);
