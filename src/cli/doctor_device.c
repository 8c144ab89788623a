/* SPDX-License-Identifier: Apache-2.0 */
/* Can device work be recorded? */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor.h"
#include "collect/inject_library.h"

#define DRIVERS_FOLDER "/etc/OpenCL/vendors"

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
