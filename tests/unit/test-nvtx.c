/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX door of libsonde-inject.so, loaded into this program by the test double of NVTX's
 * headers: what the calls return, and what comes into the rings. The tests share a process, as the
 * library has one session in its life; their order matters.
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
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doubles/nvtx/nvtx.h"
#include "wire/range.h"
#include "wire/ring.h"

#define MAX_SEEN 65536

static char session[] = "/tmp/sonde-test-nvtx.XXXXXX";
static struct wire_gate *gate;
static struct wire_ring_file *rings;
static struct wire_ring_cursor cursors[WIRE_RING_COUNT];

static struct {
	struct wire_range_event events[MAX_SEEN];
	size_t count;
	char names[256][WIRE_RANGE_TEXT_BYTES + 1]; /* by id */
	unsigned definitions[256];
	uint64_t thread_names, categories, fields;
} seen;

static void *map(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *memory;

	assert_true(fd >= 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	return memory;
}

static void make_session(void)
{
	char path[256];
	int fd;

	assert_non_null(mkdtemp(session));
	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, session);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, sizeof(*gate)) == 0);
	close(fd);
	gate = map(path, sizeof(*gate));
	gate->magic = WIRE_GATE_MAGIC;
	gate->version = WIRE_RING_VERSION;
	setenv("SONDE_SESSION", session, 1);
	setenv("NVTX_INJECTION64_PATH", INJECT, 1);
}

/* As the long record says it. */
static struct wire_range_event long_event_of(const struct wire_range_short *level)
{
	return (struct wire_range_event){
		.record = {.type = level->record.type == WIRE_RECORD_RANGE_SHORT_PUSH
					   ? WIRE_RECORD_RANGE_PUSH
					   : WIRE_RECORD_RANGE_POP,
			.length_bytes = sizeof(struct wire_range_event)},
		.time_ns = level->time_ns,
		.tid = level->tid,
		.name = level->name,
		.domain = level->domain,
		.image = level->image,
		.depth = level->record.reserved,
	};
}

static void take(const struct wire_record *record)
{
	const struct wire_range_text *text = (const void *)record;

	switch (record->type) {
	case WIRE_RECORD_RANGE_TEXT:
		if (text->id >= 256)
			return;
		memcpy(seen.names[text->id] + text->at, text + 1, text->bytes);
		seen.definitions[text->id] += !text->at;
		return;
	case WIRE_RECORD_RANGE_CATEGORY:
		seen.categories++;
		return;
	case WIRE_RECORD_RANGE_THREAD:
		seen.thread_names++;
		return;
	case WIRE_RECORD_RANGE_FIELDS:
		seen.fields++;
		return;
	case WIRE_RECORD_RANGE_SHORT_PUSH:
	case WIRE_RECORD_RANGE_SHORT_POP:
		assert_int_equal(record->length_bytes, sizeof(struct wire_range_short));
		if (seen.count < MAX_SEEN)
			seen.events[seen.count++] = long_event_of((const void *)record);
		return;
	default:
		assert_in_range(record->type, WIRE_RECORD_RANGE_PUSH, WIRE_RECORD_RANGE_END);
		assert_int_equal(record->length_bytes, sizeof(struct wire_range_event));
		if (seen.count < MAX_SEEN)
			memcpy(&seen.events[seen.count++], record, record->length_bytes);
	}
}

static void drain(void)
{
	union {
		struct wire_record record;
		char bytes[512];
	} copy;
	char pattern[256];
	glob_t found;

	if (!rings) {
		snprintf(pattern, sizeof(pattern), "%s/" WIRE_RING_PREFIX "*", session);
		assert_int_equal(glob(pattern, 0, NULL, &found), 0);
		rings = map(found.gl_pathv[0], WIRE_RING_FILE_BYTES);
		globfree(&found);
	}
	seen.count = 0;
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		enum wire_ring_got got;

		while ((got = wire_ring_read(&rings->rings[i], wire_ring_data(rings, i),
				&cursors[i], &copy, sizeof(copy))) != WIRE_RING_NOTHING) {
			assert_int_equal(got, WIRE_RING_RECORD);
			take(&copy.record);
		}
	}
}

static const char *name_of(size_t at)
{
	assert_true(at < seen.count && seen.events[at].name < 256);
	return seen.names[seen.events[at].name];
}

static void expect(size_t at, unsigned type, const char *name, unsigned depth)
{
	assert_true(at < seen.count);
	assert_int_equal(seen.events[at].record.type, type);
	assert_string_equal(name_of(at), name);
	assert_int_equal(seen.events[at].depth, depth);
}

static nvtxEventAttributes_t event_of(const char *name)
{
	nvtxEventAttributes_t event = {.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_ASCII};

	event.message.ascii = name;
	return event;
}

