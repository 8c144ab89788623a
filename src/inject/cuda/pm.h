/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PM sampling: what GPUs count at a fixed interval, such as how busy their multiprocessors are. All
 * of it is the writer's (pm.c), but for a callback that says on which GPU a context was made. The
 * metrics that a chip has, and that it counts at the same time, are chosen by CUPTI's host part
 * (pm_host.c), which also makes values of the decoded data. Nothing else includes this.
 */
#pragma once

#include "inject/cuda/cuda.h"

/* ---- pm_host.c ---- */

struct pm_host {
	cupti_handle host;
	const char *names[WIRE_PM_MAX]; /* of metrics */
	uint8_t counters[WIRE_PM_MAX];  /* enum wire_pm_counter, of each name */
	size_t count;
	const char *chip;
	uint8_t *availability; /* NULL: CUPTI did not say */
	uint8_t *image;        /* for the device */
	size_t image_bytes;
};

/* Where it fails `ret_host` needs no pm_host_close(); `chip` is set as soon as it is known. */
cupti_result pm_host_open(struct pm_host *ret_host, uint32_t gpu);
void pm_host_close(struct pm_host *host);
/* What was counted in a sample of so long, by enum wire_pm_counter; false: nothing. */
bool pm_host_values(const struct pm_host *host, const struct cupti_pm_sample_params *sample,
	double *ret_values);

/* ---- pm_note.c ---- */

/* Why a GPU is not sampled; `chip` may be NULL. What was said before is not said again. */
void pm_note_refusal(cupti_result result, const char *chip);
