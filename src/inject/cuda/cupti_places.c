/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cuda/cupti_places.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void note_looked(struct cupti_search *search, const char *folder)
{
	if (search->looked_count < CUPTI_LOOKED_MAX)
		snprintf(search->looked[search->looked_count], CUPTI_PATH_BYTES, "%s", folder);
	search->looked_count++;
}

static bool was_looked_at(const struct cupti_search *search, const char *folder)
{
	for (size_t i = 0; i < search->looked_count && i < CUPTI_LOOKED_MAX; i++)
		if (!strcmp(search->looked[i], folder))
			return true;
	return false;
}

/* Calls `found` for what matches the pattern below the folder, the last of them first. */
static bool for_each(struct cupti_search *search, const char *folder, const char *pattern,
	bool (*found)(struct cupti_search *search, const char *path))
{
	char text[CUPTI_PATH_BYTES];
	glob_t paths;
	bool is_done = false;

	if ((size_t)snprintf(text, sizeof(text), "%s/%s", folder, pattern) >= sizeof(text) ||
		glob(text, 0, NULL, &paths) != 0)
		return false;
	for (size_t i = paths.gl_pathc; i-- > 0 && !is_done;)
		is_done = found(search, paths.gl_pathv[i]);
	globfree(&paths);
	return is_done;
}

static bool try_library(struct cupti_search *search, const char *path)
{
	return search->try(search->context, path, false);
}

static bool try_patterns(
	struct cupti_search *search, const char *folder, const char *const *patterns, size_t count)
{
	if (access(folder, X_OK) != 0 || was_looked_at(search, folder))
		return false;
	note_looked(search, folder);
	for (size_t i = 0; i < count; i++)
		if (for_each(search, folder, patterns[i], try_library))
			return true;
	return false;
}

/* ---- packages ---- */

bool cupti_try_packages(struct cupti_search *search, const char *folder)
{
	static const char *const patterns[] = {
		"nvidia/cu1[0-9]/lib/libcupti.so.1[0-9]",
		"nvidia/cuda_cupti/lib/libcupti.so.1[0-9]",
		"nvidia/cuda_cupti/lib/libcupti.so.11.[0-9]", /* CUDA 11 has both numbers */
		"torch/lib/libcupti*.so*",
	};

	return try_patterns(search, folder, patterns, COUNT(patterns));
}

bool cupti_packages_of(const char *path, char folder[CUPTI_PATH_BYTES])
{
	static const char *const names[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *at = strstr(path, names[i]);
		size_t length = at ? (size_t)(at - path) + strlen(names[i]) - 1 : 0;

		if (!at || length >= CUPTI_PATH_BYTES)
			continue;
		memcpy(folder, path, length);
		folder[length] = '\0';
		return true;
	}
	return false;
}

/* ---- prefixes ---- */

/* The value of a line "key = value"; false: it is not of this key. */
static bool read_line(const char *line, const char *key, char value[CUPTI_PATH_BYTES])
{
	char name[32], text[CUPTI_PATH_BYTES];

	if (sscanf(line, " %31[^ =] = %1023[^\n\r]", name, text) != 2 || strcmp(name, key) != 0)
		return false;
	snprintf(value, CUPTI_PATH_BYTES, "%s", text);
	return true;
}

/* The prefix of the Python that a virtual environment was made of, whose packages it sees, too. */
static bool read_base(const char *prefix, char base[CUPTI_PATH_BYTES])
{
	char line[CUPTI_PATH_BYTES + 64], value[CUPTI_PATH_BYTES], *slash;
	bool has_home = false, sees_base = false;
	FILE *file;

	if ((size_t)snprintf(line, sizeof(line), "%s/pyvenv.cfg", prefix) >= sizeof(line))
		return false;
	file = fopen(line, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (read_line(line, "include-system-site-packages", value))
			sees_base = strcmp(value, "true") == 0;
		else if (read_line(line, "home", base))
			has_home = true;
	}
	fclose(file);
	slash = has_home ? strrchr(base, '/') : NULL;
	if (!slash || !sees_base)
		return false;
	*slash = '\0';
	return true;
}

static bool try_own_prefix(struct cupti_search *search, const char *prefix)
{
	static const char *const libraries[] = {"lib/libcupti.so.1[0-9]",
		"targets/*/lib/libcupti.so.1[0-9]", "lib/libcupti.so.11.[0-9]"};
	static const char *const packages[] = {"lib/python3*/site-packages",
		"lib64/python3*/site-packages", "lib/python3*/dist-packages",
		"local/lib/python3*/dist-packages"};

	if (try_patterns(search, prefix, libraries, COUNT(libraries)))
		return true;
	for (size_t i = 0; i < COUNT(packages); i++)
		if (for_each(search, prefix, packages[i], cupti_try_packages))
			return true;
	return false;
}

