/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/new_file.h"

void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
	*file = NULL;
}

int write_all(int fd, const void *bytes, size_t length)
{
	const char *cursor = bytes;

	while (length) {
		ssize_t written = write(fd, cursor, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		cursor += written;
		length -= (size_t)written;
	}
	return 0;
}

int read_whole_fd(int fd, size_t max_bytes, struct strbuf *ret_text)
{
	char chunk[16384];

	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return strbuf_status(ret_text);
		if (ret_text->length + (size_t)got > max_bytes)
			return -EFBIG;
		strbuf_add_bytes(ret_text, chunk, (size_t)got);
	}
}

int read_whole_file(const char *path, size_t max_bytes, struct strbuf *ret_text)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_whole_fd(fd, max_bytes, ret_text);
}

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int make_directories_by(
	const char *path, mode_t mode, int (*make)(int folder, const char *name, mode_t mode))
{
	_cleanup_free_ char *copy = strdup(path);
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (char *slash = copy; *slash && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		r = make(AT_FDCWD, copy, mode);
		*slash = '/';
		if (r < 0 && r != -EEXIST)
			return r;
	}
	r = make(AT_FDCWD, copy, mode);
	return r == -EEXIST ? 0 : r;
}

static int make_directory(int folder, const char *name, mode_t mode)
{
	return mkdirat(folder, name, mode) < 0 ? -errno : 0;
}

int make_directories(const char *path, unsigned mode)
{
	return make_directories_by(path, mode, make_directory);
}

int write_file_atomically(const char *path, const void *bytes, size_t length)
{
	_cleanup_strbuf_ struct strbuf temporary = {0};
	_cleanup_close_ int fd = -1;
	int result;

	strbuf_addf(&temporary, "%s.XXXXXX", path);
	if (strbuf_status(&temporary) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary.data, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = write_all(fd, bytes, length);
	if (result == 0 && rename(temporary.data, path) < 0)
		result = -errno;
	if (result < 0)
		unlink(temporary.data);
	return result;
}

/* A descriptor of a regular file, which is not waited for; -errno with a sentence. */
static int open_regular(const char *path, struct stat *ret_status, struct errmsg *err)
{
	_cleanup_close_ int fd = input_open(path, O_NONBLOCK);

	if (fd < 0)
		return errmsg_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, ret_status) < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(ret_status->st_mode))
		return errmsg_set(
			err, -EISDIR, "cannot read %s: it is a directory; name a file", path);
	if (!S_ISREG(ret_status->st_mode))
		return errmsg_set(err, -EINVAL, "cannot read %s: it is not a regular file", path);
	return TAKE_FD(fd);
}

int file_mapping_open(struct file_mapping *ret_mapping, const char *path, struct errmsg *err)
{
	struct stat status = {0};
	_cleanup_close_ int fd = open_regular(path, &status, err);
	void *bytes;

	if (fd < 0)
		return fd;
	if (status.st_size == 0) {
		*ret_mapping = (struct file_mapping){0};
		return 0;
	}
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return errmsg_set(err, -errno, "cannot map %s: %s", path, strerror(errno));
	*ret_mapping = (struct file_mapping){.bytes = bytes, .length = (size_t)status.st_size};
	return 0;
}

int read_regular_file(const char *path, struct strbuf *ret_text, struct errmsg *err)
{
	struct stat status = {0};
	_cleanup_close_ int fd = open_regular(path, &status, err);
	int r;

	if (fd < 0)
		return fd;
	r = read_whole_fd(fd, SIZE_MAX, ret_text);
	if (r < 0)
		return errmsg_set(err, r, "cannot read %s: %s", path, strerror(-r));
	return 0;
}

void file_mapping_done(struct file_mapping *mapping)
{
	if (mapping->bytes)
		munmap((void *)mapping->bytes, mapping->length);
	*mapping = (struct file_mapping){0};
}

/* True when only root can change the folder and all above it. The path is absolute and exists. */
static bool is_roots_folder(char *path)
{
	struct stat status;

	for (;;) {
		if (stat(*path ? path : "/", &status) < 0 || status.st_uid != 0)
			return false;
		/* In a sticky folder others cannot move what is root's. */
		if ((status.st_mode & 0022) && !(status.st_mode & S_ISVTX))
			return false;
		if (!*path)
			return true;
		*strrchr(path, '/') = '\0';
	}
}

/*
 * What root reads from a cache names functions in its reports, and what it writes there goes where
 * the folder leads: not to where sudo left HOME at another user's. Of a path that does not exist
 * yet what exists of it counts.
 */
static bool root_may_trust(const char *path)
{
	_cleanup_free_ char *existing = strdup(path), *resolved = NULL;

	while (existing && existing[0] && !(resolved = realpath(existing, NULL))) {
		if (errno != ENOENT)
			return false;
		*strrchr(existing, '/') = '\0';
	}
	return resolved && is_roots_folder(resolved);
}

static bool may_trust(const char *path)
{
	return geteuid() != 0 || root_may_trust(path);
}

static char *make_trusted(const char *above, const char *below, const char *subdirectory)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	strbuf_addf(&path, "%s%s/sonde", above, below);
	if (*subdirectory)
		strbuf_addf(&path, "/%s", subdirectory);
	if (strbuf_status(&path) < 0 || !may_trust(path.data) ||
		make_directories(path.data, 0700) < 0 || !may_trust(path.data))
		return NULL;
	return TAKE_PTR(path.data);
}

/* Where the system's table says that root is at home. */
static char *roots_cache(const char *subdirectory)
{
	struct passwd entry, *root = NULL;
	char text[4096];

	if (getpwuid_r(0, &entry, text, sizeof(text), &root) != 0 || !root ||
		root->pw_dir[0] != '/')
		return NULL;
	return make_trusted(root->pw_dir, "/.cache", subdirectory);
}

static char *user_directory(const char *variable, const char *below_home, const char *subdirectory)
{
	const char *place = getenv(variable), *home = getenv("HOME");

	if (place && place[0] == '/')
		return make_trusted(place, "", subdirectory);
	return home && home[0] == '/' ? make_trusted(home, below_home, subdirectory) : NULL;
}

char *cache_directory(const char *subdirectory)
{
	char *path = user_directory("XDG_CACHE_HOME", "/.cache", subdirectory);
	uid_t user;
	gid_t group;

	/* sudo may have left HOME as it was. */
	if (!path && !getenv("XDG_CACHE_HOME") && sudo_user(&user, &group))
		path = roots_cache(subdirectory);
	return path;
}

char *state_directory(void)
{
	return user_directory("XDG_STATE_HOME", "/.local/state", "");
}

uint64_t rusage_cpu_ns(const struct rusage *usage)
{
	uint64_t seconds = (uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec;
	uint64_t microseconds =
		(uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec;

	return seconds * NS_PER_S + microseconds * NS_PER_US;
}

uint64_t monotonic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