/* Nothing is written, and handles are good all the same. */
static void test_closed_gate(void **state)
{
	gate->state = WIRE_GATE_CLOSED;
	assert_int_equal(nvtxRangePushA("closed"), NVTX_NO_PUSH_POP_TRACKING);
	assert_int_equal(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
	assert_int_equal(nvtxRangeStartA("closed"), 0);
	assert_non_null(nvtxDomainCreateA("early"));
	assert_non_null(nvtxDomainRegisterStringA(NULL, "early text"));
	drain();
	assert_int_equal(seen.count, 0);
	gate->heartbeat_ns = UINT64_MAX / 2;
	gate->state = WIRE_GATE_OPEN;
}

static void test_levels_and_names(void **state)
{
	errno = 42;
	assert_int_equal(nvtxRangePushA("one"), 0);
	assert_int_equal(errno, 42);
	assert_int_equal(nvtxRangePushA("two"), 1);
	assert_int_equal(nvtxRangePop(), 1);
	assert_int_equal(nvtxRangePushA("one"), 1);
	assert_int_equal(nvtxRangePop(), 1);
	assert_int_equal(nvtxRangePop(), 0);
	assert_true(nvtxRangePop() < 0);
	drain();
	assert_int_equal(seen.count, 7);
	expect(0, WIRE_RECORD_RANGE_PUSH, "one", 0);
	expect(1, WIRE_RECORD_RANGE_PUSH, "two", 1);
	expect(2, WIRE_RECORD_RANGE_POP, "", 1);
	expect(3, WIRE_RECORD_RANGE_PUSH, "one", 1);
	expect(6, WIRE_RECORD_RANGE_POP, "", WIRE_RANGE_NO_RANGE);
	assert_int_equal(seen.definitions[seen.events[0].name], 1);
	for (size_t i = 1; i < seen.count; i++)
		assert_true(seen.events[i].time_ns >= seen.events[i - 1].time_ns);
}

static void test_registered_and_changing_names(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("early");
	nvtxEventAttributes_t event = event_of(NULL);
	char buffer[16] = "first";

	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(NULL, "early text");
	assert_int_equal(nvtxDomainRangePushEx(domain, &event), 0);
	assert_int_equal(nvtxDomainRangePop(domain), 0);
	nvtxMarkA(buffer);
	strcpy(buffer, "second");
	nvtxMarkA(buffer);
	strcpy(buffer, "firs"); /* the beginning of a known one */
	nvtxMarkA(buffer);
	drain();
	expect(0, WIRE_RECORD_RANGE_PUSH, "early text", 0);
	assert_string_equal(seen.names[seen.events[0].domain], "early");
	assert_string_equal(name_of(2), "first");
	assert_string_equal(name_of(3), "second");
	assert_string_equal(name_of(4), "firs");
}

/* What ends while the gate is closed is not seen: each opening counts anew. */
static void test_many_openings(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		wire_gate_set_phase(gate, WIRE_PHASE_ACTIVE, 1 + i);
		assert_true(nvtxRangePop() < 0); /* of the last window, or of none */
		assert_int_equal(nvtxRangePushA("outer"), 0);
		assert_int_equal(nvtxRangePushA("inner"), 1);
		assert_int_equal(nvtxRangePop(), 1);
		/* The window follows its warm-up: the same opening. */
		wire_gate_set_phase(gate, WIRE_PHASE_ACTIVE, 2 + i);
		assert_int_equal(nvtxRangePushA("inner"), 1);
		wire_gate_set_phase(gate, WIRE_PHASE_CLOSED, 3 + i);
		gate->state = WIRE_GATE_CLOSED;
		for (unsigned level = 0; level < i % 3; level++)
			nvtxRangePop();
		nvtxRangePushA("unseen");
	}
	wire_gate_set_phase(gate, WIRE_PHASE_ACTIVE, 1);
	drain();
	assert_int_equal(seen.count, 300 * 5);
	for (size_t i = 0; i < seen.count; i += 5) {
		expect(i, WIRE_RECORD_RANGE_POP, "", WIRE_RANGE_NO_RANGE);
		expect(i + 1, WIRE_RECORD_RANGE_PUSH, "outer", 0);
		expect(i + 2, WIRE_RECORD_RANGE_PUSH, "inner", 1);
		expect(i + 3, WIRE_RECORD_RANGE_POP, "", 1);
		expect(i + 4, WIRE_RECORD_RANGE_PUSH, "inner", 1);
	}
}

/* Whatever the program gives: nothing is read beyond what is there. */
static void test_wrong_arguments(void **state)
{
	nvtxEventAttributes_t event = event_of("not seen");
	uint64_t not_a_text[4] = {0};

	event.size = 16; /* an older struct */
	nvtxMarkEx(&event);
	nvtxMarkEx(NULL);
	event = event_of(NULL);
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = (nvtxStringHandle_t)not_a_text;
	nvtxMarkEx(&event);
	event.messageType = 99;
	nvtxDomainMarkEx((nvtxDomainHandle_t)not_a_text, &event);
	event = event_of("bad payload");
	event.payloadType = 99;
	nvtxMarkEx(&event);
	event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	event.reserved0 = 3;
	nvtxMarkEx(&event);
	nvtxRangeEnd(0);
	drain();
	assert_int_equal(seen.count, 6);
	for (size_t i = 0; i < 4; i++)
		expect(i, WIRE_RECORD_RANGE_MARK, "", 0);
	expect(5, WIRE_RECORD_RANGE_MARK, "bad payload", 0);
	assert_int_equal(seen.events[3].domain, 0);
	assert_int_equal(seen.fields, 0);
}

