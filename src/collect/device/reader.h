/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empties the rings of a session's processes on a thread of its own, which does nothing else: a
 * ring at full speed holds 4 ms, and the collector has more to do than that. What it read waits in
 * memory for the collector; beyond a limit it stays in the rings, which count what they lose.
 *
 * Call order: start → (lock, unlock, take)* → stop → take → free. Other calls by one thread.
 */
#pragma once

#include "sources/target/target_rings.h"

struct device_reader;

int device_reader_start(struct device_reader **ret_reader, struct target_rings *rings);
/* Around every use of the rings by anybody else while the thread runs. NULL: there is no thread. */
void device_reader_lock(struct device_reader *reader);
void device_reader_unlock(struct device_reader *reader);
/*
 * Hands over what was read since the last time. Returns 1 when the rings were read meanwhile, 0
 * when they were not, or what reading them failed with.
 */
int device_reader_take(
	struct device_reader *reader, target_rings_record_function *on_record, void *context);
/* The rings are the caller's again. */
void device_reader_stop(struct device_reader *reader);
struct device_reader *device_reader_free(struct device_reader *reader);
