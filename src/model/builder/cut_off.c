/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that have no end. The last account of a recording is marked as complete, in captures
 * of every version; where that packet is missing, sonde was killed, its disk was full, or the file
 * was cut. In joined files the recordings follow one another.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/builder/internal.h"

static void look_at_end(struct cut_off *cut)
{
	uint64_t length_ns = cut->latest_ns - cut->start_ns;

	if (cut->start_ns)
		cut->least_ns = MIN(cut->least_ns ?: UINT64_MAX, MAX(length_ns, (uint64_t)1));
	cut->start_ns = 0;
}

void builder_cut_off_begins(struct model_builder *builder, const struct capture_session *session)
{
	struct cut_off *cut = &builder->cut_off;

	look_at_end(cut);
	cut->start_ns = cut->latest_ns = session->start_time_ns;
}

void builder_cut_off_account(struct model_builder *builder, const struct capture_stats *stats)
{
	struct cut_off *cut = &builder->cut_off;

	cut->latest_ns = MAX(cut->latest_ns, stats->end_time_ns);
	if (!stats->complete)
		return;
	cut->ended++;
	cut->start_ns = 0;
}

/* The first of the notes, which the report and the exports show. */
static int add_note(struct model *model)
{
	const char **notes = calloc(model->stats.values.note_count + 2, sizeof(*notes));
	char text[300], which[64] = "The recording";
	uint32_t id;

	if (!notes)
		return -ENOMEM;
	if (model->recordings.count > 1)
		snprintf(which, sizeof(which), "Of %zu recordings %u", model->recordings.count,
			model->cut_off_count);
	snprintf(text, sizeof(text),
		"%s %s cut off at %.2f s: sonde was killed, its disk was full, or it still runs; "
		"what came later is missing.",
		which, model->recordings.count > 1 && model->cut_off_count > 1 ? "were" : "was",
		(double)model->cut_off_ns / 1e9);
	if (intern_add(&model->strings, text, strlen(text), &id) < 0) {
		free(notes);
		return -ENOMEM;
	}
	notes[0] = intern_get(&model->strings, id);
	if (model->stats.values.note_count)
		memcpy(notes + 1, model->stats.values.notes,
			model->stats.values.note_count * sizeof(*notes));
	free((void *)model->stats.values.notes);
	model->stats.values.notes = notes;
	model->stats.values.note_count++;
	return 0;
}

int builder_resolve_cut_off(struct model_builder *builder)
{
	struct model *model = builder->model;

	look_at_end(&builder->cut_off);
	if (model->recordings.count <= builder->cut_off.ended)
		return 0;
	model->cut_off_count = (uint32_t)model->recordings.count - builder->cut_off.ended;
	model->cut_off_ns = builder->cut_off.least_ns;
	return add_note(model);
}
