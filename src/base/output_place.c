/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"

#define MAX_LINKS      40
#define NAME_ATTEMPTS  100
#define SUFFIX_LETTERS 6
#define OTHER_NAMES    100000

/* ---- who may say where output goes ---- */

static uid_t owner_of_root(void)
{
	struct stat root;

	return stat("/", &root) == 0 ? root.st_uid : 0;
}

/* The user himself, also behind sudo. */
static bool is_own(uid_t owner)
{
	uid_t user;
	gid_t group;

	return owner == geteuid() || (sudo_user(&user, &group) && owner == user);
}

/* The same, or somebody who could do anything to him. */
static bool is_trusted(uid_t owner)
{
	return is_own(owner) || owner == 0 || owner == owner_of_root();
}

/* ---- the folder ---- */

static int walk(int *folder, const char *path, const struct output_how *how, int links,
	struct errmsg *reason);

static int follow(int *folder, int link, const char *name, const struct stat *status,
	const struct output_how *how, int links, struct errmsg *reason)
{
	char target[4096];
	ssize_t length;

	if (!is_trusted(status->st_uid))
		return errmsg_set(reason, -ELOOP, "%s is a link that user %u made", name,
			(unsigned)status->st_uid);
	if (links == 0)
		return errmsg_set(reason, -ELOOP, "%s", strerror(ELOOP));
	length = readlinkat(link, "", target, sizeof(target) - 1);
	if (length < 0)
		return errmsg_set(reason, -errno, "%s", strerror(errno));
	target[length] = '\0';
	return walk(folder, target, how, links - 1, reason);
}

/* Into the folder `name`, whatever that is a link to. */
static int step(int *folder, const char *name, const struct output_how *how, int links,
	struct errmsg *reason)
{
	_cleanup_close_ int next = openat(*folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (next < 0 && errno == ENOENT && how->make_folders) {
		int r = new_folder_at(*folder, name, 0777);

		if (r < 0 && r != -EEXIST)
			return errmsg_set(reason, r, "%s", strerror(-r));
		next = openat(*folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	if (next < 0 || fstat(next, &status) < 0)
		return errmsg_set(reason, -errno, "%s", strerror(errno));
	if (S_ISLNK(status.st_mode))
		return follow(folder, next, name, &status, how, links, reason);
	if (!S_ISDIR(status.st_mode))
		return errmsg_set(reason, -ENOTDIR, "%s", strerror(ENOTDIR));
	close(*folder);
	*folder = TAKE_FD(next);
	return 0;
}

static int walk(int *folder, const char *path, const struct output_how *how, int links,
	struct errmsg *reason)
{
	_cleanup_free_ char *copy = strdup(path);
	char *rest = NULL;
	int r = copy ? 0 : errmsg_set(reason, -ENOMEM, "out of memory");

	if (r == 0 && path[0] == '/') {
		close(*folder);
		*folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (*folder < 0)
			return errmsg_set(reason, -errno, "%s", strerror(errno));
	}
	for (char *name = copy ? strtok_r(copy, "/", &rest) : NULL; r == 0 && name;
		name = strtok_r(NULL, "/", &rest))
		r = step(folder, name, how, links, reason);
	return r;
}

/* The folder of the file, and the file's name in it. */
static int open_folder(struct output_place *place, const char *path, const struct output_how *how,
	struct errmsg *reason)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	_cleanup_free_ char *folder = slash ? strndup(path, (size_t)(name - path)) : strdup("");

	place->name = strdup(name);
	if (!folder || !place->name)
		return errmsg_set(reason, -ENOMEM, "out of memory");
	if (!*name)
		return errmsg_set(reason, path[0] ? -EISDIR : -ENOENT, "%s",
			strerror(path[0] ? EISDIR : ENOENT));
	place->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->folder < 0)
		return errmsg_set(reason, -errno, "%s", strerror(errno));
	return walk(&place->folder, folder, how, MAX_LINKS, reason);
}

/* ---- the file ---- */

static mode_t new_mode(const struct stat *before, const struct output_how *how)
{
	mode_t mask;

	if (how->access != OUTPUT_BY_UMASK)
		return how->access == OUTPUT_GROUP ? 0640 : 0600;
	if (before && S_ISREG(before->st_mode) && is_own(before->st_uid))
		return before->st_mode & 0777;
	mask = umask(077);
	umask(mask);
	return 0666 & ~mask;
}

static int create(struct output_place *place)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	size_t length = strlen(place->name);
	unsigned char random[SUFFIX_LETTERS];
	int fd = -EEXIST;

