/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/window_use.h"

#include "base/macros.h"
#include "model/windows.h"

static void add_samples(
	struct window_use *use, const struct model *model, const struct selected *selected)
{
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		uint32_t window = model_window_at(model, sample->time_ns);

		if (window != MODEL_NONE && sample->wait == WIRE_WAIT_NONE &&
			(!selected || selected->samples[i]))
			use->rows.items[window].samples++;
	}
}

void window_use_add_work(struct window_use *use, const struct model_window *windows,
	uint64_t start_ns, uint64_t end_ns, uint64_t *busy_until_ns)
{
	uint32_t window = windows_at(windows, use->rows.count, start_ns);
	uint64_t since_ns = MAX(start_ns, *busy_until_ns);

	if (window == MODEL_NONE)
		return;
	use->rows.items[window].works++;
	for (; window < use->rows.count && windows[window].begin_ns < end_ns; window++) {
		uint64_t from_ns = MAX(since_ns, windows[window].begin_ns);
		uint64_t to_ns = MIN(end_ns, windows[window].end_ns);

		use->rows.items[window].device_busy_ns += to_ns > from_ns ? to_ns - from_ns : 0;
	}
	*busy_until_ns = MAX(*busy_until_ns, end_ns);
}

int window_use_init(
	struct window_use *use, const struct model *model, const struct selected *selected)
{
	uint64_t busy_until_ns = 0;
	int r;

	*use = (struct window_use){0};
	r = array_reserve(&use->rows, model->windows.count);
	for (size_t i = 0; r == 0 && i < model->windows.count; i++)
		r = array_append(&use->rows, (struct window_row){0});
	if (r < 0) {
		window_use_done(use);
		return r;
	}
	add_samples(use, model, selected);
	array_foreach (&model->device_works, work)
		window_use_add_work(
			use, model->windows.items, work->start_ns, work->end_ns, &busy_until_ns);
	array_foreach (&model->steps, step) {
		if (step->window != MODEL_NONE)
			use->rows.items[step->window].steps++;
	}
	return 0;
}

void window_use_done(struct window_use *use)
{
	array_done(&use->rows);
}
