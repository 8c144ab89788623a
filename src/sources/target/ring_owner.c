/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/ring_owner.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/macros.h"

static FILE *open_proc(uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return fopen(path, "re");
}

static bool maps_file(uint32_t pid, const struct stat *file)
{
	_cleanup_free_ char *line = NULL;
	FILE *maps = open_proc(pid, "maps");
	size_t size = 0;
	bool found = false;

	if (!maps)
		return false;
	while (!found && getline(&line, &size, maps) > 0) {
		unsigned device_major, device_minor;
		uint64_t inode;

		found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &device_major, &device_minor,
				&inode) == 3 &&
			inode == file->st_ino &&
			makedev(device_major, device_minor) == file->st_dev;
	}
	fclose(maps);
	return found;
}

/* What the process is called in the innermost of its PID namespaces; 0: it is gone. */
static uint32_t innermost_pid(uint32_t pid)
{
	static const char field[] = "NSpid:";
	_cleanup_free_ char *line = NULL;
	FILE *status = open_proc(pid, "status");
	unsigned long inner = 0;
	size_t size = 0;

	if (!status)
		return 0;
	while (getline(&line, &size, status) > 0) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, field, strlen(field)) == 0 && last)
			inner = strtoul(last, NULL, 10);
	}
	fclose(status);
	return (uint32_t)inner;
}

static bool is_our_namespace(uint64_t pid_namespace)
{
	struct stat ours;

	return stat("/proc/self/ns/pid", &ours) == 0 && ours.st_ino == pid_namespace;
}

uint32_t ring_owner_find(int fd, uint32_t inner_pid, uint64_t pid_namespace)
{
	const struct dirent *entry;
	uint32_t owner = 0;
	struct stat file;
	DIR *processes;

	if (is_our_namespace(pid_namespace) || fstat(fd, &file) < 0)
		return inner_pid;
	processes = opendir("/proc");
	/* A child that it forked maps the file, too, and is called otherwise. */
	while (!owner && processes && (entry = readdir(processes))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (pid && innermost_pid(pid) == inner_pid && maps_file(pid, &file))
			owner = pid;
	}
	if (processes)
		closedir(processes);
	return owner ? owner : inner_pid;
}
