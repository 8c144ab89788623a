/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps and the windows that they open: the schedule, and what the library's step() does with it.
 * The library has one session in a process's life, so that each test of it runs in a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/step.h"
#include "wire/ring.h"

#define THREADS    4
#define PER_THREAD 20000

static char session[64];
static struct wire_gate *gate;
static struct wire_ring_file *rings;

/* In the child, where cmocka's own way back leads nowhere. */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void *map(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *memory;

	expect(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect(memory != MAP_FAILED);
	close(fd);
	return memory;
}

static void make_session(const struct wire_schedule *schedule, const char *pattern)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, session);
	gate = map(path, sizeof(*gate));
	gate->magic = WIRE_GATE_MAGIC;
	gate->version = WIRE_RING_VERSION;
	gate->heartbeat_ns = now_ns();
	gate->schedule = *schedule;
	gate->next_edge = schedule->kind || schedule->max_steps ? 0 : WIRE_STEP_NEVER;
	snprintf(gate->step_pattern, sizeof(gate->step_pattern), "%s", pattern);
	setenv("SONDE_SESSION", session, 1);
}

static void find_rings(void)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/" WIRE_RING_PREFIX "*", session);
	expect(glob(pattern, 0, NULL, &found) == 0);
	rings = map(found.gl_pathv[0], WIRE_RING_FILE_BYTES);
	globfree(&found);
}

