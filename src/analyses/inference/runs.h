/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several recordings of inference side by side: which costs least, which is fastest, what a larger
 * batch, a longer context or another precision changes, and what that says of a run that was not
 * made. docs/inference.md explains each.
 */
#pragma once

#include <math.h>

#include "analyses/energy/span_energy.h"
#include "analyses/inference/inference.h"
#include "base/errmsg.h"

/* What a run is, by its marks. */
enum run_label {
	RUN_BATCH,
	RUN_CONTEXT,    /* tokens of a sequence, prompt and output; the longest */
	RUN_PARAMETERS, /* of the model */
	RUN_ACTIVE,     /* of these, used for a token: of mixtures of experts */
	RUN_EXPERTS,
	RUN_LABEL_MAX,
};

/* What it was found to do. */
enum run_figure {
	RUN_TOKENS_PER_S,
	RUN_TTFT_NS, /* medians, these two */
	RUN_TPOT_NS,
	RUN_WATTS,
	RUN_JOULES_PER_TOKEN,
	RUN_FIGURE_MAX,
};

/* "batch_size", "context_length" …; "tokens_per_s" … */
const char *run_label_name(enum run_label label);
const char *run_figure_name(enum run_figure figure);
/* RUN_LABEL_MAX: there is none of that name. */
enum run_label run_label_from_string(const char *name, size_t length);

struct run {
	const char *capture;           /* its path */
	const char *model, *precision; /* "": not known */
	double labels[RUN_LABEL_MAX];  /* NaN: not known, like these */
	double figures[RUN_FIGURE_MAX];
	double output_tokens, energy_j, uncertainty_j;
	const char *energy_reason; /* why there is none; NULL: there is */
	struct span_state states[SPAN_ENERGY_SIDES];
	double kv_cache_bytes;
	/* Means of its layers: struct expert_spread.balance, its entropy by log2 of the experts,
	 * and struct expert_layer.load_balance. */
	double expert_balance, expert_entropy, expert_load;
	bool is_optimal; /* no other has both more tokens a second and fewer joules per token */
	bool is_knee;
};

struct runs {
	ARRAY_OF(struct run) items;
};

/*
 * The labels of a model's marks, and its figures but for energy. Marks that say them: `run` of the
 * domain "sonde.run", by sonde.mark("run", "sonde.run", {"model": …, "precision": …, "batch_size":
 * …, "context_length": …, "parameters": …}); `structure` and `configuration` of "sonde.model";
 * ranges of generate(). Strings are the model's. Returns 0 or -ENOMEM.
 */
int run_describe(struct run *run, const struct model *model, const struct inference *inference);

/*
 * Bytes of keys and values of a sequence's tokens in all layers:
 *
 *   2 layers · tokens · key-value heads · head size · bytes of a number · batch
 *
 * NaN where one is.
 */
double kv_cache_bytes(double layers, double tokens, double heads, double head_size,
	double number_bytes, double batch);

/* The coolest and the warmest of one side, or those with the lowest and the highest clock. */
struct run_states {
	uint32_t coolest, warmest, slowest, fastest; /* indices; MODEL_NONE: not known, or alike */
};

/*
 * A part that is warmer takes more for the same work, since it leaks more, and one whose clock
 * differs takes another power: runs more than RUN_ALIKE_C apart, or RUN_ALIKE_CLOCK of the clock,
 * are not alike.
 */
#define RUN_ALIKE_C     5.0
#define RUN_ALIKE_CLOCK 0.05
struct run_states runs_states(const struct runs *runs, enum span_energy_side side);

/* Which run has the least, or most, of a figure: its index; MODEL_NONE: none has it. */
uint32_t runs_best(const struct runs *runs, enum run_figure figure);

/*
 * Marks the runs that no other beats in both tokens per second and joules per token (without
 * energy: in both tokens per second and time to first token), and the knee of their curve: the one
 * that lies farthest from the straight line between the curve's ends, both axes from 0 to 1 along
 * it. No knee of fewer than three. Returns how many are optimal, or -ENOMEM.
 */
