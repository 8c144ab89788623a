/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and marks from the injected libraries' records to the capture: names their ids, puts the
 * events of all rings in the order of time, and sees to it that what is written nests.
 */
#pragma once

#include <stdint.h>

#include "capture/writer/writer.h"
#include "collect/windows/windows.h"
#include "wire/range.h"

struct range_collector;

int range_collector_new(struct range_collector **ret_collector, struct capture_writer *writer);
struct range_collector *range_collector_free(struct range_collector *collector);
/* Before the first record: only what lies in these, which outlive the collector, is written. */
void range_collector_set_windows(struct range_collector *collector, struct windows *windows);
/* Is it a record for range_collector_add()? */
bool range_collector_takes(const struct wire_record *record);
/* A record of a process, whole by its length; whatever is in it. Returns 0 or a negative errno. */
int range_collector_add(
	struct range_collector *collector, uint32_t pid, const struct wire_record *record);
/*
 * After all rings were drained: writes what came. Events whose names, or whose begins, may still be
 * in a ring wait for the next call; with `everything` none does. Returns 0 or a negative errno.
 */
int range_collector_write(struct range_collector *collector, bool everything);
/*
 * The names that programs gave their threads: at the end, so that they stay, since the kernel's
 * names may come at any time before. Returns 0 or a negative errno.
 */
int range_collector_name_threads(struct range_collector *collector);
/* All but what the rings count themselves. */
void range_collector_account(
	const struct range_collector *collector, struct capture_range_stats *ret_stats);
