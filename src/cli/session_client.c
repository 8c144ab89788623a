/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "wire/gate.h"

/* As sources/target makes them. */
#define FOLDER_PREFIX "sonde-"
#define RING_PREFIX   "ring."
/* A collector is busy for a fraction of that at most. */
#define ANSWER_SECONDS 10
#define ANSWER_BYTES   ((size_t)1 << 20)

struct session_folder {
	char path[SESSION_FOLDER_BYTES];
	unsigned long pid; /* of its sonde */
};

struct session_folders {
	ARRAY_OF(struct session_folder) found;
};

/* ---- which there are ---- */

static bool is_own(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_uid == geteuid();
}

/* It is this user's, also if that is root, and its sonde lives: it holds the gate's lock. */
static bool is_alive(const char *path)
{
	_cleanup_close_ int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int fd = -1;

	if (folder < 0 || !is_own(folder))
		return false;
	fd = openat(folder, WIRE_GATE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd >= 0 && is_own(fd) && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void look_in(struct session_folders *folders, const char *base)
{
	DIR *folder = base && base[0] == '/' ? opendir(base) : NULL;
	const struct dirent *entry;

	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		struct session_folder found = {{0}};

		if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0 ||
			(size_t)snprintf(found.path, sizeof(found.path), "%s/%s", base,
				entry->d_name) >= sizeof(found.path) ||
			!is_alive(found.path))
			continue;
		found.pid = strtoul(entry->d_name + strlen(FOLDER_PREFIX), NULL, 10);
		if (array_append(&folders->found, found) < 0)
			break;
	}
	closedir(folder);
}

static void find_folders(struct session_folders *folders)
{
	look_in(folders, "/dev/shm");
	look_in(folders, getenv("XDG_RUNTIME_DIR"));
	look_in(folders, "/tmp");
}

/* ---- of a process ---- */

/* It has made a file there; or the session says that it records it. */
static bool records(const struct session_folder *folder, unsigned long pid)
{
	_cleanup_strbuf_ struct strbuf answer = {0};
	DIR *directory = opendir(folder->path);
	const struct dirent *entry;
	struct errmsg err;
	char wanted[32];
	const char *targets, *end, *found;
	bool has_ring = false;

	snprintf(wanted, sizeof(wanted), RING_PREFIX "%lu.", pid);
	while (directory && (entry = readdir(directory)))
		has_ring = has_ring || strncmp(entry->d_name, wanted, strlen(wanted)) == 0;
	if (directory)
		closedir(directory);
	if (has_ring || session_client_ask(folder->path, "status\n", &answer, &err) < 0)
		return has_ring;
	targets = strstr(strbuf_cstr(&answer), "\"targets\":[");
	end = targets ? strchr(targets, ']') : NULL;
	snprintf(wanted, sizeof(wanted), "%lu", pid);
	for (found = targets; end && (found = strstr(found, wanted)) && found < end; found++) {
		char after = found[strlen(wanted)];

		if ((found[-1] == '[' || found[-1] == ',') && (after == ',' || after == ']'))
			return true;
	}
	return false;
}

static const struct session_folder *find_by_pid(
	const struct session_folders *folders, unsigned long pid)
{
	array_foreach (&folders->found, folder) {
		if (folder->pid == pid)
			return folder;
	}
	array_foreach (&folders->found, folder) {
		if (records(folder, pid))
			return folder;
	}
	return NULL;
}

/* ---- one of them ---- */

static int choose_only(const struct session_folders *folders, const struct session_folder **ret,
	struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf list = {0};

	if (folders->found.count == 1) {
		*ret = folders->found.items;
		return 0;
	}
	if (!folders->found.count)
		return errmsg_set(err, -ENOENT,
			"this user has no running recording; start one: sonde record --window "
			"manual -- COMMAND");
	array_foreach (&folders->found, folder)
		strbuf_addf(&list, "%s%lu", list.length ? ", " : "", folder->pid);
	return errmsg_set(err, -EEXIST,
		"this user has %zu running recordings; choose one with --session and one of %s",
		folders->found.count, strbuf_cstr(&list));
}

static int choose(const struct session_folders *folders, const char *which,
	const struct session_folder **ret, struct errmsg *err)
{
	unsigned long pid;
	char *end;

	if (!which)
		return choose_only(folders, ret, err);
	pid = strtoul(which, &end, 10);
	if (*end || end == which || !pid || pid > INT_MAX)
		return errmsg_set(err, -EINVAL,
			"--session takes a session's folder or a process id, not '%.200s'", which);
	*ret = find_by_pid(folders, pid);
	return *ret ? 0
		    : errmsg_set(err, -ESRCH,
			      "process %lu is neither a recording sonde nor recorded by one of "
			      "this user; sonde ctl status finds the only one",
			      pid);
}

int session_client_find(
	const char *which, char ret_folder[SESSION_FOLDER_BYTES], struct errmsg *err)
{
	struct session_folders folders = {0};
	const struct session_folder *folder = NULL;
	int result;

	if (which && strchr(which, '/')) {
		if (strlen(which) >= SESSION_FOLDER_BYTES)
			return errmsg_set(err, -ENAMETOOLONG, "the folder's name is too long");
		memcpy(ret_folder, which, strlen(which) + 1);
		return 0;
	}
	find_folders(&folders);
	result = choose(&folders, which, &folder, err);
	if (folder)
		memcpy(ret_folder, folder->path, SESSION_FOLDER_BYTES);
	array_done(&folders.found);
	return result;
}

/* ---- a question ---- */

static int connect_to(const char *folder, struct errmsg *err)
{
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" WIRE_CONTROL_NAME,
		    folder) >= sizeof(address.sun_path))
		return errmsg_set(err, -ENAMETOOLONG, "the folder's name is too long: %s", folder);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return errmsg_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errmsg_set(err, -errno,
			"no recording answers in %s: %s; sonde ctl status finds a running one",
			folder, strerror(errno));
	return TAKE_FD(fd);
}

int session_client_ask(
	const char *folder, const char *line, struct strbuf *ret_answer, struct errmsg *err)
{
	_cleanup_close_ int fd = connect_to(folder, err);
	size_t length = strlen(line);
	uint64_t end_ns = monotonic_now_ns() + 2 * ANSWER_SECONDS * NS_PER_S;
	char bytes[4096];
	ssize_t got;

	if (fd < 0)
		return fd;
	if (send(fd, line, length, MSG_NOSIGNAL) != (ssize_t)length)
		return errmsg_set(
			err, -errno, "cannot ask the recording in %s: %s", folder, strerror(errno));
	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		strbuf_add_bytes(ret_answer, bytes, (size_t)got);
		if (memchr(bytes, '\n', (size_t)got) || ret_answer->length > ANSWER_BYTES ||
			monotonic_now_ns() > end_ns)
			break;
	}
	if (!ret_answer->length || ret_answer->data[ret_answer->length - 1] != '\n')
		return errmsg_set(err, got < 0 ? -errno : -EPIPE,
			"the recording in %s gave no answer%s", folder,
			got < 0 && errno == EAGAIN ? " in 10 s: it is busy, try again"
						   : ": it has ended");
	ret_answer->data[--ret_answer->length] = '\0';
	return strbuf_status(ret_answer);
}
