/* SPDX-License-Identifier: Apache-2.0 */
#include "load/rank_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/input_file.h"
#include "base/new_file.h"

/* The digits at `at`: false when they are no rank. */
static bool read_rank(const char *at, uint32_t *ret_rank)
{
	char *end;
	unsigned long value;

	if (*at < '0' || *at > '9')
		return false;
	errno = 0;
	value = strtoul(at, &end, 10);
	if (errno || value >= UINT32_MAX)
		return false;
	*ret_rank = (uint32_t)value;
	return true;
}

/* No job has so many ranks: a number that is larger is a time, or a date. */
#define RANKS_MAX 10000000

bool rank_of_name(const char *name, uint32_t *ret_rank)
{
	static const char *const words[] = {"rank", "worker"};
	const char *at = name + strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *word = strcasestr(name, words[i]);
		size_t length = strlen(words[i]);

		if (word && read_rank(word + length + strspn(word + length, "_-."), ret_rank))
			return true;
	}
	while (at > name) {
		while (at > name && (at[-1] < '0' || at[-1] > '9'))
			at--;
		while (at > name && at[-1] >= '0' && at[-1] <= '9')
			at--;
		if (read_rank(at, ret_rank) && *ret_rank < RANKS_MAX)
			return true;
	}
	return false;
}

/* A file that has a rank. */
struct rank_file {
	uint32_t rank;
	char *path;
};

struct rank_folder {
	ARRAY_OF(struct rank_file) items;
};

static void folder_done(struct rank_folder *folder)
{
	array_foreach (&folder->items, file)
		free(file->path);
	array_done(&folder->items);
}

static int compare_files(const void *a, const void *b)
{
	const struct rank_file *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return strcmp(left->path, right->path);
}

static char *join(const char *folder, const char *before, const char *name, const char *after)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	strbuf_add(&path, folder);
	while (path.length > 1 && path.data[path.length - 1] == '/')
		path.length--;
	strbuf_addf(&path, "/%s%s%s", before, name, after);
	return strbuf_status(&path) < 0 ? NULL : TAKE_PTR(path.data);
}

static void closedirp(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static int read_folder(struct rank_folder *folder, const char *path,
	bool (*is_meant)(const char *path),
	bool (*rank_of_file)(const char *path, uint32_t *ret_rank), struct errmsg *err)
{
	_cleanup_(closedirp) DIR *directory = input_opendir(path);
	const struct dirent *entry;

	if (!directory)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	while ((entry = readdir(directory))) {
		struct rank_file file = {0};

		if (entry->d_name[0] == '.')
			continue;
		file.path = join(path, "", entry->d_name, "");
		if (file.path && (!is_meant(file.path) ||
					 (!(rank_of_file && rank_of_file(file.path, &file.rank)) &&
						 !rank_of_name(entry->d_name, &file.rank)))) {
			free(file.path);
			continue;
		}
		if (!file.path || array_append(&folder->items, file) < 0) {
			free(file.path);
			return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
		}
	}
	if (folder->items.count)
		qsort(folder->items.items, folder->items.count, sizeof(struct rank_file),
			compare_files);
	for (size_t i = 1; i < folder->items.count; i++) {
		const struct rank_file *file = &folder->items.items[i];

		if (file[-1].rank == file->rank)
			return errmsg_set(err, -EINVAL,
				"%s and %s are both of rank %u: leave one file for each rank",
				file[-1].path, file->path, file->rank);
	}
	return 0;
}

static int add_pair(struct rank_pairs *pairs, const struct rank_file *host,
	const struct rank_file *device, const struct rank_pairs_options *options)
{
	char number[16];
	struct rank_pair pair = {.rank = host->rank};

	snprintf(number, sizeof(number), "%u", host->rank);
	pair.host = strdup(host->path);
	pair.device = strdup(device->path);
	pair.output = join(options->output, options->before, number, options->after);
	if (pair.host && pair.device && pair.output && array_append(&pairs->items, pair) == 0)
		return 0;
	free(pair.host);
	free(pair.device);
	free(pair.output);
	return -ENOMEM;
}

static void add_missing(struct rank_pairs *pairs, const struct rank_file *file, const char *folder)
{
	strbuf_addf(&pairs->missing, "%s%s has no partner of rank %u in %s",
		pairs->missing.length ? "; " : "", file->path, file->rank, folder);
}

void rank_pairs_done(struct rank_pairs *pairs)
{
	array_foreach (&pairs->items, pair) {
		free(pair->host);
		free(pair->device);
		free(pair->output);
	}
	array_done(&pairs->items);
	strbuf_done(&pairs->missing);
}

int rank_pairs_find(
	struct rank_pairs *pairs, const struct rank_pairs_options *options, struct errmsg *err)
{
	_cleanup_(folder_done) struct rank_folder hosts = {0}, devices = {0};
	size_t i = 0, j = 0;
	int r = read_folder(&hosts, options->host_folder, options->is_host, NULL, err);

	if (r == 0)
		r = read_folder(&devices, options->device_folder, options->is_device,
			options->rank_of_device, err);
	if (r < 0)
		return r;
	while (r == 0 && (i < hosts.items.count || j < devices.items.count)) {
		const struct rank_file *host = i < hosts.items.count ? &hosts.items.items[i] : NULL;
		const struct rank_file *device =
			j < devices.items.count ? &devices.items.items[j] : NULL;

		if (host && (!device || host->rank < device->rank)) {
			add_missing(pairs, host, options->device_folder);
			i++;
		} else if (device && (!host || device->rank < host->rank)) {
			add_missing(pairs, device, options->host_folder);
			j++;
		} else if (host && device) {
			r = add_pair(pairs, host, device, options);
			i++, j++;
		}
	}
	if (r < 0)
		return errmsg_set(err, r, "out of memory");
	if (!pairs->items.count)
		return errmsg_set(err, -ENODATA,
			"%s and %s have no files of one rank: it comes from the distributedInfo of "
			"a Kineto trace, or from names such as et_0.json or rank0.pt.trace.json",
			options->host_folder, options->device_folder);
	r = new_folders(options->output, 0777);
	return r < 0 ? errmsg_set(err, r, "cannot make %s: %s", options->output, strerror(-r)) : 0;
}
