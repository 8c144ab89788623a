/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from the runs database, made in a process of their own (server/child.h). */
#pragma once

#include "server/handlers.h"

struct runs_question {
	const struct server *server;
	enum api_operation operation;
	enum api_format format;
	const union api_parameters *parameters;
	const char *body; /* of an import */
	size_t body_length;
};

/* A query_ask (query/child.h) of a struct runs_question. */
int runs_answer(void *context, struct strbuf *out, struct errmsg *err);
