/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

void cuda_note_faults(enum cupti_when when)
{
	const char *fault;

	for (unsigned i = 0; (fault = cupti_known_fault(cuda.cupti.version, when, i)); i++)
		inject_note(WIRE_NOTE_FAULTY, "%s", fault);
}

static int name_holder(struct dl_phdr_info *info, size_t size, void *context)
{
	static const struct {
		const char *library, *tool;
	} holders[] = {
		{"/libToolsInjection", "Nsight Systems or Nsight Compute"},
		{"/libsanitizer-collection", "Compute Sanitizer"},
		{"/libkineto", "torch.profiler"},
		{"/libtorch_cpu", "torch.profiler"},
	};
	const char **holder = context;

	for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
		if (!strstr(info->dlpi_name, holders[i].library))
			continue;
		*holder = holders[i].tool;
		return 1;
	}
	return 0;
}

/* Before CUDA 13 the holder has no name: what the program has loaded gives it away. */
static const char *likely_holder(void)
{
	const char *holder = NULL;

	dl_iterate_phdr(name_holder, &holder);
	return holder;
}

static void note_held(const char *holder)
{
	const char *likely = *holder ? holder : likely_holder();

	if (*holder || likely)
		inject_note(WIRE_NOTE_HELD,
			"CUPTI is held by %s%s, so device work is not timed; the CPU is still "
			"profiled. Run the program without it to time the device.",
			*holder ? "" : "another tool, probably ", likely);
	else
		inject_note(WIRE_NOTE_HELD,
			"CUPTI is held by another tool (nsys, ncu, cuda-gdb, "
			"torch.profiler …), so device work is not timed; the CPU "
			"is still profiled. Run the program without it to time "
			"the device.");
}

const struct cuda_refusal *cuda_find_refusal(
	const struct cuda_refusal *refusals, size_t count, cupti_result result)
{
	for (size_t i = 0; i < count; i++) {
		if (refusals[i].result == result)
			return &refusals[i];
	}
	return NULL;
}

const char *cuda_result_name(cupti_result result)
{
	const char *name = NULL;

	if (cuda.cupti.call.get_result_string)
		cuda.cupti.call.get_result_string(result, &name);
	return name ? name : "unknown";
}

static const struct cuda_refusal refusals[] = {
	{CUPTI_E_UNKNOWN,
		"CUPTI finds no NVIDIA driver that it can use, so that device work is not timed: "
		"nvidia-smi tells whether the driver runs and the program may use the device.",
		WIRE_NOTE_NO_DRIVER},
	/* What CUPTI says without a driver: this up to CUDA 12, the former from 13 on. */
	{CUPTI_E_NOT_INITIALIZED,
		"CUPTI finds no NVIDIA driver that it can use, or one older than itself, so that "
		"device work is not timed: nvidia-smi tells the driver's version; SONDE_CUPTI may "
		"name an older libcupti.",
		WIRE_NOTE_NO_DRIVER},
	{CUPTI_E_PRIVILEGES,
		"The NVIDIA driver does not allow this user to trace, so that device work is not "
		"timed: see https://developer.nvidia.com/ERR_NVGPUCTRPERM.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_VIRTUALIZED,
		"CUPTI cannot trace on this virtual GPU, so that device work is not timed.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_VIRTUALIZED_PRIVILEGES,
		"The host of this virtual GPU does not allow tracing, so that device work is not "
		"timed: its administrator can (profiling of the vGPU).",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_CONFIDENTIAL,
		"CUPTI cannot trace a GPU in confidential computing mode, so that device work is "
		"not timed.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_MIG, "CUPTI cannot trace this MIG device, so that device work is not timed.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_MINING_DEVICE,
		"CUPTI cannot trace a mining GPU (CMP), so that device work is not timed.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_SLI, "CUPTI cannot trace GPUs in SLI, so that device work is not timed.",
		WIRE_NOTE_REFUSED},
	{CUPTI_E_WSL,
		"CUPTI cannot trace this GPU in the Windows Subsystem for Linux, so that device "
		"work is not timed.",
		WIRE_NOTE_REFUSED},
};

void cuda_note_refusal(cupti_result result, const char *holder)
{
	const struct cuda_refusal *refusal =
		cuda_find_refusal(refusals, sizeof(refusals) / sizeof(*refusals), result);

	if (result == CUPTI_E_HELD)
		note_held(holder);
	else if (refusal)
		inject_note(refusal->note, "%s", refusal->text);
	else
		inject_note(WIRE_NOTE_REFUSED,
			"CUPTI refuses to trace (error %d, %s), so that device work is not timed.",
			result, cuda_result_name(result));
}
