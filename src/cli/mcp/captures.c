/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/captures.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Any text may be a log: one in a folder is not meant. Takes the path. */
static int add(
	struct mcp_captures *captures, char *path, const struct stat *status, bool is_in_folder)
{
	const struct mcp_capture capture = {
		.path = path,
		.file = path ? trace_file_of(path) : TRACE_FILE_OTHER,
		.bytes = (uint64_t)status->st_size,
		.modified_s = status->st_mtime,
	};
	int r = path ? 0 : -ENOMEM;

	if (r == 0 && capture.file != TRACE_FILE_OTHER &&
		!(is_in_folder && capture.file == TRACE_FILE_LOG) &&
		captures->items.count < MCP_CAPTURES_MAX)
		r = array_append(&captures->items, capture);
	else
		free(path);
	return r;
}

/* Not through links: a folder may be one that others write to. */
static int add_folder(struct mcp_captures *captures, const char *folder)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, NULL, versionsort), r = 0;

	for (int i = 0; i < count; i++) {
		struct stat status;
		char *path = NULL;

		if (r == 0 && entries[i]->d_name[0] != '.' &&
			asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
			if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
				r = add(captures, path, &status, true);
			else
				free(path);
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

int mcp_captures_find(struct mcp_captures *captures, const char *const *paths, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct stat status;

		if (stat(paths[i], &status) < 0)
			continue;
		if (S_ISDIR(status.st_mode))
			r = add_folder(captures, paths[i]);
		else
			r = add(captures, strdup(paths[i]), &status, false);
	}
	return r;
}

void mcp_captures_done(struct mcp_captures *captures)
{
	array_foreach (&captures->items, capture)
		free(capture->path);
	array_done(&captures->items);
}

int mcp_captures_choose(const struct mcp_captures *captures, const char *path,
	const char **ret_path, struct errmsg *err)
{
	if (!captures->items.count)
		return errmsg_set(err, -EINVAL,
			"there is no capture: record one with sonde record, into a folder that "
			"sonde mcp was started with");
	if (!path && captures->items.count > 1)
		return errmsg_set(err, -EINVAL,
			"there are %zu captures: name one; list_captures lists them",
			captures->items.count);
	array_foreach (&captures->items, capture) {
		if (!path || strcmp(capture->path, path) == 0) {
			*ret_path = capture->path;
			return 0;
		}
	}
	return errmsg_set(err, -EINVAL,
		"there is no capture '%.200s': list_captures lists those that there are", path);
}
