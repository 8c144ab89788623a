/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/series/series.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "capture/series/state.h"

/* What comes late: CUPTI hands out work once a second, rails are read ten times a second. */
#define GRACE_NS (2 * NS_PER_S)
/* A window whose samples wait for unwind tables is closed without them after this. */
#define MOST_GRACE_NS (60 * NS_PER_S)
/* Open at once, where windows are short; each is an open file. */
#define MOST_PARTS 64
/* With their frames some 20 MB. */
#define MOST_CALLSTACKS ((size_t)1 << 16)

int capture_series_new(
	struct capture_series **ret_series, const struct capture_series_options *options)
{
	struct capture_series *series = calloc(1, sizeof(*series));

	assert(options->size >= sizeof(*options) && options->every_ns);
	if (!series)
		return -ENOMEM;
	series->options = *options;
	*ret_series = series;
	return 0;
}

static void part_free(struct series_part *part)
{
	capture_writer_free(part->writer);
	split_ids_done(&part->ids);
	map_u64_done(&part->processes);
	map_u64_done(&part->threads);
	array_done(&part->begin_losses);
	array_done(&part->end_losses);
	free(part->path);
	free(part);
}

struct capture_series *capture_series_free(struct capture_series *series)
{
	if (!series)
		return NULL;
	for_parts (series, part)
		part_free(part);
	array_done(&series->parts);
	array_done(&series->losses);
	map_u64_done(&series->nameless);
	series_ranges_done(series);
	series_stacks_done(series);
	series_facts_done(series);
	split_tables_done(&series->tables);
	free(series);
	return NULL;
}

const struct capture_series_account *capture_series_account(const struct capture_series *series)
{
	return &series->account;
}

uint64_t capture_series_open_bytes(const struct capture_series *series)
{
	uint64_t bytes = 0;

	for_parts (series, part)
		bytes += part->writer ? capture_writer_bytes(part->writer) : 0;
	return bytes;
}

/* ---- windows ---- */

int series_written(struct series_part *part, int result)
{
	if (result == 0 || result == -ENOMEM || !part->writer)
		return result == -ENOMEM ? result : 0;
	if (!part->error.text[0])
		errmsg_set(
			&part->error, result, "cannot write %s: %s", part->path, strerror(-result));
	part->writer = capture_writer_free(part->writer);
	return 0;
}

bool series_part_takes(struct series_part *part)
{
	part->dropped += !part->writer;
	return part->writer;
}

/* The wall clock of a moment, as the clock goes now: it may have been set meanwhile. */
static uint64_t realtime_of(uint64_t time_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec -
	       (monotonic_now_ns() - time_ns);
}

static int make_file(struct capture_series *series, struct series_part *part)
{
	int r = series->options.name(
		series->options.context, part->begin_realtime_ns, &part->path, &part->error);

	if (r == 0)
		r = capture_writer_open(
			&part->writer, part->path, &series->options.writer, &part->error);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = series_begin_part(series, part);
	/* It is a capture from the moment on in which it has a name. */
	if (r == 0)
		r = series_written(part, capture_writer_flush(part->writer, &part->error));
	if (r == 0 && part->writer)
		r = series_written(part, capture_writer_name(part->writer, &part->error));
	return r;
}

static int open_part(struct capture_series *series, uint64_t begin_ns)
{
	struct series_part *part = calloc(1, sizeof(*part));
	int r;

	if (!part)
		return -ENOMEM;
	part->number = ++series->last_number;
	part->begin_ns = begin_ns;
	part->end_ns = begin_ns + series->options.every_ns;
	part->begin_realtime_ns = realtime_of(begin_ns);
	r = series->parts.count
		    ? series_settle(series, series->parts.items[series->parts.count - 1])
		    : 0;
	if (r == 0)
		r = array_append(&series->parts, part);
	if (r < 0) {
		part_free(part);
		return r;
	}
	part->begin = series->account.stats;
	array_foreach (&series->losses, loss)
		if (r == 0)
			r = array_append(&part->begin_losses, *loss);
	return r < 0 ? r : make_file(series, part);
}

