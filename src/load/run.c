/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/warn.h"
#include "load/progress.h"
#include "load/run_clocks.h"
#include "model/windows.h"

/* ---- what the beginnings of the captures say ---- */

/* Captures whose two clocks lie apart by less more than others do are of one clock. */
#define SAME_CLOCK_NS 50000000

static int take_session(void *context, const struct capture_session *session)
{
	struct run_capture *capture = context;

	capture->start_ns = session->start_time_ns;
	capture->realtime_ns = session->start_realtime_ns;
	capture->period_ns = session->period_ns;
	capture->host = strdup(session->host);
	return capture->host ? -EEXIST : -ENOMEM;
}

static int end_without_session(void *context _unused_, const struct capture_sample *sample _unused_)
{
	return -EEXIST;
}

/* A session stands at the beginning of a file; what ends the reading is no error. */
static const struct capture_visitor head_visitor = {
	.session = take_session,
	.sample = end_without_session,
};

static void read_head(size_t index, void *context)
{
	struct run_capture *capture = &((struct run_capture *)context)[index];

	capture->status =
		capture_read(capture->source->path, &head_visitor, capture, NULL, &capture->err);
	if (capture->status == -EEXIST)
		capture->status = 0;
}

static int64_t realtime_offset_ns(const struct run_capture *capture)
{
	return (int64_t)(capture->realtime_ns - capture->start_ns);
}

static bool is_same_clock(const struct run_capture *a, const struct run_capture *b)
{
	int64_t apart_ns;

	if (!a->host || !b->host || strcmp(a->host, b->host) != 0)
		return false;
	if (__builtin_sub_overflow(realtime_offset_ns(a), realtime_offset_ns(b), &apart_ns))
		return false;
	return apart_ns > -SAME_CLOCK_NS && apart_ns < SAME_CLOCK_NS;
}

/* Those of one clock have the number of the first of them. Returns how many clocks there are. */
static size_t number_clocks(struct run_capture *captures, size_t count)
{
	size_t clocks = 0;

	for (size_t i = 0; i < count; i++) {
		size_t first = 0;

		while (first < i && !is_same_clock(&captures[first], &captures[i]))
			first++;
		captures[i].clock = (uint32_t)first;
		clocks += first == i;
	}
	return clocks;
}

/*
 * By what the hosts took for the time of day when they began. The machine that was booted first
 * keeps its times: those of the others become later, and none becomes negative.
 */
static void set_host_clocks(struct run_capture *captures, size_t count)
{
	int64_t least_ns = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (captures[i].realtime_ns)
			least_ns = MIN(least_ns, realtime_offset_ns(&captures[i]));
	}
	for (size_t i = 0; i < count; i++) {
		const struct run_capture *first = &captures[captures[i].clock];

		captures[i].source->clock = (struct capture_clock){
			.source = CAPTURE_CLOCK_HOSTS,
			.error_ns = UINT64_MAX,
		};
		if (first->realtime_ns)
			captures[i].source->clock.shift_ns =
				(int64_t)((uint64_t)realtime_offset_ns(first) - (uint64_t)least_ns);
	}
}

static void warn_about_periods(const struct run_capture *captures, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (captures[i].period_ns == captures[0].period_ns)
			continue;
		warn("%s was sampled every %llu ns, %s every %llu: samples count as those of the "
		     "first; record all ranks with one -F",
			captures[0].source->path, (unsigned long long)captures[0].period_ns,
			captures[i].source->path, (unsigned long long)captures[i].period_ns);
		return;
	}
}

static int check_heads(const struct run_capture *captures, size_t count, struct errmsg *err)
{
	for (size_t i = 0; i < count; i++) {
		if (captures[i].status < 0) {
			*err = captures[i].err;
			return captures[i].status;
		}
	}
	return 0;
}

int run_find_clocks(struct model_source *sources, size_t count, struct errmsg *err)
{
	struct run_capture *captures = calloc(count, sizeof(*captures));
	int r;

	if (!captures)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing clocks");
	for (size_t i = 0; i < count; i++)
		captures[i].source = &sources[i];
	parallel_each(count, read_head, captures);
	r = check_heads(captures, count, err);
	if (r == 0) {
		size_t clocks = number_clocks(captures, count);

		warn_about_periods(captures, count);
		set_host_clocks(captures, count);
		if (clocks > 1)
			r = run_refine_clocks(captures, count, err);
	}
	for (size_t i = 0; i < count; i++)
		free(captures[i].host);
	free(captures);
	return r == -ENOMEM ? errmsg_set(err, r, "memory ran out while comparing clocks") : r;
}

/* ---- the model ---- */

static void warn_about_cuts(const struct model_source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (sources[i].read.truncated)
			warn("%s is cut off after %llu bytes, in the middle of a packet: what came "
			     "before is shown",
				sources[i].path, (unsigned long long)sources[i].read.truncated_at);
	}
}

/* Runs of a program that somebody keeps in one folder are not ranks of one. */
static void warn_about_sequence(const struct model *model)
{
	if (model->recordings.count < 2)
		return;
	array_foreach (&model->processes, process) {
		if (process->rank != MODEL_NONE)
			return;
	}
	array_foreach (&model->recordings, a) {
		array_foreach (&model->recordings, b) {
			if (a != b && a->start_ns <= b->end_ns && b->start_ns <= a->end_ns)
				return;
		}
	}
	warn("these %zu recordings were made one after the other and name no ranks: they are read "
	     "as one run; to compare them, sonde diff takes two, sonde report --by run all",
		model->recordings.count);
}

static int load_sources(struct model **ret_model, struct model_source *sources, size_t count,
	const struct selection *selection, struct errmsg *err)
{
	struct window_choice choice = {0};
	struct progress progress;
	char what[64];
	int r = selection->window ? window_choice_parse(selection->window, &choice, err) : 0;

	if (r == 0)
		r = run_find_clocks(sources, count, err);
	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "loading %zu recordings", count);
	progress_begin(&progress, what);
	r = model_load_run(ret_model, sources, count, &choice, progress_update, &progress, err);
	progress_end(&progress);
	return r;
}

int load_run(struct model **ret_model, const char *const *paths, size_t count,
	const struct shown_options *shown, const struct selection *selection, struct errmsg *err)
{
	struct model_source *sources = calloc(count, sizeof(*sources));
	int r;

	if (!sources)
		return errmsg_set(
			err, -ENOMEM, "memory ran out while loading %zu recordings", count);
	for (size_t i = 0; i < count; i++)
		sources[i].path = paths[i];
	r = load_sources(ret_model, sources, count, selection, err);
	if (r == 0) {
		warn_about_cuts(sources, count);
		warn_about_sequence(*ret_model);
		if ((*ret_model)->cut_off_count)
			warn("%s", (*ret_model)->stats.values.notes[0]);
		if (show_as_asked(*ret_model, shown) < 0)
			r = errmsg_set(
				err, -ENOMEM, "memory ran out while loading %zu recordings", count);
	}
	free(sources);
	return r;
}
