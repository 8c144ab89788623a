/* SPDX-License-Identifier: Apache-2.0 */
#include "load/capture.h"

#include <errno.h>
#include <stdio.h>

#include "analyses/device/idle_spans.h"
#include "analyses/memory/held_spans.h"
#include "base/warn.h"
#include "load/log.h"
#include "load/progress.h"
#include "load/standard_input.h"
#include "load/trace_file.h"
#include "model/shown.h"
#include "model/trace_capture.h"
#include "model/weigh.h"
#include "model/windows.h"

/* Several that nobody put on one clock: files that were written one behind the other. */
static void warn_about_recordings(const struct model *model, const char *path)
{
	array_foreach (&model->recordings, recording) {
		if (recording->clock.source != CAPTURE_CLOCK_OWN)
			return;
	}
	if (model->recordings.count > 1)
		warn("%s holds %zu recordings, each with the clock of its host: sonde merge makes "
		     "one file of them with one clock",
			path, model->recordings.count);
}

static void warn_about(const struct model *model, const char *path)
{
	if (model->completeness.truncated)
		warn("%s is cut off after %llu bytes, in the middle of a packet: what came before "
		     "is shown",
			path, (unsigned long long)model->completeness.truncated_at);
	if (model->completeness.other_packets)
		warn("%s: left out: %llu packets of data that sonde has no rows for, such as "
		     "what Perfetto records of kernels, of Android and of GPUs' counters",
			path, (unsigned long long)model->completeness.other_packets);
	if (model->cut_off_count)
		warn("%s: %s", path, model->stats.values.notes[0]);
	warn_about_recordings(model, path);
}

enum model_weight shown_weight(const struct shown_options *shown)
{
	return shown->weight ? model_weight_from_string(shown->weight) : MODEL_WEIGHT_CPU;
}

enum model_side shown_side(const struct shown_options *shown)
{
	if (!shown->stacks || shown->stacks[0] == 'a')
		return MODEL_SIDE_BOTH;
	if (shown->stacks[0] == 'm')
		return MODEL_SIDE_MODULES;
	return shown->stacks[0] == 'k' ? MODEL_SIDE_KERNEL : MODEL_SIDE_USER;
}

/* A text that no log's importer makes anything of is refused as any other file is. */
static int load_windows(struct model **ret_model, const char *path,
	const struct window_choice *choice, struct progress *progress, struct errmsg *err)
{
	const struct importer *importer;
	int r = -ENODATA;

	if (trace_file_identify(path, &importer) == TRACE_FILE_LOG)
		r = load_log_model(ret_model, path, importer, choice, err);
	if (r == -ENODATA)
		r = model_load_windows(ret_model, path, choice, progress_update, progress, err);
	return r;
}

int show_as_asked(struct model *model, const struct shown_options *shown)
{
	int r = 0;

	if (!shown->interpreter) {
		model_hide_interpreter(model);
		r = model_hide_sonde(model);
	}
	if (r < 0)
		return r;
	if (shown->fold_libraries)
		model_fold_libraries(model, shown->fold_libraries[0] == 'y');
	return model_show_side(model, shown_side(shown));
}

