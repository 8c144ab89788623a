/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "base/file.h"

/* Linux 6.11, include/uapi/linux/fs.h; declared here because build machines have older headers. */
struct map_query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t start, end;
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t file_offset;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t name_size;
	uint32_t build_id_size;
	uint64_t name_address;
	uint64_t build_id_address;
};

_Static_assert(sizeof(struct map_query) == 104, "struct procmap_query is the kernel's");

#define MAP_QUERY                  _IOWR('f', 17, struct map_query)
#define MAP_QUERY_EXECUTABLE       0x04
#define MAP_QUERY_COVERING_OR_NEXT 0x10
#define MAX_MAPS_TEXT_BYTES        ((size_t)256 * 1024 * 1024)
/* One page at a fixed address in every process; the ioctl does not report it. */
#define VSYSCALL_START 0xffffffffff600000ULL

static int add_mapping(struct proc_maps *maps, struct proc_mapping mapping, const char *name)
{
	mapping.name_offset = maps->names.length;
	strbuf_add_bytes(&maps->names, name, strlen(name) + 1);
	if (strbuf_status(&maps->names) < 0)
		return -ENOMEM;
	return array_append(&maps->mappings, mapping);
}

static int open_maps(uint32_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/maps", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static int query_next(int fd, uint64_t address, struct map_query *query, char name[PATH_MAX],
	struct build_id *build_id)
{
	*query = (struct map_query){
		.size = sizeof(*query),
		.flags = MAP_QUERY_EXECUTABLE | MAP_QUERY_COVERING_OR_NEXT,
		.address = address,
		.name_size = PATH_MAX,
		.name_address = (uintptr_t)name,
		.build_id_size = sizeof(build_id->bytes),
		.build_id_address = (uintptr_t)build_id->bytes,
	};
	name[0] = '\0';
	if (ioctl(fd, MAP_QUERY, query) < 0)
		return -errno;
	if (!query->name_size)
		name[0] = '\0';
	build_id->length = (uint8_t)MIN(query->build_id_size, (uint32_t)sizeof(build_id->bytes));
	return 0;
}

static int query_all(struct proc_maps *maps, int fd)
{
	_cleanup_free_ char *name = malloc(PATH_MAX);
	struct map_query query;
	uint64_t address = 0;

	if (!name)
		return -ENOMEM;
	for (;; address = query.end) {
		struct proc_mapping mapping = {0};
		int error = query_next(fd, address, &query, name, &mapping.build_id);

		if (error == -ENOENT)
			return 0; /* none beyond */
		if (error < 0)
			return error;
		if (query.end <= address)
			return -EIO;
		mapping.start = query.start;
		mapping.end = query.end;
		mapping.file_offset = query.inode ? query.file_offset : 0;
		mapping.device = makedev(query.device_major, query.device_minor);
		mapping.inode = query.inode;
		error = add_mapping(maps, mapping, name);
		if (error < 0)
			return error;
	}
}

/* The kernel may map the vsyscall page into every process, or into none (vsyscall=none). */
static bool machine_has_vsyscall(void)
{
	static _Atomic int known; /* 0: not looked yet; two threads would find the same answer */
	_cleanup_strbuf_ struct strbuf text = {0};

	if (known == 0) {
		bool has = read_whole_file("/proc/self/maps", MAX_MAPS_TEXT_BYTES, &text) == 0 &&
			   strstr(strbuf_cstr(&text), "[vsyscall]");

		known = has ? 1 : -1;
	}
	return known > 0;
}

static int add_vsyscall(struct proc_maps *maps)
{
	struct proc_mapping page = {.start = VSYSCALL_START, .end = VSYSCALL_START + 4096};

	if (!maps->mappings.count || !machine_has_vsyscall())
		return 0;
	return add_mapping(maps, page, "[vsyscall]");
}

static void clear(struct proc_maps *maps)
{
	array_clear(&maps->mappings);
	strbuf_clear(&maps->names);
}

int proc_maps_read_by_query(struct proc_maps *maps, uint32_t tid)
{
	/*
	 * The descriptor holds the address space it was opened on. ESRCH says that it is gone: the
	 * process ran another program since and is asked again, or it has none (kernel threads,
	 * zombies).
	 */
	for (int attempt = 0; attempt < 2; attempt++) {
		_cleanup_close_ int fd = open_maps(tid);
		int error;

		if (fd < 0)
			return fd;
		clear(maps);
		error = query_all(maps, fd);
		if (error == 0)
			return add_vsyscall(maps);
		if (error != -ESRCH)
			return error;
	}
	clear(maps);
	return 0;
}

/* "start-end perms offset major:minor inode      path"; the path may be missing and may hold
 * blanks. */
static int parse_line(struct proc_maps *maps, const char *line)
{
	struct proc_mapping mapping = {0};
	unsigned device_major, device_minor;
	int path_offset = 0;
	char permissions[5] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		    &mapping.start, &mapping.end, permissions, &mapping.file_offset, &device_major,
		    &device_minor, &mapping.inode, &path_offset) < 7)
		return -EBADMSG;
	if (permissions[2] != 'x')
		return 0;
	mapping.device = makedev(device_major, device_minor);
	if (!mapping.inode)
		mapping.file_offset = 0;
	return add_mapping(maps, mapping, line + path_offset);
}

int proc_maps_add_text(struct proc_maps *maps, char *text)
{
	int error = 0;
	char *line;

	while (error == 0 && (line = strsep(&text, "\n"))) {
		if (*line)
			error = parse_line(maps, line);
	}
	return error;
}

int proc_maps_read_by_text(struct proc_maps *maps, uint32_t tid)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	char path[64];
	int error;

	clear(maps);
	snprintf(path, sizeof(path), "/proc/%u/maps", tid);
	error = read_whole_file(path, MAX_MAPS_TEXT_BYTES, &text);
	if (error < 0)
		return error == -ENOENT ? -ESRCH : error;
	return proc_maps_add_text(maps, text.data);
}

int proc_maps_read(struct proc_maps *maps, uint32_t tid)
{
	int error = proc_maps_read_by_query(maps, tid);

	/* ENAMETOOLONG: a path beyond PATH_MAX, which only the text can show. */
	if (error == -ENOTTY || error == -ENAMETOOLONG)
		error = proc_maps_read_by_text(maps, tid);
	return error;
}

void proc_maps_done(struct proc_maps *maps)
{
	array_done(&maps->mappings);
	strbuf_done(&maps->names);
}