	place->temporary = malloc(length + SUFFIX_LETTERS + 2);
	if (!place->temporary)
		return -ENOMEM;
	for (int attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
		char *end = stpcpy(stpcpy(place->temporary, place->name), ".");

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		for (size_t i = 0; i < sizeof(random); i++)
			*end++ = letters[random[i] % (sizeof(letters) - 1)];
		*end = '\0';
		fd = new_file_at(place->folder, place->temporary, O_RDWR, 0600);
		if (fd != -EEXIST)
			break;
	}
	if (fd < 0) {
		free(TAKE_PTR(place->temporary));
		return fd;
	}
	place->fd = fd;
	place->is_sudo_users = is_of_sudo_user(fd);
	return 0;
}

/* Another recording writes the file that has the name. */
static bool is_written(const struct output_place *place)
{
	_cleanup_close_ int fd = openat(place->folder, place->name,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Before the file has any name, so that whoever finds it by its name finds it locked. */
static void keep_others(
	struct output_place *place, const struct stat *before, const struct output_how *how)
{
	place->keeps_others = true;
	place->keep_previous = how->keep_previous;
	flock(place->fd, LOCK_EX | LOCK_NB);
	if (!before || (S_ISREG(before->st_mode) && is_written(place)))
		return;
	place->device = before->st_dev;
	place->inode = before->st_ino;
}

static int make_file(struct output_place *place, const struct stat *before,
	const struct output_how *how, struct errmsg *reason)
{
	int r = create(place);

	if (r < 0)
		return errmsg_set(reason, r, "%s", strerror(-r));
	if (how->keeps_others)
		keep_others(place, before, how);
	if (how->access == OUTPUT_GROUP && fchown(place->fd, (uid_t)-1, how->group) < 0)
		return errmsg_set(reason, -errno,
			"it cannot be given to group %u, only to a group that you are in (%s)",
			(unsigned)how->group, strerror(errno));
	if (fchmod(place->fd, new_mode(before, how)) < 0 && how->access == OUTPUT_GROUP)
		return errmsg_set(reason, -errno, "%s", strerror(errno));
	return 0;
}

static int refuse_pipe(const struct stat *status, struct errmsg *reason)
{
	if (!S_ISFIFO(status->st_mode) || is_trusted(status->st_uid))
		return 0;
	return errmsg_set(
		reason, -EPERM, "it is a pipe that user %u made", (unsigned)status->st_uid);
}

/* A pipe or a device; opening a pipe waits for its reader. */
static int open_special(
	struct output_place *place, const struct stat *status, int flags, struct errmsg *reason)
{
	struct stat opened;
	int r = refuse_pipe(status, reason);

	if (r < 0)
		return r;
	if (S_ISDIR(status->st_mode))
		return errmsg_set(reason, -EISDIR, "%s", strerror(EISDIR));
	place->fd = openat(place->folder, place->name, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags);
	if (place->fd < 0 || fstat(place->fd, &opened) < 0)
		return errmsg_set(reason, -errno, "%s", strerror(errno));
	closep(&place->folder);
	/* Another one since. */
	if (S_ISREG(opened.st_mode))
		return errmsg_set(reason, -EAGAIN, "somebody replaced it meanwhile");
	return refuse_pipe(&opened, reason);
}

/* A descriptor of this process that the path names; -1: none. */
static int own_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		const char *number = path + strlen(folders[i]);
		char *end;
		long fd;

		if (strncmp(path, folders[i], strlen(folders[i])) != 0)
			continue;
		fd = strtol(number, &end, 10);
		if (*number >= '0' && *number <= '9' && !*end && fd <= INT32_MAX)
			return (int)fd;
	}
	return -1;
}

static int open_path(struct output_place *place, const char *path, const struct output_how *how,
	struct errmsg *reason)
{
	int own = own_descriptor(path), r;
	struct stat status, target;

