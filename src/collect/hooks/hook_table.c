/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/hooks/hook_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_PREFIX "hooks."
/* A runaway program must not take all of our memory. */
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define FILES_MAX      4096
#define HOOKS_MAX      1024

enum field { GROUP, MODULE, ATTRIBUTE, STATE, DETAIL, FIELD_MAX };

struct field_text {
	const char *bytes;
	size_t length;
};

static const char *const state_names[HOOK_STATE_MAX] = {
	[HOOK_WAITING] = "waiting",
	[HOOK_APPLIED] = "applied",
	[HOOK_NOT_FOUND] = "not found",
	[HOOK_ERROR] = "error",
};

const char *hook_state_to_string(enum hook_state state)
{
	return state_names[state];
}

static enum hook_state state_from_text(const struct field_text *text)
{
	for (enum hook_state state = 0; state < HOOK_STATE_MAX; state++) {
		if (strlen(state_names[state]) == text->length &&
			memcmp(state_names[state], text->bytes, text->length) == 0)
			return state;
	}
	return HOOK_STATE_INVALID;
}

/* Five fields with tabs between them; false for any other line. */
static bool split_line(const char *line, size_t length, struct field_text *ret_fields)
{
	const char *end = line + length;

	for (enum field field = 0; field < FIELD_MAX; field++) {
		const char *tab = memchr(line, '\t', (size_t)(end - line));

		if (!tab != (field == DETAIL))
			return false;
		ret_fields[field].bytes = line;
		ret_fields[field].length = (size_t)((tab ?: end) - line);
		line = tab ? tab + 1 : end;
	}
	return true;
}

/* A text of the table, with every control character made a space. */
static int keep_text(struct hook_table *table, const struct field_text *text, const char **ret_text)
{
	char clean[1024];
	size_t length = MIN(text->length, sizeof(clean));
	uint32_t id;

	for (size_t i = 0; i < length; i++)
		clean[i] = (unsigned char)text->bytes[i] < ' ' || text->bytes[i] == 0x7f
				   ? ' '
				   : text->bytes[i];
	if (intern_add(&table->texts, clean, length, &id) < 0)
		return -ENOMEM;
	*ret_text = intern_get(&table->texts, id);
	return 0;
}

/* Interned texts are the same when their addresses are. */
static struct hook_status *find(struct hook_table *table, const struct hook_status *wanted)
{
	array_foreach (&table->hooks, hook) {
		if (hook->group == wanted->group && hook->module == wanted->module &&
			hook->attribute == wanted->attribute)
			return hook;
	}
	return NULL;
}

/* Its place is behind the last of its group. */
static int insert(
	struct hook_table *table, const struct hook_status *wanted, struct hook_status **ret_hook)
{
	size_t place = table->hooks.count;
	struct hook_status *items;

	for (size_t i = 0; i < table->hooks.count; i++) {
		if (table->hooks.items[i].group == wanted->group)
			place = i + 1;
	}
	if (array_append(&table->hooks, *wanted) < 0)
		return -ENOMEM;
	items = table->hooks.items;
	memmove(items + place + 1, items + place,
		(table->hooks.count - 1 - place) * sizeof(*items));
	items[place] = *wanted;
	*ret_hook = &items[place];
	return 0;
}

static int add_line(struct hook_table *table, const char *line, size_t length)
{
	struct field_text fields[FIELD_MAX];
	struct hook_status wanted = {.detail = ""}, *hook;
	enum hook_state state;
	int result;

	if (!split_line(line, length, fields) || (state = state_from_text(&fields[STATE])) < 0) {
		table->malformed++;
		return 0;
	}
	result = keep_text(table, &fields[GROUP], &wanted.group);
	if (result == 0)
		result = keep_text(table, &fields[MODULE], &wanted.module);
	if (result == 0)
		result = keep_text(table, &fields[ATTRIBUTE], &wanted.attribute);
	if (result < 0)
		return result;
	hook = find(table, &wanted);
	if (!hook && table->hooks.count >= HOOKS_MAX) {
		table->malformed++;
		return 0;
	}
	if (!hook && insert(table, &wanted, &hook) < 0)
		return -ENOMEM;
	if (hook->process == table->processes) /* it reported before: the last line counts */
		hook->processes[hook->state]--;
	hook->process = table->processes;
	hook->state = state;
	hook->processes[state]++;
	if (state < HOOK_NOT_FOUND && (!fields[DETAIL].length || *hook->detail))
		return 0; /* what a process lacks is worth more than what another found */
	return keep_text(table, &fields[DETAIL], &hook->detail);
}

int hook_table_add(struct hook_table *table, const char *text, size_t length)
{
	const char *end = text + length;
	int result = 0;

	table->processes++;
	while (text < end && result == 0) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		if (newline)
			result = add_line(table, text, (size_t)(newline - text));
		else
			table->malformed++; /* its writer was killed, or the file is too large */
		text = newline ? newline + 1 : end;
	}
	return result;
}

static int read_file(struct hook_table *table, int folder_fd, const char *name)
{
	_cleanup_close_ int fd =
		openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat status;
	size_t wanted, length = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		table->malformed++;
		return 0;
	}
	wanted = MIN((size_t)status.st_size, FILE_BYTES_MAX);
	text = malloc(wanted + 1);
	if (!text)
		return -ENOMEM;
	while (length < wanted && (got = read(fd, text + length, wanted - length)) > 0)
		length += (size_t)got;
	return hook_table_add(table, text, length);
}

int hook_table_read(struct hook_table *table, const char *folder)
{
	DIR *open_folder = opendir(folder);
	const struct dirent *entry;
	int result = 0;

	if (!open_folder)
		return 0; /* it was removed, which is reported elsewhere */
	while (result == 0 && table->processes < FILES_MAX && (entry = readdir(open_folder))) {
		if (strncmp(entry->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) == 0)
			result = read_file(table, dirfd(open_folder), entry->d_name);
	}
	closedir(open_folder);
	return result;
}

void hook_table_done(struct hook_table *table)
{
	array_done(&table->hooks);
	intern_done(&table->texts);
}

enum hook_state hook_status_state(const struct hook_status *hook)
{
	static const enum hook_state by_weight[] = {HOOK_ERROR, HOOK_NOT_FOUND, HOOK_APPLIED};

	for (size_t i = 0; i < ARRAY_SIZE(by_weight); i++) {
		if (hook->processes[by_weight[i]])
			return by_weight[i];
	}
	return HOOK_WAITING;
}
