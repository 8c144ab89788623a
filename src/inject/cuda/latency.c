/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the driver put the launch of a kernel into its buffer of commands (queued), and when it
 * handed that to the device (submitted). CUPTI has these times only where it is asked for them
 * before CUDA starts, and gives none while the hardware traces.
 */
#include "inject/cuda/cuda.h"

static bool is_on, is_refused;
static uint64_t kernels, with_times;

static void note_refusal(cupti_result result)
{
	if (is_refused)
		return;
	is_refused = true;
	if (result == CUPTI_E_NOT_SUPPORTED)
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not say when launches were queued and submitted "
			"(--cuda-latency): this libcupti has no function for it. Use another "
			"release (SONDE_CUPTI).");
	else
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not say when launches were queued and submitted "
			"(--cuda-latency): error %d, %s. Record without it, or with another "
			"release (SONDE_CUPTI).",
			result, cuda_result_name(result));
}

void cuda_latency_start(void)
{
	cupti_result result;

	if (!inject_also_records(WIRE_ALSO_LATENCY) || !inject_is_timed())
		return;
	/* Set once for all; by subscribers, each time that we subscribe. */
	if (is_on && !cuda.cupti.by_subscriber)
		return;
	result = cupti_enable_latency(&cuda.cupti);
	is_on = result == CUPTI_OK;
	if (!is_on)
		note_refusal(result);
}

void cuda_latency_take(const struct cupti_kernel *record, struct wire_device_activity *activity)
{
	kernels += record->start != 0;
	if (!is_on || !record->submitted || record->submitted > record->start)
		return;
	with_times++;
	activity->submit = record->submitted;
	if (record->queued <= record->submitted)
		activity->queued = record->queued;
}

void cuda_latency_check(void)
{
	if (is_on && kernels && !with_times)
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI gave no times of queueing and submitting (--cuda-latency) for any "
			"kernel: it has none where CUDA started before it was asked, and while "
			"the hardware traces. Record without it.");
}
