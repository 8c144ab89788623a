/* SPDX-License-Identifier: Apache-2.0 */
/* What a program marks itself, as rows for kineto_json.c: ranges, marks, steps, windows,
 * counters. */
#pragma once

#include "model/trace.h"

/*
 * Adds rows and counters to those of chrome_device_rows(), each thread and domain on a line of its
 * own. `process_numbers` are those of the model's processes. Counters without a finite value are
 * left out. Returns 0 or -ENOMEM.
 */
int chrome_add_program(
	struct trace *trace, const struct model *model, const uint64_t *process_numbers);
