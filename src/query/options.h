/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked of files: by `sonde report` on its command line, by programs as keys and
 * values. The same words mean the same in both.
 */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/cpu/call_tree.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/slo.h"
#include "analyses/roofline/peaks.h"
#include "load/capture.h"
#include "report/rows.h"

/* NULL-ended. */
extern const char *const yes_no_choices[];
extern const char *const weight_choices[];
extern const char *const stack_choices[];
extern const char *const sort_choices[];
extern const char *const roots_choices[];

/* Initialise with QUERY_OPTIONS_DEFAULT. Texts outlive it, but for those of query_options_set(). */
struct query_options {
	struct selection selection; /* its weight is set when samples are weighed */
	struct shown_options shown; /* of another tool's trace, the weight cpu becomes wall */
	const char *by;             /* a section of the report; NULL: all */
	const char *sort;           /* "self", "total" */
	uint64_t limit;             /* rows; 0: as suits */
	/* As they were given; query_options_parse() makes the next ones of them. NULL: not given.
	 */
	const char *slo_text, *price, *co2, *comm_kernels, *peak_text;
	const char *load_results; /* the file of a load generator; NULL: none */
	struct inference_slo slo;
	struct peaks peaks;
	struct energy_rates rates;
	/* Of rows. */
	bool hta_compatible, keep_last_step, drop_last_step;
	struct trace_choice choice;
	uint64_t rank; /* UINT64_MAX: all */
	/* Of call trees. */
	const char *roots;            /* of roots_choices */
	double minimum_share_percent; /* nodes with less of the total are left out */
	ARRAY_OF(char *) texts;       /* that query_options_set() copied */
};

#define QUERY_OPTIONS_DEFAULT                                                                      \
	{                                                                                          \
		.sort = "self", .shown.weight = "cpu", .choice.instance = UINT64_MAX,              \
		.rank = UINT64_MAX, .rates = ENERGY_RATES_NONE, .roots = "process",                \
		.minimum_share_percent = 0.01                                                      \
	}

enum query_key_type {
	QUERY_KEY_TEXT,
	QUERY_KEY_CHOICE, /* one of `choices` */
	QUERY_KEY_NUMBER, /* uint64_t, from minimum to maximum */
	QUERY_KEY_REAL,   /* double, the same */
	QUERY_KEY_FLAG,   /* "", "1", "true" or "yes"; "0", "false" or "no" */
};

/* What the key is about, for who offers only some of them. */
enum query_key_use {
	QUERY_KEY_FILTERS = 1,   /* which samples, work and ranges count */
	QUERY_KEY_STACKS = 2,    /* what stacks are weighed by, and which frames they have */
	QUERY_KEY_REPORT = 4,    /* of the report alone */
	QUERY_KEY_CALL_TREE = 8, /* of the call tree alone */
	QUERY_KEY_LIMIT = 16,    /* how many rows */
};

struct query_key {
	const char *name; /* as on the command line: "fold-libraries" */
	enum query_key_type type;
	enum query_key_use use;
	size_t offset; /* in struct query_options */
	double minimum, maximum;
	const char *const *choices; /* NULL-ended */
	const char *help;           /* one sentence, for programs that list them */
};

extern const struct query_key query_keys[]; /* ended by one without a name */

/* Longer values are refused: patterns of strangers take time and memory. */
#define QUERY_VALUE_MAX 512

/*
 * One key and its value, as a stranger wrote them. The value is copied. Returns 0, -ENOMEM, or
 * -EINVAL with a sentence: the key is unknown, or this is no value of it.
 */
int query_options_set(
	struct query_options *options, const char *key, const char *value, struct errmsg *err);
/*
 * When all are set, once: makes limits and rates of their texts. Adds names of --comm-kernels, of
 * which the process has one list. Returns 0, or -EINVAL with a sentence.
 */
int query_options_parse(struct query_options *options, struct errmsg *err);
void query_options_done(struct query_options *options);
#define _cleanup_query_options_ _cleanup_(query_options_done)

static inline enum breakdown_sort query_sort(const struct query_options *options)
{
	return options->sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF;
}

/* Other tools have no samples and know ranks: what is asked so is asked of the rows alone. */
static inline bool query_wants_rows_only(const struct query_options *options)
{
	return options->rank != UINT64_MAX || options->hta_compatible || options->keep_last_step ||
	       options->drop_last_step;
}

/*
 * Do the options fit each other, and the kind of what `path` names? `is_foreign`: it is another
 * tool's trace, or its rows alone are asked for. Returns 0, or -EINVAL with a sentence.
 */
int query_options_check(
	const struct query_options *options, const char *path, bool is_foreign, struct errmsg *err);
