/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/default_captures.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/warn.h"

#define EXTENSION ".pftrace"

/* Where the file system does not say when a file was made: recordings are taken to be as long. */
#define LENGTH_S 10

struct found {
	char *name;
	int64_t begin_ns, end_ns; /* when it was made, at least about, and written last */
};

struct found_list {
	ARRAY_OF(struct found) items;
};

/* "sonde-HOST-RANK.pftrace", for the default name "sonde.pftrace". */
static bool is_of_rank(const char *name, const char *single)
{
	size_t stem = strlen(single) - strlen(EXTENSION);
	const char *end = name + strlen(name) - strlen(EXTENSION), *digits = end;

	if (!text_ends_in(name, EXTENSION) || strncmp(name, single, stem) != 0 || name[stem] != '-')
		return false;
	while (digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits < end && digits[-1] == '-' && digits - 1 > name + stem + 1;
}

static int64_t ns_of(const struct statx_timestamp *time)
{
	return time->tv_sec * (int64_t)NS_PER_S + time->tv_nsec;
}

/* False where there is no such file. */
static bool look_at(const char *name, struct found *ret_found)
{
	struct statx status;

	if (statx(AT_FDCWD, name, 0, STATX_TYPE | STATX_MTIME | STATX_BTIME, &status) < 0 ||
		!S_ISREG(status.stx_mode))
		return false;
	*ret_found = (struct found){.end_ns = ns_of(&status.stx_mtime)};
	ret_found->begin_ns = status.stx_mask & STATX_BTIME
				      ? ns_of(&status.stx_btime)
				      : ret_found->end_ns - LENGTH_S * (int64_t)NS_PER_S;
	return true;
}

static void find_ranks(struct found_list *list, const char *single)
{
	DIR *folder = opendir(".");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		struct found found;

		if (!is_of_rank(entry->d_name, single) || !look_at(entry->d_name, &found))
			continue;
		found.name = strdup(entry->d_name);
		if (!found.name || array_append(&list->items, found) < 0)
			free(found.name);
	}
	if (folder)
		closedir(folder);
}

static int compare_ends(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

/* Ranks of a job run at the same time. An earlier one, maybe of more ranks, had ended before. */
static void keep_last_job(struct found_list *list)
{
	int64_t begin_ns = INT64_MAX;
	size_t kept = 0;

	qsort(list->items.items, list->items.count, sizeof(*list->items.items), compare_ends);
	array_foreach (&list->items, found) {
		if (kept && found->end_ns < begin_ns)
			break;
		begin_ns = MIN(begin_ns, found->begin_ns);
		kept++;
	}
	for (size_t i = kept; i < list->items.count; i++)
		free(list->items.items[i].name);
	list->items.count = kept;
}

static void forget(struct found_list *list)
{
	array_foreach (&list->items, found)
		free(found->name);
	array_clear(&list->items);
}

static int compare_names(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	return strverscmp(a->name, b->name);
}

static void print_choice(char **names, size_t count)
{
	if (count == 1)
		warn("reading %s, which was recorded last here", names[0]);
	else
		warn("reading the captures of %zu ranks, %s %s %s", count, names[0],
			count == 2 ? "and" : "to", names[count - 1]);
}

/* None of them where the capture of the default name is newer. */
static char **choose(const char *single, int *ret_count)
{
	struct found_list list = {0};
	struct found one;
	bool has_single = look_at(single, &one);
	char **words;
	size_t count;

	find_ranks(&list, single);
	if (list.items.count)
		keep_last_job(&list);
	/* The newest comes first. */
	if (list.items.count && has_single && list.items.items[0].end_ns <= one.end_ns)
		forget(&list);
	count = list.items.count;
	words = calloc((count ? count : has_single) + 1, sizeof(*words));
	*ret_count = words ? (int)(count ? count : has_single) : 0;
	if (words && !count && has_single)
		words[0] = (char *)single;
	if (words && count) {
		qsort(list.items.items, count, sizeof(*list.items.items), compare_names);
		for (size_t i = 0; i < count; i++)
			words[i] = list.items.items[i].name;
		print_choice(words, count);
	}
	array_done(&list.items);
	return words;
}

char **default_captures(const char *single, int *ret_count)
{
	static char **words, *none[1];
	static int count;

	if (!words)
		words = choose(single, &count);
	*ret_count = count;
	return words ? words : none;
}
