/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the file behind a mapping, and making sure that it is still the same one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process_view.h"
#include "sources/process/address_space.h"

static bool has_build_id(int fd, const struct build_id *build_id)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;

	return elf_file_open_fd(&elf, fd, "the file", NULL) == 0 &&
	       build_id_equal(elf_file_build_id(elf), build_id);
}

static bool is_same_inode(const struct mapped_file *file, const struct stat *status)
{
	return file->inode == status->st_ino && file->device == status->st_dev;
}

/*
 * Device and inode settle it. On overlayfs and btrfs stat(2) shows another device than mappings do,
 * on overlayfs sometimes another inode: there the build-id decides, and without one the inode
 * alone.
 */
static bool is_same_file(const struct mapped_file *file, int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return false;
	if (is_same_inode(file, &status))
		return true;
	if (file->build_id.length)
		return has_build_id(fd, &file->build_id);
	return file->inode == status.st_ino;
}

static int open_through_map_files(const struct mapped_file *file)
{
	_cleanup_close_ int fd = -1;
	struct stat status;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, file->pid,
		file->start, file->end);
	/* With our rights: it is the very file that the process has mapped. */
	fd = open_regular_file(path, &status);
	if (fd < 0)
		return fd;
	return is_same_file(file, fd) ? TAKE_FD(fd) : -ESTALE;
}

/* Returns a descriptor, -ESTALE for another file, or a negative errno. */
static int open_in_view(const struct mapped_file *file, const struct process_view *view)
{
	/* The kernel's paths of mappings lead through no links. */
	_cleanup_close_ int fd =
		process_view_open_file(view, file->path, PROCESS_VIEW_NO_LINKS, NULL);

	if (fd < 0)
		return fd;
	return is_same_file(file, fd) ? TAKE_FD(fd) : -ESTALE;
}

/* The path belongs to the process's mount namespace and root. */
static int open_through_root(const struct mapped_file *file)
{
	struct process_view view;
	int fd = process_view_open(&view, file->pid);

	if (fd < 0)
		return fd;
	fd = open_in_view(file, &view);
	process_view_done(&view);
	return fd;
}

/*
 * The process may be gone; the file most often is not. Nobody's rights are known then: ours serve
 * for the very file that it had mapped, and nobody's for one that only looks like it.
 */
static int open_left_behind(const struct mapped_file *file)
{
	const struct process_view own = process_view_own(), nobody = process_view_nobody();
	struct stat status;
	_cleanup_close_ int found =
		process_view_find(&own, file->path, PROCESS_VIEW_NO_LINKS, &status);

	if (found < 0)
		return found;
	if (is_same_inode(file, &status))
		return process_view_open_found(&own, found);
	return open_in_view(file, geteuid() == 0 ? &nobody : &own);
}

static int explain(const struct mapped_file *file, int error, struct errmsg *err)
{
	bool is_root = geteuid() == 0;

	if (error == -ESTALE)
		return errmsg_set(err, error,
			"cannot open %s: it was replaced after process %u mapped it; run the "
			"program again%s",
			file->path, file->pid,
			is_root ? "" : ", or record as root, which can read the old file");
	return errmsg_set(err, error, "cannot open %s, which process %u mapped: %s%s", file->path,
		file->pid, strerror(-error), is_root ? "" : "; recording as root may help");
}

void mapped_file_explain(const struct mapped_file *file, struct errmsg *ret_reason)
{
	int fd = mapped_file_open(file, ret_reason);

	if (fd < 0)
		return;
	close(fd);
	errmsg_set(ret_reason, 0, "%s could not be opened when it was mapped", file->path);
}

int mapped_file_open(const struct mapped_file *file, struct errmsg *err)
{
	int fd, stale = 0;

	if (file->kind != MAPPING_FILE)
		return errmsg_set(
			err, -ENOENT, "cannot open %s: it is memory, not a file", file->path);
	fd = open_through_map_files(file);
	if (fd == -EMFILE || fd == -ENFILE)
		return errmsg_set(err, fd,
			"cannot open %s: out of file descriptors; raise `ulimit -n`", file->path);
	if (fd < 0) {
		fd = open_through_root(file);
		stale = fd == -ESTALE;
	}
	if (fd < 0)
		fd = open_left_behind(file);
	if (fd >= 0)
		return fd;
	return explain(file, stale ? -ESTALE : fd, err);
}