int runs_find_optimal(struct runs *runs);

/* Runs that differ in one label, or in precision (RUN_LABEL_MAX), and in nothing else that they
 * say. */
struct run_series {
	enum run_label by;
	ARRAY_OF(uint32_t) runs; /* by that label, rising; by precision in the given order */
	/* The figure by which they are compared: joules per token, where all have it; else of
	 * contexts the time per token, of others tokens per second. */
	enum run_figure figure;
	uint32_t best; /* index in runs->items */
	/*
	 * Of contexts: the first whose figure is at least 20 % above that of the shortest;
	 * MODEL_NONE: none.
	 */
	uint32_t saturated;
};

/* A run beside another one. */
struct run_pair {
	uint32_t run, beside; /* indices in runs->items */
	/* The run's figures by those of the other one; NaN where one of them is not known. */
	double ratios[RUN_FIGURE_MAX];
};

struct run_comparison {
	ARRAY_OF(struct run_series) series;
	/*
	 * Of each series by precision all runs beside the baseline: the first of those with the
	 * widest numbers, by run_precision_bits(). None where no width is known.
	 */
	ARRAY_OF(struct run_pair) precisions;
	/*
	 * Mixtures of experts, each beside a run without experts of the same precision, batch and
	 * context: of several the one whose parameters are nearest to those that are active in the
	 * mixture.
	 */
	ARRAY_OF(struct run_pair) mixtures;
};

/* Of a number, by the first number in the name: 16 of bf16, 4 of q4_k_m and w4a16; 0: none. */
unsigned run_precision_bits(const char *precision);

#define RUN_SATURATION 1.2

/* Two that are not known count as the same. */
static inline bool run_labels_are_equal(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* The parameters that are active for a token, else all of them; NaN: not known. */
double run_size(const struct run *run);
struct run_pair run_pair_of(const struct runs *runs, uint32_t run, uint32_t beside);
/* Appends to the precisions: of the series that are there. Returns 0 or -ENOMEM. */
int runs_find_precisions(struct run_comparison *comparison, const struct runs *runs);
/* Appends to the mixtures. Returns 0 or -ENOMEM. */
int runs_find_mixtures(struct run_comparison *comparison, const struct runs *runs);
/* Returns 0 or -ENOMEM. */
int run_comparison_init(struct run_comparison *comparison, const struct runs *runs);
void run_comparison_done(struct run_comparison *comparison);
#define _cleanup_run_comparison_ _cleanup_(run_comparison_done)

/* y = scale · x^power, by least squares of the logarithms; R² is of these. */
struct run_power_law {
	double scale, power, r_squared;
	size_t count; /* of runs; less than 3, or of one size: no law */
};

/* The figure against the parameters that are active, or all, of runs of several sizes. */
struct run_power_law runs_scaling(const struct runs *runs, enum run_figure figure);

/*
 * What a figure would be with other labels: ridge regression of the logarithms of the figure on
 * those of the labels that all runs have and that differ. The interval of 95 %, R² and the mean
 * absolute error are by leaving out each run in turn and predicting it from the others.
 */
#define RUN_PREDICTION_MIN 5

struct run_prediction {
	double value, low, high;
	double r_squared;      /* NaN: all runs have the same figure */
	double mean_error;     /* absolute, of the figure */
	size_t count;          /* runs that it is made from */
	unsigned labels;       /* by enum run_label, a bit: which it is made from */
	bool is_extrapolation; /* a label lies outside of those of the runs */
};

/* Returns 0, -ENOMEM, or -EINVAL with a sentence: too few runs, a label that none has. */
int runs_predict(const struct runs *runs, enum run_figure figure,
	const double labels[RUN_LABEL_MAX], struct run_prediction *ret_prediction,
	struct errmsg *err);

/*
 * The same of "batch_size=16,context_length=2048": joules per token where all runs have them, else
 * the time per token.
 */
int runs_predict_as_asked(const struct runs *runs, const char *text, enum run_figure *ret_figure,
	struct run_prediction *ret_prediction, struct errmsg *err);
