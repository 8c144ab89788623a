/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: made-up events against the rules, reading /proc, opening mapped files. A real
 * process tree is followed in test-address-space-live.c.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "address-space-mirror.h"
#include "base/array.h"
#include "base/file.h"
#include "sources/process/proc_maps.h"

#define PAGE 4096UL
/* Beyond every pid that Linux gives: what the tests make up never meets a real process. */
#define PID (8u << 20)

struct fixture {
	struct mirror mirror;
	struct address_spaces *spaces;
	uint64_t now_ns;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct address_space_listener listener;

	if (!fixture)
		return -1;
	listener = mirror_listener(&fixture->mirror);
	fixture->now_ns = monotonic_now_ns();
	*state = fixture;
	return address_spaces_new(&fixture->spaces, &listener);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	address_spaces_free(fixture->spaces);
	array_done(&fixture->mirror.mappings);
	free(fixture);
	return 0;
}

/* ---- made-up events ---- */

static void apply(struct fixture *fixture, struct sideband_event event)
{
	if (!event.time_ns)
		event.time_ns = ++fixture->now_ns;
	if (!event.tid)
		event.tid = event.pid;
	assert_int_equal(address_spaces_apply(fixture->spaces, &event, false), 0);
}

static void apply_map(struct fixture *fixture, uint32_t pid, uint64_t start, uint64_t length,
	const char *path, uint64_t inode)
{
	apply(fixture, (struct sideband_event){.type = SIDEBAND_MMAP,
			       .pid = pid,
			       .address = start,
			       .length = length,
			       .file_offset = 0x1000,
			       .inode = inode,
			       .name = path});
}

static void apply_fork(struct fixture *fixture, uint32_t parent, uint32_t pid)
{
	apply(fixture,
		(struct sideband_event){.type = SIDEBAND_FORK, .pid = pid, .parent_pid = parent});
}

static void apply_exec(struct fixture *fixture, uint32_t pid, const char *name)
{
	apply(fixture, (struct sideband_event){
			       .type = SIDEBAND_COMM, .pid = pid, .name = name, .is_exec = true});
}

static void apply_exit(struct fixture *fixture, uint32_t pid, uint32_t tid)
{
	apply(fixture, (struct sideband_event){.type = SIDEBAND_EXIT, .pid = pid, .tid = tid});
}

static const char *path_at(struct fixture *fixture, uint32_t pid, uint64_t address)
{
	const struct process *process = address_spaces_find(fixture->spaces, pid);
	const struct mapping *mapping = process ? process_find_mapping(process, address) : NULL;

	return mapping ? address_spaces_file(fixture->spaces, mapping->file)->path : "";
}

static void test_newer_mappings_cut_older_ones(void **state)
{
	struct fixture *fixture = *state;
	const struct process *process;
	uint64_t generation;

	apply_map(fixture, PID, 0x10000, 0x10000, "/a", 1);
	apply_map(fixture, PID, 0x14000, 0x2000, "/b", 2); /* into its middle */
	process = address_spaces_find(fixture->spaces, PID);
	assert_int_equal(process->mapping_count, 3);
	assert_string_equal(path_at(fixture, PID, 0x13fff), "/a");
	assert_string_equal(path_at(fixture, PID, 0x14000), "/b");
	assert_string_equal(path_at(fixture, PID, 0x16000), "/a");
	assert_int_equal(process_find_mapping(process, 0x16000)->file_offset, 0x7000);
	assert_null(process_find_mapping(process, 0xffff));
	assert_null(process_find_mapping(process, 0x20000));
	assert_true(mirror_equals(&fixture->mirror, process));

	generation = process->generation;
	apply_map(fixture, PID, 0x14000, 0x2000, "/b", 2); /* nothing new */
	assert_int_equal(process->generation, generation);

	apply_map(fixture, PID, 0xf000, 0x8000, "/c", 3); /* over two and the head of the third */
	assert_int_equal(process->mapping_count, 2);
	assert_string_equal(path_at(fixture, PID, 0x17000), "/a");
	assert_int_equal(process_find_mapping(process, 0x17000)->file_offset, 0x8000);
	apply_map(fixture, PID, 0x1f000, 0x2000, "/c", 3); /* over the tail */
	assert_string_equal(path_at(fixture, PID, 0x1efff), "/a");
	assert_string_equal(path_at(fixture, PID, 0x1f000), "/c");
	assert_true(process->generation > generation);
	assert_true(mirror_equals(&fixture->mirror, process));
}

