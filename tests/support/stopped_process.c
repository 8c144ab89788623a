/* SPDX-License-Identifier: Apache-2.0 */
#include "stopped_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "elf_path.h"
#include "unwind/build.h"

/* Once per path and inode, kept over stops. */
struct known_file {
	char *path;
	uint64_t inode;
	struct elf_file *elf; /* NULL: not an ELF file, code made at run time */
	uint8_t *image;       /* the vDSO's bytes */
	struct unwind_table table;
};

struct executable_mapping {
	uint64_t start, end, bias;
	size_t file;
};

struct stopped_process {
	pid_t pid;
	int memory_fd;
	ARRAY_OF(pid_t) threads; /* seized and stopped */
	ARRAY_OF(struct known_file) files;
	ARRAY_OF(struct executable_mapping) mappings;
	struct unwind_target target;
};

static int read_memory(
	const struct stopped_process *process, uint64_t address, void *bytes, size_t length)
{
	ssize_t got = pread(process->memory_fd, bytes, length, (off_t)address);

	return got == (ssize_t)length ? 0 : -EFAULT;
}

static int read_u64(void *context, uint64_t address, uint64_t *ret_value)
{
	return read_memory(context, address, ret_value, sizeof(*ret_value));
}

static const struct executable_mapping *find_mapping(
	const struct stopped_process *process, uint64_t address)
{
	array_foreach (&process->mappings, mapping)
		if (address >= mapping->start && address < mapping->end)
			return mapping;
	return NULL;
}

static bool locate(void *context, uint64_t address, struct unwind_location *ret_location)
{
	const struct stopped_process *process = context;
	const struct executable_mapping *mapping = find_mapping(process, address);
	const struct known_file *file;

	if (!mapping)
		return false;
	file = &process->files.items[mapping->file];
	*ret_location = (struct unwind_location){.table = file->table.words,
		.table_word_count = file->table.word_count,
		.bias = mapping->bias,
		.frame_pointer = !file->elf};
	return true;
}

int stopped_process_open(struct stopped_process **ret_process, pid_t pid, struct errmsg *err)
{
	_cleanup_stopped_process_ struct stopped_process *process = calloc(1, sizeof(*process));
	char path[64];

	if (!process)
		return errmsg_set(err, -ENOMEM, "cannot stop process %d: out of memory", pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	process->pid = pid;
	process->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (process->memory_fd < 0)
		return errmsg_set(err, -errno,
			"cannot read the memory of process %d: %s; run as its owner or as root",
			pid, strerror(errno));
	process->target =
		(struct unwind_target){.context = process, .read_u64 = read_u64, .locate = locate};
	*ret_process = TAKE_PTR(process);
	return 0;
}

struct stopped_process *stopped_process_free(struct stopped_process *process)
{
	if (!process)
		return NULL;
	stopped_process_resume(process);
	array_foreach (&process->files, file) {
		unwind_table_done(&file->table);
		elf_file_free(file->elf);
		free(file->image);
		free(file->path);
	}
	array_done(&process->files);
	array_done(&process->mappings);
	array_done(&process->threads);
	closep(&process->memory_fd);
	free(process);
	return NULL;
}

void stopped_process_freep(struct stopped_process **process)
{
	*process = stopped_process_free(*process);
}

static bool is_stopped(const struct stopped_process *process, pid_t tid)
{
	array_foreach (&process->threads, thread)
		if (*thread == tid)
			return true;
	return false;
}

/* Returns 1 when the thread was stopped, 0 when it is gone, or a negative errno. */
static int stop_thread(struct stopped_process *process, pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return errno == ESRCH ? 0 : -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) < 0)
		return errno == ESRCH ? 0 : -errno;
	if (!WIFSTOPPED(status))
		return 0;
	return array_append(&process->threads, tid) < 0 ? -ENOMEM : 1;
}

/* One pass over the threads. Returns the number newly stopped, or a negative errno. */
static int stop_listed_threads(struct stopped_process *process)
{
	struct dirent *entry;
	char path[64];
	int stopped = 0, result = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	tasks = opendir(path);
	if (!tasks)
		return -errno;
	while (result >= 0 && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || is_stopped(process, tid))
			continue;
		result = stop_thread(process, tid);
		stopped += result > 0;
	}
	closedir(tasks);
	return result < 0 ? result : stopped;
}

/* Where the address of a vDSO counts from: its image as the process sees it. */
static int open_vdso(
	struct stopped_process *process, struct known_file *file, uint64_t start, uint64_t end)
{
	file->image = malloc(end - start);
	if (!file->image)
		return -ENOMEM;
	if (read_memory(process, start, file->image, end - start) < 0)
		return -EFAULT;
	return elf_file_open_memory(&file->elf, file->image, end - start, file->path, NULL);
}

