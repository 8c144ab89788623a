/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as sections see it: with what was counted once, for all of them. query/report.c fills
 * it for `sonde report`, exporters/report.c for `sonde export`; both call report_counts_init()
 * (counts.h) for its part. It reaches sections in struct report_input (section.h), with the model's
 * rows (rows.h) beside it.
 */
#pragma once

#include "analyses/cpu/breakdown.h"
#include "analyses/energy/use.h"
#include "analyses/inference/cost.h"
#include "analyses/inference/joules.h"
#include "analyses/inference/layers.h"
#include "analyses/inference/phases.h"
#include "analyses/inference/slo.h"
#include "analyses/program/range_use.h"
#include "analyses/program/step_use.h"
#include "analyses/program/window_use.h"
#include "analyses/roofline/peaks.h"
#include "analyses/selection.h"
#include "model/client_results.h"

struct report_view {
	const struct model *model;
	const struct selection *selection;
	const struct selected *selected;
	const struct energy_use *energy;     /* of the model before it was weighed; NULL: none */
	const struct client_results *client; /* NULL: no result of a load generator was given */
	const struct inference_slo *slo;     /* NULL: no limits were given */
	const struct peaks *peaks;           /* of devices; NULL: none were given */
	/* Set by report_counts_init(). */
	const struct range_use *ranges;
	const struct step_use *steps;
	const struct window_use *windows;
	const struct inference *inference;
	const struct phase_use *phases;
	const struct layer_use *layers;
	const struct span_energy
		*span_energy; /* NULL: nothing was measured; then `joules` is, too */
	const struct inference_joules *joules;
	struct energy_rates rates;
	const char *capture;  /* the file's path; NULL: unknown */
	enum breakdown_by by; /* the table that was asked for, else of functions */
	enum breakdown_sort sort;
	enum model_weight weight;
	bool folds_libraries; /* and so there is no table of the user's own code */
};

/* Appends a paragraph on the windows of the recording; nothing when it has none. */
void report_describe_windows(const struct model *model, struct strbuf *out);

/* Made of another program's log or trace: nothing is known of a machine, or of samples. */
static inline bool report_is_imported(const struct model *model)
{
	return model->session.present && !model->session.cpu_count;
}

/* Was only time in user space sampled? The note of the recording says so. */
bool report_is_user_time(const struct model *model);
/* A sentence, for where there is none. */
const char *report_why_no_device_work(const struct model *model);
/* Are any of the samples waits? */
bool report_has_waiting(const struct model *model);
