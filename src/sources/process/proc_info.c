/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/proc_info.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define MAX_CMDLINE_BYTES  ((size_t)64 * 1024)
#define MAX_CHILDREN_BYTES ((size_t)16 * 1024 * 1024)

/* Reads the head of /proc/PID/NAME and ends it with NUL; returns its length or a negative errno. */
static ssize_t read_head(uint32_t pid, const char *name, char *bytes, size_t capacity)
{
	_cleanup_close_ int fd = -1;
	size_t length = 0;
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (length < capacity - 1) {
		got = read(fd, bytes + length, capacity - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	bytes[length] = '\0';
	return (ssize_t)length;
}

int proc_read_status(uint32_t pid, struct proc_status *ret_status)
{
	struct proc_status status = {0};
	char text[512], *name, *after_name;
	ssize_t length = read_head(pid, "stat", text, sizeof(text));

	if (length < 0)
		return (int)length;
	/* "PID (name) S PPID …": the name may hold blanks and parentheses. */
	name = strchr(text, '(');
	after_name = strrchr(text, ')');
	if (!name || !after_name ||
		sscanf(after_name + 1, " %c %u", &status.state, &status.parent_pid) != 2)
		return -EBADMSG;
	*after_name = '\0';
	snprintf(status.name, sizeof(status.name), "%s", name + 1);
	*ret_status = status;
	return 0;
}

/* A program that writes its own title leaves the rest of its arguments' memory blank. */
static size_t without_blank_end(const char *bytes, size_t length)
{
	while (length && (bytes[length - 1] == '\0' || bytes[length - 1] == ' '))
		length--;
	return length;
}

static uint32_t count_strings(const char *bytes, size_t length)
{
	uint32_t count = 0;

	for (size_t i = 0; i < length; i += strlen(bytes + i) + 1)
		count++;
	return count;
}

char **proc_read_cmdline(uint32_t pid, uint32_t *ret_count)
{
	_cleanup_free_ char *head = malloc(MAX_CMDLINE_BYTES);
	ssize_t length = head ? read_head(pid, "cmdline", head, MAX_CMDLINE_BYTES) : -ENOMEM;
	uint32_t count;
	char **vector, *text;

	*ret_count = 0;
	if (length > 0)
		length = (ssize_t)without_blank_end(head, (size_t)length);
	if (length <= 0)
		return NULL;
	head[length] = '\0';
	count = count_strings(head, (size_t)length);
	vector = malloc(count * sizeof(*vector) + (size_t)length + 1);
	if (!vector)
		return NULL;
	text = (char *)(vector + count);
	memcpy(text, head, (size_t)length + 1);
	for (uint32_t i = 0; i < count; i++, text += strlen(text) + 1)
		vector[i] = text;
	*ret_count = count;
	return vector;
}

/* Lines are "ID:CONTROLLERS:PATH"; the unified hierarchy's is "0::PATH". */
char *proc_read_cgroup(uint32_t pid)
{
	char text[8192], *path = NULL, *line, *rest = text;

	if (read_head(pid, "cgroup", text, sizeof(text)) <= 0)
		return NULL;
	while ((line = strsep(&rest, "\n"))) {
		char *colon = strchr(line, ':'), *candidate = colon ? strchr(colon + 1, ':') : NULL;

		if (!candidate)
			continue;
		if (!path || strncmp(line, "0::", 3) == 0)
			path = candidate + 1;
	}
	return path ? strdup(path) : NULL;
}

static int parse_pids(const char *text, struct pid_list *pids)
{
	for (;;) {
		char *end;
		unsigned long pid = strtoul(text, &end, 10);

		if (end == text)
			return 0;
		if (array_append(&pids->pids, (uint32_t)pid) < 0)
			return -ENOMEM;
		text = end;
	}
}

/* Calls `visit` for each entry of the folder that is a number, until it returns non-zero. */
static int visit_numbers(
	const char *path, int (*visit)(void *context, uint32_t number), void *context)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int result = 0;

	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while (result == 0 && (entry = readdir(folder))) {
		unsigned long number = strtoul(entry->d_name, NULL, 10);

		if (number)
			result = visit(context, (uint32_t)number);
	}
	closedir(folder);
	return result;
}

struct children_search {
	uint32_t pid;
	struct pid_list *children;
};

static int add_children_of_thread(void *context, uint32_t tid)
{
	struct children_search *search = context;
	_cleanup_strbuf_ struct strbuf text = {0};
	char path[80];
	int error;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", search->pid, tid);
	error = read_whole_file(path, MAX_CHILDREN_BYTES, &text);
	return error == 0 ? parse_pids(strbuf_cstr(&text), search->children) : 0;
}

static int add_if_child(void *context, uint32_t pid)
{
	struct children_search *search = context;
	struct proc_status status;

	if (proc_read_status(pid, &status) < 0 || status.parent_pid != search->pid)
		return 0;
	return array_append(&search->children->pids, pid);
}

int proc_list_children(uint32_t pid, struct pid_list *children)
{
	struct children_search search = {.pid = pid, .children = children};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", pid, pid);
	if (access(path, R_OK) < 0) /* CONFIG_PROC_CHILDREN=n */
		return visit_numbers("/proc", add_if_child, &search);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	return visit_numbers(path, add_children_of_thread, &search);
}

static int add_pid(void *context, uint32_t pid)
{
	struct pid_list *pids = context;

	return array_append(&pids->pids, pid);
}

int proc_list_all(struct pid_list *processes)
{
	return visit_numbers("/proc", add_pid, processes);
}

int proc_list_threads(uint32_t pid, struct pid_list *threads)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	return visit_numbers(path, add_pid, threads);
}

int proc_read_thread_name(uint32_t pid, uint32_t tid, char ret_name[16])
{
	char file[48], text[64];
	ssize_t length;

	snprintf(file, sizeof(file), "task/%u/comm", tid);
	length = read_head(pid, file, text, sizeof(text));
	if (length < 0)
		return (int)length;
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret_name, 16, "%.15s", text);
	return 0;
}

struct thread_search {
	uint32_t pid, found;
};

static int find_other_thread(void *context, uint32_t tid)
{
	struct thread_search *search = context;

	if (tid == search->pid)
		return 0;
	search->found = tid;
	return 1;
}

static uint32_t other_thread(uint32_t pid)
{
	struct thread_search search = {.pid = pid};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	visit_numbers(path, find_other_thread, &search);
	return search.found;
}

bool proc_has_threads(uint32_t pid)
{
	return other_thread(pid) != 0;
}

uint32_t proc_living_thread(uint32_t pid)
{
	struct proc_status status;

	if (proc_read_status(pid, &status) < 0)
		return 0;
	return status.state == 'Z' || status.state == 'X' ? other_thread(pid) : pid;
}