static void run_in_child(void (*body)(void))
{
	char command[128];
	int status;
	pid_t child;

	snprintf(session, sizeof(session), "/tmp/sonde-test-step.XXXXXX");
	assert_non_null(mkdtemp(session));
	child = fork();
	if (child == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	snprintf(command, sizeof(command), "rm -r %s", session);
	assert_int_equal(system(command), 0);
	assert_int_equal(status, 0);
}

/* ---- the schedule ---- */

static void expect_place(const struct wire_schedule *schedule, uint64_t count,
	enum wire_phase phase, uint64_t cycle, uint64_t next)
{
	struct wire_schedule_place place = wire_schedule_at(schedule, count);

	assert_int_equal(place.phase, phase);
	assert_int_equal(place.next, next);
	if (phase != WIRE_PHASE_CLOSED)
		assert_int_equal(place.cycle, cycle);
}

static void test_schedule_of_steps(void **state)
{
	const struct wire_schedule schedule = {
		.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .warmup = 1, .active = 3, .repeat = 2};

	expect_place(&schedule, 0, WIRE_PHASE_CLOSED, 0, 1);
	expect_place(&schedule, 1, WIRE_PHASE_WARMUP, 0, 2);
	expect_place(&schedule, 2, WIRE_PHASE_ACTIVE, 0, 5);
	expect_place(&schedule, 4, WIRE_PHASE_ACTIVE, 0, 5);
	expect_place(&schedule, 5, WIRE_PHASE_CLOSED, 1, 6);
	expect_place(&schedule, 9, WIRE_PHASE_ACTIVE, 1, 10);
	expect_place(&schedule, 10, WIRE_PHASE_CLOSED, 2, WIRE_STEP_NEVER);
}

static void test_schedule_without_wait(void **state)
{
	const struct wire_schedule for_ever = {.kind = WIRE_SCHEDULE_STEPS, .active = 2};
	const struct wire_schedule empty = {.kind = WIRE_SCHEDULE_STEPS};
	const struct wire_schedule huge = {.kind = WIRE_SCHEDULE_STEPS,
		.wait = 1000000000,
		.active = 1000000000,
		.repeat = 1000000000};

	expect_place(&for_ever, 0, WIRE_PHASE_ACTIVE, 0, 2);
	expect_place(&for_ever, 2, WIRE_PHASE_ACTIVE, 1, 4);
	expect_place(&empty, 7, WIRE_PHASE_CLOSED, 0, WIRE_STEP_NEVER);
	expect_place(&huge, 1999999999999999999ULL, WIRE_PHASE_ACTIVE, 999999999,
		2000000000000000000ULL);
	expect_place(&huge, UINT64_MAX, WIRE_PHASE_CLOSED, 0, WIRE_STEP_NEVER);
}

static void test_schedule_of_calls(void **state)
{
	const struct wire_schedule schedule = {
		.kind = WIRE_SCHEDULE_CALLS, .interval_count = 2, .intervals = {{3, 4}, {8, 8}}};

	expect_place(&schedule, 0, WIRE_PHASE_CLOSED, 0, 3);
	expect_place(&schedule, 3, WIRE_PHASE_ACTIVE, 0, 5);
	expect_place(&schedule, 5, WIRE_PHASE_CLOSED, 1, 8);
	expect_place(&schedule, 8, WIRE_PHASE_ACTIVE, 1, 9);
	expect_place(&schedule, 9, WIRE_PHASE_CLOSED, 1, WIRE_STEP_NEVER);
}

/* ---- step() ---- */

static void expect_edge(size_t at, enum wire_phase phase, uint64_t step, uint32_t window)
{
	expect(at < gate->edges_written);
	expect(gate->edges[at].phase == phase);
	expect(gate->edges[at].step == step);
	expect(gate->edges[at].window == window);
	expect(!at || gate->edges[at].time_ns >= gate->edges[at - 1].time_ns);
}

static void body_closed(void)
{
	char name[] = "a name that is longer than two words";

	make_session(&(struct wire_schedule){0}, "");
	errno = 42;
	expect(inject_step(NULL) == 1);
	expect(inject_step("step") == 2);
	expect(inject_step(NULL) == 3);
	expect(inject_step(name) == 1);
	expect(inject_step(name) == 2);
	name[0] = 'A'; /* the same place, another name */
	expect(inject_step(name) == 1);
	name[sizeof(name) - 2] = 'S';
	expect(inject_step(name) == 1);
	expect(errno == 42);
	find_rings();
	expect(rings->steps[0].state == WIRE_STEP_CHOSEN && rings->steps[0].owned == 3);
	expect(rings->steps[1].state == WIRE_STEP_NAMED &&
		rings->steps[3].state == WIRE_STEP_NAMED);
	expect(strcmp(rings->steps[1].name, "a name that is longer than two words") == 0);
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		expect(rings->rings[i].head == 0);
	expect(gate->edges_written == 0 && gate->leader == 0);
}

static void test_closed(void **state)
{
	run_in_child(body_closed);
}

static void body_short_name_changes(void)
{
	_Alignas(8) char buffer[16] = "ab";

	make_session(&(struct wire_schedule){0}, "");
	expect(inject_step(buffer) == 1);
	expect(inject_step(buffer) == 2);
	buffer[5] = 'x'; /* behind the name: it is the same one */
	expect(inject_step(buffer) == 3);
	buffer[1] = 'c';
	expect(inject_step(buffer) == 1);
}

static void test_short_name_changes(void **state)
{
	run_in_child(body_short_name_changes);
}

static void body_too_many_names(void)
{
	char name[32];

	make_session(&(struct wire_schedule){0}, "");
	for (int i = 0; i < WIRE_STEP_NAMES + 3; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		expect(inject_step(name) == (i < WIRE_STEP_NAMES));
	}
	find_rings();
	expect(rings->no_step == 3);
}

static void test_too_many_names(void **state)
{
	run_in_child(body_too_many_names);
}

/* Warm-up, window, end, twice; and a record of each step while the gate is open. */
static void body_edges(void)
{
	struct wire_ring_cursor cursor = {0};
	struct wire_step step;

	make_session(&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS,
			     .wait = 1,
			     .warmup = 1,
			     .active = 2,
			     .repeat = 2},
		"");
	for (int i = 0; i < 20; i++)
		inject_step("train");
	expect(gate->edges_written == 6);
	expect_edge(0, WIRE_PHASE_WARMUP, 1, 1);
	expect_edge(1, WIRE_PHASE_ACTIVE, 2, 1);
	expect_edge(2, WIRE_PHASE_CLOSED, 4, 1);
	expect_edge(3, WIRE_PHASE_WARMUP, 5, 2);
	expect_edge(4, WIRE_PHASE_ACTIVE, 6, 2);
	expect_edge(5, WIRE_PHASE_CLOSED, 8, 2);
	expect(gate->state == WIRE_GATE_DRAINING && gate->next_edge == WIRE_STEP_NEVER);
	find_rings();
	expect(gate->leader == rings->start_time_ns && gate->locked_by == WIRE_GATE_NOBODY);
	for (unsigned number = 1; number <= 7; number++) {
		if (number == 4)
			continue;
		expect(wire_ring_read(&rings->rings[0], wire_ring_data(rings, 0), &cursor, &step,
			       sizeof(step)) == WIRE_RING_RECORD);
		expect(step.record.type == WIRE_RECORD_STEP && step.number == number);
	}
	expect(wire_ring_read(&rings->rings[0], wire_ring_data(rings, 0), &cursor, &step,
		       sizeof(step)) == WIRE_RING_NOTHING);
}

