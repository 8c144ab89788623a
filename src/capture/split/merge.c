/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each capture is read twice: for what happened, which goes to the file as if it were one window of
 * a split capture, and for the names of the code, which captures have at their end.
 */
#include "capture/split/merge.h"

#include <errno.h>
#include <string.h>

#include "capture/join/join.h"
#include "capture/split/state.h"

struct merging {
	struct split split; /* one part: all of the time */
	/* The clocks of the first session, which are those of the file. */
	bool has_clock;
	uint64_t realtime_offset_ns, boottime_offset_ns;
	uint64_t sessions; /* of the capture that is read */
};

static struct capture_writer *writer_of(const struct merging *merging)
{
	return merging->split.parts.items[0].writer;
}

/* All recordings of the file have one clock, so its snapshots must agree. */
static int merge_session(void *context, const struct capture_session *session)
{
	struct merging *merging = context;
	struct capture_session out = *session;
	int r = 0;

	if (!merging->has_clock) {
		merging->realtime_offset_ns = session->start_realtime_ns - session->start_time_ns;
		merging->boottime_offset_ns = session->start_boottime_ns - session->start_time_ns;
		merging->has_clock = true;
	}
	out.start_realtime_ns = session->start_time_ns + merging->realtime_offset_ns;
	out.start_boottime_ns = session->start_time_ns + merging->boottime_offset_ns;
	if (merging->sessions++) {
		r = capture_writer_next_recording(writer_of(merging));
		split_ids_done(&merging->split.parts.items[0].ids);
		merging->split.parts.items[0].ids = (struct split_ids){0};
	}
	return r < 0 ? r : capture_writer_session(writer_of(merging), &out);
}

static int merge_window(void *context, const struct capture_window *window)
{
	return capture_writer_window(writer_of(context), window);
}

static int merge_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct merging *merging = context;
	capture_id own;

	if (!split_has_site(&merging->split.parts.items[0].ids, mapping, rel_pc, &own))
		return 0;
	return capture_writer_symbols(writer_of(merging), own, rel_pc, lines, count);
}

static int merge_stats(void *context, const struct capture_stats *stats)
{
	return capture_writer_stats(writer_of(context), stats);
}

static const struct capture_visitor names_and_account = {
	.symbols = merge_symbols,
	.stats = merge_stats,
};

/* Ids of the capture before mean nothing in this one. */
static void forget_capture(struct merging *merging)
{
	struct split *split = &merging->split;

	split_tables_done(&split->tables);
	split->tables = (struct split_tables){0};
	split_ids_done(&split->parts.items[0].ids);
	split->parts.items[0].ids = (struct split_ids){0};
	map_u64_clear(&split->track_domains);
	map_u64_clear(&split->track_numbers);
	array_clear(&split->domains);
}

static int merge_one(struct merging *merging, struct capture_join *join,
	const struct capture_merge_source *source, struct errmsg *err)
{
	struct capture_visitor events = split_events;
	int r;

	events.session = merge_session;
	events.window = merge_window;
	capture_join_set_visitor(join, &events);
	r = capture_join_read(join, source->path, &source->clock, NULL, err);
	capture_join_renew_ids(join);
	if (r == 0) {
		capture_join_set_visitor(join, &names_and_account);
		r = capture_join_read(join, source->path, &source->clock, NULL, err);
		capture_join_renew_ids(join);
	}
	forget_capture(merging);
	return r;
}

static int merge_all(struct merging *merging, const struct capture_merge_source *sources,
	size_t count, struct errmsg *err)
{
	_cleanup_capture_join_ struct capture_join *join = NULL;
	int r = capture_join_new(&join, &split_events, merging);

	for (size_t i = 0; r == 0 && i < count; i++) {
		merging->sessions = i;
		r = merge_one(merging, join, &sources[i], err);
		if (r == 0)
			r = capture_writer_flush(writer_of(merging), err);
	}
	return r;
}

static void merging_done(struct merging *merging)
{
	struct split *split = &merging->split;

	array_foreach (&split->parts, part) {
		capture_writer_free(part->writer);
		split_ids_done(&part->ids);
	}
	array_done(&split->parts);
	split_tables_done(&split->tables);
	map_u64_done(&split->track_domains);
	map_u64_done(&split->track_numbers);
	array_done(&split->domains);
}

int capture_merge(const char *output, const struct capture_merge_source *sources, size_t count,
	const struct capture_writer_options *options, uint64_t *ret_bytes, struct errmsg *err)
{
	struct merging merging = {.split.end = 1};
	struct split_part part = {0};
	int r = capture_writer_open(&part.writer, output, options, err);

	if (r == 0)
		r = array_append(&merging.split.parts, part);
	if (r < 0) {
		capture_writer_free(part.writer);
		return r;
	}
	r = merge_all(&merging, sources, count, err);
	*ret_bytes = capture_writer_bytes(part.writer);
	if (r == 0) {
		r = capture_writer_close(part.writer, err);
		merging.split.parts.items[0].writer = NULL;
	}
	if (r == -ENOMEM && !err->text[0])
		errmsg_set(err, r, "memory ran out while merging into %s", output);
	merging_done(&merging);
	return r;
}
