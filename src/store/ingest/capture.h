/* SPDX-License-Identifier: Apache-2.0 */
/* A capture that is being added: its model, and what was counted of it. */
#pragma once

#include "report/counts.h"
#include "report/document.h"
#include "report/rows.h"
#include "store/ingest/ingest.h"

struct capture {
	const char *path;
	uint64_t bytes;
	struct model *model;
	struct energy_use energy;
	struct selected selected;
	struct report_counts counts;
	struct trace_report rows;
	struct report_view view;
};

/* Loads it, with its rows and programs. Zero-initialise. `path` is kept. */
int capture_open(struct capture *capture, const char *path, struct errmsg *err);
void capture_done(struct capture *capture);
#define _cleanup_capture_ _cleanup_(capture_done)

/* Where rows of a capture go, while a transaction is open. */
struct capture_writer {
	struct store *store;
	int64_t run;   /* number */
	uint64_t rows; /* written */
	struct errmsg *err;
};

int capture_write(
	struct capture_writer *writer, enum store_table_id table, const struct store_value *values);
/* A time of the capture, since it began. */
struct store_value capture_time(const struct model *model, uint64_t time_ns);

/* run.c: the row of the run. Texts are the capture's and the labels'. */
int capture_describe(const struct capture *capture, const char *id,
	const struct store_labels *labels, struct store_value values[STORE_RUN_COLUMN_MAX]);
/* figures.c: the sections of its report. */
int capture_write_figures(
	struct capture_writer *writer, const struct capture *capture, size_t rows);
/* details.c: rails, power, requests, tokens, layers. */
int capture_write_details(struct capture_writer *writer, const struct capture *capture);
