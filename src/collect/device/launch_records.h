/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What injected libraries say of the stacks of launches: copies of stacks, for the pipeline, and
 * launches whose stack an earlier one had, for the capture. And what they need to know: where code
 * and Python lie in their process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "capture/writer/writer.h"
#include "collect/pipeline/pipeline.h"
#include "collect/pipeline/python.h"
#include "sources/process/address_space.h"
#include "wire/launch.h"

struct launch_records_account {
	uint64_t copies;  /* of stacks */
	uint64_t same;    /* launches with an earlier one's stack */
	uint64_t checked; /* of launches that would have had one, and whose own was taken */
	uint64_t malformed;
};

struct launch_records;

int launch_records_new(struct launch_records **ret_records, struct capture_writer *writer);
struct launch_records *launch_records_free(struct launch_records *records);
bool launch_records_is_one(const struct wire_record *record);
/* A record of a process, whole by its length; whatever is in it. Returns 0 or a negative errno. */
int launch_records_add(struct launch_records *records, struct pipeline *pipeline,
	const struct python_registry *python, uint32_t pid, const struct wire_record *record);
const struct launch_records_account *launch_records_account(const struct launch_records *records);

/*
 * Tells a process, when it is news, where its code lies and whether it runs Python. `start_time_ns`
 * and the pid name its ring file. Returns 0 or -ENOMEM.
 */
int launch_records_send_facts(struct launch_records *records, struct wire_launch_facts *facts,
	uint64_t start_time_ns, const struct process *process,
	const struct python_registry *python);
/* Tells it, too, how the stack of one of its launches was unwound; too deep ones are left out. */
void launch_records_add_hint(struct wire_launch_facts *facts, uint64_t correlation,
	const uint64_t *frames, size_t frame_count);
