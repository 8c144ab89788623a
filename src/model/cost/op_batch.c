/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cost/op_batch.h"

#include <math.h>
#include <string.h>

#include "base/macros.h"

/* Prompts, or tokens that are generated: sums over requests. NaN: not known. */
struct group {
	double requests, queries, keys, squares, products;
};

static bool take_text(const char **at, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, double *ret_number)
{
	double number = 0;
	const char *start = *at;

	while (**at >= '0' && **at <= '9')
		number = 10 * number + (double)(*(*at)++ - '0');
	if (*at == start)
		return false;
	*ret_number = number;
	return true;
}

/* What is known for certain. Of prompts alone all keys may be queries, and of a square of their sum
 * no less is a sum of squares than where all are equally long. */
static bool finish(struct op_batch *batch, const struct group *prompts, const struct group *made)
{
	double squares = prompts->squares;

	*batch = (struct op_batch){.queries = prompts->queries + made->queries};
	if (!(batch->queries > 0))
		return false;
	batch->keys = prompts->keys + made->keys;
	batch->pairs = prompts->products - squares / 2 + made->products;
	if (!isnan(batch->keys) && !isnan(batch->pairs))
		return batch->keys >= batch->queries && batch->pairs > 0;
	batch->is_least = true;
	if (isnan(squares))
		squares = prompts->queries * prompts->queries / fmax(prompts->requests, 1);
	batch->keys = batch->queries;
	batch->pairs = squares / 2 + made->queries;
	return true;
}

/* ---- vLLM ---- */

/* "context_2(14721)", "context_2(sq6144sk7144sqsq20971520sqsk23019520)"; in between there were
 * "context_1(888_788544)", tokens and the sum of their squares. */
static bool take_group(const char **at, const char *name, struct group *group)
{
	*group = (struct group){.keys = NAN, .squares = NAN, .products = NAN};
	if (!take_text(at, name) || !take_number(at, &group->requests) || !take_text(at, "("))
		return false;
	if (take_text(at, "sq"))
		return take_number(at, &group->queries) && take_text(at, "sk") &&
		       take_number(at, &group->keys) && take_text(at, "sqsq") &&
		       take_number(at, &group->squares) && take_text(at, "sqsk") &&
		       take_number(at, &group->products) && take_text(at, ")");
	if (!take_number(at, &group->queries))
		return false;
	if (take_text(at, "_") && !take_number(at, &group->squares))
		return false;
	return take_text(at, ")");
}

static bool read_execute(struct op_batch *batch, const char *at)
{
	struct group prompts, made;
	double tokens;

	if (take_number(&at, &tokens) && !take_text(&at, "_"))
		return false;
	return take_group(&at, "context_", &prompts) && take_text(&at, "_") &&
	       take_group(&at, "generation_", &made) && finish(batch, &prompts, &made);
}

/* ---- SGLang ---- */

/* " key=12" in the text. */
static double field(const char *text, const char *key)
{
	double number = NAN;

	for (const char *at = text; (at = strchr(at, ' ')) != NULL;) {
		at++;
		if (take_text(&at, key) && take_text(&at, "=") && take_number(&at, &number))
			return number;
	}
	return NAN;
}

static double known(double number, double otherwise)
{
	return isnan(number) ? otherwise : number;
}

static bool read_step(struct op_batch *batch, const char *at)
{
	bool is_decode = strncmp(at, "DECODE ", strlen("DECODE ")) == 0;
	bool is_extend = strncmp(at, "EXTEND ", strlen("EXTEND ")) == 0;
	double none = is_decode || is_extend ? 0 : (double)NAN;
	struct group prompts = {
		.requests = is_decode ? 0 : field(at, is_extend ? "bs" : "c"),
		.queries = is_decode ? 0 : known(field(at, "c_sq"), field(at, "toks")),
		.keys = is_decode ? 0 : field(at, "c_sk"),
		.squares = is_decode ? 0 : field(at, "c_sqsq"),
		.products = is_decode ? 0 : field(at, "c_sqsk"),
	};
	struct group made = {
		.queries = is_decode ? known(field(at, "g_sq"), field(at, "bs"))
				     : known(field(at, "g_sq"), none),
		.keys = known(field(at, "g_sk"), is_extend ? 0 : (double)NAN),
		.products = known(field(at, "g_sqsk"), is_extend ? 0 : (double)NAN),
	};

	return finish(batch, &prompts, &made);
}

bool op_batch_read(struct op_batch *batch, const char *name)
{
	if (take_text(&name, "execute_"))
		return read_execute(batch, name);
	return take_text(&name, "step[") && read_step(batch, name);
}
