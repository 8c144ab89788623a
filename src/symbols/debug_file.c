/* SPDX-License-Identifier: Apache-2.0 */
/* Searching and checking separate debug files. */
#include "symbols/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/process_view.h"
#include "base/strbuf.h"
#include "symbols/elf_symbols.h"

#define DEBUG_ROOT      "/usr/lib/debug"
#define CRC_BLOCK_BYTES ((size_t)1 << 20)

struct debug_link {
	const char *name; /* a plain file name; NULL: the file has none */
	uint32_t crc;
};

enum place {
	PLACE_BUILD_ID,
	PLACE_BESIDE,
	PLACE_DEBUG_FOLDER,
	PLACE_BELOW_DEBUG_ROOT,
	PLACE_MAX,
};

/* .gnu_debuglink: a file name, NUL, padding to four bytes, the CRC-32 of the whole debug file. */
static struct debug_link read_debug_link(struct elf_file *file)
{
	struct debug_link link = {0};
	struct elf_bytes bytes;
	const char *name;
	size_t length, crc_at;

	if (!elf_file_section(file, ".gnu_debuglink", &bytes))
		return link;
	name = (const char *)bytes.bytes;
	length = strnlen(name, bytes.length);
	crc_at = (length + 4) & ~(size_t)3;
	if (length == 0 || crc_at + sizeof(link.crc) > bytes.length || memchr(name, '/', length) ||
		strcmp(name, "..") == 0)
		return link;
	memcpy(&link.crc, bytes.bytes + crc_at, sizeof(link.crc));
	link.name = name;
	return link;
}

