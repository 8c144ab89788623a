/* SPDX-License-Identifier: Apache-2.0 */
/* Device work as trace events, laid out as Kineto does: for chrome.c. */
#pragma once

#include "base/json.h"
#include "base/strbuf.h"
#include "exporters/chrome/time.h"

/*
 * Appends events that follow others, each after a comma: a process for each device with a thread
 * for each queue, a thread beside each that launched, with its calls, and an arrow from each call
 * to its work. `process_numbers` are those of the model's processes. Returns 0 or -ENOMEM.
 */
int chrome_add_device_work(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers);

/* The document's member "deviceProperties": what the devices of the rows are called. Returns 0 or
 * -ENOMEM. */
int chrome_add_device_names(struct json_writer *json, const struct model *model);
