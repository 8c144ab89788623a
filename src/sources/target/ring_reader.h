/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empties the rings of a session's processes on a thread of its own, which does nothing else: a
 * ring at full speed holds 4 ms, and the collector has more to do than that. What it read waits in
 * memory for the collector; beyond a limit it stays in the rings, which count what they lose.
 *
 * While the thread runs, everybody else locks the rings before they are used.
 *
 * Call order: start → take* → stop → take → free. Calls by one thread.
 */
#pragma once

#include "sources/target/target_rings.h"

struct ring_reader;

int ring_reader_start(struct ring_reader **ret_reader, struct target_rings *rings);
/*
 * Hands over what was read since the last time. Returns 1 when the rings were read meanwhile, 0
 * when they were not, or what reading them failed with.
 */
int ring_reader_take(
	struct ring_reader *reader, target_rings_record_function *on_record, void *context);
/* The rings are the caller's again. */
void ring_reader_stop(struct ring_reader *reader);
struct ring_reader *ring_reader_free(struct ring_reader *reader);
