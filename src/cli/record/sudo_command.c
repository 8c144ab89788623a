/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/sudo_command.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"
#include "base/strbuf.h"

#define ENVIRONMENT_BYTES ((size_t)4 << 20)
#define STATUS_BYTES      65536
/* sudo, and its process between a terminal of its own and the command. */
#define SUDO_PROCESSES 2
#define FOLDERS_MAX    200

/* ---- the user's PATH ---- */

static unsigned long status_number(const struct strbuf *status, const char *key)
{
	const char *at = strstr(strbuf_cstr(status), key);

	return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

/* Is the process sudo? Then `ret_parent` is its parent. */
static bool is_sudo(unsigned long pid, unsigned long *ret_parent)
{
	_cleanup_strbuf_ struct strbuf status = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lu/status", pid);
	if (read_whole_file(path, STATUS_BYTES, &status) < 0 ||
		strncmp(strbuf_cstr(&status), "Name:\tsudo\n", strlen("Name:\tsudo\n")) != 0)
		return false;
	*ret_parent = status_number(&status, "\nPPid:\t");
	return true;
}

/* The one that was typed: the others have its children's environment. 0: the parent is another. */
static unsigned long find_sudo(void)
{
	unsigned long pid = (unsigned long)getppid(), found = 0, parent;

	for (int i = 0; i < SUDO_PROCESSES && is_sudo(pid, &parent); i++) {
		found = pid;
		pid = parent;
	}
	return found;
}

static char *users_path(void)
{
	_cleanup_strbuf_ struct strbuf environment = {0};
	unsigned long pid = find_sudo();
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lu/environ", pid);
	if (!pid || read_whole_file(path, ENVIRONMENT_BYTES, &environment) < 0)
		return NULL;
	for (size_t at = 0; at < environment.length; at += strlen(environment.data + at) + 1) {
		if (strncmp(environment.data + at, "PATH=", 5) == 0)
			return strdup(environment.data + at + 5);
	}
	return NULL;
}

/* ---- where it leads ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111);
}

/* "/bin/python3" and "/usr/bin/python3" are one where /bin is a link; a link to a file is not. */
static void resolve_folder(const char *folder, const char *name, struct strbuf *ret_path)
{
	_cleanup_free_ char *resolved = realpath(folder, NULL);

	strbuf_clear(ret_path);
	strbuf_addf(ret_path, "%s/%s", resolved ? resolved : folder, name);
}

/* Folders that are not absolute are of the shell's own folder, and not looked at. */
static bool find_program(const char *path, const char *name, struct strbuf *ret_path)
{
	char folder[PATH_MAX];

	for (int i = 0; *path && i < FOLDERS_MAX; i++) {
		size_t length = strcspn(path, ":");

		snprintf(
			folder, sizeof(folder), "%.*s", (int)MIN(length, sizeof(folder) - 1), path);
		resolve_folder(folder, name, ret_path);
		if (folder[0] == '/' && strbuf_status(ret_path) == 0 && is_program(ret_path->data))
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

bool sudo_command_differs(const char *name, struct errmsg *ret_sentence)
{
	_cleanup_strbuf_ struct strbuf theirs = {0}, ours = {0};
	_cleanup_free_ char *path = NULL;
	const char *own_path = getenv("PATH");
	bool is_found;
	uid_t user;
	gid_t group;

	if (strchr(name, '/') || !own_path || !sudo_user(&user, &group))
		return false;
	path = users_path();
	if (!path || !find_program(path, name, &theirs))
		return false;
	is_found = find_program(own_path, name, &ours);
	if (is_found && strcmp(ours.data, theirs.data) == 0)
		return false;
	errmsg_set(ret_sentence, 0,
		"%s is %s under sudo, and %s in your shell; for that one: sudo env \"PATH=$PATH\" "
		"sonde record …",
		name, is_found ? ours.data : "not found", theirs.data);
	return true;
}
