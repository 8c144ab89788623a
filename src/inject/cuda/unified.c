/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults and migrations of unified memory. CUPTI wants its counters configured before their kind is
 * enabled and after the driver has started, which is in the middle of calling us: what it refuses
 * then is tried again when it says that the driver is ready, on the program's thread that started
 * it, before there is a context.
 */
#include "inject/cuda/cuda.h"

enum state {
	STATE_OFF,
	STATE_WAITS, /* for the driver */
	STATE_ON,
	STATE_REFUSED,
};

static _Atomic int state;
static cupti_result first_result;

static const struct cuda_refusal refusals[] = {
	{CUPTI_E_NOT_SUPPORTED,
		"this libcupti has no function for it, or not beside other tools. Use another "
		"release (SONDE_CUPTI)"},
	{CUPTI_E_NOT_COMPATIBLE,
		"it does not go with the way in which several tools share this release of CUPTI. Use "
		"one before 13.2 (SONDE_CUPTI)"},
	{CUPTI_E_UNIFIED, "not on this system. Record without --unified-memory"},
	{CUPTI_E_UNIFIED_ON_DEVICE, "not with this GPU. Record without --unified-memory"},
	{CUPTI_E_UNIFIED_WITHOUT_P2P,
		"not with several GPUs of which some cannot access each other. Show the program one "
		"of them (CUDA_VISIBLE_DEVICES)"},
	{CUPTI_E_UNIFIED_WITH_MPS, "not under MPS. Run the program without it"},
	{CUPTI_E_NOT_INITIALIZED,
		"the driver was not ready, and CUPTI did not say when it was. Record without "
		"--unified-memory"},
};

static void note_refusal(cupti_result result)
{
	const struct cuda_refusal *refusal =
		cuda_find_refusal(refusals, sizeof(refusals) / sizeof(*refusals), result);

	if (refusal)
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not record unified memory (--unified-memory): %s.",
			refusal->text);
	else
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not record unified memory (--unified-memory): error %d, %s. "
			"Record without it.",
			result, cuda_result_name(result));
}

static cupti_result configure(void)
{
	struct cupti_unified_config configs[WIRE_UNIFIED_MAX - 1];

	if (!cuda.cupti.call.configure_unified)
		return CUPTI_E_NOT_SUPPORTED;
	for (uint32_t i = 1; i < WIRE_UNIFIED_MAX; i++)
		configs[i - 1] = (struct cupti_unified_config){
			.scope = CUPTI_UNIFIED_ALL_GPUS, .counter = i, .enable = 1};
	return cuda.cupti.call.configure_unified(configs, WIRE_UNIFIED_MAX - 1);
}

static cupti_result begin(void)
{
	cupti_result result = configure();

	if (result == CUPTI_OK)
		result = cupti_enable(&cuda.cupti, CUPTI_KIND_UNIFIED_MEMORY, true);
	return result;
}

void cuda_unified_start(void)
{
	if (!inject_also_records(WIRE_ALSO_UNIFIED) || !inject_is_timed() ||
		atomic_load_explicit(&state, memory_order_relaxed) != STATE_OFF)
		return;
	first_result = begin();
	atomic_store_explicit(
		&state, first_result == CUPTI_OK ? STATE_ON : STATE_WAITS, memory_order_relaxed);
	if (first_result != CUPTI_OK)
		cupti_enable_callback(
			&cuda.cupti, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_DRIVER_READY, true);
}

void cuda_unified_retry(void)
{
	int waits = STATE_WAITS;
	cupti_result result;

	/* Taken, so that two threads do not both try. */
	if (!atomic_compare_exchange_strong(&state, &waits, STATE_REFUSED))
		return;
	result = begin();
	if (result == CUPTI_OK)
		atomic_store_explicit(&state, STATE_ON, memory_order_relaxed);
	else
		note_refusal(result);
}

void cuda_unified_enable(bool on)
{
	if (atomic_load_explicit(&state, memory_order_relaxed) == STATE_ON)
		cupti_enable(&cuda.cupti, CUPTI_KIND_UNIFIED_MEMORY, on);
}

void cuda_unified_check(void)
{
	int waits = STATE_WAITS;

	if (atomic_compare_exchange_strong(&state, &waits, STATE_REFUSED))
		note_refusal(first_result);
}