	if (own >= 0) {
		place->fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
		return place->fd < 0 ? errmsg_set(reason, -errno, "%s", strerror(errno)) : 0;
	}
	r = open_folder(place, path, how, reason);
	if (r < 0)
		return r;
	if (fstatat(place->folder, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return make_file(place, NULL, how, reason);
	if (S_ISREG(status.st_mode))
		return make_file(place, &status, how, reason);
	if (!S_ISLNK(status.st_mode))
		return open_special(place, &status, O_NOFOLLOW, reason);
	/* A link to a pipe or a device is that; one to a file is replaced, as a file is. */
	if (is_trusted(status.st_uid) && fstatat(place->folder, place->name, &target, 0) == 0 &&
		!S_ISREG(target.st_mode))
		return open_special(place, &target, 0, reason);
	return make_file(place, &status, how, reason);
}

int output_place_open(struct output_place *ret_place, const char *path,
	const struct output_how *how, struct errmsg *reason)
{
	struct output_place place = OUTPUT_PLACE_NONE;
	int r = open_path(&place, path, how, reason);

	if (r < 0)
		output_place_done(&place);
	else
		*ret_place = place;
	return r;
}

/* ---- its name ---- */

/* Gives what is called `from` the name `to`. Returns 0 or a negative errno. */
static int rename_to(
	const struct output_place *place, const char *from, const char *to, unsigned flags)
{
	return renameat2(place->folder, from, place->folder, to, flags) < 0 ? -errno : 0;
}

static int exchange(const struct output_place *place)
{
	return rename_to(place, place->temporary, place->name, RENAME_EXCHANGE);
}

/* NFS, for one, does not take flags. */
static bool lacks_flags(int result)
{
	return result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP;
}

/* -EEXIST where something has the name. */
static int take_free_name(struct output_place *place, const char *name)
{
	int r = rename_to(place, place->temporary, name, RENAME_NOREPLACE);

	if (!lacks_flags(r))
		return r;
	if (linkat(place->folder, place->temporary, place->folder, name, 0) < 0)
		return -errno;
	unlinkat(place->folder, place->temporary, 0);
	return 0;
}

static bool is_the_one_before(const struct output_place *place, const char *name)
{
	struct stat status;

	return place->inode && fstatat(place->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_dev == place->device && status.st_ino == place->inode;
}

static bool move_to_old(const struct output_place *place, const char *name)
{
	_cleanup_free_ char *old = NULL;

	return asprintf(&old, "%s.old", place->name) >= 0 && rename_to(place, name, old, 0) == 0;
}

/* What was replaced now has the temporary name. */
static int put_away(const struct output_place *place)
{
	if (!place->keep_previous || !move_to_old(place, place->temporary))
		unlinkat(place->folder, place->temporary, 0);
	return 0;
}

/* There is a moment in which somebody else's file could be replaced. */
static int replace_without_exchange(const struct output_place *place)
{
	if (place->keep_previous)
		move_to_old(place, place->name);
	return rename_to(place, place->temporary, place->name, 0);
}

/* -EEXIST where it is not the file before that has the name. */
static int replace_the_one_before(struct output_place *place)
{
	int r;

	if (!is_the_one_before(place, place->name))
		return take_free_name(place, place->name);
	r = exchange(place);
	if (lacks_flags(r))
		return replace_without_exchange(place);
	if (r < 0)
		return r == -ENOENT ? take_free_name(place, place->name) : r;
	if (is_the_one_before(place, place->temporary))
		return put_away(place);
	/* Somebody was faster by a moment. */
	r = exchange(place);
	return r < 0 ? r : -EEXIST;
}

/* "run.pftrace" → "run.2.pftrace" */
static char *another_name(const char *name, unsigned number)
{
	const char *dot = strrchr(name, '.');
	size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
	char *made;

	return asprintf(&made, "%.*s.%u%s", (int)length, name, number, name + length) < 0 ? NULL
											  : made;
}

static int take_another_name(struct output_place *place)
{
	int r = -EEXIST;

	for (unsigned number = 2; r == -EEXIST && number < OTHER_NAMES; number++) {
		_cleanup_free_ char *name = another_name(place->name, number);

		r = name ? take_free_name(place, name) : -ENOMEM;
		if (r < 0)
			continue;
		free(place->name);
		place->name = TAKE_PTR(name);
		place->is_another = true;
	}
	return r;
}

static int take_name(void *context)
{
	struct output_place *place = context;
	int r;

	if (!place->keeps_others)
		return rename_to(place, place->temporary, place->name, 0);
	r = replace_the_one_before(place);
	return r == -EEXIST ? take_another_name(place) : r;
}

int output_place_name(struct output_place *place)
{
	int r = 0;

	if (place->temporary)
		r = place->is_sudo_users ? as_sudo_user(take_name, place) : take_name(place);
	if (r == 0)
		free(TAKE_PTR(place->temporary));
	return r;
}

int output_place_close(struct output_place *place)
{
	if (close(TAKE_FD(place->fd)) < 0 && errno != EINTR)
		return -errno;
	return output_place_name(place);
}

int output_place_write(const char *path, const struct output_how *how, const void *bytes,
	size_t length, struct errmsg *reason)
{
	_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE;
	int r = output_place_open(&place, path, how, reason);

	if (r < 0)
		return r;
	r = write_all(place.fd, bytes, length);
	r = r ?: output_place_close(&place);
	return r < 0 ? errmsg_set(reason, r, "%s", strerror(-r)) : 0;
}

void output_place_done(struct output_place *place)
{
	if (place->temporary)
		unlinkat(place->folder, place->temporary, 0);
	free(place->temporary);
	free(place->name);
	closep(&place->fd);
	closep(&place->folder);
	*place = OUTPUT_PLACE_NONE;
}

const char *output_remedy(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return "make the folder first, or name another file with -o FILE";
	case -EACCES:
	case -EPERM:
	case -EROFS:
	case -EISDIR:
		return "name a writable file with -o FILE";
	case -ELOOP:
		return "name the folder that it points to, or a file in your own folder";
	case -ENOSPC:
	case -EDQUOT:
		return "free some space, or write to another disk with -o FILE";
	case -EFBIG:
		return "raise the file size limit (ulimit -f), or record for a shorter time";
	default:
		return "name another file with -o FILE";
	}
}