int load_capture(const char *path, const struct shown_options *shown,
	const struct selection *selection, struct model **ret_model, struct errmsg *err)
{
	struct window_choice choice = {0};
	char what[256];
	struct progress progress;
	int r = selection->window ? window_choice_parse(selection->window, &choice, err) : 0;

	if (r < 0)
		return r;
	snprintf(what, sizeof(what), "loading %s", path);
	progress_begin(&progress, what);
	r = load_windows(ret_model, load_path(path), &choice, &progress, err);
	progress_end(&progress);
	if (r < 0)
		return r;
	warn_about(*ret_model, path);
	if (show_as_asked(*ret_model, shown) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while loading %s", path);
	return 0;
}

int charge_energy(struct model *model, const struct selection *selection,
	struct energy_use *ret_energy, struct errmsg *err)
{
	int r = selection_narrow_energy(selection, model, err);

	if (r < 0)
		return r;
	r = energy_use_init(ret_energy, model);
	return r < 0 ? errmsg_set(err, r, "memory ran out while charging energy") : 0;
}

int charge_and_narrow(struct model *model, const struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy,
	struct weight_spans *ret_spans, struct errmsg *err)
{
	int r = charge_energy(model, selection, ret_energy, err);

	if (r < 0)
		return r;
	if (shown_weight(shown) == MODEL_WEIGHT_GPU_IDLE && idle_spans_init(ret_spans, model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking at idle devices");
	r = selection_narrow(selection, model, err);
	if (r == 0 && shown_weight(shown) == MODEL_WEIGHT_GPU_BYTES &&
		held_spans_init(ret_spans, model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking at allocations");
	return r;
}

int select_and_weigh(struct model *model, const struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy, struct errmsg *err)
{
	_cleanup_weight_spans_ struct weight_spans spans = {0};
	int r = charge_and_narrow(model, shown, selection, ret_energy, &spans, err);

	return r < 0 ? r : weigh_capture(model, shown, &spans, ret_energy, err);
}

static int refuse_energy(const struct model *model, struct errmsg *err)
{
	const struct model_energy_absence *absence = model->energy_absences.items;

	if (model->energy_domains.count)
		return errmsg_set(err, -ENODATA,
			"--weight energy: no energy was measured in the time that is shown");
	if (!model->energy_absences.count)
		return errmsg_set(err, -ENODATA,
			"--weight energy: energy was not recorded: record with --energy auto; "
			"sonde doctor says what this machine can measure");
	return errmsg_set(err, -ENODATA, "--weight energy: energy was not measured: %s: %.300s",
		absence->source, absence->reason);
}

static int refuse_bytes(const struct model *model, struct errmsg *err)
{
	if (model_is_foreign(model) || model->device_memory.count)
		return errmsg_set(err, -ENODATA,
			"--weight gpu-bytes: of what was allocated nothing was in use at the "
			"device's peak, in the time that is shown");
	return errmsg_set(err, -ENODATA,
		"--weight gpu-bytes: no allocation of a device's memory was recorded: sonde record "
		"records those of programs that use CUDA; of PyTorch's own allocator a snapshot "
		"of its memory (torch.cuda.memory._dump_snapshot()) or a trace "
		"(profile_memory=True and with_stack=True) tells");
}

static int weigh_as_asked(struct model *model, enum model_weight weight,
	const struct weight_spans *spans, const struct energy_use *energy)
{
	switch (weight) {
	case MODEL_WEIGHT_GPU_IDLE:
		return model_weigh_spans(model, "[idle]", spans->items.items, spans->items.count);
	case MODEL_WEIGHT_GPU_BYTES:
		return model_weigh_bytes(model, spans->items.items, spans->items.count);
	case MODEL_WEIGHT_ENERGY:
		return model_weigh_energy(model, energy->rests.items, energy->rests.count);
	default:
		return model_weigh(model, weight);
	}
}

int weigh_capture(struct model *model, const struct shown_options *shown,
	const struct weight_spans *spans, const struct energy_use *energy, struct errmsg *err)
{
	enum model_weight weight = shown_weight(shown);

	if (weight == MODEL_WEIGHT_CPU)
		return 0;
	if (weight == MODEL_WEIGHT_ENERGY && !energy_use_has_any(energy))
		return refuse_energy(model, err);
	if (weight == MODEL_WEIGHT_GPU_BYTES && !spans->items.count)
		return refuse_bytes(model, err);
	if (weigh_as_asked(model, weight, spans, energy) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while weighing samples");
	if (shown->fold_libraries)
		model_fold_libraries(model, shown->fold_libraries[0] == 'y');
	return 0;
}