static void test_edges(void **state)
{
	run_in_child(body_edges);
}

static void body_max_steps(void)
{
	make_session(&(struct wire_schedule){.max_steps = 3}, "");
	inject_step("step"); /* the gate is closed: it does not count for the window */
	wire_gate_set_phase(gate, WIRE_PHASE_ACTIVE, now_ns()); /* as the collector does */
	for (int i = 0; i < 5; i++)
		inject_step("step");
	expect(gate->edges_written == 1);
	expect_edge(0, WIRE_PHASE_CLOSED, 4, 1);
	expect(gate->edges[0].reason == WIRE_WINDOW_MAX_STEPS);
}

static void test_max_steps(void **state)
{
	run_in_child(body_max_steps);
}

static void body_pattern(void)
{
	make_session(
		&(struct wire_schedule){
			.kind = WIRE_SCHEDULE_CALLS, .interval_count = 1, .intervals = {{2, 2}}},
		"^optimizer");
	for (int i = 0; i < 5; i++)
		inject_step("train");
	inject_step_if_chosen("a mark");
	expect(gate->edges_written == 0);
	for (int i = 0; i < 5; i++)
		inject_step_if_chosen("optimizer.step");
	expect(gate->edges_written == 2);
	expect_edge(0, WIRE_PHASE_ACTIVE, 2, 1);
	expect_edge(1, WIRE_PHASE_CLOSED, 3, 1);
	find_rings();
	expect(rings->steps[1].state == WIRE_STEP_CHOSEN &&
		rings->steps[2].state == WIRE_STEP_FREE);
}

static void test_pattern(void **state)
{
	run_in_child(body_pattern);
}

static void *make_steps(void *unused)
{
	for (int i = 0; i < PER_THREAD; i++)
		inject_step("step");
	return unused;
}

/*
 * No step is lost, and the windows come in order, whoever makes their edges. Where the thread that
 * makes one is not run for a while, the others may count past the next.
 */
