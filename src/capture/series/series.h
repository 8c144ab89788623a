/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording without end as a series of captures, each of which can be read by itself. It takes
 * what a writer without a file says (capture_writer_open_live()), and writes each event to the
 * window of its time; what later windows need of earlier ones is kept and written again: processes,
 * threads, mappings, stacks, open ranges, GPUs, graphs, rails.
 *
 * The sampler never stops. A window's file stays open for a while after its end, so that what comes
 * late finds it; several may be open at once. One thread.
 */
#pragma once

#include "capture/writer/writer.h"

struct capture_series;

/* A window whose file is closed. */
struct capture_series_window {
	const char *path;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t begin_realtime_ns;
	uint64_t samples, samples_lost, bytes;
	const char *error; /* a sentence: it is not complete, or not there; NULL */
};

struct capture_series_options {
	size_t size; /* sizeof(struct capture_series_options) */
	uint64_t every_ns;
	struct capture_writer_options writer;
	/* The path of the next window's file, malloc'ed. Returns 0 or an errno with a sentence. */
	int (*name)(void *context, uint64_t begin_realtime_ns, char **ret_path, struct errmsg *err);
	void (*closed)(void *context, const struct capture_series_window *window);
	void *context;
};

/* What became of all windows so far. */
struct capture_series_account {
	uint64_t windows, failed_windows;
	uint64_t bytes;   /* of closed windows */
	uint64_t late;    /* events that came when their window was closed, or had a wrong time */
	uint64_t dropped; /* events of windows that could not be written */
	uint64_t steps, tokens;     /* that programs reported */
	uint64_t forgotten_stacks;  /* events whose stack was not known any more */
	struct capture_stats stats; /* the last one of the recording; losses and notes not */
};

struct capture_series_rail {
	const char *name, *source, *part, *quality;
	uint64_t energy_nj;
};

struct capture_series_device {
	const char *name;
	uint64_t works, busy_ns; /* works at the same time count each */
};

/* What is counted over all windows; valid until more is handed over. */
struct capture_series_figures {
	uint64_t start_realtime_ns;
	uint64_t processes; /* that live, and were seen */
	const struct capture_loss *losses;
	size_t loss_count;
	const struct capture_series_rail *rails;
	size_t rail_count;
	const struct capture_series_device *devices;
	size_t device_count;
};

/* Returns 0 or -ENOMEM. */
int capture_series_new(
	struct capture_series **ret_series, const struct capture_series_options *options);
struct capture_series *capture_series_free(struct capture_series *series);
/* The context is the series. */
extern const struct capture_visitor capture_series_visitor;

/*
 * Called often: opens windows that have begun, and closes those of which nothing more is to come,
 * since all before `settled_ns` was handed over. Faults of files are reported by closed().
 */
int capture_series_advance(struct capture_series *series, uint64_t now_ns, uint64_t settled_ns);
/*
 * True when stacks take much memory. Then capture_writer_renew_callstacks() is to be called, and
 * this: stacks that were not used since the last time are forgotten.
 */
bool capture_series_is_full(const struct capture_series *series);
int capture_series_renew_callstacks(struct capture_series *series);
/* The recording ended, and all was handed over: closes all windows. Returns 0 or an errno. */
int capture_series_finish(struct capture_series *series);
const struct capture_series_account *capture_series_account(const struct capture_series *series);
void capture_series_figures(
	const struct capture_series *series, struct capture_series_figures *ret_figures);
/* Bytes of the files that are open. */
uint64_t capture_series_open_bytes(const struct capture_series *series);
