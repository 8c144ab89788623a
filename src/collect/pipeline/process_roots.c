/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/process_roots.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Each holds two descriptors; containers beyond are served through /proc/PID/root no more. */
#define MAXIMUM_ROOTS 256

/* Two processes see the same files when all of these are equal. */
struct view {
	uint64_t device, inode, mount_namespace;
};

struct process_root {
	struct view view;
	int fd;
	int mounts_fd; /* keeps what is mounted below the root there when the last process ended */
	char prefix[32];
};

/* `who`: a process id, or "self". False when it is gone or may not be looked at. */
static bool read_view(const char *who, struct view *ret_view)
{
	struct stat root, mounts;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%s/root", who);
	if (stat(path, &root) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", who);
	if (stat(path, &mounts) < 0)
		return false;
	*ret_view = (struct view){root.st_dev, root.st_ino, mounts.st_ino};
	return true;
}

static bool same_view(const struct view *a, const struct view *b)
{
	return a->device == b->device && a->inode == b->inode &&
	       a->mount_namespace == b->mount_namespace;
}

static void root_free(struct process_root *root)
{
	closep(&root->fd);
	closep(&root->mounts_fd);
	free(root);
}

static const struct process_root *add_root(
	struct process_roots *roots, const char *who, const struct view *view)
{
	struct process_root *root = calloc(1, sizeof(*root));
	char path[48];

	if (!root)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%s/root", who);
	root->view = *view;
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", who);
	root->mounts_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(root->prefix, sizeof(root->prefix), "/proc/self/fd/%d", root->fd);
	if (root->fd >= 0 && array_append(&roots->roots, root) == 0)
		return root;
	root_free(root);
	return NULL;
}

const char *process_roots_prefix(struct process_roots *roots, uint32_t pid)
{
	const struct process_root *added;
	struct view own, view;
	char who[16];

	snprintf(who, sizeof(who), "%u", pid);
	if (!read_view(who, &view) || !read_view("self", &own) || same_view(&view, &own))
		return "";
	array_foreach (&roots->roots, root) {
		if (same_view(&(*root)->view, &view))
			return (*root)->prefix;
	}
	if (roots->roots.count >= MAXIMUM_ROOTS)
		return "";
	added = add_root(roots, who, &view);
	return added ? added->prefix : "";
}

void process_roots_done(struct process_roots *roots)
{
	array_foreach (&roots->roots, root)
		root_free(*root);
	array_done(&roots->roots);
}
