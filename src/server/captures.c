/* SPDX-License-Identifier: Apache-2.0 */
#include "server/captures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "base/warn.h"

#define REFRESH_NS NS_PER_S

struct captures {
	char *folder; /* NULL: the captures never change */
	ARRAY_OF(struct capture *) items;
	size_t sorted; /* the first so many are in order of their names */
	uint64_t refreshed_ns;
	bool has_warned;
};

/* ---- one ---- */

static struct capture *capture_free(struct capture *capture)
{
	if (capture) {
		for (size_t i = 1; capture->paths && i < capture->path_count; i++)
			free(capture->paths[i]);
		free(capture->paths);
		free(capture->path);
		free(capture->name);
		free(capture);
	}
	return NULL;
}

static void take_time(struct capture_identity *identity, const struct stat *status)
{
	int64_t modified = status->st_mtim.tv_sec * (int64_t)NS_PER_S + status->st_mtim.tv_nsec;
	int64_t changed = status->st_ctim.tv_sec * (int64_t)NS_PER_S + status->st_ctim.tv_nsec;

	identity->modified_ns = MAX(identity->modified_ns, modified);
	identity->changed_ns = MAX(identity->changed_ns, changed);
}

/* Of a folder also the times and sizes of its files. */
static int identify_files(const char *path, struct capture_identity *identity)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	if (!folder)
		return -errno;
	identity->size = 0;
	while ((entry = readdir(folder))) {
		struct stat status;

		if (entry->d_name[0] == '.' ||
			fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		identity->size += (uint64_t)status.st_size;
		take_time(identity, &status);
	}
	closedir(folder);
	return 0;
}

static int identify_path(const char *path, struct capture_identity *ret_identity)
{
	struct capture_identity identity = {0};
	struct stat status;
	int r = 0;

	if (lstat(path, &status) < 0)
		return -errno;
	/* Another file has taken its place since it was listed. */
	if (S_ISLNK(status.st_mode))
		return -ELOOP;
	identity.device = status.st_dev;
	identity.inode = status.st_ino;
	identity.size = (uint64_t)status.st_size;
	take_time(&identity, &status);
	if (S_ISDIR(status.st_mode))
		r = identify_files(path, &identity);
	if (r == 0)
		*ret_identity = identity;
	return r;
}

/* Of several files the first one's, the size of all, and the latest times. */
int capture_identify(const struct capture *capture, struct capture_identity *ret_identity)
{
	struct capture_identity identity = {0}, next = {0};
	int r = identify_path(capture->path, &identity);

	for (size_t i = 1; r == 0 && capture->paths && i < capture->path_count; i++) {
		r = identify_path(capture->paths[i], &next);
		if (r < 0)
			break;
		identity.size += next.size;
		identity.modified_ns = MAX(identity.modified_ns, next.modified_ns);
		identity.changed_ns = MAX(identity.changed_ns, next.changed_ns);
	}
	if (r == 0)
		*ret_identity = identity;
	return r;
}

uint64_t capture_version(const struct capture_identity *identity)
{
	const uint64_t parts[] = {(uint64_t)identity->device, (uint64_t)identity->inode,
		identity->size, (uint64_t)identity->modified_ns, (uint64_t)identity->changed_ns};

	return hash_bytes(parts, sizeof(parts), 0);
}

