/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a continuous recording knows of itself and its machine, as metrics: the same ones as text
 * for Prometheus (prometheus.h) and as OTLP (otlp_metrics.h). Counters count from the recording's
 * begin.
 */
#pragma once

#include <stdbool.h>

#include "capture/series/series.h"
#include "push/sender.h"
#include "push/window_folder.h"

struct metric_receiver {
	const char *name;
	const struct sender_counts *counts;
};

struct metric_figures {
	const struct capture_series_figures *series;
	const struct capture_series_account *account;
	uint64_t open_bytes;
	const struct window_folder_account *folder;
	const struct metric_receiver *receivers;
	size_t receiver_count;
};

enum metric_kind {
	METRIC_COUNTER,
	METRIC_GAUGE,
};

/* A name as Prometheus wants it: in base units, which it says; a counter's ends in _total. */
struct metric {
	const char *name;
	enum metric_kind kind;
	const char *unit; /* by UCUM: "s", "By", "J", "{sample}" */
	const char *help;
};

struct metric_label {
	const char *name, *value; /* NULL: "" */
};

struct metric_point {
	const struct metric_label *labels;
	size_t label_count;
	bool is_count; /* else a number */
	uint64_t count;
	double number;
	int digits; /* of the number, behind the point */
};

/* A metric begins, its points follow, it ends. `end` may be NULL. */
struct metric_visitor {
	void (*begin)(void *context, const struct metric *metric);
	void (*point)(void *context, const struct metric *metric, const struct metric_point *point);
	void (*end)(void *context, const struct metric *metric);
	void *context;
};

void metrics_visit(const struct metric_figures *figures, const struct metric_visitor *visitor);
