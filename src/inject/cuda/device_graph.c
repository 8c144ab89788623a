/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that kernels of other graphs launch (cudaGraphLaunch() on the device). CUPTI has records
 * of them where it is asked before CUDA starts, and graphs are timed as a whole. No call of the
 * host launched them: a record names the graph whose kernel did.
 */
#include <stdio.h>

#include "inject/cuda/cuda.h"

static void note_refusal(cupti_result result)
{
	static bool is_noted;
	char version[32];

	if (is_noted)
		return;
	is_noted = true;
	cupti_version_text(cuda.cupti.version, version, sizeof(version));
	if (result == CUPTI_E_NOT_SUPPORTED)
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not record graphs that the device launches (--graph device): "
			"that needs CUDA 12.8 or later, and this one is %s. Use another release "
			"(SONDE_CUPTI).",
			version);
	else
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI does not record graphs that the device launches (--graph device): "
			"error %d, %s. Record with --graph graph, or with another release "
			"(SONDE_CUPTI).",
			result, cuda_result_name(result));
}

void cuda_device_graphs_start(void)
{
	static bool is_on;
	cupti_result result;

	if (!inject_also_records(WIRE_ALSO_DEVICE_GRAPHS) || !inject_is_timed() ||
		!cuda.graph_level)
		return;
	/* Set once for all; by subscribers, each time that we subscribe. */
	if (is_on && !cuda.cupti.by_subscriber)
		return;
	result = cupti_enable_device_graphs(&cuda.cupti);
	is_on = result == CUPTI_OK;
	if (!is_on)
		note_refusal(result);
}

uint32_t cuda_device_graph_launcher(const struct cupti_device_graph *record)
{
	return record->launcher ? record->launcher : WIRE_LAUNCHER_UNKNOWN;
}

uint32_t cuda_device_graph_name(const struct cupti_device_graph *record)
{
	static const char *const modes[] = {
		[CUPTI_DEVICE_LAUNCH_FIRE_AND_FORGET] = ", fire and forget",
		[CUPTI_DEVICE_LAUNCH_TAIL] = ", tail",
		[CUPTI_DEVICE_LAUNCH_SIBLING] = ", sibling",
	};
	bool is_known = record->mode < sizeof(modes) / sizeof(*modes) && modes[record->mode];
	char text[80];

	if (!record->launcher)
		return cuda_text_id(WIRE_DEVICE_GRAPH_NAME);
	snprintf(text, sizeof(text), WIRE_DEVICE_GRAPH_NAME " by graph %u%s", record->launcher,
		is_known ? modes[record->mode] : "");
	return cuda_text_id(text);
}
