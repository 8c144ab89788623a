/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From wire records and side-band events to capture packets: puts both in order of time, so that
 * each sample meets the mappings of its moment; unwinds copied stacks; keeps samples whose tables
 * or names are on their way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/writer/writer.h"
#include "collect/pipeline/files.h"
#include "collect/pipeline/python.h"
#include "collect/pipeline/resolver.h"
#include "collect/windows/windows.h"
#include "sources/process/address_space.h"
#include "wire/sample.h"

struct pipeline;

struct pipeline_account {
	uint64_t samples; /* of running threads, written */
	uint64_t wait_samples, waited_ns;
	uint64_t launch_stacks;                 /* of device work, written */
	uint64_t stacks_by_stop[WIRE_STOP_MAX]; /* of the running ones */
	uint64_t stacks_by_python[WIRE_PYTHON_MAX];
	uint64_t user_frames, python_frames, kernel_frames;
	/* Stacks whose middle is left out: deeper than WIRE_MAX_USER_FRAMES or its Python pendant.
	 */
	uint64_t deep_stacks, frames_left_out, most_left_out;
	uint64_t unwound_in_user_space;
	uint64_t gave_up_waiting; /* written with what there was: too much was waiting */
	uint64_t side_band_lost;
	uint64_t malformed; /* records that were dropped: their counts did not fit their length */
	uint64_t outside;   /* samples, waits and launch stacks outside of all windows: left out */
};

struct pipeline_parts {
	struct address_spaces *spaces;
	struct file_store *files;
	struct resolver *resolver;
	struct python_registry *python;
	struct capture_writer *writer;
	struct windows *windows; /* NULL: all that comes is recorded */
	bool only_descendants;   /* ignore side-band events of unrelated processes */
	/* Reported of each launch whose stack is whole; frames innermost first. May be NULL. */
	void (*on_launch_stack)(void *context, const struct wire_sample *sample,
		const uint64_t *frames, size_t frame_count);
	/* Called before each record and event: what must not wait until all are handled. May be
	 * NULL. */
	void (*between)(void *context);
	void *context;
};

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_parts *parts);
struct pipeline *pipeline_free(struct pipeline *pipeline);

/* Take copies; return 0 or -ENOMEM. A record that is not whole is counted and dropped. */
int pipeline_add_record(struct pipeline *pipeline, const struct wire_record *record);
int pipeline_add_event(struct pipeline *pipeline, const struct sideband_event *event);
/*
 * The process wrote a record of its own, which does not come by here: the capture is to have the
 * process, though it may never be sampled. Returns 0 or -ENOMEM.
 */
int pipeline_see_process(struct pipeline *pipeline, uint32_t pid);

/*
 * Handles everything up to `until_ns`: every producer must have handed over all that is older.
 * Returns 0 or a negative errno.
 */
int pipeline_process(struct pipeline *pipeline, uint64_t until_ns);
/* Tries the waiting samples again; with `give_up` writes them with what there is. */
int pipeline_retry(struct pipeline *pipeline, bool give_up);
/* Callstacks of the writer were forgotten: what threads wait at is no longer known. */
void pipeline_forget_waits(struct pipeline *pipeline);
size_t pipeline_waiting(const struct pipeline *pipeline);
/* The time of the oldest of them; UINT64_MAX: none waits. */
uint64_t pipeline_waiting_since_ns(const struct pipeline *pipeline);
const struct pipeline_account *pipeline_account(const struct pipeline *pipeline);
