/* SPDX-License-Identifier: Apache-2.0 */
/* A child maps, forks and runs programs at random; side-band events keep us in step with what /proc
 * says of it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "address-space-mirror.h"
#include "sources/process/proc_maps.h"

#define NOBODY      65534
#define PAGE        4096UL
#define ARENA_PAGES 64
#define STEPS       40

struct actor {
	int commands, replies;
	unsigned seed;
	char *arena;
	int file;
};

/* An arena in which nobody else maps anything. */
static int set_up_actor(struct actor *actor)
{
	actor->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	actor->arena = mmap(NULL, ARENA_PAGES * PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return actor->file >= 0 && actor->arena != MAP_FAILED ? 0 : -1;
}

static void change_mapping(struct actor *actor)
{
	size_t first = (size_t)rand_r(&actor->seed) % (ARENA_PAGES - 1);
	size_t count = 1 + (size_t)rand_r(&actor->seed) % MIN((size_t)8, ARENA_PAGES - first);
	char *address = actor->arena + first * PAGE;

	switch (rand_r(&actor->seed) % 6) {
	case 0:
		mmap(address, count * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			actor->file, (off_t)(rand_r(&actor->seed) % 4 * (int)PAGE));
		break;
	case 1:
		mmap(address, count * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 2:
		mmap(address, count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			0);
		break;
	case 3:
		mprotect(address, count * PAGE, PROT_READ | PROT_WRITE);
		break;
	case 4:
		mprotect(address, count * PAGE, PROT_READ | PROT_EXEC);
		break;
	default:
		dlopen("libresolv.so.2", RTLD_NOW);
	}
}

static _Noreturn void run_again(const struct actor *actor)
{
	char commands[16], replies[16], seed[16];

	snprintf(commands, sizeof(commands), "%d", actor->commands);
	snprintf(replies, sizeof(replies), "%d", actor->replies);
	snprintf(seed, sizeof(seed), "%u", actor->seed);
	execl("/proc/self/exe", "test-address-space", "act", commands, replies, seed, NULL);
	_exit(127);
}

/* 'm' changes mappings, 'f' forks and the child goes on, 'x' runs the program again, end of input
 * ends. */
static int act(struct actor *actor)
{
	uint32_t pid = (uint32_t)getpid();
	char command;

	if (set_up_actor(actor) < 0 || write(actor->replies, &pid, sizeof(pid)) < 0)
		return 1;
	while (read(actor->commands, &command, 1) == 1) {
		if (command == 'x')
			run_again(actor); /* and replies when it is there */
		if (command == 'f' && fork() > 0) {
			close(actor->commands);
			close(actor->replies);
			wait(NULL);
			return 0;
		}
		for (int i = 0; command == 'm' && i < 5; i++)
			change_mapping(actor);
		pid = (uint32_t)getpid();
		if (write(actor->replies, &pid, sizeof(pid)) < 0)
			return 1;
	}
	return 0;
}

struct director {
	struct mirror mirror;
	struct address_spaces *spaces;
	struct sideband *sideband;
	int commands, replies;
	pid_t first;
	char wrong[256];
};

/* Where the kernel says that code is, we must say the same; what it unmapped since, it does not
 * tell. */
static bool covers(struct director *director, const struct process *process,
	const struct proc_maps *maps, const struct proc_mapping *real)
{
	const char *name = proc_mapping_name(maps, real);

	for (uint64_t address = real->start; address < real->end; address += PAGE) {
		const struct mapping *mapping = process_find_mapping(process, address);
		const struct mapped_file *file;

		if (!mapping)
			return false;
		file = address_spaces_file(director->spaces, mapping->file);
		if (file->kind == MAPPING_ANONYMOUS && !real->inode)
			continue;
		if (strcmp(file->path, name) != 0 || (file->inode && file->inode != real->inode) ||
			mapping->file_offset + (address - mapping->start) !=
				real->file_offset + (address - real->start))
			return false;
	}
	return true;
}

static bool compare(struct director *director, uint32_t pid, const char *when)
{
	const struct process *process = address_spaces_find(director->spaces, pid);
	struct proc_maps maps = {0};
	bool equal = process != NULL && proc_maps_read_by_text(&maps, pid) == 0;

	for (size_t i = 0; equal && i < maps.mappings.count; i++) {
		const struct proc_mapping *real = &maps.mappings.items[i];

		equal = covers(director, process, &maps, real);
		if (!equal)
			snprintf(director->wrong, sizeof(director->wrong),
				"%s: %" PRIx64 "-%" PRIx64 " %.100s", when, real->start, real->end,
				proc_mapping_name(&maps, real));
	}
	if (equal && !mirror_equals(&director->mirror, process)) {
		snprintf(director->wrong, sizeof(director->wrong),
			"%s: the listener was not told all", when);
		equal = false;
	}
	if (!process)
		snprintf(director->wrong, sizeof(director->wrong), "%s: no such process", when);
	proc_maps_done(&maps);
	return equal;
}

/* After reading /proc anew, nothing more than what is there may be left. */
static bool refresh_is_exact(struct director *director, uint32_t pid)
{
	const struct process *process;
	struct proc_maps maps = {0};
	bool exact;

	if (address_spaces_add_process(director->spaces, pid, NULL) < 0)
		return false;
	process = address_spaces_find(director->spaces, pid);
	exact = proc_maps_read_by_text(&maps, pid) == 0 &&
		maps.mappings.count == process->mapping_count;
	for (size_t i = 0; exact && i < maps.mappings.count; i++)
		exact = maps.mappings.items[i].start == process->mappings[i].start &&
			maps.mappings.items[i].end == process->mappings[i].end;
	if (!exact)
		snprintf(director->wrong, sizeof(director->wrong), "a refresh is not exact");
	proc_maps_done(&maps);
	return exact;
}

static void apply_to_spaces(void *context, const struct sideband_event *event)
{
	struct director *director = context;

	if (address_spaces_apply(director->spaces, event, true) < 0 || event->lost)
		snprintf(director->wrong, sizeof(director->wrong), "an event cannot be applied");
}

static pid_t start_actor(struct director *director, unsigned seed)
{
	int commands[2], replies[2];
	pid_t pid;

	if (pipe(commands) < 0 || pipe(replies) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		struct actor actor = {.commands = commands[0], .replies = replies[1], .seed = seed};

		close(commands[1]);
		close(replies[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_again(&actor);
	}
	close(commands[0]);
	close(replies[1]);
	director->commands = commands[1];
	director->replies = replies[0];
	return pid;
}

static bool direct(struct director *director, char command)
{
	uint32_t pid;

	if (write(director->commands, &command, 1) != 1 ||
		read(director->replies, &pid, sizeof(pid)) != sizeof(pid))
		return false;
	sideband_drain(director->sideband, apply_to_spaces, director);
	return compare(director, pid,
		       command == 'm'   ? "mapped"
		       : command == 'f' ? "forked"
					: "ran") &&
	       (rand() % 10 || refresh_is_exact(director, pid)) && !director->wrong[0];
}

static void play(struct director *director, uint32_t pid)
{
	for (int step = 0; step < STEPS; step++) {
		int choice = rand() % 8;

		if (!direct(director, choice == 0 ? 'f' : choice == 1 ? 'x' : 'm'))
			return;
	}
	close(director->commands);
	director->commands = -1;
	waitpid(director->first, NULL, 0);
	sideband_drain(director->sideband, apply_to_spaces, director);
	if (!address_spaces_find(director->spaces, pid)->exited)
		snprintf(director->wrong, sizeof(director->wrong), "the end is not seen");
}

static const char *follow_random_child(bool whole_machine, struct director *director)
{
	struct address_space_listener listener = mirror_listener(&director->mirror);
	uint32_t pid = 0;
	struct errmsg err = {0};

	srand(7);
	director->first = start_actor(director, 11);
	if (director->first < 0 || read(director->replies, &pid, sizeof(pid)) != sizeof(pid) ||
		address_spaces_new(&director->spaces, &listener) < 0)
		return "no actor";
	if (sideband_open(&director->sideband, whole_machine ? 0 : pid, &err) < 0 ||
		address_spaces_add_tree(director->spaces, pid, &err) < 0)
		snprintf(director->wrong, sizeof(director->wrong), "%.200s", err.text);
	else if (compare(director, pid, "at first"))
		play(director, pid);
	return director->wrong[0] ? director->wrong : NULL;
}

static void end_director(struct director *director)
{
	if (director->commands >= 0)
		close(director->commands);
	if (director->replies >= 0)
		close(director->replies);
	sideband_free(director->sideband);
	address_spaces_free(director->spaces);
	array_done(&director->mirror.mappings);
}

static const char *follow_and_report(bool whole_machine, char *ret_wrong, size_t capacity)
{
	struct director director = {.commands = -1, .replies = -1};
	const char *wrong = follow_random_child(whole_machine, &director);

	if (wrong)
		snprintf(ret_wrong, capacity, "%s", wrong);
	end_director(&director);
	return wrong ? ret_wrong : NULL;
}

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static void test_follows_a_process_tree(void **state)
{
	char text[256];
	const char *wrong;

	(void)state;
	skip_unless_root();
	wrong = follow_and_report(true, text, sizeof(text));
	if (wrong)
		fail_msg("%s", wrong);
}

static void test_follows_a_process_tree_as_nobody(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0) {
		char text[256];
		const char *wrong;

		if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
					      setresuid(NOBODY, NOBODY, NOBODY) < 0))
			_exit(2);
		prctl(PR_SET_DUMPABLE, 1);
		wrong = follow_and_report(false, text, sizeof(text));
		if (wrong)
			fprintf(stderr, "as nobody: %s\n", wrong);
		_exit(wrong ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_a_process_tree),
		cmocka_unit_test(test_follows_a_process_tree_as_nobody),
	};

	if (argc > 4 && strcmp(argv[1], "act") == 0) {
		struct actor actor = {.commands = atoi(argv[2]),
			.replies = atoi(argv[3]),
			.seed = (unsigned)atoi(argv[4])};

		return act(&actor);
	}
	return cmocka_run_group_tests_name("address-space-live", tests, NULL, NULL);
}