static void test_broken_lengths_are_ignored(void **state)
{
	struct fixture *fixture = *state;

	apply_map(fixture, PID, 0x10000, 0, "/a", 1);
	apply_map(fixture, PID, UINT64_MAX - 0xfff, 0x2000, "/a", 1);
	assert_int_equal(address_spaces_find(fixture->spaces, PID)->mapping_count, 0);
	apply_map(fixture, 0, 0x10000, 0x1000, "/a", 1);
	apply_map(fixture, UINT32_MAX, 0x10000, 0x1000, "/a", 1);
	assert_null(address_spaces_find(fixture->spaces, 0));
	assert_null(address_spaces_find(fixture->spaces, UINT32_MAX));
}

static void test_life_of_a_process(void **state)
{
	struct fixture *fixture = *state;
	const struct process *child;

	apply_map(fixture, PID, 0x10000, 0x10000, "/a", 1);
	apply_fork(fixture, PID, PID); /* a thread */
	assert_int_equal(fixture->mirror.forked, 0);
	apply_fork(fixture, PID, PID + 1);
	child = address_spaces_find(fixture->spaces, PID + 1);
	assert_non_null(child);
	assert_int_equal(child->parent_pid, PID);
	assert_int_equal(fixture->mirror.forked, 1);
	assert_string_equal(path_at(fixture, PID + 1, 0x10000), "/a");
	assert_true(mirror_equals(&fixture->mirror, child));

	apply_exec(fixture, PID + 1, "other");
	assert_int_equal(child->exec_count, 1);
	assert_string_equal(child->name, "other");
	assert_int_equal(child->mapping_count, 0);
	assert_string_equal(path_at(fixture, PID, 0x10000), "/a");
	apply_map(fixture, PID + 1, 0x10000, 0x1000, "/other", 9);
	apply(fixture,
		(struct sideband_event){.type = SIDEBAND_COMM, .pid = PID + 1, .name = "renamed"});
	assert_string_equal(child->name, "renamed");
	apply(fixture,
		(struct sideband_event){
			.type = SIDEBAND_COMM, .pid = PID + 1, .tid = PID + 2, .name = "thread"});
	assert_string_equal(child->name, "renamed");

	apply_exit(fixture, PID + 1, PID + 2); /* a thread */
	assert_false(child->exited);
	apply_exit(fixture, PID + 1, PID + 1);
	assert_true(child->exited);
	assert_int_equal(child->exited_ns, fixture->now_ns);
	assert_string_equal(path_at(fixture, PID + 1, 0x10000), "/other");
	address_spaces_forget_exited(fixture->spaces, fixture->now_ns);
	assert_non_null(address_spaces_find(fixture->spaces, PID + 1));
	address_spaces_forget_exited(fixture->spaces, fixture->now_ns + 1);
	assert_null(address_spaces_find(fixture->spaces, PID + 1));
	assert_int_equal(fixture->mirror.cleared, 2);
	assert_true(mirror_equals(&fixture->mirror, address_spaces_find(fixture->spaces, PID)));
}

static void test_pid_is_used_again(void **state)
{
	struct fixture *fixture = *state;

	apply_map(fixture, PID, 0x10000, 0x1000, "/a", 1);
	apply_fork(fixture, PID, PID + 1);
	apply_map(fixture, PID + 1, 0x20000, 0x1000, "/b", 2);
	apply_exit(fixture, PID + 1, PID + 1);
	apply_fork(fixture, PID, PID + 1);
	assert_false(address_spaces_find(fixture->spaces, PID + 1)->exited);
	assert_string_equal(path_at(fixture, PID + 1, 0x20000), "");
	assert_string_equal(path_at(fixture, PID + 1, 0x10000), "/a");
	/* The first one's end does not take the second with it. */
	address_spaces_forget_exited(fixture->spaces, fixture->now_ns + 1);
	assert_non_null(address_spaces_find(fixture->spaces, PID + 1));
	assert_true(mirror_equals(&fixture->mirror, address_spaces_find(fixture->spaces, PID + 1)));
}

