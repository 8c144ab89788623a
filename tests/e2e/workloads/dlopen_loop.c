/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dlopen_loop SECONDS [MILLISECONDS]`: loads libplugin.so, which lies beside it, works in
 * plugin_spin for MILLISECONDS (20), unloads it and begins again.
 */
#include <dlfcn.h>
#include <limits.h>

#include "workload.h"

static NOINLINE void load_work_unload(const char *path, double seconds)
{
	double end = now_s() + seconds;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*spin)(unsigned);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&spin = dlsym(library, "plugin_spin");
	if (!spin)
		exit(1);
	while (now_s() < end)
		spin(100);
	dlclose(library);
}

int main(int argc, char **argv)
{
	double end = now_s() + seconds_argument(argc, argv);
	double milliseconds = argc > 2 ? strtod(argv[2], NULL) : 20;
	const char *self = self_path();
	int directory_length = (int)(strrchr(self, '/') - self);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/libplugin.so", directory_length, self);
	ready();
	while (now_s() < end)
		load_work_unload(path, milliseconds * 1e-3);
	return 0;
}
