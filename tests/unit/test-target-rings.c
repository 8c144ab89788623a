/* SPDX-License-Identifier: Apache-2.0 */
/* A session's folder and its ring files: records, strangers, and files that are cut while read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "ring-file.h"
#include "sources/target/map_guard.h"
#include "sources/target/target_rings.h"

#define RECORDS        3000
#define POPULATE_WRITE 23

struct fixture {
	struct target_rings *rings;
	char path[512];
	struct wire_ring_file *file; /* as its process has it mapped */
	uint64_t records, bad;
	off_t cut_to; /* while the first record is looked at; -1: never */
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct errmsg err;

	assert_non_null(fixture);
	assert_int_equal(
		target_rings_open(&fixture->rings, &(struct target_gate_options){0}, &err), 0);
	fixture->file = make_ring_file(
		target_rings_folder(fixture->rings), fixture->path, sizeof(fixture->path));
	fixture->cut_to = -1;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	target_rings_free(fixture->rings);
	munmap(fixture->file, WIRE_RING_FILE_BYTES);
	free(fixture);
	return 0;
}

static void write_records(struct fixture *fixture, uint32_t ring)
{
	struct wire_device_launch launch = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(launch)},
		.kind = WIRE_DEVICE_FINISH,
	};

	for (uint64_t i = 1; i <= RECORDS; i++) {
		launch.enter_ns = i;
		assert_true(wire_ring_write(&fixture->file->rings[ring],
			wire_ring_data(fixture->file, ring), &launch.record));
	}
}

static void on_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct fixture *fixture = context;
	const struct wire_device_launch *launch = (const void *)record;

	fixture->bad += pid != (uint32_t)getpid() || record->length_bytes != sizeof(*launch) ||
			!launch->enter_ns;
	if (fixture->records++ == 0 && fixture->cut_to >= 0)
		assert_int_equal(truncate(fixture->path, fixture->cut_to), 0);
}

static struct target_rings_account drained(struct fixture *fixture)
{
	struct target_rings_account account;

	map_guard_install(); /* cmocka has a SIGBUS handler of its own, set for each test */
	assert_int_equal(target_rings_drain(fixture->rings, on_record, fixture), 0);
	target_rings_account(fixture->rings, &account);
	return account;
}

static void test_all_rings_are_read(void **state)
{
	struct fixture *fixture = *state;
	struct target_rings_account account;

	write_records(fixture, 0);
	write_records(fixture, WIRE_RING_COUNT - 1);
	fixture->file->rings[0].lost = 5;
	fixture->file->no_ring = 6;
	account = drained(fixture);
	assert_int_equal(fixture->records, 2 * RECORDS);
	assert_int_equal(fixture->bad, 0);
	assert_int_equal(account.records, 2 * RECORDS);
	assert_int_equal(account.processes, 1);
	assert_int_equal(account.lost, 5);
	assert_int_equal(account.no_ring, 6);
	assert_int_equal(account.damaged + account.refused, 0);
	assert_int_equal(drained(fixture).records, 2 * RECORDS);
}

/* A reader that finds much waiting makes room for more; one that keeps up does not. */
static void test_a_late_reader_enlarges_the_ring(void **state)
{
	struct fixture *fixture = *state;
	struct wire_ring *ring = &fixture->file->rings[0];

	write_records(fixture, 0);
	drained(fixture);
	assert_int_equal(wire_ring_usable(ring), WIRE_RING_AT_FIRST);
	while (fixture->records < 3 * WIRE_RING_BYTES / sizeof(struct wire_device_launch)) {
		for (unsigned i = 0; i < WIRE_RING_AT_FIRST / 2;
			i += RECORDS * sizeof(struct wire_device_launch))
			write_records(fixture, 0);
		drained(fixture);
	}
	/* So that what waits is no longer a quarter of it. */
	assert_int_equal(wire_ring_usable(ring), 4 * WIRE_RING_AT_FIRST);
	assert_int_equal(fixture->bad, 0);
	assert_int_equal(atomic_load(&ring->lost), 0);
}

/* As before Linux 5.14: the kernel does not know the advice. Only for this process. */
static int forbid_populate(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_WRITE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};
	char page[2 * 4096];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -1;
	return madvise((void *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095), 4096,
		       POPULATE_WRITE) < 0 &&
			       errno == EINVAL
		       ? 0
		       : -1;
}

static int run_without_populate(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_late_reader_enlarges_the_ring, set_up, tear_down),
	};
	pid_t child = fork();
	int status;

	if (child == 0)
		exit(forbid_populate() < 0 ? 2 : cmocka_run_group_tests(tests, NULL, NULL));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void test_a_strangers_file_is_refused(void **state)
{
	struct fixture *fixture = *state;

	fixture->file->version++;
	write_records(fixture, 0);
	assert_int_equal(drained(fixture).refused, 1);
	assert_int_equal(drained(fixture).refused, 1); /* once */
	assert_int_equal(fixture->records, 0);
}

static void test_an_unfinished_file_is_looked_at_again(void **state)
{
	struct fixture *fixture = *state;

	fixture->file->magic = 0;
	write_records(fixture, 0);
	assert_int_equal(drained(fixture).processes, 0);
	fixture->file->magic = WIRE_RING_MAGIC;
	assert_int_equal(drained(fixture).records, RECORDS);
}

