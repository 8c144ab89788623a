/* SPDX-License-Identifier: Apache-2.0 */
/* Can device work be recorded? */
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/doctor/doctor.h"
#include "collect/hooks/python_hooks.h"
#include "collect/session/inject_library.h"

#define DRIVERS_FOLDER "/etc/OpenCL/vendors"
#define NVIDIA_VERSION "/proc/driver/nvidia/version"
#define CUDA_VARIABLE  "CUDA_INJECTION64_PATH"

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

void doctor_probe_python_hooks(struct doctor_result *ret_result)
{
	_cleanup_free_ char *folder = NULL;
	struct errmsg reason;

	if (python_package_find(&folder, &reason) == 0)
		doctor_works(ret_result, "%s", folder);
	else
		doctor_no(ret_result, "install sonde again: sudo make install", "%s", reason.text);
}

/* Where the program that is recorded brings none, sonde uses this one. */
void doctor_probe_cupti(struct doctor_result *ret_result)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
	struct link_map *map;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);

		if (!library)
			continue;
		doctor_works(ret_result, "%s",
			dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : names[i]);
		dlclose(library);
		return;
	}
	doctor_partly(ret_result,
		"install the package nvidia-cuda-cupti of the program's CUDA version, or name a "
		"libcupti in SONDE_CUPTI",
		"none in the loader's path; programs such as PyTorch bring their own");
}

void doctor_probe_cuda_variable(struct doctor_result *ret_result)
{
	const char *other = getenv(CUDA_VARIABLE);

	if (other && *other)
		doctor_no(ret_result, "unset " CUDA_VARIABLE, CUDA_VARIABLE " names %s", other);
	else
		doctor_works(ret_result, CUDA_VARIABLE " is free");
}
