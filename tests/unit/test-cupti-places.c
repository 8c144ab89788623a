/* SPDX-License-Identifier: Apache-2.0 */
/* Where libcupti is looked for: folders as pip, venv, conda and NVIDIA's installers make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/cuda/cupti_places.h"

static char root[] = "/tmp/sonde-places-XXXXXX";
static char tried[8][CUPTI_PATH_BYTES];
static size_t tried_count;

static bool note_and_refuse(void *context, const char *path, bool mapped)
{
	assert_true(tried_count < 8);
	assert_false(mapped);
	snprintf(tried[tried_count++], CUPTI_PATH_BYTES, "%s", path + strlen(root) + 1);
	return false;
}

static bool take_first(void *context, const char *path, bool mapped)
{
	note_and_refuse(context, path, mapped);
	return true;
}

/* With its folders, below the root. */
static void make_file(const char *path, const char *text)
{
	char full[CUPTI_PATH_BYTES], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0700);
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(full, 0700);
}

static const char *below_root(const char *path)
{
	static char full[CUPTI_PATH_BYTES];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	return full;
}

static int start(void **state)
{
	static const char *const variables[] = {
		"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "PATH"};

	snprintf(root, sizeof(root), "/tmp/sonde-places-XXXXXX");
	tried_count = 0;
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	return mkdtemp(root) ? 0 : -1;
}

static int stop(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "/bin/rm -r %s", root);
	return system(command); /* NOLINT(cert-env33-c) */
}

/* What libraries are mapped says where packages are. */
static void packages_of_a_library(void **state)
{
	struct cupti_search search = {.try = note_and_refuse};
	char folder[CUPTI_PATH_BYTES];

	assert_true(cupti_packages_of("/v/lib/python3.12/site-packages/cupy/core.so", folder));
	assert_string_equal(folder, "/v/lib/python3.12/site-packages");
	assert_false(cupti_packages_of("/usr/lib/libcudart.so.12", folder));
	make_file("p/nvidia/cuda_cupti/lib/libcupti.so.12", "");
	make_file("p/nvidia/cuda_cupti/lib/libcupti.so.11.8", "");
	make_file("p/nvidia/cu13/lib/libcupti.so.13", "");
	make_file("p/nvidia/cu13/lib/libcupti.so.13.0.1", "");
	assert_false(cupti_try_packages(&search, below_root("p")));
	assert_false(cupti_try_packages(&search, below_root("p"))); /* not again */
	assert_int_equal(tried_count, 3);
	assert_string_equal(tried[0], "p/nvidia/cu13/lib/libcupti.so.13");
	assert_string_equal(tried[1], "p/nvidia/cuda_cupti/lib/libcupti.so.12");
	assert_string_equal(tried[2], "p/nvidia/cuda_cupti/lib/libcupti.so.11.8");
	assert_int_equal(search.looked_count, 1);
}

/* python3 is a link into /usr/bin: by the name that it was called by the environment is found. */
static void virtual_environment(void **state)
{
	struct cupti_search search = {.try = take_first};

	make_file("v/bin/python3", "");
	make_file("v/pyvenv.cfg", "home = /usr/bin\n");
	make_file("v/lib/python3.11/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12", "");
	assert_true(cupti_try_program(&search, "/usr/bin/python3.11", below_root("v/bin/python3")));
	assert_int_equal(tried_count, 1);
	tried_count = search.looked_count = 0;
	setenv("PATH", below_root("v/bin"), 1);
	assert_true(cupti_try_program(&search, NULL, "python3"));
	assert_int_equal(tried_count, 1);
	tried_count = search.looked_count = 0;
	setenv("VIRTUAL_ENV", below_root("v"), 1);
	assert_true(cupti_try_program(&search, NULL, "VLLM::Worker"));
	assert_int_equal(tried_count, 1);
}

/* What an environment was made of counts only where it sees its packages. */
static void base_of_an_environment(void **state)
{
	struct cupti_search search = {.try = take_first};
	char text[CUPTI_PATH_BYTES + 64];
	int length;

	make_file("base/bin/python3", "");
	make_file("base/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13", "");
	length = snprintf(text, sizeof(text), "home = %s\n", below_root("base/bin"));
	make_file("v/pyvenv.cfg", text);
	assert_false(cupti_try_prefix(&search, below_root("v")));
	search.looked_count = 0;
	snprintf(text + length, sizeof(text) - (size_t)length,
		"include-system-site-packages = true\n");
	make_file("v/pyvenv.cfg", text);
	assert_true(cupti_try_prefix(&search, below_root("v")));
	assert_int_equal(tried_count, 1);
	make_file("v/pyvenv.cfg", "home\nhome = \n = \ninclude-system-site-packages = true");
	search.looked_count = 0;
	assert_false(cupti_try_prefix(&search, below_root("v")));
}

static void conda_and_toolkits(void **state)
{
	struct cupti_search search = {.try = take_first};

	make_file("conda/bin/python3.12", "");
	make_file("conda/lib/libcupti.so.12", "");
	assert_true(cupti_try_program(&search, below_root("conda/bin/python3.12"), NULL));
	make_file("cuda/bin/nvcc", "");
	make_file("cuda/extras/CUPTI/lib64/libcupti.so.12", "");
	setenv("PATH", below_root("cuda/bin"), 1);
	assert_true(cupti_try_toolkits(&search));
	assert_string_equal(tried[1], "cuda/extras/CUPTI/lib64/libcupti.so.12");
	search.looked_count = 0;
	setenv("CUDA_HOME", below_root("cuda"), 1);
	setenv("PATH", "", 1);
	assert_true(cupti_try_toolkits(&search));
	assert_int_equal(tried_count, 3);
}

static void what_was_looked_at(void **state)
{
	struct cupti_search search = {.try = note_and_refuse};
	char name[32], text[64], long_text[4096];

	cupti_looked_text(&search, text, sizeof(text));
	assert_string_equal(text, "");
	for (int i = 0; i < CUPTI_LOOKED_MAX + 4; i++) {
		snprintf(name, sizeof(name), "f%d/x", i);
		make_file(name, "");
		name[strlen(name) - 2] = '\0';
		cupti_try_packages(&search, below_root(name));
	}
	assert_int_equal(search.looked_count, CUPTI_LOOKED_MAX + 4);
	cupti_looked_text(&search, text, sizeof(text));
	assert_non_null(strstr(text, "f0 and 19 others"));
	cupti_looked_text(&search, long_text, sizeof(long_text));
	assert_non_null(strstr(long_text, "f14, "));
	assert_non_null(strstr(long_text, "f15 and 4 others"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packages_of_a_library, start, stop),
		cmocka_unit_test_setup_teardown(virtual_environment, start, stop),
		cmocka_unit_test_setup_teardown(base_of_an_environment, start, stop),
		cmocka_unit_test_setup_teardown(conda_and_toolkits, start, stop),
		cmocka_unit_test_setup_teardown(what_was_looked_at, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
