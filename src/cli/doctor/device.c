/* SPDX-License-Identifier: Apache-2.0 */
/* Can device work be recorded? */
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/doctor/doctor.h"
#include "collect/hooks/python_hooks.h"
#include "collect/session/inject_library.h"
#include "inject/cuda/cupti_places.h"

#define DRIVERS_FOLDER "/etc/OpenCL/vendors"
#define NVIDIA_VERSION "/proc/driver/nvidia/version"
#define CUDA_VARIABLE  "CUDA_INJECTION64_PATH"
#define AMD_DEVICE     "/dev/kfd"
#define ROCM_FOLDER    "/opt/rocm"

void doctor_probe_inject_library(struct doctor_result *ret_result)
{
	_cleanup_free_ char *path = NULL;

	if (inject_library_find(&path) == 0)
		doctor_works(ret_result, "%s", path);
	else
		doctor_no(ret_result, "install sonde again: sudo make install",
			INJECT_LIBRARY " is not beside sonde");
}

void doctor_probe_opencl_driver(struct doctor_result *ret_result)
{
	DIR *folder = opendir(DRIVERS_FOLDER);
	const struct dirent *entry;
	unsigned drivers = 0;

	while (folder && (entry = readdir(folder))) {
		const char *end = strrchr(entry->d_name, '.');

		drivers += end && strcmp(end, ".icd") == 0;
	}
	if (folder)
		closedir(folder);
	if (drivers)
		doctor_works(ret_result, "%u in " DRIVERS_FOLDER, drivers);
	else
		doctor_no(ret_result,
			"install the driver of your device; for the CPU: sudo apt install "
			"pocl-opencl-icd",
			"none in " DRIVERS_FOLDER);
}

void doctor_probe_nvidia_driver(struct doctor_result *ret_result)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (read_whole_file(NVIDIA_VERSION, 4096, &text) == 0 && text.length)
		doctor_works(ret_result, "%.*s", (int)strcspn(strbuf_cstr(&text), "\n"),
			strbuf_cstr(&text));
	else
		doctor_no(ret_result, "install NVIDIA's driver, of series 525 or later",
			"no " NVIDIA_VERSION);
}

void doctor_probe_amd_driver(struct doctor_result *ret_result)
{
	if (access(AMD_DEVICE, R_OK | W_OK) == 0)
		doctor_works(ret_result, AMD_DEVICE " can be opened");
	else if (access(AMD_DEVICE, F_OK) == 0)
		doctor_no(ret_result, "add yourself to the groups render and video",
			AMD_DEVICE " is there, but not for this user");
	else
		doctor_no(ret_result, "install AMD's driver, amdgpu", "no " AMD_DEVICE);
}

/* Of the form librocprofiler-sdk.so.1.0.0; 0: another. */
static unsigned rocprofiler_major(const char *path)
{
	static const char name[] = "/librocprofiler-sdk.so.";
	const char *version = strstr(path, name);

	return version ? (unsigned)strtoul(version + strlen(name), NULL, 10) : 0;
}

/* Not loaded: it would look for tools, and end sonde where there are none. */
void doctor_probe_rocprofiler(struct doctor_result *ret_result)
{
	const char *folder = getenv("ROCM_PATH") ?: ROCM_FOLDER;
	_cleanup_free_ char *link = NULL, *path = NULL;

	if (asprintf(&link, "%s/lib/librocprofiler-sdk.so", folder) >= 0)
		path = realpath(link, NULL);
	if (path && rocprofiler_major(path) >= 1)
		doctor_works(ret_result, "%s", path);
	else if (path)
		doctor_no(ret_result, "install ROCm 7", "%s is older than 1.0", path);
	else
		doctor_partly(ret_result,
			"install rocprofiler-sdk of ROCm 7, or name ROCm's folder in ROCM_PATH",
			"none in %s/lib; a program that brings none ends with record --hip",
			folder);
}

void doctor_probe_python_hooks(struct doctor_result *ret_result)
{
	_cleanup_free_ char *folder = NULL;
	struct errmsg reason;

	if (python_package_find(&folder, &reason) == 0)
		doctor_works(ret_result, "%s", folder);
	else
		doctor_no(ret_result, "install sonde again: sudo make install", "%s", reason.text);
}

static bool open_cupti(void *context, const char *path, bool mapped)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	struct strbuf *found = context;
	struct link_map *map;

	(void)mapped;
	if (!library)
		return false;
	strbuf_add(found, dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : path);
	dlclose(library);
	return true;
}

static bool find_cupti(struct cupti_search *search)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const char *wanted = getenv("SONDE_CUPTI");

	if (wanted && open_cupti(search->context, wanted, false))
		return true;
	if (cupti_try_program(search, NULL, "python3"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (open_cupti(search->context, names[i], false))
			return true;
	return cupti_try_toolkits(search);
}

/* Where the program that is recorded brings none, sonde uses this one. */
void doctor_probe_cupti(struct doctor_result *ret_result)
{
	_cleanup_strbuf_ struct strbuf found = {0};
	struct cupti_search search = {.try = open_cupti, .context = &found};
	char looked[200];

	if (find_cupti(&search) && strbuf_status(&found) == 0) {
		doctor_works(ret_result, "%s", strbuf_cstr(&found));
		return;
	}
	cupti_looked_text(&search, looked, sizeof(looked));
	doctor_partly(ret_result,
		"install the package nvidia-cuda-cupti of the program's CUDA version, or name a "
		"libcupti in SONDE_CUPTI",
		"none in the loader's path, %s; programs such as PyTorch bring their own", looked);
}

void doctor_probe_cuda_variable(struct doctor_result *ret_result)
{
	const char *other = getenv(CUDA_VARIABLE);

	if (other && *other)
		doctor_no(ret_result, "unset " CUDA_VARIABLE, CUDA_VARIABLE " names %s", other);
	else
		doctor_works(ret_result, CUDA_VARIABLE " is free");
}