static bool build_id_path(const struct debug_file_search *search, struct strbuf *ret_path)
{
	const struct build_id *id = elf_file_build_id(search->file);
	char hex[2 * BUILD_ID_MAX_BYTES + 1];

	if (id->length < 2)
		return false;
	build_id_to_hex(id, hex);
	strbuf_addf(ret_path, DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
	return true;
}

/* Appends the path of one place, inside the root; false when the file names none. */
static bool place_path(const struct debug_file_search *search, const struct debug_link *link,
	enum place place, struct strbuf *ret_path)
{
	const char *slash = search->path ? strrchr(search->path, '/') : NULL;
	int folder_length;

	strbuf_clear(ret_path);
	if (place == PLACE_BUILD_ID)
		return build_id_path(search, ret_path);
	if (!link->name || !slash)
		return false;
	folder_length = (int)(slash - search->path);
	if (place == PLACE_BELOW_DEBUG_ROOT && search->path[0] != '/')
		return false;
	strbuf_addf(ret_path, "%s%.*s/%s%s", place == PLACE_BELOW_DEBUG_ROOT ? DEBUG_ROOT : "",
		folder_length, search->path, place == PLACE_DEBUG_FOLDER ? ".debug/" : "",
		link->name);
	return true;
}

/* The checksum of the file as it was opened; false when it cannot be read to its end. */
static bool crc_matches(const struct elf_file *candidate, uint32_t crc)
{
	_cleanup_free_ uint8_t *block = malloc(CRC_BLOCK_BYTES);
	uint64_t length = elf_file_length(candidate), done = 0;
	uint32_t found = 0;

	while (block && done < length) {
		size_t part = MIN(length - done, (uint64_t)CRC_BLOCK_BYTES);

		if (!elf_file_read(candidate, done, block, part) || elf_file_status(candidate) < 0)
			return false;
		found = lzma_crc32(block, part, found);
		done += part;
	}
	return block && found == crc;
}

/* Build-ids decide where both files have one: comparing them is far cheaper than reading the file.
 */
static bool belongs_to(const struct debug_file_search *search, const struct debug_link *link,
	enum place place, const struct elf_file *candidate)
{
	const struct build_id *wanted = elf_file_build_id(search->file);
	const struct build_id *found = elf_file_build_id(candidate);

	if (wanted->length && found->length)
		return build_id_equal(wanted, found);
	return place != PLACE_BUILD_ID && crc_matches(candidate, link->crc);
}

/* ---- Opening ---- */

/*
 * The root, with the rights of who owns the file: that user chose the names and checksums by which
 * debug files are found.
 */
static int open_view(const struct debug_file_search *search, struct process_view *ret_view)
{
	struct process_view view = process_view_own();
	uid_t user = 0;
	gid_t group = 0;

	elf_file_owner(search->file, &user, &group);
	view.user = user;
	view.group = group;
	if (search->root[0]) {
		view.root = open(search->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (view.root < 0)
			return -errno;
	}
	*ret_view = view;
	return 0;
}

/* Distributions fill the folder below DEBUG_ROOT with links; beside a file there is no need. */
static int find_candidate(const struct process_view *view, enum place place, const char *path,
	struct stat *ret_status)
{
	bool is_system = place == PLACE_BUILD_ID || place == PLACE_BELOW_DEBUG_ROOT;
	_cleanup_close_ int found = process_view_find(
		view, path, is_system ? PROCESS_VIEW_LINKS : PROCESS_VIEW_NO_LINKS, ret_status);

	if (found < 0)
		return found;
	/* Who may name the file's functions: its owner and the system. */
	if (ret_status->st_uid != view->user && ret_status->st_uid != 0)
		return -EPERM;
	return TAKE_FD(found);
}

static int open_candidate(struct elf_file **ret_candidate, int *ret_fd,
	const struct process_view *view, enum place place, const char *path)
{
	struct stat status;
	_cleanup_close_ int found = find_candidate(view, place, path, &status);
	_cleanup_close_ int fd = found < 0 ? found : process_view_open_found(view, found);
	int result;

	if (fd < 0)
		return fd;
	result = elf_file_open_fd(ret_candidate, fd, path, NULL);
	if (result == 0)
		*ret_fd = TAKE_FD(fd);
	return result;
}

static int search_places(struct elf_file **ret_debug_file, int *ret_fd,
	const struct debug_file_search *search, const struct process_view *view,
	const char *section_name)
{
	struct debug_link link = read_debug_link(search->file);
	_cleanup_strbuf_ struct strbuf path = {0};

	for (enum place place = 0; place < PLACE_MAX; place++) {
		_cleanup_elf_file_ struct elf_file *candidate = NULL;
		_cleanup_close_ int fd = -1;

		if (!place_path(search, &link, place, &path))
			continue;
		if (strbuf_status(&path) < 0)
			return -ENOMEM;
		if (open_candidate(&candidate, &fd, view, place, path.data) < 0)
			continue;
		elf_file_limit_as(candidate, search->file);
		if (!elf_section_present(candidate, section_name) ||
			!belongs_to(search, &link, place, candidate))
			continue;
		*ret_debug_file = TAKE_PTR(candidate);
		if (ret_fd)
			*ret_fd = TAKE_FD(fd);
		return 0;
	}
	return -ENOENT;
}

int debug_file_open(struct elf_file **ret_debug_file, int *ret_fd,
	const struct debug_file_search *search, const char *section_name)
{
	struct process_view view = process_view_own();
	int result = open_view(search, &view);

	if (result < 0)
		return -ENOENT;
	result = search_places(ret_debug_file, ret_fd, search, &view, section_name);
	process_view_done(&view);
	return result;
}

uint64_t debug_file_fingerprint(const struct debug_file_search *search)
{
	struct debug_link link = read_debug_link(search->file);
	_cleanup_strbuf_ struct strbuf path = {0};
	struct process_view view = process_view_own();
	uint64_t fingerprint = 0;

	if (open_view(search, &view) < 0)
		return 0;
	for (enum place place = 0; place < PLACE_MAX; place++) {
		_cleanup_close_ int found = -1;
		struct stat status;
		uint64_t facts[7];

		if (!place_path(search, &link, place, &path) || strbuf_status(&path) < 0)
			continue;
		found = find_candidate(&view, place, path.data, &status);
		if (found < 0 || !S_ISREG(status.st_mode))
			continue;
		facts[0] = place;
		facts[1] = (uint64_t)status.st_size;
		facts[2] = (uint64_t)status.st_mtim.tv_sec;
		facts[3] = (uint64_t)status.st_mtim.tv_nsec;
		facts[4] = status.st_dev;
		facts[5] = status.st_ino;
		facts[6] = status.st_uid;
		fingerprint = hash_bytes(facts, sizeof(facts), fingerprint) | 1;
	}
	process_view_done(&view);
	return fingerprint;
}