static void test_only_descendants(void **state)
{
	struct fixture *fixture = *state;
	struct sideband_event map = {.type = SIDEBAND_MMAP,
		.time_ns = fixture->now_ns + 10,
		.address = 0x1000,
		.length = 0x1000,
		.inode = 1,
		.name = "/a"};
	struct sideband_event fork_event = {.type = SIDEBAND_FORK, .time_ns = fixture->now_ns + 11};

	map.pid = map.tid = PID;
	assert_int_equal(address_spaces_apply(fixture->spaces, &map, true), 0);
	assert_null(address_spaces_find(fixture->spaces, PID));
	fork_event.parent_pid = PID;
	fork_event.pid = fork_event.tid = PID + 1;
	assert_int_equal(address_spaces_apply(fixture->spaces, &fork_event, true), 0);
	assert_null(address_spaces_find(fixture->spaces, PID + 1));
	assert_int_equal(address_spaces_apply(fixture->spaces, &map, false), 0);
	assert_int_equal(address_spaces_apply(fixture->spaces, &fork_event, true), 0);
	assert_non_null(address_spaces_find(fixture->spaces, PID + 1));
}

/* What was read from /proc includes all that happened before. */
static void test_events_from_before_reading_change_nothing(void **state)
{
	struct fixture *fixture = *state;
	uint32_t self = (uint32_t)getpid();
	uint64_t before_ns = fixture->now_ns;
	const struct process *process;
	size_t count;

	assert_int_equal(address_spaces_add_process(fixture->spaces, self, NULL), 0);
	process = address_spaces_find(fixture->spaces, self);
	count = process->mapping_count;
	assert_true(count > 2);
	apply(fixture, (struct sideband_event){.type = SIDEBAND_COMM,
			       .pid = self,
			       .time_ns = before_ns,
			       .name = "old",
			       .is_exec = true});
	apply(fixture,
		(struct sideband_event){.type = SIDEBAND_EXIT, .pid = self, .time_ns = before_ns});
	apply(fixture, (struct sideband_event){.type = SIDEBAND_MMAP,
			       .pid = self,
			       .time_ns = before_ns,
			       .address = 0x10000,
			       .length = 0x1000,
			       .inode = 1,
			       .name = "/old"});
	assert_int_equal(process->mapping_count, count);
	assert_int_equal(process->exec_count, 0);
	assert_false(process->exited);
	assert_non_null(process->cmdline);
	assert_int_equal(process->parent_pid, getppid());
}

static uint32_t file_at(struct fixture *fixture, uint32_t pid, uint64_t address)
{
	const struct process *process = address_spaces_find(fixture->spaces, pid);

	return process_find_mapping(process, address)->file;
}

static void map_file(struct fixture *fixture, uint64_t start, struct sideband_event file)
{
	file.type = SIDEBAND_MMAP;
	file.pid = PID;
	file.address = start;
	file.length = 0x1000;
	apply(fixture, file);
}

static void test_identity_of_files(void **state)
{
	struct fixture *fixture = *state;
	struct build_id one = {.length = 20, .bytes = {1}}, two = {.length = 20, .bytes = {2}};
	struct sideband_event a = {.name = "/a", .device = 5, .inode = 7, .inode_generation = 1};
	struct sideband_event other_generation = a, deleted = a, other_device = a;
	struct sideband_event by_id = {.name = "/b", .build_id = one}, other_id = by_id;

	other_generation.inode_generation = 2;
	deleted.name = "/a (deleted)";
	other_device.device = 6;
	other_id.build_id = two;
	map_file(fixture, 0x1000, a);
	map_file(fixture, 0x2000, deleted);
	map_file(fixture, 0x3000, other_generation);
	map_file(fixture, 0x4000, other_device);
	map_file(fixture, 0x5000, by_id);
	map_file(fixture, 0x6000, by_id);
	map_file(fixture, 0x7000, other_id);
	assert_int_equal(file_at(fixture, PID, 0x1000), file_at(fixture, PID, 0x2000));
	assert_int_not_equal(file_at(fixture, PID, 0x1000), file_at(fixture, PID, 0x3000));
	assert_int_not_equal(file_at(fixture, PID, 0x1000), file_at(fixture, PID, 0x4000));
	assert_int_equal(file_at(fixture, PID, 0x5000), file_at(fixture, PID, 0x6000));
	assert_int_not_equal(file_at(fixture, PID, 0x5000), file_at(fixture, PID, 0x7000));
	assert_int_equal(fixture->mirror.files, 5);
	assert_null(address_spaces_file(fixture->spaces, 5));
}

