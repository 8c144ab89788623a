/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the requests of a model's server got their tokens, by the marks that sonde_token() and
 * sonde.token() make. A mark of the phase "prefill" is no token: with it the request begins.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* Of times between two tokens of one request; 0 of none. */
struct token_gaps {
	uint64_t count, mean_ns, p50_ns, p95_ns, maximum_ns;
};

/* A request of a process, or the tokens that name none. */
struct token_row {
	const char *request; /* "": of none */
	uint32_t process;    /* index */
	uint64_t tokens;
	bool has_first;    /* both the request's begin and its first token were seen */
	uint64_t first_ns; /* time to first token */
	uint64_t begin_ns; /* of the first mark */
	struct token_gaps gaps;
};

struct token_use {
	ARRAY_OF(struct token_row) rows; /* in the order of their begins */
	uint64_t tokens;
	struct token_gaps gaps; /* of all requests */
	ARRAY_OF(char *) texts; /* of requests that are numbers */
};

/* Returns 0 or -ENOMEM. */
int token_use_init(struct token_use *use, const struct model *model);
void token_use_done(struct token_use *use);
#define _cleanup_token_use_ _cleanup_(token_use_done)
