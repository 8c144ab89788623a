/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

#define MAX_NOTES 32

enum note_state {
	NOTE_FREE,
	NOTE_TAKEN, /* being written */
	NOTE_READY,
	NOTE_TOLD,
};

static struct {
	_Atomic uint32_t state; /* enum note_state */
	uint32_t note;
	char text[WIRE_DEVICE_TEXT_BYTES];
} notes[MAX_NOTES];
static _Atomic uint32_t note_count;

void cuda_note(unsigned note, const char *format, ...)
{
	uint32_t i = atomic_load_explicit(&note_count, memory_order_relaxed);
	va_list arguments;

	/* Who repeats himself is heard 32 times. */
	if (i >= MAX_NOTES)
		return;
	i = atomic_fetch_add_explicit(&note_count, 1, memory_order_relaxed);
	if (i >= MAX_NOTES)
		return;
	notes[i].note = note;
	va_start(arguments, format);
	vsnprintf(notes[i].text, sizeof(notes[i].text), format, arguments);
	va_end(arguments);
	atomic_store_explicit(&notes[i].state, NOTE_READY, memory_order_release);
}

void cuda_note_faults(enum cupti_when when)
{
	const char *fault;

	for (unsigned i = 0; (fault = cupti_known_fault(cuda.cupti.version, when, i)); i++)
		cuda_note(WIRE_NOTE_FAULTY, "%s", fault);
}

bool cuda_send_notes(void)
{
	bool all = true;

	for (size_t i = 0; i < MAX_NOTES; i++) {
		uint32_t state = atomic_load_explicit(&notes[i].state, memory_order_acquire);

		if (state != NOTE_READY)
			continue;
		if (cuda_define(WIRE_RECORD_DEVICE_NOTE, notes[i].note, 0, notes[i].text))
			atomic_store_explicit(&notes[i].state, NOTE_TOLD, memory_order_relaxed);
		else
			all = false;
	}
	return all;
}

void cuda_repeat_notes(void)
{
	for (size_t i = 0; i < MAX_NOTES; i++) {
		uint32_t told = NOTE_TOLD;

		if (notes[i].note == WIRE_NOTE_TRACER || notes[i].note == WIRE_NOTE_FAULTY)
			atomic_compare_exchange_strong(&notes[i].state, &told, NOTE_READY);
	}
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
		cuda_note(WIRE_NOTE_HELD,
			"CUPTI is held by %s%s, so device work is not timed; the CPU is still "
			"profiled. Run the program without it to time the device.",
			*holder ? "" : "another tool, probably ", likely);
	else
		cuda_note(WIRE_NOTE_HELD, "CUPTI is held by another tool (nsys, ncu, cuda-gdb, "
					  "torch.profiler …), so device work is not timed; the CPU "
					  "is still profiled. Run the program without it to time "
					  "the device.");
}

static const struct {
	cupti_result result;
	unsigned note;
	const char *text;
} refusals[] = {
	{CUPTI_E_UNKNOWN, WIRE_NOTE_NO_DRIVER,
		"CUPTI finds no NVIDIA driver that it can use, so that device work is not timed: "
		"nvidia-smi tells whether the driver runs and the program may use the device."},
	/* What CUPTI says without a driver: this up to CUDA 12, the former from 13 on. */
	{CUPTI_E_NOT_INITIALIZED, WIRE_NOTE_NO_DRIVER,
		"CUPTI finds no NVIDIA driver that it can use, or one older than itself, so that "
		"device work is not timed: nvidia-smi tells the driver's version; SONDE_CUPTI may "
		"name an older libcupti."},
	{CUPTI_E_PRIVILEGES, WIRE_NOTE_REFUSED,
		"The NVIDIA driver does not allow this user to trace, so that device work is not "
		"timed: see https://developer.nvidia.com/ERR_NVGPUCTRPERM."},
	{CUPTI_E_VIRTUALIZED, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace on this virtual GPU, so that device work is not timed."},
	{CUPTI_E_VIRTUALIZED_PRIVILEGES, WIRE_NOTE_REFUSED,
		"The host of this virtual GPU does not allow tracing, so that device work is not "
		"timed: its administrator can (profiling of the vGPU)."},
	{CUPTI_E_CONFIDENTIAL, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace a GPU in confidential computing mode, so that device work is "
		"not timed."},
	{CUPTI_E_MIG, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace this MIG device, so that device work is not timed."},
	{CUPTI_E_MINING_DEVICE, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace a mining GPU (CMP), so that device work is not timed."},
	{CUPTI_E_SLI, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace GPUs in SLI, so that device work is not timed."},
	{CUPTI_E_WSL, WIRE_NOTE_REFUSED,
		"CUPTI cannot trace this GPU in the Windows Subsystem for Linux, so that device "
		"work is not timed."},
};

void cuda_note_refusal(cupti_result result, const char *holder)
{
	const char *text = NULL;

	if (result == CUPTI_E_HELD) {
		note_held(holder);
		return;
	}
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		if (refusals[i].result != result)
			continue;
		cuda_note(refusals[i].note, "%s", refusals[i].text);
		return;
	}
	if (cuda.cupti.call.get_result_string)
		cuda.cupti.call.get_result_string(result, &text);
	cuda_note(WIRE_NOTE_REFUSED,
		"CUPTI refuses to trace (error %d, %s), so that device work is not timed.", result,
		text ? text : "unknown");
}