int capture_open_file(const struct capture *capture)
{
	int fd = open(capture->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

/* ---- several ---- */

struct capture *captures_find(const struct captures *captures, const char *id)
{
	for (size_t i = 0; i < captures->items.count; i++) {
		struct capture *capture = captures->items.items[i];

		if (strcmp(capture->id, id) == 0)
			return capture->is_gone ? NULL : capture;
	}
	return NULL;
}

size_t captures_count(const struct captures *captures)
{
	return captures->items.count;
}

struct capture *captures_get(const struct captures *captures, size_t index)
{
	return captures->items.items[index];
}

static bool has_id(const struct captures *captures, const char *id)
{
	for (size_t i = 0; i < captures->items.count; i++) {
		if (strcmp(captures->items.items[i]->id, id) == 0)
			return true;
	}
	return false;
}

/* The same for the same path, so that addresses of the page hold after a restart. */
static void make_id(const struct captures *captures, const char *path, char id[CAPTURE_ID_BYTES])
{
	uint64_t seed = 0;

	do
		snprintf(id, CAPTURE_ID_BYTES, "%016llx",
			(unsigned long long)hash_bytes(path, strlen(path), seed++));
	while (has_id(captures, id));
}

/* Takes the path. */
static int add(struct captures *captures, char *path, const char *name, bool is_folder)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int r;

	if (!capture) {
		free(path);
		return -ENOMEM;
	}
	capture->path = path;
	capture->paths = malloc(sizeof(*capture->paths));
	capture->name = capture->paths ? strdup(name) : NULL;
	capture->is_folder = is_folder;
	capture->is_listed = captures->folder != NULL;
	make_id(captures, path, capture->id);
	if (capture->paths)
		capture->paths[capture->path_count++] = path;
	r = capture->name ? capture_identify(capture, &capture->identity) : -ENOMEM;
	if (r == 0)
		r = array_append(&captures->items, capture);
	if (r < 0)
		capture_free(capture);
	return r;
}

static int compare_names(const void *left, const void *right)
{
	const struct capture *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

/* Of those that were there before. */
static struct capture *find_name(const struct captures *captures, const char *name)
{
	const struct capture key = {.name = (char *)name}, *wanted = &key;
	struct capture **found = NULL;

	if (captures->sorted)
		found = bsearch(&wanted, captures->items.items, captures->sorted, sizeof(wanted),
			compare_names);
	return found ? *found : NULL;
}

static bool is_capture_name(const char *name)
{
	static const char *const ends[] = {
		".pftrace", ".perfetto-trace", ".json", ".json.gz", ".json.zst", ".log"};

	/* The list of a recording's windows, beside its capture. */
	if (text_ends_in(name, ".windows.json"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (text_ends_in(name, ends[i]))
			return true;
	}
	return false;
}

/* Has it a file that may be the trace of a rank? */
static bool has_traces(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	bool has = false;

	if (!folder) {
		closep(&fd);
		return false;
	}
	while (!has && (entry = readdir(folder)))
		has = entry->d_name[0] != '.' && is_capture_name(entry->d_name);
	closedir(folder);
	return has;
}

/* Links are passed over: who writes in the folder does not choose what the server reads. */
static int look_at(struct captures *captures, int folder, const char *name)
{
	struct capture *known = find_name(captures, name);
	struct stat status;
	char *path;
	bool is_folder;

	if (name[0] == '.' || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	is_folder = S_ISDIR(status.st_mode);
	if (is_folder ? !has_traces(folder, name)
		      : !S_ISREG(status.st_mode) || !is_capture_name(name))
		return 0;
	if (known) {
		known->is_gone = capture_identify(known, &known->identity) < 0;
		return 0;
	}
	if (captures->items.count >= CAPTURES_MAX) {
		if (!captures->has_warned)
			warn("%s has more than %d captures: the others are not listed",
				captures->folder, CAPTURES_MAX);
		captures->has_warned = true;
		return 0;
	}
	return asprintf(&path, "%s/%s", captures->folder, name) < 0
		       ? -ENOMEM
		       : add(captures, path, name, is_folder);
}

static int read_folder(struct captures *captures)
{
	DIR *folder = opendir(captures->folder);
	const struct dirent *entry;

	if (!folder)
		return -errno;
	for (size_t i = 0; i < captures->items.count; i++)
		captures->items.items[i]->is_gone = true;
	while ((entry = readdir(folder)))
		look_at(captures, dirfd(folder), entry->d_name);
	closedir(folder);
	if (captures->items.count)
		qsort(captures->items.items, captures->items.count,
			sizeof(captures->items.items[0]), compare_names);
	captures->sorted = captures->items.count;
	return 0;
}

struct capture *captures_find_name(const struct captures *captures, const char *name)
{
	struct capture *capture = captures->folder ? find_name(captures, name) : NULL;

	return capture && !capture->is_gone ? capture : NULL;
}

void captures_refresh(struct captures *captures, uint64_t now_ns)
{
	if (now_ns - captures->refreshed_ns < REFRESH_NS)
		return;
	captures->refreshed_ns = now_ns;
	captures_refresh_now(captures);
}

void captures_refresh_now(struct captures *captures)
{
	if (captures->folder) {
		read_folder(captures);
		return;
	}
	/* It may be recorded right now. */
	for (size_t i = 0; i < captures_count(captures); i++)
		capture_identify(captures_get(captures, i), &captures_get(captures, i)->identity);
}

static int open_path(struct captures *captures, const char *path, bool lists_folder)
{
	char *absolute = realpath(path, NULL);
	const char *name = absolute ? strrchr(absolute, '/') + 1 : NULL;
	struct stat status;

	if (!absolute || stat(absolute, &status) < 0) {
		free(absolute);
		return -errno;
	}
	if (!lists_folder)
		return add(captures, absolute, *name ? name : absolute, S_ISDIR(status.st_mode));
	captures->folder = absolute;
	return read_folder(captures);
}

int captures_open(
	struct captures **ret_captures, const char *path, bool lists_folder, struct errmsg *err)
{
	struct captures *captures = calloc(1, sizeof(*captures));
	int r = captures ? 0 : -ENOMEM;

	if (captures && path)
		r = open_path(captures, path, lists_folder);
	if (r < 0) {
		captures_close(captures);
		return errmsg_set(err, r, "cannot open %s: %s", path, strerror(-r));
	}
	*ret_captures = captures;
	return 0;
}

/* "rank0.json and rank1.json", "rank0.json and 7 more". */
static int rename_joined(struct capture *capture)
{
	char *name;
	int r = capture->path_count == 2 ? asprintf(&name, "%s and %s", capture->name,
						   strrchr(capture->paths[1], '/') + 1)
					 : asprintf(&name, "%s and %zu more", capture->name,
						   capture->path_count - 1);

	if (r < 0)
		return -ENOMEM;
	free(capture->name);
	capture->name = name;
	return 0;
}

int captures_join(
	struct captures *captures, const char *const *paths, size_t count, struct errmsg *err)
{
	struct capture *capture = captures->items.items[0];
	char **all = reallocarray(capture->paths, count + 1, sizeof(*all));
	int r;

	if (!all)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	capture->paths = all;
	for (size_t i = 0; i < count; i++) {
		all[capture->path_count] = realpath(paths[i], NULL);
		if (!all[capture->path_count])
			return errmsg_set(
				err, -errno, "cannot open %s: %s", paths[i], strerror(errno));
		capture->path_count++;
	}
	capture->is_folder = true;
	r = rename_joined(capture);
	if (r == 0)
		r = capture_identify(capture, &capture->identity);
	return r < 0 ? errmsg_set(err, r, "cannot open %s: %s", paths[0], strerror(-r)) : 0;
}

struct captures *captures_close(struct captures *captures)
{
	if (captures) {
		for (size_t i = 0; i < captures->items.count; i++)
			capture_free(captures->items.items[i]);
		array_done(&captures->items);
		free(captures->folder);
		free(captures);
	}
	return NULL;
}