/* Only the first domains have levels; ranges of others are recorded without. */
static void test_many_domains(void **state)
{
	nvtxEventAttributes_t event = event_of("in a domain");
	nvtxDomainHandle_t domain = NULL;
	char name[32];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "domain %d", i);
		domain = nvtxDomainCreateA(name);
		assert_non_null(domain);
	}
	assert_ptr_equal(domain, nvtxDomainCreateA("domain 99"));
	assert_int_equal(nvtxDomainRangePushEx(domain, &event), NVTX_NO_PUSH_POP_TRACKING);
	assert_int_equal(nvtxDomainRangePop(domain), NVTX_NO_PUSH_POP_TRACKING);
	drain();
	expect(0, WIRE_RECORD_RANGE_PUSH, "in a domain", WIRE_RANGE_NO_DEPTH);
	expect(1, WIRE_RECORD_RANGE_POP, "", WIRE_RANGE_NO_DEPTH);
	assert_string_equal(seen.names[seen.events[0].domain], "domain 99");
}

static void *leave_open(void *unused)
{
	errno = 42;
	nvtxRangePushA("left");
	return errno == 42 ? unused : NULL;
}

/* The next thread with its ring begins at level 0. */
static void test_thread_ends(void **state)
{
	pthread_t thread;
	void *result;

	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, leave_open, session);
		pthread_join(thread, &result);
		assert_ptr_equal(result, session);
	}
	drain();
	assert_int_equal(seen.count, 4);
	for (size_t i = 0; i < 4; i += 2) {
		expect(i, WIRE_RECORD_RANGE_PUSH, "left", 0);
		expect(i + 1, WIRE_RECORD_RANGE_THREAD_END, "", WIRE_RANGE_NO_DEPTH);
		assert_int_equal(seen.events[i].tid, seen.events[i + 1].tid);
	}
	assert_int_not_equal(seen.events[0].tid, seen.events[2].tid);
}

static volatile sig_atomic_t handled;

static void on_alarm(int signal_number)
{
	handled += 1;
	if (nvtxRangePushA("in a handler") >= 0)
		nvtxRangePop();
}

/* A handler may interrupt a call at any place: its ranges are whole, or counted as left out. */
static void test_signal_handlers(void **state)
{
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	uint64_t dropped = rings->no_range, events = 0, in_handler = 0, pairs = 0;

	drain();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (bool is_over = false; !is_over; drain()) {
		for (size_t i = 0; i < seen.count; i++)
			in_handler += strcmp(name_of(i), "in a handler") == 0;
		events += seen.count;
		is_over = handled >= 2000;
		for (int i = 0; i < 2000 && !is_over; i++) {
			pairs++;
			assert_int_equal(nvtxRangePushA("interrupted"), 0);
			assert_int_equal(nvtxRangePop(), 0);
		}
		if (is_over)
			setitimer(ITIMER_REAL, &never, NULL);
	}
	for (size_t i = 0; i < seen.count; i++)
		in_handler += strcmp(name_of(i), "in a handler") == 0;
	events += seen.count;
	dropped = rings->no_range - dropped;
	assert_int_equal(events, 2 * (pairs + in_handler));
	assert_int_equal(in_handler + dropped, handled);
}

/* Beyond the space for names, ranges go on under one name. */
static void test_too_many_names(void **state)
{
	char name[32];

	for (int i = 0; i < 140000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		nvtxMarkA(name);
		if (i % 1000 == 0)
			drain();
	}
	drain();
	nvtxMarkA("one more");
	nvtxMarkA("in a handler"); /* a known one */
	drain();
	assert_string_equal(name_of(0), "[too many names]");
	assert_string_equal(name_of(1), "in a handler");
}

static void test_fork(void **state)
{
	pid_t child;
	int status;

	drain();
	child = fork();
	if (child == 0)
		_exit(nvtxRangePushA("of the child") == NVTX_NO_PUSH_POP_TRACKING ? 7 : 8);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	nvtxMarkA("in a handler");
	drain();
	assert_int_equal(seen.count, 1);
}

static int tear_down(void **state)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s", session);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed_gate),
		cmocka_unit_test(test_levels_and_names),
		cmocka_unit_test(test_registered_and_changing_names),
		cmocka_unit_test(test_many_openings),
		cmocka_unit_test(test_wrong_arguments),
		cmocka_unit_test(test_many_domains),
		cmocka_unit_test(test_thread_ends),
		cmocka_unit_test(test_signal_handlers),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_fork),
	};

	make_session();
	return cmocka_run_group_tests(tests, NULL, tear_down);
}
