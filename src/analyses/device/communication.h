/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels communicate between GPUs, and how that is known. Libraries of collectives do not
 * agree on names, so that what was around the launch counts first, and names after it.
 */
#pragma once

#include "base/errmsg.h"
#include "model/model.h"

/* How it is known, the surest first. */
enum communication_evidence {
	COMMUNICATION_NOT,         /* the kernel computes, as far as is known */
	COMMUNICATION_BY_GROUP,    /* it carries its process group, or what it moves among whom */
	COMMUNICATION_BY_OPERATOR, /* an operator or a library of collectives launched it */
	COMMUNICATION_BY_USER,     /* its name is one of --comm-kernels */
	COMMUNICATION_BY_NAME,     /* its name is in the table of communication.c */
	COMMUNICATION_BY_STREAM,   /* it runs on a stream that is used for communication */
	COMMUNICATION_EVIDENCE_MAX,
};

/* "group", "option" …, for JSON and people; NULL for COMMUNICATION_NOT. */
const char *communication_evidence_name(enum communication_evidence evidence);

/*
 * Names that the user adds, an extended regular expression: before any analysis, once. Returns 0 or
 * -EINVAL with a sentence. The names are those of the program: there is one such list.
 */
int communication_add_names(const char *expression, struct errmsg *err);

/* By its name alone: COMMUNICATION_BY_USER, COMMUNICATION_BY_NAME or COMMUNICATION_NOT. */
enum communication_evidence communication_of_name(const char *kernel);
/* Is an operator or annotation of this name there to communicate: "nccl:all_reduce"? */
bool communication_is_operator(const char *name);
/* Is the launch of this stack made by a library of collectives? `stack` may be MODEL_NONE. */
bool communication_is_stack(const struct model *model, uint32_t stack);

/* A sum of kernels: "84 by group, 12 by name". Nothing where there is none. */
void communication_add_counts(
	struct strbuf *out, const uint64_t counts[COMMUNICATION_EVIDENCE_MAX]);