static void tell_closed(struct capture_series *series, struct series_part *part, uint64_t bytes)
{
	const struct capture_series_window window = {
		.path = part->path,
		.begin_ns = part->begin_ns,
		.end_ns = part->end_ns,
		.begin_realtime_ns = part->begin_realtime_ns,
		.samples = part->samples,
		.samples_lost = part->end.samples_lost - part->begin.samples_lost,
		.bytes = bytes,
		.error = part->error.text[0] ? part->error.text : NULL,
	};

	series->account.windows++;
	series->account.failed_windows += window.error != NULL;
	series->account.bytes += bytes;
	series->account.dropped += part->dropped;
	series->options.closed(series->options.context, &window);
}

/* Names and lines that came after the frames; then the account, which says that it is whole. */
static int close_part(struct capture_series *series, struct series_part *part)
{
	uint64_t bytes = 0;
	int r = series_cut_ranges(series, part);

	if (r == 0 && part->writer)
		r = series_write_account(series, part, true);
	if (r == 0 && part->writer)
		r = series_written(part, capture_writer_flush(part->writer, &part->error));
	if (r == 0 && part->writer) {
		bytes = capture_writer_bytes(part->writer);
		r = capture_writer_close(TAKE_PTR(part->writer), &part->error);
		r = r == -ENOMEM ? r : 0;
	}
	tell_closed(series, part, bytes);
	return r;
}

static int close_first(struct capture_series *series)
{
	struct series_part *part = series->parts.items[0];
	int r = close_part(series, part);

	series->parts.count--;
	memmove(series->parts.items, series->parts.items + 1,
		series->parts.count * sizeof(*series->parts.items));
	part_free(part);
	return r < 0 ? r : series_forget_ended(series);
}

static int open_begun(struct capture_series *series, uint64_t now_ns)
{
	int r = 0;

	while (r == 0 && series->parts.count) {
		uint64_t end_ns = series->parts.items[series->parts.count - 1]->end_ns;

		if (now_ns < end_ns)
			break;
		if (series->parts.count == MOST_PARTS)
			r = close_first(series);
		/* After a long stop of sonde: windows of that time would be empty. */
		if (now_ns - end_ns > MOST_PARTS * series->options.every_ns)
			end_ns = now_ns - (now_ns - end_ns) % series->options.every_ns;
		if (r == 0)
			r = open_part(series, end_ns);
	}
	return r;
}

int capture_series_advance(struct capture_series *series, uint64_t now_ns, uint64_t settled_ns)
{
	int r = 0;

	if (!series->has_session)
		return 0;
	if (!series->last_number)
		r = open_part(series, series->session.start_time_ns);
	if (r == 0)
		r = open_begun(series, now_ns);
	while (r == 0 && series->parts.count > 1) {
		uint64_t end_ns = series->parts.items[0]->end_ns;

		if (settled_ns < end_ns + GRACE_NS && now_ns < end_ns + MOST_GRACE_NS)
			break;
		r = close_first(series);
	}
	return r;
}

int capture_series_finish(struct capture_series *series)
{
	int r = 0;

	series->is_finished = true;
	if (series->parts.count) {
		struct series_part *last = series->parts.items[series->parts.count - 1];

		last->end_ns = MAX(
			last->begin_ns + 1, MIN(series->account.stats.end_time_ns, last->end_ns));
	}
	while (r == 0 && series->parts.count)
		r = close_first(series);
	return r;
}

static struct series_part *find_part(struct capture_series *series, uint64_t time_ns)
{
	for (size_t i = series->parts.count; i-- > 0;) {
		struct series_part *part = series->parts.items[i];

		if (time_ns >= part->begin_ns)
			return time_ns < part->end_ns ? part : NULL;
	}
	return NULL;
}

int series_open_until(struct capture_series *series, uint64_t time_ns)
{
	uint64_t now_ns = monotonic_now_ns();

	return series->is_finished || time_ns > now_ns ? 0 : open_begun(series, now_ns);
}

struct series_part *series_part_at(struct capture_series *series, uint64_t time_ns)
{
	struct series_part *part = find_part(series, time_ns);

	if (!part && series_open_until(series, time_ns) == 0)
		part = find_part(series, time_ns);
	series->account.late += !part;
	return part;
}

struct series_part *series_part_from(struct capture_series *series, uint64_t *time_ns)
{
	if (series->parts.count)
		*time_ns = MAX(*time_ns, series->parts.items[0]->begin_ns);
	return series_part_at(series, *time_ns);
}

bool capture_series_is_full(const struct capture_series *series)
{
	return series->stacks.stacks.count > MOST_CALLSTACKS;
}