static void test_the_folder_is_read_when_a_file_came(void **state)
{
	_cleanup_close_ int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct fixture *fixture = *state;
	char away[600], events[4096];

	assert_int_equal(drained(fixture).processes, 1);
	assert_true(
		inotify_add_watch(watch_fd, target_rings_folder(fixture->rings), IN_ACCESS) >= 0);
	for (int i = 0; i < 3; i++)
		drained(fixture);
	assert_int_equal(read(watch_fd, events, sizeof(events)), -1);
	snprintf(away, sizeof(away), "%s.away", fixture->path);
	assert_int_equal(rename(fixture->path, away), 0); /* a name that is not known */
	assert_int_equal(drained(fixture).processes, 2);
	assert_true(read(watch_fd, events, sizeof(events)) > 0);
}

/* The event that a file came is over when the folder cannot be read: it is read later. */
static void test_a_file_that_comes_while_descriptors_are_short(void **state)
{
	struct fixture *fixture = *state;
	struct rlimit before, none;
	char away[600];

	assert_int_equal(drained(fixture).processes, 1);
	snprintf(away, sizeof(away), "%s.away", fixture->path);
	assert_int_equal(rename(fixture->path, away), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(drained(fixture).processes, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(drained(fixture).processes, 2);
}

/* While its records are read: what is gone reads as damage, and the file is left alone. */
static void test_cut_while_it_is_read(void **state)
{
	const off_t lengths[] = {
		0, 4096, (off_t)WIRE_RING_DATA_OFFSET, (off_t)WIRE_RING_DATA_OFFSET + 8192};
	struct fixture *fixture = *state;
	struct target_rings_account account;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		fixture->cut_to = lengths[i];
		fixture->records = 0;
		write_records(fixture, 0);
		account = drained(fixture);
		assert_in_range(fixture->records, 1, RECORDS - 1);
		assert_in_range(account.damaged, 1, 2 * RECORDS);
		assert_int_equal(drained(fixture).damaged, account.damaged);
		assert_int_equal(drained(fixture).processes, 1);
		tear_down(state);
		set_up(state);
		fixture = *state;
	}
}

static void test_cut_before_it_is_read(void **state)
{
	struct fixture *fixture = *state;

	write_records(fixture, 0);
	assert_int_equal(drained(fixture).records, RECORDS);
	assert_int_equal(truncate(fixture->path, 0), 0);
	/* The ring that had something is empty, impossibly; and the file is cut. */
	assert_int_equal(drained(fixture).damaged, 2);
	assert_int_equal(drained(fixture).records, RECORDS);
}

/* The gate is as much in the hands of the processes. */
static void test_a_cut_gate(void **state)
{
	struct fixture *fixture = *state;
	char path[600];

	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, target_rings_folder(fixture->rings));
	assert_int_equal(truncate(path, 0), 0);
	write_records(fixture, 0);
	assert_int_equal(drained(fixture).records, RECORDS);
	target_gate_set_ready(target_rings_gate(fixture->rings));
	target_gate_close(target_rings_gate(fixture->rings));
	assert_int_equal(access(target_rings_folder(fixture->rings), F_OK), 0);
}

/* Every process of the session can write there. */
static void test_edges_that_no_leader_writes(void **state)
{
	struct fixture *fixture = *state;
	struct target_gate *gate = target_rings_gate(fixture->rings);
	struct wire_window_edge edges[WIRE_WINDOW_EDGES];
	uint64_t known_ns;

	gate->memory->edges[0] =
		(struct wire_window_edge){.time_ns = UINT64_MAX, .phase = WIRE_PHASE_ACTIVE};
	gate->memory->edges[1] = (struct wire_window_edge){.time_ns = 1, .phase = 7};
	gate->memory->edges[2] = (struct wire_window_edge){.time_ns = 1};
	atomic_store(&gate->memory->edges_written, 3);
	assert_int_equal(target_gate_read_edges(gate, edges, &known_ns), 2);
	assert_int_equal(edges[0].phase, WIRE_PHASE_ACTIVE);
	assert_true(edges[0].time_ns <= monotonic_now_ns());
	assert_int_equal(edges[1].phase, WIRE_PHASE_CLOSED);
	atomic_store(&gate->memory->edges_written, 1ULL << 40);
	assert_int_equal(target_gate_read_edges(gate, edges, &known_ns), 0);
}

/* Files that nobody guards end us as ever. */
static void test_other_memory_still_faults(void **state)
{
	const struct rlimit no_core = {0};
	int status;
	pid_t child;

	child = fork();
	if (child == 0) {
		struct fixture *fixture = *state;

		setrlimit(RLIMIT_CORE, &no_core);
		close(STDERR_FILENO);
		signal(SIGBUS, SIG_DFL);
		map_guard_install();
		if (truncate(fixture->path, 0) < 0)
			_exit(0);
		fixture->file->no_ring++;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_rings_are_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_late_reader_enlarges_the_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_strangers_file_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_unfinished_file_is_looked_at_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_folder_is_read_when_a_file_came, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_comes_while_descriptors_are_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_while_it_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_before_it_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_cut_gate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_edges_that_no_leader_writes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_memory_still_faults, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + run_without_populate();
}
