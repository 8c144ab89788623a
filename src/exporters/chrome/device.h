/* SPDX-License-Identifier: Apache-2.0 */
/* What devices did, laid out for viewers, whose slices have to nest: for chrome.c. */
#pragma once

#include "model/model.h"
#include "model/trace.h"

/*
 * The rows of a recording's calls, device work and memory, without its ranges and steps: a process
 * for each device with a thread for each queue, a thread beside each that launched, with its calls,
 * and an arrow from each call to its work. `process_numbers` are those of the model's processes.
 * Returns 0 or -ENOMEM.
 */
int chrome_device_rows(
	struct trace **ret_trace, const struct model *model, const uint64_t *process_numbers);