/* What cannot be opened as ELF stays without: the mapping then holds code made at run time. */
static int add_file(struct stopped_process *process, const char *path, uint64_t inode,
	uint64_t start, uint64_t end)
{
	struct known_file file = {.path = strdup(path), .inode = inode};
	char map_file[96];

	if (!file.path || array_reserve(&process->files, 1) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	snprintf(map_file, sizeof(map_file), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		process->pid, start, end);
	if (strcmp(path, "[vdso]") == 0)
		open_vdso(process, &file, start, end);
	else if (inode && open_elf(&file.elf, map_file, path, NULL) < 0)
		open_elf(&file.elf, path, path, NULL);
	if (file.elf && unwind_table_build(&file.table, file.elf, NULL, NULL) < 0)
		file.elf = elf_file_free(file.elf);
	process->files.items[process->files.count++] = file;
	return 0;
}

static int find_or_add_file(struct stopped_process *process, const char *path, uint64_t inode,
	uint64_t start, uint64_t end, size_t *ret_index)
{
	for (size_t i = 0; i < process->files.count; i++) {
		const struct known_file *file = &process->files.items[i];

		if (file->inode != inode || strcmp(file->path, path) != 0)
			continue;
		*ret_index = i;
		return 0;
	}
	*ret_index = process->files.count;
	return add_file(process, path, inode, start, end);
}

/* True when a page of the segment's file bytes holds the offset. */
static bool segment_maps_offset(const struct elf_segment *segment, uint64_t file_offset)
{
	uint64_t first = segment->file_offset & ~(uint64_t)4095;
	uint64_t end = segment->file_offset + segment->file_size;

	return segment->file_size && file_offset >= first &&
	       (file_offset < end || file_offset - end < (-end & 4095));
}

/* Executable segments win: a page of the file may be mapped twice. */
static bool find_vaddr(const struct elf_file *file, uint64_t file_offset, uint64_t *ret_vaddr)
{
	const struct elf_segment *found = NULL;

	for (size_t i = 0; i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);

		if (segment_maps_offset(segment, file_offset) &&
			(!found || (segment->executable && !found->executable)))
			found = segment;
	}
	if (found)
		*ret_vaddr = file_offset - found->file_offset + found->vaddr;
	return found != NULL;
}

static int add_mapping(struct stopped_process *process, const char *line)
{
	struct executable_mapping mapping;
	uint64_t offset, inode, vaddr;
	int path_at = 0, result;
	const struct known_file *file;
	char permissions[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
		    &mapping.start, &mapping.end, permissions, &offset, &inode, &path_at) != 5 ||
		permissions[2] != 'x')
		return 0;
	result = find_or_add_file(
		process, line + path_at, inode, mapping.start, mapping.end, &mapping.file);
	if (result < 0)
		return result;
	file = &process->files.items[mapping.file];
	mapping.bias = mapping.start;
	if (file->elf && find_vaddr(file->elf, offset, &vaddr))
		mapping.bias = mapping.start - vaddr;
	return array_append(&process->mappings, mapping);
}

static int read_mappings(struct stopped_process *process)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	char path[64], *line, *rest;
	int result;

	array_clear(&process->mappings);
	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	result = read_whole_file(path, (size_t)1 << 30, &text);
	rest = text.data;
	while (result >= 0 && (line = strsep(&rest, "\n")) && *line)
		result = add_mapping(process, line);
	return result;
}

int stopped_process_stop(struct stopped_process *process, struct errmsg *err)
{
	int result;

	/* Threads may be born while the list is read: the last pass must find none. */
	while ((result = stop_listed_threads(process)) > 0)
		;
	if (result == 0 && process->threads.count == 0)
		result = -ESRCH;
	if (result == 0)
		result = read_mappings(process);
	if (result < 0)
		return errmsg_set(
			err, result, "cannot stop process %d: %s", process->pid, strerror(-result));
	return 0;
}

void stopped_process_resume(struct stopped_process *process)
{
	array_foreach (&process->threads, thread)
		ptrace(PTRACE_DETACH, *thread, NULL, NULL);
	array_clear(&process->threads);
}

size_t stopped_process_thread_count(const struct stopped_process *process)
{
	return process->threads.count;
}

pid_t stopped_process_thread(const struct stopped_process *process, size_t index)
{
	return process->threads.items[index];
}

int stopped_process_registers(pid_t tid, struct wire_stack_copy *ret_registers)
{
	struct user_regs_struct user;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &user) < 0)
		return -errno;
	*ret_registers = (struct wire_stack_copy){.pc = user.rip,
		.sp = user.rsp,
		.fp = user.rbp,
		.second = user.rbx,
		.leaf = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp,
			user.rsp, user.r8, user.r9, user.r10, user.r11, user.r12, user.r13,
			user.r14, user.r15}};
	return 0;
}

const struct unwind_target *stopped_process_target(const struct stopped_process *process)
{
	return &process->target;
}

bool stopped_process_describe(const struct stopped_process *process, uint64_t address,
	const char **ret_path, uint64_t *ret_vaddr)
{
	const struct executable_mapping *mapping = find_mapping(process, address);

	if (!mapping)
		return false;
	*ret_path = process->files.items[mapping->file].path;
	*ret_vaddr = address - mapping->bias;
	return true;
}
