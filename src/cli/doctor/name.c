/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are `sonde` and `import sonde` this program and its package? On PyPI another project has that
 * name, with a script and a package of the same name; ours is the distribution sonde-profiler.
 */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "cli/doctor/doctor.h"

#define SCRIPT_BYTES 2048 /* what pip writes as a script is shorter */
/* That the script of our own package imports. */
#define OWN_MODULE "sonde.__main__"

/* As a shell finds it; false: PATH has none. */
static bool find_on_path(const char *name, char path[PATH_MAX])
{
	const char *rest = getenv("PATH");

	while (rest && *rest) {
		size_t length = strcspn(rest, ":");
		int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, rest, name);
		struct stat status;

		if (length && written < PATH_MAX && access(path, X_OK) == 0 &&
			stat(path, &status) == 0 && S_ISREG(status.st_mode))
			return true;
		rest += length + (rest[length] == ':');
	}
	return false;
}

static bool is_this_program(const char *path)
{
	struct stat ours, theirs;

	return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/* A script of Python that imports a package sonde which is not ours. */
static bool is_other_project(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[SCRIPT_BYTES + 1];
	ssize_t length = fd < 0 ? -1 : read(fd, text, SCRIPT_BYTES);

	if (length < 2 || memcmp(text, "#!", 2) != 0)
		return false;
	text[length] = '\0';
	return strstr(text, "python") && strstr(text, "sonde") && !strstr(text, OWN_MODULE);
}

static const char *own_path(char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[MAX(length, 0)] = '\0';
	return path;
}

void doctor_probe_name_on_path(struct doctor_result *ret_result)
{
	char found[PATH_MAX], own[PATH_MAX];

	own_path(own);
	if (!find_on_path("sonde", found))
		doctor_works(ret_result, "PATH has no sonde; this one is %s", own);
	else if (is_this_program(found))
		doctor_works(ret_result, "%s is this program", found);
	else if (is_other_project(found))
		doctor_no(ret_result,
			"pip uninstall sonde, and install the wheel sonde_profiler again; or call "
			"this sonde by its path",
			"%s, which PATH finds, is a script of another project; this one is %s",
			found, own);
	else
		doctor_works(ret_result, "PATH finds another file, %s; this one is %s", found, own);
}

/* The folder above the one of the file; false: there is none. */
static bool prefix_of(const char *file, struct strbuf *prefix)
{
	const char *end = file + strlen(file);

	for (unsigned i = 0; i < 2; i++) {
		end = memrchr(file, '/', (size_t)(end - file));
		if (!end || end == file)
			return false;
	}
	strbuf_add_bytes(prefix, file, (size_t)(end - file));
	return true;
}

/* What pip notes of the other project in a Python below the prefix: the folder's path, or NULL. */
static char *find_distribution(const char *prefix)
{
	static const char *const places[] = {"lib/python3*/site-packages",
		"lib64/python3*/site-packages", "lib/python3*/dist-packages",
		"local/lib/python3*/dist-packages"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_strbuf_ struct strbuf pattern = {0};
		char *path = NULL;
		glob_t found;

		escape_glob(&pattern, prefix);
		strbuf_addf(&pattern, "/%s/sonde-[0-9]*.dist-info", places[i]);
		if (strbuf_status(&pattern) < 0 ||
			glob(strbuf_cstr(&pattern), 0, NULL, &found) != 0)
			continue;
		path = strdup(found.gl_pathv[0]);
		globfree(&found);
		return path;
	}
	return NULL;
}

/* A virtual environment's Python does not look below the user's home. */
static bool is_virtual(const char *prefix)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	strbuf_addf(&path, "%s/pyvenv.cfg", prefix);
	return strbuf_status(&path) == 0 && access(strbuf_cstr(&path), F_OK) == 0;
}

/* Of the Python that PATH has, of the user, and of the environment that this program is in. */
static char *find_any_distribution(void)
{
	_cleanup_strbuf_ struct strbuf python = {0}, home = {0}, own = {0};
	const char *user = getenv("HOME");
	char path[PATH_MAX], *found = NULL;

	if (find_on_path("python3", path) && prefix_of(path, &python))
		found = find_distribution(strbuf_cstr(&python));
	if (!found && user && *user && !is_virtual(strbuf_cstr(&python))) {
		strbuf_addf(&home, "%s/.local", user);
		found = find_distribution(strbuf_cstr(&home));
	}
	if (!found && prefix_of(own_path(path), &own))
		found = find_distribution(strbuf_cstr(&own));
	return found;
}

void doctor_probe_name_in_python(struct doctor_result *ret_result)
{
	_cleanup_free_ char *found = find_any_distribution();

	if (found)
		doctor_no(ret_result,
			"pip uninstall sonde, and install the wheel sonde_profiler again",
			"%s is another project: Python imports its package sonde in place of this "
			"one's, or their files are mixed",
			found);
	else
		doctor_works(ret_result, "no other project's package of this name");
}
