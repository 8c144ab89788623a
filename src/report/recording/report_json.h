/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one JSON document: `sonde report --json` and `sonde export -f json`. Described in
 * docs/json.md. */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/energy/use.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/slo.h"
#include "base/json.h"
#include "base/strbuf.h"

#define REPORT_JSON_VERSION 1
#define REPORT_JSON_STACKS  100 /* rows of the table of stacks without a limit given */

struct report_json_options {
	size_t size;         /* sizeof(struct report_json_options) */
	const char *capture; /* path; NULL: unknown */
	bool one_table;      /* only the table `by`, else all */
	enum breakdown_by by;
	enum breakdown_sort sort;
	size_t limit;             /* rows of each table; 0: all, of stacks REPORT_JSON_STACKS */
	enum model_weight weight; /* of the tables */
	const struct energy_use *energy;  /* of the model; NULL: "energy" is null */
	const struct inference_slo *slo;  /* NULL: no limits */
	const struct energy_rates *rates; /* NULL: no cost and no CO2 */
};

/*
 * Appends the document and a newline. Returns 0 or -ENOMEM. `selection` is what `selected` was made
 * from, and what the model was narrowed by with selection_narrow().
 */
int report_json_write(const struct model *model, const struct selection *selection,
	const struct selected *selected, const struct report_json_options *options,
	struct strbuf *out);

/*
 * The same in two parts, for tables that are weighed otherwise: what comes before them, then, after
 * model_weigh() and with what was selected anew, the tables and the end.
 */
int report_json_begin(struct json_writer *json, const struct model *model,
	const struct selection *selection, const struct selected *selected,
	const struct report_json_options *options);
int report_json_end(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_json_options *options);
