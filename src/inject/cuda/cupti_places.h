/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libcupti lies that no library of the program is beside of: folders of Python packages,
 * conda environments, CUDA toolkits. For programs that have CUDA's runtime linked in (CuPy, numba,
 * static libcudart). `sonde doctor` asks the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CUPTI_PATH_BYTES 1024
#define CUPTI_LOOKED_MAX 16 /* folders that are listed; more are counted */
#define CUPTI_PACKAGES   8  /* folders of packages of which libraries are mapped */

/* Tries the libcupti of a path; true ends the search. */
typedef bool cupti_try(void *context, const char *path, bool mapped);

struct cupti_search {
	cupti_try *try;
	void *context;
	/* The folders that were looked at. */
	char looked[CUPTI_LOOKED_MAX][CUPTI_PATH_BYTES];
	size_t looked_count; /* also of those that are not listed */
};

/* A folder site-packages or dist-packages: wheels of NVIDIA. */
bool cupti_try_packages(struct cupti_search *search, const char *folder);
/* The folder above bin/ of a program: of Python, of a virtual environment, of conda. */
bool cupti_try_prefix(struct cupti_search *search, const char *prefix);
/*
 * By the path of a program's file and the name that it was called by, which of Python in a virtual
 * environment lies there; either may be NULL. Also the environments that are active.
 */
bool cupti_try_program(struct cupti_search *search, const char *file, const char *called);
/* Of CUDA_HOME, CUDA_PATH, the nvcc of PATH, /usr/local/cuda*, /opt/cuda. */
bool cupti_try_toolkits(struct cupti_search *search);
/* The folder of the library's path `path` up to its site-packages; false: it is in none. */
bool cupti_packages_of(const char *path, char folder[CUPTI_PATH_BYTES]);
/* "/a, /b and 3 others", cut at `bytes`. */
void cupti_looked_text(const struct cupti_search *search, char *text, size_t bytes);