static void test_kinds_of_mappings(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *name;
		uint64_t inode;
		enum mapping_kind kind;
	} cases[] = {
		{"/usr/lib/x.so", 1, MAPPING_FILE},
		{"[vdso]", 0, MAPPING_VDSO},
		{"[uprobes]", 0, MAPPING_UPROBES},
		{"[vsyscall]", 0, MAPPING_VSYSCALL},
		{"//anon", 0, MAPPING_ANONYMOUS},
		{"", 0, MAPPING_ANONYMOUS},
		{"[anon:v8]", 0, MAPPING_ANONYMOUS},
		{"[heap]", 0, MAPPING_ANONYMOUS},
		{"/dev/zero (deleted)", 2, MAPPING_ANONYMOUS},
		{"/memfd:jit (deleted)", 3, MAPPING_ANONYMOUS},
		{"/SYSV00000000 (deleted)", 4, MAPPING_ANONYMOUS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct process *process;

		apply_map(fixture, PID, 0x1000 * (i + 1), 0x1000, cases[i].name, cases[i].inode);
		process = address_spaces_find(fixture->spaces, PID);
		assert_int_equal(
			process_find_mapping(process, 0x1000 * (i + 1))->kind, cases[i].kind);
	}
	/* The vDSO is one file for all. */
	apply_map(fixture, PID + 1, 0x70000, 0x1000, "[vdso]", 0);
	assert_int_equal(file_at(fixture, PID, 0x2000), file_at(fixture, PID + 1, 0x70000));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHEAP_NS (20 * NS_PER_S)
#else
#define CHEAP_NS (2 * NS_PER_S)
#endif

static uint64_t own_cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void test_many_processes_and_threads_are_cheap(void **state)
{
	struct fixture *fixture = *state;
	uint64_t started_ns = own_cpu_time_ns();

	fixture->now_ns += 3600 * NS_PER_S;
	for (uint64_t i = 0; i < 10; i++)
		apply_map(fixture, PID, 0x10000 * (i + 1), 0x1000, "/a", i + 1);
	address_spaces_free(fixture->spaces); /* the mirror is not made for this */
	assert_int_equal(address_spaces_new(&fixture->spaces, NULL), 0);
	for (uint64_t i = 0; i < 10; i++)
		apply_map(fixture, PID, 0x10000 * (i + 1), 0x1000, "/a", i + 1);
	for (uint32_t i = 1; i <= 10000; i++) {
		apply_fork(fixture, PID, PID + i);
		apply_exec(fixture, PID + i, "x");
		apply_map(fixture, PID + i, 0x10000, 0x1000, "/x", 77);
		apply_exit(fixture, PID + i, PID + i);
		address_spaces_forget_exited(fixture->spaces, fixture->now_ns - 4000);
	}
	for (uint32_t i = 1; i <= 5000; i++)
		apply(fixture, (struct sideband_event){.type = SIDEBAND_FORK,
				       .pid = PID,
				       .parent_pid = PID,
				       .tid = PID + 20000 + i});
	for (uint32_t i = 1; i <= 5000; i++)
		apply_exit(fixture, PID, PID + 20000 + i);
	assert_false(address_spaces_find(fixture->spaces, PID)->exited);
	assert_true(own_cpu_time_ns() - started_ns < CHEAP_NS);
}

/* ---- /proc ---- */

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static void assert_same_maps(const struct proc_maps *a, const struct proc_maps *b)
{
	assert_int_equal(a->mappings.count, b->mappings.count);
	for (size_t i = 0; i < a->mappings.count; i++) {
		const struct proc_mapping *x = &a->mappings.items[i], *y = &b->mappings.items[i];

		assert_int_equal(x->start, y->start);
		assert_int_equal(x->end, y->end);
		assert_int_equal(x->file_offset, y->file_offset);
		assert_int_equal(x->inode, y->inode);
		assert_int_equal(x->device, y->device);
		assert_string_equal(proc_mapping_name(a, x), proc_mapping_name(b, y));
	}
}

static void test_both_ways_to_read_maps_agree(void **state)
{
	struct proc_maps by_query = {0}, by_text = {0};
	uint32_t pids[] = {(uint32_t)getpid(), (uint32_t)getppid()};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		int error = proc_maps_read_by_query(&by_query, pids[i]);

		if (error == -ENOTTY) {
			print_message("skipped: no PROCMAP_QUERY before Linux 6.11\n");
			skip();
		}
		if (i && error == -EACCES)
			continue; /* another user's process */
		assert_int_equal(error, 0);
		assert_int_equal(proc_maps_read_by_text(&by_text, pids[i]), 0);
		assert_true(by_text.mappings.count > 2);
		assert_same_maps(&by_query, &by_text);
	}
	assert_int_equal(proc_maps_read(&by_text, PID), -ESRCH);
	proc_maps_done(&by_query);
	proc_maps_done(&by_text);
}