bool cupti_try_prefix(struct cupti_search *search, const char *prefix)
{
	char base[CUPTI_PATH_BYTES];

	if (was_looked_at(search, prefix))
		return false;
	return try_own_prefix(search, prefix) ||
	       (read_base(prefix, base) && !was_looked_at(search, base) &&
		       try_own_prefix(search, base));
}

/* The folder above the one that the file is in. */
static bool try_above(struct cupti_search *search, const char *file)
{
	char prefix[CUPTI_PATH_BYTES], *slash;

	snprintf(prefix, sizeof(prefix), "%s", file);
	for (unsigned i = 0; i < 2; i++) {
		slash = strrchr(prefix, '/');
		if (!slash || slash == prefix)
			return false;
		*slash = '\0';
	}
	return cupti_try_prefix(search, prefix);
}

/* As a shell finds it; false: nowhere. */
static bool find_in_path(const char *name, char path[CUPTI_PATH_BYTES])
{
	const char *rest = secure_getenv("PATH");

	while (rest && *rest) {
		size_t length = strcspn(rest, ":");

		if (length &&
			(size_t)snprintf(path, CUPTI_PATH_BYTES, "%.*s/%s", (int)length, rest,
				name) < CUPTI_PATH_BYTES &&
			access(path, X_OK) == 0)
			return true;
		rest += length + (rest[length] == ':');
	}
	return false;
}

static bool try_variables(struct cupti_search *search, const char *const *names, size_t count,
	bool (*try)(struct cupti_search *search, const char *folder))
{
	for (size_t i = 0; i < count; i++) {
		const char *folder = secure_getenv(names[i]);

		if (folder && folder[0] == '/' && try(search, folder))
			return true;
	}
	return false;
}

bool cupti_try_program(struct cupti_search *search, const char *file, const char *called)
{
	static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	char path[CUPTI_PATH_BYTES];

	/* Not resolved: the link in a virtual environment is what makes it one. */
	if (called && strchr(called, '/') && try_above(search, called))
		return true;
	if (called && *called && !strchr(called, '/') && find_in_path(called, path) &&
		try_above(search, path))
		return true;
	return try_variables(search, environments, COUNT(environments), cupti_try_prefix) ||
	       (file && try_above(search, file));
}

/* ---- toolkits ---- */

static bool try_toolkit(struct cupti_search *search, const char *folder)
{
	static const char *const patterns[] = {
		"extras/CUPTI/lib64/libcupti.so.1[0-9]",
		"targets/*/lib/libcupti.so.1[0-9]",
		"lib64/libcupti.so.1[0-9]",
		"lib/libcupti.so.1[0-9]",
		"extras/CUPTI/lib64/libcupti.so",
	};

	return try_patterns(search, folder, patterns, COUNT(patterns));
}

/* Of the compiler that the path has, links to it resolved. */
static bool try_compiler(struct cupti_search *search)
{
	char path[CUPTI_PATH_BYTES], real[PATH_MAX], *end;

	if (!find_in_path("nvcc", path) || !realpath(path, real))
		return false;
	end = strstr(real, "/bin/nvcc");
	if (!end)
		return false;
	*end = '\0';
	return try_toolkit(search, real);
}

bool cupti_try_toolkits(struct cupti_search *search)
{
	static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};

	return try_variables(search, variables, COUNT(variables), try_toolkit) ||
	       try_compiler(search) || try_toolkit(search, "/usr/local/cuda") ||
	       for_each(search, "/usr/local", "cuda-1[0-9]*", try_toolkit) ||
	       try_toolkit(search, "/opt/cuda");
}

/* ---- what was looked at ---- */

void cupti_looked_text(const struct cupti_search *search, char *text, size_t bytes)
{
	size_t listed = 0, length = 0;

	*text = '\0';
	for (; listed < search->looked_count && listed < CUPTI_LOOKED_MAX; listed++) {
		size_t more = strlen(search->looked[listed]) + strlen(", ");

		if (length + more + strlen(" and 9999 others") >= bytes)
			break;
		length += (size_t)snprintf(text + length, bytes - length, "%s%s",
			listed ? ", " : "", search->looked[listed]);
	}
	if (listed < search->looked_count)
		snprintf(text + length, bytes - length, "%s%zu others", listed ? " and " : "",
			search->looked_count - listed);
}
