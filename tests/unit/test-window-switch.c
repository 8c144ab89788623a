/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler is switched on at a producer's edge, whatever the collector's loop does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/windows/switch.h"

/* A sampler that only remembers whether it is on. */
struct lamp {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_on;
	unsigned changes;
};

struct fixture {
	char folder[64], path[96];
	int folder_fd;
	struct target_gate gate;
	struct lamp lamp;
	struct window_switch *window_switch;
};

static int lamp_set_active(void *state, bool active)
{
	struct lamp *lamp = state;

	pthread_mutex_lock(&lamp->lock);
	lamp->is_on = active;
	lamp->changes++;
	pthread_cond_broadcast(&lamp->changed);
	pthread_mutex_unlock(&lamp->lock);
	return 0;
}

static void await_lamp(struct lamp *lamp)
{
	pthread_mutex_lock(&lamp->lock);
	while (!lamp->is_on)
		pthread_cond_wait(&lamp->changed, &lamp->lock);
	pthread_mutex_unlock(&lamp->lock);
}

static int set_up(void **state)
{
	const struct target_gate_options options = {.is_closed = true};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-window-switch.XXXXXX");
	if (!mkdtemp(fixture->folder))
		return -1;
	fixture->folder_fd = open(fixture->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(fixture->path, sizeof(fixture->path), "%s/" WIRE_GATE_NAME, fixture->folder);
	fixture->lamp.is_on = true;
	pthread_mutex_init(&fixture->lamp.lock, NULL);
	pthread_cond_init(&fixture->lamp.changed, NULL);
	*state = fixture;
	if (target_gate_make(&fixture->gate, fixture->folder_fd, &options) < 0)
		return -1;
	return window_switch_start(&fixture->window_switch, lamp_set_active, &fixture->lamp,
		&fixture->gate, fixture->path);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	window_switch_free(fixture->window_switch);
	target_gate_done(&fixture->gate);
	unlink(fixture->path);
	rmdir(fixture->folder);
	close(fixture->folder_fd);
	pthread_cond_destroy(&fixture->lamp.changed);
	pthread_mutex_destroy(&fixture->lamp.lock);
	free(fixture);
	return 0;
}

/* As a process that leads does it. */
static void make_edge(struct fixture *fixture, enum wire_phase phase)
{
	struct wire_gate *gate = fixture->gate.memory;

	assert_true(wire_gate_try_lock(gate, 7));
	wire_gate_make_edge(gate, phase, WIRE_WINDOW_SCHEDULE, 1, monotonic_now_ns());
	wire_gate_unlock(gate);
	assert_int_equal(utimensat(AT_FDCWD, fixture->path, NULL, 0), 0);
}

static void test_on_without_the_loop(void **state)
{
	struct fixture *fixture = *state;
	uint64_t before_ns = monotonic_now_ns(), now_ns;

	assert_int_equal(window_switch_set(fixture->window_switch, false), 0);
	assert_false(fixture->lamp.is_on);
	make_edge(fixture, WIRE_PHASE_WARMUP);
	await_lamp(&fixture->lamp); /* nobody called window_switch_set() */
	/* The lamp is on before the switch knows it; with its lock, it does. */
	assert_int_equal(window_switch_set(fixture->window_switch, true), 0);
	now_ns = monotonic_now_ns();
	assert_int_equal(window_switch_late_ns(fixture->window_switch, now_ns, now_ns + 100), 0);
	assert_int_equal(
		window_switch_late_ns(fixture->window_switch, before_ns - 700, before_ns), 700);
}

/* The loop has the last window's end before it, and the next one is open already. */
static void test_an_open_gate_stays_on(void **state)
{
	struct fixture *fixture = *state;

	make_edge(fixture, WIRE_PHASE_ACTIVE);
	assert_int_equal(window_switch_set(fixture->window_switch, false), 0);
	assert_true(fixture->lamp.is_on);
	make_edge(fixture, WIRE_PHASE_CLOSED);
	assert_int_equal(window_switch_set(fixture->window_switch, false), 0);
	assert_false(fixture->lamp.is_on);
	assert_int_equal(fixture->lamp.changes, 1);
}

static void test_a_window_that_was_not_sampled(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(window_switch_set(fixture->window_switch, false), 0);
	assert_int_equal(window_switch_late_ns(fixture->window_switch, 1000, 1700), 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_on_without_the_loop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_open_gate_stays_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_window_that_was_not_sampled, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