static void test_unknown_processes_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct errmsg err = {0};

	assert_int_equal(address_spaces_add_process(fixture->spaces, PID, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has ended"));
	assert_int_equal(address_spaces_add_tree(fixture->spaces, PID, &err), -ESRCH);
}

static pid_t fork_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

static void test_tree_and_all(void **state)
{
	struct fixture *fixture = *state;
	int ready[2], grandchild = 0, found = 0;
	size_t position = 0;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		pid_t sleeper = fork_sleeper();

		if (write(ready[1], &sleeper, sizeof(sleeper)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	assert_int_equal(address_spaces_add_tree(fixture->spaces, (uint32_t)child, NULL), 0);
	assert_non_null(address_spaces_find(fixture->spaces, (uint32_t)child));
	assert_non_null(address_spaces_find(fixture->spaces, (uint32_t)grandchild));
	assert_null(address_spaces_find(fixture->spaces, (uint32_t)getpid()));
	while (address_spaces_next(fixture->spaces, &position))
		found++;
	assert_int_equal(found, 2);

	/* Lost events: who is gone has exited, who is unseen is found. */
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	apply(fixture, (struct sideband_event){
			       .type = SIDEBAND_LOST, .lost = 1, .time_ns = monotonic_now_ns()});
	assert_true(address_spaces_find(fixture->spaces, (uint32_t)child)->exited);
	assert_non_null(address_spaces_find(fixture->spaces, (uint32_t)getpid()));
	close(ready[0]);
	close(ready[1]);
}

static void *map_executable(int fd, size_t length)
{
	void *mapped = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(mapped, MAP_FAILED);
	return mapped;
}

static void test_memfd_is_jit_code_or_a_library(void **state)
{
	struct fixture *fixture = *state;
	int jit = memfd_create("jit", MFD_CLOEXEC), library = memfd_create("library", MFD_CLOEXEC);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint32_t pid = (uint32_t)getpid();
	const struct process *process;
	char head[PAGE];
	void *jit_code, *library_code;

	skip_unless_root(); /* map_files */
	assert_int_equal(read(self, head, sizeof(head)), sizeof(head));
	assert_int_equal(ftruncate(jit, PAGE), 0);
	assert_int_equal(write(library, head, sizeof(head)), sizeof(head));
	jit_code = map_executable(jit, PAGE);
	library_code = map_executable(library, PAGE);
	assert_int_equal(address_spaces_add_process(fixture->spaces, pid, NULL), 0);
	process = address_spaces_find(fixture->spaces, pid);
	assert_int_equal(
		process_find_mapping(process, (uintptr_t)jit_code)->kind, MAPPING_ANONYMOUS);
	assert_int_equal(
		process_find_mapping(process, (uintptr_t)library_code)->kind, MAPPING_FILE);
	munmap(jit_code, PAGE);
	munmap(library_code, PAGE);
	close(jit);
	close(library);
	close(self);
}

/* ---- opening mapped files ---- */

static int write_temporary(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0644), 0);
	return fd;
}

static void test_opens_the_file_that_was_mapped(void **state)
{
	char path[] = "/tmp/sonde-mapped-XXXXXX", other[] = "/tmp/sonde-other-XXXXXX", text[8] = "";
	int fd = write_temporary(path, "old"), opened;
	void *mapped = map_executable(fd, PAGE);
	struct mapped_file file = {.path = path, .kind = MAPPING_FILE, .pid = (uint32_t)getpid()};
	struct errmsg err = {0};
	struct stat status;

	(void)state;
	assert_int_equal(fstat(fd, &status), 0);
	file.device = status.st_dev;
	file.inode = status.st_ino;
	opened = mapped_file_open(&file, &err); /* no range: by path */
	assert_true(opened >= 0);
	close(opened);
	file.pid = PID; /* gone */
	opened = mapped_file_open(&file, &err);
	assert_true(opened >= 0);
	close(opened);
	file.pid = (uint32_t)getpid();

	close(write_temporary(other, "new"));
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(mapped_file_open(&file, &err), -ESTALE);
	assert_non_null(strstr(err.text, "replaced"));
	file.start = (uintptr_t)mapped;
	file.end = file.start + PAGE;
	if (geteuid() == 0) { /* map_files still has the old one */
		opened = mapped_file_open(&file, &err);
		assert_true(opened >= 0);
		assert_int_equal(read(opened, text, sizeof(text) - 1), 3);
		assert_string_equal(text, "old");
		close(opened);
	}
	unlink(path);
	file.start = file.end = 0;
	assert_int_equal(mapped_file_open(&file, &err), -ENOENT);
	file.kind = MAPPING_VDSO;
	assert_true(mapped_file_open(&file, &err) < 0);
	munmap(mapped, PAGE);
	close(fd);
}

/* A file of which the kernel told only the build-id. */
static void test_opens_by_build_id(void **state)
{
	struct fixture *fixture = *state;
	uint32_t pid = (uint32_t)getpid();
	const struct process *process;
	struct mapped_file file;
	struct errmsg err = {0};
	int opened;

	assert_int_equal(address_spaces_add_process(fixture->spaces, pid, &err), 0);
	process = address_spaces_find(fixture->spaces, pid);
	file = *address_spaces_file(
		fixture->spaces, process_find_mapping(process, (uintptr_t)mapped_file_open)->file);
	if (!file.build_id.length) {
		print_message("skipped: the kernel tells no build-id\n");
		skip();
	}
	file.device = file.inode = file.start = file.end = 0;
	opened = mapped_file_open(&file, &err);
	assert_true(opened >= 0);
	close(opened);
	file.build_id.bytes[0] ^= 1;
	assert_int_equal(mapped_file_open(&file, &err), -ESTALE);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_newer_mappings_cut_older_ones),
		WITH_FIXTURE(test_broken_lengths_are_ignored),
		WITH_FIXTURE(test_life_of_a_process),
		WITH_FIXTURE(test_pid_is_used_again),
		WITH_FIXTURE(test_only_descendants),
		WITH_FIXTURE(test_events_from_before_reading_change_nothing),
		WITH_FIXTURE(test_identity_of_files),
		WITH_FIXTURE(test_kinds_of_mappings),
		WITH_FIXTURE(test_many_processes_and_threads_are_cheap),
		cmocka_unit_test(test_both_ways_to_read_maps_agree),
		WITH_FIXTURE(test_unknown_processes_are_refused),
		WITH_FIXTURE(test_tree_and_all),
		WITH_FIXTURE(test_memfd_is_jit_code_or_a_library),
		cmocka_unit_test(test_opens_the_file_that_was_mapped),
		WITH_FIXTURE(test_opens_by_build_id),
	};

	return cmocka_run_group_tests_name("address-space", tests, NULL, NULL);
}
