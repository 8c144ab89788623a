/* SPDX-License-Identifier: Apache-2.0 */
/* Why counters are not sampled, in a sentence. */
#include "inject/cuda/pm.h"

static const struct cuda_refusal refusals[] = {
	{CUPTI_E_PRIVILEGES,
		"The NVIDIA driver lets administrators alone read a GPU's counters, so that "
		"--pm-sampling has nothing: run sonde as root, or have the driver loaded with "
		"NVreg_RestrictProfilingToAdminUsers=0 (options nvidia … in /etc/modprobe.d, then "
		"reboot): https://developer.nvidia.com/ERR_NVGPUCTRPERM."},
	{CUPTI_E_VIRTUALIZED_PRIVILEGES,
		"The host of this virtual GPU does not allow profiling, so that --pm-sampling has "
		"nothing: its administrator can allow it for the vGPU."},
	{CUPTI_E_VIRTUALIZED,
		"CUPTI cannot sample the counters of this virtual GPU, so that --pm-sampling has "
		"nothing: run on a whole GPU."},
	{CUPTI_E_MIG,
		"CUPTI cannot sample the counters of this MIG instance, so that --pm-sampling has "
		"nothing: run on a GPU that is not partitioned."},
	{CUPTI_E_CONFIDENTIAL,
		"CUPTI cannot sample the counters of a GPU in confidential computing mode, so that "
		"--pm-sampling has nothing: run without that mode."},
	{CUPTI_E_WSL,
		"CUPTI cannot sample the counters of this GPU in the Windows Subsystem for Linux, "
		"so that --pm-sampling has nothing: run on Linux itself."},
	{CUPTI_E_HARDWARE_BUSY,
		"Another profiler (ncu, nsys, DCGM's profiling metrics) has the GPU's counters, so "
		"that --pm-sampling has nothing: run again without it."},
	{CUPTI_E_INVALID_OPERATION,
		"The program, or another profiler in it, samples the GPU's counters itself, so "
		"that --pm-sampling has nothing: run again without it."},
	{CUPTI_E_NOT_INITIALIZED,
		"CUPTI has no libnvperf_host.so and libnvperf_target.so, so that --pm-sampling has "
		"nothing: install them beside libcupti, as the package nvidia-cuda-cupti does."},
};

static bool has_functions(void)
{
	const struct cupti_functions *call = &cuda.cupti.call;

	return cuda.cupti.version >= CUPTI_VERSION_12_6 && call->pm_enable && call->pm_decode &&
	       call->host_initialize && call->host_values;
}

static void note_unsupported(const char *chip)
{
	char version[32];

	cupti_version_text(cuda.cupti.version, version, sizeof(version));
	if (!has_functions())
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"CUPTI %s cannot sample counters, so that --pm-sampling has nothing: that "
			"needs CUPTI 12.6 or later; SONDE_CUPTI can name its libcupti.so.",
			version);
	else
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"CUPTI %s cannot sample the counters of this GPU (%s), so that "
			"--pm-sampling has nothing: that needs a GPU from Turing on (compute "
			"capability 7.5), and a CUPTI that knows it.",
			version, chip ? chip : "chip not known");
}

void pm_note_refusal(cupti_result result, const char *chip)
{
	static cupti_result said = CUPTI_OK;
	const struct cuda_refusal *refusal =
		cuda_find_refusal(refusals, sizeof(refusals) / sizeof(*refusals), result);

	if (result == said)
		return;
	said = result;
	if (result == CUPTI_E_NOT_SUPPORTED)
		note_unsupported(chip);
	else if (refusal)
		inject_note(WIRE_NOTE_PM_SAMPLING, "%s", refusal->text);
	else
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"CUPTI refuses to sample the GPU's counters (error %d, %s), so that "
			"--pm-sampling has nothing: record without it.",
			result, cuda_result_name(result));
}
