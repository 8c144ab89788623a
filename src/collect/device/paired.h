/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of runtimes that report launches and work apart, by a clock of the device of which pairs
 * with the host's come along (CUDA's do), on their way to the capture: a part of
 * collect/device/device.h, which nothing else includes.
 *
 * A launch and its work come in any order. Work is written when a pair of clocks follows it, with
 * its launch's record when that is there. A launch waits for its work, of which there may be none;
 * at last it is written by itself, and the model puts the two together. Launches of graphs have
 * many works, and are written at once.
 */
#pragma once

#include "collect/device/device.h"
#include "collect/device/names.h"
#include "collect/device/output.h"

struct paired_collector;

int paired_collector_new(struct paired_collector **ret_collector,
	const struct device_output *output, const struct device_names *names,
	struct device_account *account);
struct paired_collector *paired_collector_free(struct paired_collector *collector);
/* Is it a record for paired_collector_add()? */
bool paired_collector_wants(const struct wire_record *record);
/* Whatever is in it. Returns 0 or a negative errno, like these: */
int paired_collector_add(
	struct paired_collector *collector, uint32_t pid, const struct wire_record *record);
/* A whole launch that work follows. */
int paired_collector_launch(
	struct paired_collector *collector, uint32_t pid, const struct wire_device_launch *launch);
int paired_collector_write(struct paired_collector *collector, uint64_t now_ns);
/* Work that begins later, of launches that nobody saw, is not the recording's. */
void paired_collector_end(struct paired_collector *collector, uint64_t end_ns);
const struct device_note *paired_collector_notes(
	const struct paired_collector *collector, size_t *ret_count);