static void body_threads(void)
{
	pthread_t threads[THREADS];

	make_session(&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS,
			     .wait = 500,
			     .warmup = 500,
			     .active = 1000,
			     .repeat = 10},
		"");
	for (int i = 0; i < THREADS; i++)
		expect(pthread_create(&threads[i], NULL, make_steps, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	find_rings();
	expect(rings->steps[0].owned + rings->steps[0].shared == THREADS * PER_THREAD);
	expect(gate->edges_written >= 2 && gate->edges_written <= 30 && gate->cycles_missed == 0);
	for (unsigned i = 0; i < gate->edges_written; i++) {
		static const uint64_t from[] = {
			[WIRE_PHASE_WARMUP] = 500, [WIRE_PHASE_ACTIVE] = 1000};
		static const uint64_t to[] = {
			[WIRE_PHASE_WARMUP] = 1000, [WIRE_PHASE_ACTIVE] = 2000};
		enum wire_phase phase = gate->edges[i].phase;
		enum wire_phase before = i ? gate->edges[i - 1].phase : WIRE_PHASE_CLOSED;
		uint64_t place = gate->edges[i].step % 2000;

		expect(!i || gate->edges[i].step >= gate->edges[i - 1].step);
		expect(phase != before &&
			(phase != WIRE_PHASE_WARMUP || before == WIRE_PHASE_CLOSED));
		expect(phase == WIRE_PHASE_CLOSED || (place >= from[phase] && place < to[phase]));
	}
	expect(gate->edges[gate->edges_written - 1].phase == WIRE_PHASE_CLOSED);
	expect(gate->state != WIRE_GATE_OPEN);
}

static void test_threads(void **state)
{
	run_in_child(body_threads);
}

/* A collector that is behind gets whole windows: others are left out, and counted. */
static void body_late_collector(void)
{
	make_session(
		&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .active = 1}, "");
	for (int i = 0; i < 1000; i++)
		inject_step("step");
	expect(gate->edges_written <= WIRE_WINDOW_EDGES && gate->edges_written % 2 == 0);
	expect(gate->edges[gate->edges_written - 1].phase == WIRE_PHASE_CLOSED);
	expect(gate->cycles_missed + gate->edges_written / 2 == 500);
	gate->edges_read = gate->edges_written;
	inject_step("step");
	expect(gate->edges[gate->edges_written % WIRE_WINDOW_EDGES - 1].phase ==
			WIRE_PHASE_ACTIVE ||
		gate->state == WIRE_GATE_DRAINING);
}

static void test_late_collector(void **state)
{
	run_in_child(body_late_collector);
}

static void body_dead_collector(void)
{
	make_session(
		&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .active = 1}, "");
	gate->heartbeat_ns = now_ns() - 2 * WIRE_HEARTBEAT_NS;
	for (int i = 0; i < 10; i++)
		inject_step("step");
	expect(gate->state == WIRE_GATE_CLOSED && gate->edges_written == 0);
}

static void test_dead_collector(void **state)
{
	run_in_child(body_dead_collector);
}

/* A child that was forked in an open window counts nothing, and its parent goes on. */
static void body_fork(void)
{
	int status;
	pid_t child;

	make_session(
		&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .active = 5}, "");
	inject_step("step");
	inject_step("step");
	child = fork();
	if (child == 0)
		_exit(inject_step("step") == 0 && inject_step("other") == 0 ? 0 : 1);
	expect(waitpid(child, &status, 0) == child && status == 0);
	expect(inject_step("step") == 3);
	find_rings();
	expect(rings->steps[0].owned == 3 && rings->steps[1].state == WIRE_STEP_FREE);
}

static void test_fork(void **state)
{
	run_in_child(body_fork);
}

static void body_second_process(void)
{
	make_session(
		&(struct wire_schedule){.kind = WIRE_SCHEDULE_STEPS, .wait = 1, .active = 1}, "");
	gate->leader = 4711; /* another process */
	for (int i = 0; i < 4; i++)
		expect(inject_step("step") == (uint64_t)i + 1);
	expect(gate->edges_written == 0);
	gate->leader = WIRE_GATE_NOBODY; /* it ended */
	inject_step("step");
	expect(gate->edges_written == 1 && gate->edges[0].phase == WIRE_PHASE_ACTIVE);
}

static void test_second_process(void **state)
{
	run_in_child(body_second_process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedule_of_steps),
		cmocka_unit_test(test_schedule_without_wait),
		cmocka_unit_test(test_schedule_of_calls),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_short_name_changes),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_max_steps),
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_late_collector),
		cmocka_unit_test(test_dead_collector),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_second_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
