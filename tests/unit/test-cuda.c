/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA door of libsonde-inject.so, loaded into a program that plays scripts through a stand-in
 * for libcupti (tests/doubles/cupti: no device, no driver): what came into the ring file.
 */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/device.h"
#include "wire/ring.h"

#define MAX_SEEN 65536
/* Of the script "full". */
#define FULL_KERNELS (WIRE_RING_AT_FIRST / sizeof(struct wire_device_gpu_activity) + 100)

struct named {
	uint16_t type;
	uint32_t id;
	char text[2048];
};

struct seen {
	struct wire_device_launch launches[MAX_SEEN];
	struct wire_device_gpu_activity activities[MAX_SEEN];
	struct wire_device_graph graphs[64];
	struct named names[64];
	struct named notes[64];
	struct wire_device_counts counts;
	struct wire_device_clock last_clock;
	struct wire_device_gpu gpu;
	struct wire_device_overhead overhead;
	struct wire_device_memory memory[2];
	struct wire_device_sync syncs[8];
	struct wire_device_call calls[4096];
	char call_names[4096][WIRE_DEVICE_CALL_NAME_BYTES + 1];
	size_t launch_count, activity_count, graph_count, name_count, note_count, clock_count;
	struct wire_device_node nodes[16];
	struct named node_names[16];
	size_t memory_count, node_count, sync_count, call_count;
	uint64_t lost;
	int status; /* of the program */
};

static struct seen seen;
static char session[] = "/tmp/sonde-test-cuda.XXXXXX";

/* ---- the session ---- */

static unsigned graph_mode, call_mode, also_recorded; /* of the next gate */

static void make_gate(unsigned state)
{
	char path[256];
	struct wire_gate gate = {.magic = WIRE_GATE_MAGIC,
		.version = WIRE_RING_VERSION,
		.state = state,
		.is_ready = 1,
		.graph_mode = (__u8)graph_mode,
		.call_mode = (__u8)call_mode,
		.also_recorded = (__u8)also_recorded};
	struct timespec now;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	gate.heartbeat_ns = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, session);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &gate, sizeof(gate)), sizeof(gate));
	close(fd);
}

static void take_named(
	struct named *named, size_t *count, const struct wire_device_definition *from)
{
	assert_true(*count < 64);
	named[*count].type = from->record.type;
	named[*count].id = from->id;
	memcpy(named[*count].text, from + 1, from->text_bytes);
	named[(*count)++].text[from->text_bytes] = '\0';
}

static void take_name_part(const struct wire_device_definition *from)
{
	struct named *last = &seen.names[seen.name_count - 1];
	size_t length = strlen(last->text);

	assert_int_equal(last->id, from->id);
	memcpy(last->text + length, from + 1, from->text_bytes);
	last->text[length + from->text_bytes] = '\0';
}

static void take_node(const struct wire_device_node *from)
{
	assert_true(seen.node_count < 16);
	seen.nodes[seen.node_count] = *from;
	memcpy(seen.node_names[seen.node_count++].text, from + 1, from->text_bytes);
}

static void take_call(const struct wire_device_call *from)
{
	assert_true(seen.call_count < 4096);
	assert_true(sizeof(*from) + from->text_bytes <= from->record.length_bytes);
	seen.calls[seen.call_count] = *from;
	memcpy(seen.call_names[seen.call_count++], from + 1, from->text_bytes);
}

static void take(const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_DEVICE_LAUNCH:
		assert_true(seen.launch_count < MAX_SEEN);
		memcpy(&seen.launches[seen.launch_count++], record, sizeof(*seen.launches));
		break;
	case WIRE_RECORD_DEVICE_ACTIVITY:
		assert_int_equal(record->length_bytes, sizeof(*seen.activities));
		assert_true(seen.activity_count < MAX_SEEN);
		memcpy(&seen.activities[seen.activity_count++], record, sizeof(*seen.activities));
		break;
	case WIRE_RECORD_DEVICE_GRAPH:
		assert_true(seen.graph_count < 64);
		memcpy(&seen.graphs[seen.graph_count++], record, sizeof(*seen.graphs));
		break;
	case WIRE_RECORD_DEVICE_NAME:
	case WIRE_RECORD_DEVICE_DEVICE:
	case WIRE_RECORD_DEVICE_QUEUE:
		take_named(seen.names, &seen.name_count, (const void *)record);
		break;
	case WIRE_RECORD_DEVICE_NAME_PART:
		take_name_part((const void *)record);
		break;
	case WIRE_RECORD_DEVICE_NOTE:
		take_named(seen.notes, &seen.note_count, (const void *)record);
		break;
	case WIRE_RECORD_DEVICE_CLOCK:
		memcpy(&seen.last_clock, record, sizeof(seen.last_clock));
		seen.clock_count++;
		break;
	case WIRE_RECORD_DEVICE_COUNTS:
		memcpy(&seen.counts, record, sizeof(seen.counts));
		break;
	case WIRE_RECORD_DEVICE_GPU:
		memcpy(&seen.gpu, record, sizeof(seen.gpu));
		break;
	case WIRE_RECORD_DEVICE_OVERHEAD:
		memcpy(&seen.overhead, record, sizeof(seen.overhead));
		break;
	case WIRE_RECORD_DEVICE_NODE:
		take_node((const void *)record);
		break;
	case WIRE_RECORD_DEVICE_MEMORY:
		assert_true(seen.memory_count < 2);
		memcpy(&seen.memory[seen.memory_count++], record, sizeof(*seen.memory));
		break;
	case WIRE_RECORD_DEVICE_SYNC:
		assert_true(seen.sync_count < 8);
		memcpy(&seen.syncs[seen.sync_count++], record, sizeof(*seen.syncs));
		break;
	case WIRE_RECORD_DEVICE_CALL:
		take_call((const void *)record);
		break;
	default:
		fail_msg("record of unknown type %u", record->type);
	}
}

/* While the program runs. */
static enum {
	READ_NOTHING,
	READ_ALL,     /* as the collector does */
	READ_TO_ROOM, /* one record for each that found no room */
	READ_LATER,   /* none, as a collector that gets no CPU but still lives */
} reading;

/* The ring file of the program, mapped for as long as it is read. */
static struct {
	struct wire_ring_file *file;
	struct wire_ring_cursor cursors[WIRE_RING_COUNT];
	uint64_t lost[WIRE_RING_COUNT]; /* for which a record was read */
} ring;

static void map_ring_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0 && (size_t)status.st_size >= WIRE_RING_FILE_BYTES) {
		ring.file =
			mmap(NULL, WIRE_RING_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(ring.file != MAP_FAILED);
		memset(ring.cursors, 0, sizeof(ring.cursors));
		memset(ring.lost, 0, sizeof(ring.lost));
	}
	close(fd);
}

static bool read_record(uint32_t i)
{
	_Alignas(8) unsigned char record[WIRE_DEVICE_MAX_BYTES];
	enum wire_ring_got got = wire_ring_read(&ring.file->rings[i], wire_ring_data(ring.file, i),
		&ring.cursors[i], record, sizeof(record));

	assert_true(got == WIRE_RING_RECORD || got == WIRE_RING_NOTHING);
	if (got == WIRE_RING_RECORD)
		take((const void *)record);
	return got == WIRE_RING_RECORD;
}

static void read_rings(void)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		while (read_record(i))
			;
}

static void read_to_room(void)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		for (; ring.lost[i] < ring.file->rings[i].lost; ring.lost[i]++)
			read_record(i);
}

static void find_ring_file(bool remove)
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/" WIRE_RING_PREFIX "*", session);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	assert_int_equal(found.gl_pathc, 1);
	if (!ring.file)
		map_ring_file(found.gl_pathv[0]);
	if (remove)
		unlink(found.gl_pathv[0]);
	globfree(&found);
}

static void read_session(void)
{
	find_ring_file(true);
	if (!ring.file)
		return;
	assert_true(ring.file->magic == WIRE_RING_MAGIC);
	read_rings();
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		seen.lost += ring.file->rings[i].lost;
	munmap(ring.file, WIRE_RING_FILE_BYTES);
	ring.file = NULL;
}

/* Without it a full ring closes the gate. */
static void beat(void)
{
	char path[256];
	struct timespec now;
	uint64_t now_ns;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, session);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(
		pwrite(fd, &now_ns, sizeof(now_ns), offsetof(struct wire_gate, heartbeat_ns)),
		sizeof(now_ns));
	close(fd);
}

static void read_meanwhile(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	beat();
	if (!ring.file)
		find_ring_file(false);
	if (ring.file && reading == READ_ALL)
		read_rings();
	else if (ring.file && reading == READ_TO_ROOM)
		read_to_room();
	nanosleep(&pause, NULL);
}

/* `settings`: names and values, then NULL. */
static void play_with(const char *script, unsigned gate, const char *cupti, const char **settings)
{
	pid_t child;
	int status = 0;

	memset(&seen, 0, sizeof(seen));
	make_gate(gate);
	child = fork();
	if (child == 0) {
		setenv("SONDE_SESSION", session, 1);
		setenv("SONDE_CUPTI", cupti, 1);
		setenv("SONDE_CUDA_FLUSH_MS", "10", 1);
		setenv("SONDE_CUDA_RECLAIM_MS", "300", 1);
		for (; settings && settings[0]; settings += 2)
			setenv(settings[0], settings[1], 1);
		execl(PLAY, PLAY, INJECT, cupti, script, NULL);
		_exit(126);
	}
	while (reading && waitpid(child, &status, WNOHANG) == 0)
		read_meanwhile();
	if (!reading)
		assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	seen.status = WEXITSTATUS(status);
	read_session();
}

static void play(const char *script)
{
	play_with(script, WIRE_GATE_OPEN, DOUBLE_13, NULL);
}

/* ---- what was seen ---- */

static const struct wire_device_launch *launch_of(uint64_t correlation)
{
	for (size_t i = 0; i < seen.launch_count; i++)
		if (seen.launches[i].correlation == correlation)
			return &seen.launches[i];
	return NULL;
}

static size_t launches_of_kind(unsigned kind)
{
	size_t count = 0;

	for (size_t i = 0; i < seen.launch_count; i++)
		count += seen.launches[i].kind == kind;
	return count;
}

static const struct wire_device_graph *graph_event(unsigned event)
{
	for (size_t i = 0; i < seen.graph_count; i++)
		if (seen.graphs[i].event == event)
			return &seen.graphs[i];
	return NULL;
}

static const char *name_of(uint16_t type, uint32_t id)
{
	for (size_t i = seen.name_count; i > 0; i--)
		if (seen.names[i - 1].type == type && seen.names[i - 1].id == id)
			return seen.names[i - 1].text;
	return "";
}

static const char *note_of(unsigned note)
{
	for (size_t i = 0; i < seen.note_count; i++)
		if (seen.notes[i].id == note)
			return seen.notes[i].text;
	return "";
}

static void assert_all_joined(void)
{
	for (size_t i = 0; i < seen.activity_count; i++)
		assert_non_null(launch_of(seen.activities[i].activity.correlation));
}

/* The low half of the correlation of the call that captured the node of the i-th activity. */
static uint32_t captured_by(size_t i)
{
	return (uint32_t)seen.activities[i].capture;
}

/* ---- tests ---- */

static void check_plain(void)
{
	const struct wire_device_gpu_activity *kernel;

	/* The status of the program, and a call of the runtime and the driver's in it are one. */
	assert_int_equal(seen.status, 3);
	assert_int_equal(launches_of_kind(WIRE_DEVICE_KERNEL), 4);
	assert_int_equal(launches_of_kind(WIRE_DEVICE_COPY), 1);
	assert_int_equal(launches_of_kind(WIRE_DEVICE_FILL), 1);
	assert_int_equal(launches_of_kind(WIRE_DEVICE_FINISH), 1);
	assert_int_equal(seen.activity_count, 5);
	assert_all_joined();
	assert_int_equal(seen.activities[0].activity.kind, WIRE_DEVICE_FILL);
	assert_int_equal(seen.activities[0].activity.bytes, 8192);
	kernel = &seen.activities[1];
	assert_string_equal(
		name_of(WIRE_RECORD_DEVICE_NAME, kernel->activity.name), "_Z5gemmsPfS_");
	assert_string_equal(
		name_of(WIRE_RECORD_DEVICE_DEVICE, kernel->activity.device), "Double of a GPU");
	assert_string_equal(name_of(WIRE_RECORD_DEVICE_QUEUE, kernel->activity.queue), "stream 7");
	assert_int_equal(kernel->activity.global_size[0], 512);
	assert_int_equal(kernel->activity.local_size[0], 128);
	assert_int_equal(kernel->registers, 42);
	assert_int_equal(kernel->static_shared_bytes, 256);
	assert_int_equal(kernel->dynamic_shared_bytes, 512);
	assert_int_equal(kernel->untimed, WIRE_DEVICE_TIMED);
	assert_int_equal(seen.activities[2].activity.kind, WIRE_DEVICE_WRITE);
	assert_int_equal(seen.gpu.uuid[2], 3);
	assert_int_equal(seen.gpu.multiprocessors, 132);
	assert_int_equal(seen.overhead.tid, 99);
	assert_int_equal(seen.counts.launches, 5);
	assert_int_equal(seen.counts.activities, 5);
	assert_int_equal(seen.counts.untimed, 0);
}

static void plain_13(void **state)
{
	play("plain");
	check_plain();
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), "CUPTI 13.5"));
	assert_int_equal(seen.note_count, 1);
}

static void plain_12(void **state)
{
	play_with("plain", WIRE_GATE_OPEN, DOUBLE_12, NULL);
	check_plain();
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), "CUPTI 12.9.1"));
}

static void launches_tell_their_error(void **state)
{
	size_t failed = 0;

	play("plain");
	for (size_t i = 0; i < seen.launch_count; i++)
		failed += seen.launches[i].untimed == WIRE_DEVICE_FAILED;
	assert_int_equal(failed, 1);
}

static void clocks_are_paired(void **state)
{
	const struct wire_device_launch *launch;
	int64_t offset;

	play("plain");
	assert_true(seen.clock_count >= 2);
	assert_true(seen.last_clock.width_ns < 100000);
	offset = (int64_t)(seen.last_clock.device - seen.last_clock.monotonic_ns);
	/* The stand-in's kernels begin when they are told, after their launch, within the second.
	 */
	launch = launch_of(seen.activities[1].activity.correlation);
	assert_true(
		(int64_t)seen.activities[1].activity.start - offset >= (int64_t)launch->enter_ns);
	assert_true((int64_t)seen.activities[1].activity.start - offset <
		    (int64_t)launch->enter_ns + 1000000000);
}

static void clock_step_is_told(void **state)
{
	play("clock");
	assert_non_null(strstr(note_of(WIRE_NOTE_CLOCK_STEP), "jumped by"));
}

static void zero_times_are_untimed(void **state)
{
	play("zero-times");
	assert_int_equal(seen.activity_count, 2);
	assert_int_equal(seen.activities[0].untimed, WIRE_DEVICE_NO_TIMES);
	assert_int_equal(seen.activities[1].untimed, WIRE_DEVICE_TIMED);
	assert_int_equal(seen.counts.untimed, 1);
}

static void dropped_records_are_counted(void **state)
{
	play("dropped");
	assert_int_equal(seen.counts.launches, 3);
	assert_int_equal(seen.counts.activities, 1);
	assert_int_equal(seen.counts.dropped, 2);
}

static void correlation_wraps(void **state)
{
	play("wrap");
	assert_int_equal(seen.launch_count, 6);
	assert_int_equal(seen.activity_count, 6);
	assert_all_joined();
	for (size_t i = 1; i < seen.launch_count; i++)
		assert_true(seen.launches[i].correlation == seen.launches[i - 1].correlation + 1);
}

static void graph_replays_know_their_capture(void **state)
{
	static const uint32_t captures[] = {103, 102, 101, 103, 102, 101};
	const struct wire_device_graph *graph;

	play("graph");
	assert_int_equal(seen.activity_count, 6);
	assert_all_joined();
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(captured_by(i), captures[i]);
		assert_int_equal(
			launch_of(seen.activities[i].capture)->untimed, WIRE_DEVICE_CAPTURED);
		assert_int_equal(seen.activities[i].graph, 20);
	}
	assert_int_equal(launches_of_kind(WIRE_DEVICE_GRAPH), 2);
	assert_int_equal(seen.counts.captured, 3);
	assert_int_equal(seen.counts.launches, 2);
	assert_int_equal(seen.counts.unknown_nodes, 0);
	assert_int_equal(seen.node_count, 0);
	graph = graph_event(WIRE_GRAPH_CAPTURE_END);
	assert_int_equal(graph->nodes, 3);
	assert_int_equal(graph->graph, 10);
	graph = graph_event(WIRE_GRAPH_INSTANTIATE);
	assert_int_equal(graph->graph, 10);
	assert_int_equal(graph->other, 20);
	assert_int_equal(graph->nodes, 3);
}

static void graph_nodes_known_by_their_place(void **state)
{
	play("graph-places");
	assert_int_equal(seen.activity_count, 2);
	assert_int_equal(captured_by(0), 102);
	assert_int_equal(captured_by(1), 101);
	assert_int_equal(seen.counts.unknown_nodes, 0);
}

static void graph_clones_children_and_bodies(void **state)
{
	const struct wire_device_launch *by_hand;

	play("graph-family");
	assert_int_equal(seen.activity_count, 5);
	assert_int_equal(captured_by(0), 121);
	assert_int_equal(captured_by(1), 102);
	assert_int_equal(captured_by(2), 101);
	by_hand = launch_of(seen.activities[3].capture);
	assert_non_null(by_hand);
	assert_int_equal(by_hand->untimed, WIRE_DEVICE_CAPTURED);
	assert_int_equal(seen.activities[4].capture, 0);
	assert_int_equal(seen.counts.unknown_nodes, 1);
}

static void graph_events_in_a_burst(void **state)
{
	uint64_t unknown = 0;

	play("clones");
	assert_int_equal(seen.activity_count, 2000);
	for (size_t i = 0; i < seen.activity_count; i++) {
		assert_true(!seen.activities[i].capture || captured_by(i) == 101);
		unknown += !seen.activities[i].capture;
	}
	/* What the queue could not take is counted, and said of each activity. */
	assert_true(unknown == seen.counts.unknown_nodes);
	assert_true(!unknown || seen.counts.lost_graph_events);
}

static void graph_level(void **state)
{
	graph_mode = WIRE_GRAPH_WHOLE;
	play("graph-level");
	graph_mode = WIRE_GRAPH_AUTO;
	assert_int_equal(seen.activity_count, 1);
	assert_int_equal(seen.activities[0].activity.kind, WIRE_DEVICE_GRAPH);
	assert_int_equal(seen.activities[0].graph, 20);
	assert_all_joined();
	/* Three made by captured launches, and a clone of each. */
	assert_int_equal(seen.node_count, 6);
	assert_string_equal(seen.node_names[0].text, "_Z5gemmsPfS_");
	assert_non_null(launch_of(seen.nodes[0].correlation));
	assert_int_equal(seen.nodes[3].original, seen.nodes[0].node);
}

/* A graph that begins on the host is of the device that it ends on. */
static void graph_that_begins_on_the_host(void **state)
{
	graph_mode = WIRE_GRAPH_WHOLE;
	play("graph-from-host");
	graph_mode = WIRE_GRAPH_AUTO;
	assert_int_equal(seen.activity_count, 2);
	assert_string_equal(name_of(WIRE_RECORD_DEVICE_DEVICE, seen.activities[0].activity.device),
		"CUDA device 1");
	assert_string_equal(name_of(WIRE_RECORD_DEVICE_QUEUE, seen.activities[0].activity.queue),
		"stream 7 of context 2");
	assert_string_equal(name_of(WIRE_RECORD_DEVICE_DEVICE, seen.activities[1].activity.device),
		"CUDA graphs of no known device");
	/* The collector takes no greater ids. */
	for (size_t i = 0; i < 2; i++)
		assert_true((seen.activities[i].activity.device & (WIRE_DEVICE_IDS_OF(1) - 1)) <
			    1 << 20);
	assert_all_joined();
}

/* What ran when the window ended is told; what is launched afterwards is not. */
static void drains(void **state)
{
	play("drain");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 2);
	assert_all_joined();
	assert_int_equal(seen.counts.activities, 2);
}

static void graph_destroyed_before_its_records(void **state)
{
	/* The records come with a later flush than the destruction. */
	const char *settings[] = {"SONDE_CUDA_FLUSH_MS", "50", NULL};

	play_with("destroyed", WIRE_GATE_OPEN, DOUBLE_13, settings);
	assert_int_equal(seen.activity_count, 2);
	assert_int_equal(captured_by(0), 102);
	assert_int_equal(captured_by(1), 101);
	assert_non_null(graph_event(WIRE_GRAPH_DESTROY));
	assert_non_null(graph_event(WIRE_GRAPH_EXEC_DESTROY));
}

static void graph_ids_used_again(void **state)
{
	play("rebuilt");
	assert_int_equal(seen.activity_count, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(captured_by(i), 101 + i * 20);
}

static void forked_child_leaves_cupti_alone(void **state)
{
	play("fork");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.launch_count, 2);
	assert_int_equal(seen.activity_count, 2);
	assert_all_joined();
}

static void end_without_handlers_keeps_what_was_flushed(void **state)
{
	play("exit");
	assert_int_equal(seen.status, 4);
	assert_int_equal(seen.activity_count, 1);
}

static void another_tool_takes_over(void **state)
{
	play_with("taken-over", WIRE_GATE_OPEN, DOUBLE_12, NULL);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 2);
	assert_int_equal((uint32_t)seen.activities[1].activity.correlation, 4);
	assert_non_null(strstr(note_of(WIRE_NOTE_TAKEN_OVER), "took over"));
	assert_non_null(strstr(note_of(WIRE_NOTE_TAKEN_BACK), "1 launches"));
	assert_int_equal(seen.counts.foreign_buffers, 1);
}

/* One kernel that runs long is no other tool, and its record comes. */
static void long_kernel_is_no_other_tool(void **state)
{
	play_with("long-kernel", WIRE_GATE_OPEN, DOUBLE_12, NULL);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 2);
	assert_string_equal(note_of(WIRE_NOTE_TAKEN_OVER), "");
}

/* Many more launches than a buffer holds, and no buffer is asked for. */
static void another_tool_without_waits(void **state)
{
	play_with("taken-unnoticed", WIRE_GATE_OPEN, DOUBLE_12, NULL);
	assert_int_equal(seen.status, 0);
	assert_non_null(strstr(note_of(WIRE_NOTE_TAKEN_OVER), "took over"));
}

static void work_in_flight_at_the_end(void **state)
{
	play("in-flight");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 2);
	assert_all_joined();
}

static void names_at_one_place(void **state)
{
	play("name-replaced");
	assert_int_equal(seen.activity_count, 2);
	assert_string_equal(
		name_of(WIRE_RECORD_DEVICE_NAME, seen.activities[0].activity.name), "before");
	assert_string_equal(
		name_of(WIRE_RECORD_DEVICE_NAME, seen.activities[1].activity.name), "after");
}

static void held_by_a_named_tool(void **state)
{
	const char *settings[] = {
		"DOUBLE_CUPTI_SUBSCRIBE", "39", "DOUBLE_CUPTI_HOLDER", "Nsight Systems", NULL};

	play_with("plain", WIRE_GATE_OPEN, DOUBLE_13, settings);
	assert_int_equal(seen.status, 3);
	assert_non_null(strstr(note_of(WIRE_NOTE_HELD), "held by Nsight Systems,"));
	assert_int_equal(seen.launch_count + seen.activity_count, 0);
}

static void held_by_somebody(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_SUBSCRIBE", "39", NULL};

	play_with("plain", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_int_equal(seen.status, 3);
	assert_non_null(strstr(note_of(WIRE_NOTE_HELD), "another tool"));
}

static void no_driver(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_SUBSCRIBE", "999", NULL};

	play_with("plain", WIRE_GATE_OPEN, DOUBLE_13, settings);
	assert_int_equal(seen.status, 3);
	assert_non_null(strstr(note_of(WIRE_NOTE_NO_DRIVER), "no NVIDIA driver"));
}

static void no_library(void **state)
{
	const char *settings[] = {"SONDE_CUPTI", "/nonexistent/libcupti.so", NULL};

	play_with("plain", WIRE_GATE_OPEN, DOUBLE_13, settings);
	assert_int_equal(seen.status, 3);
	if (!*note_of(WIRE_NOTE_TRACER))
		assert_non_null(strstr(note_of(WIRE_NOTE_NO_TRACER), "nvidia-cuda-cupti"));
}

static bool has_note(unsigned note, const char *words)
{
	for (size_t i = 0; i < seen.note_count; i++)
		if (seen.notes[i].id == note && strstr(seen.notes[i].text, words))
			return true;
	return false;
}

/* A fault is said of the releases before the one that is right, not of that one. */
static void faulty_versions(void **state)
{
	static const struct {
		const char *version;
		bool deadlocks, grows;
	} rows[] = {
		{"28", false, true},
		{"130000", true, true},
		{"130001", false, true},
		{"130101", false, true},
		{"130400", false, true},
		{"130401", false, false},
		{"130500", false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *settings[] = {"DOUBLE_CUPTI_VERSION", rows[i].version, NULL};

		play_with("plain", WIRE_GATE_OPEN, DOUBLE_13, settings);
		check_plain();
		assert_int_equal(
			has_note(WIRE_NOTE_FAULTY, "13.0 update 1 is right"), rows[i].deadlocks);
		assert_int_equal(
			has_note(WIRE_NOTE_FAULTY, "more and more CPU time"), rows[i].grows);
		/* There is no second tracing session. */
		assert_false(has_note(WIRE_NOTE_FAULTY, "correlation ids"));
	}
}

static void faulty_at_graph_level(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_VERSION", "22", NULL};

	play_with("graph-level", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_false(has_note(WIRE_NOTE_FAULTY, "12.4 update 1"));
	graph_mode = WIRE_GRAPH_WHOLE;
	play_with("graph-level", WIRE_GATE_OPEN, DOUBLE_12, settings);
	graph_mode = WIRE_GRAPH_AUTO;
	assert_true(has_note(WIRE_NOTE_FAULTY, "12.4 update 1"));
}

/* ---- graphs that the device launches ---- */

static void play_device_graphs(const char *cupti, const char *version, const char *answer)
{
	const char *settings[] = {
		"DOUBLE_CUPTI_VERSION", version, "DOUBLE_CUPTI_DEVICE_GRAPHS", answer, NULL};

	graph_mode = WIRE_GRAPH_WHOLE;
	play_with("device-graphs", WIRE_GATE_OPEN, cupti, settings);
	graph_mode = WIRE_GRAPH_AUTO;
	assert_int_equal(seen.status, 0);
}

/* What the device launched names its launcher, is of no call, and serves no launch. */
static void graphs_that_the_device_launches(void **state)
{
	static const struct {
		uint32_t graph, launcher;
		const char *name;
	} expected[] = {
		{21, 20, "graph launched on the device by graph 20, fire and forget"},
		{22, 21, "graph launched on the device by graph 21, sibling"},
		{21, 21, "graph launched on the device by graph 21, tail"},
		{22, 22, "graph launched on the device by graph 22, tail"},
		{23, 99, "graph launched on the device by graph 99"},
		{24, WIRE_LAUNCHER_UNKNOWN, "graph launched on the device"},
		{25, 20, "graph launched on the device by graph 20, tail"},
	};
	static const struct {
		const char *cupti, *version;
	} releases[] = {{DOUBLE_12, "26"}, {DOUBLE_13, "130000"}, {DOUBLE_13, "130500"}};

	also_recorded = WIRE_ALSO_DEVICE_GRAPHS;
	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++) {
		play_device_graphs(releases[i].cupti, releases[i].version, "0");
		assert_int_equal(seen.activity_count, 1 + 7);
		assert_int_equal(seen.activities[0].graph, 20);
		assert_int_equal(seen.activities[0].launcher, 0);
		for (size_t j = 0; j < 7; j++) {
			const struct wire_device_gpu_activity *one = &seen.activities[j + 1];

			assert_int_equal(one->activity.kind, WIRE_DEVICE_GRAPH);
			assert_int_equal(one->activity.correlation, 0);
			assert_int_equal(one->graph, expected[j].graph);
			assert_int_equal(one->launcher, expected[j].launcher);
			assert_string_equal(name_of(WIRE_RECORD_DEVICE_NAME, one->activity.name),
				expected[j].name);
			assert_int_equal(one->untimed,
				one->graph == 25 ? WIRE_DEVICE_NO_TIMES : WIRE_DEVICE_TIMED);
		}
		assert_int_equal(seen.activities[1].stream, 2U << 24);
		assert_false(has_note(WIRE_NOTE_REFUSED, "--graph device"));
	}
	also_recorded = 0;
}

static void device_graphs_of_a_later_window(void **state)
{
	graph_mode = WIRE_GRAPH_WHOLE;
	also_recorded = WIRE_ALSO_DEVICE_GRAPHS;
	play_with("device-graphs-window", WIRE_GATE_CLOSED, DOUBLE_13, NULL);
	graph_mode = WIRE_GRAPH_AUTO;
	also_recorded = 0;
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 1 + 7);
	assert_int_equal(seen.activities[1].graph, 21);
}

static void device_graphs_are_recorded_on_request(void **state)
{
	play_device_graphs(DOUBLE_13, "130500", "0");
	assert_int_equal(seen.activity_count, 1);
	assert_false(has_note(WIRE_NOTE_REFUSED, "--graph device"));
}

/* By a release that has no such records, or with an error: the host's launches are there. */
static void refusals_of_device_graphs(void **state)
{
	also_recorded = WIRE_ALSO_DEVICE_GRAPHS;
	play_device_graphs(DOUBLE_12, "24", "0");
	assert_int_equal(seen.activity_count, 1);
	assert_true(has_note(WIRE_NOTE_REFUSED, "needs CUDA 12.8 or later, and this one is 12.6."));
	play_device_graphs(DOUBLE_13, "130500", "7");
	assert_int_equal(seen.activity_count, 1);
	assert_true(has_note(WIRE_NOTE_REFUSED, "error 7, CUPTI_ERROR_OF_THE_DOUBLE."));
	also_recorded = 0;
}

/* ---- graphs by node or as a whole, by measurement ---- */

#define LEVEL_NODES 3

static void play_levels(const char *script, const char *cupti, const char *version,
	const char *cost, const char *driver)
{
	const char *settings[] = {"SONDE_CUDA_FLUSH_MS", "1", "DOUBLE_CUPTI_NODE_COST", cost,
		"DOUBLE_CUPTI_VERSION", version, driver, "1", NULL};

	play_with(script, WIRE_GATE_OPEN, cupti, settings);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.lost, 0);
}

static size_t count_wholes(void)
{
	size_t count = 0;

	for (size_t i = 0; i < seen.activity_count; i++)
		count += seen.activities[i].activity.kind == WIRE_DEVICE_GRAPH;
	return count;
}

/* By node first, then as a whole until both are known; every replay has its record or its nodes. */
static void check_both_levels(void)
{
	size_t wholes = count_wholes();

	assert_true(wholes >= 8);
	assert_true(seen.activity_count - wholes >= 8 * LEVEL_NODES);
	assert_int_equal((seen.activity_count - wholes) % LEVEL_NODES, 0);
	assert_int_equal(launches_of_kind(WIRE_DEVICE_GRAPH),
		wholes + (seen.activity_count - wholes) / LEVEL_NODES);
	assert_int_equal(seen.activities[0].activity.kind, WIRE_DEVICE_KERNEL);
	/* What graphs consist of is reported before it is known how they are timed. */
	assert_int_equal(seen.node_count, 2 * LEVEL_NODES);
}

static void levels_where_nodes_are_cheap(void **state)
{
	play_levels("levels-2", DOUBLE_13, "130101", "5", "NONE");
	check_both_levels();
	assert_true(has_note(WIRE_NOTE_TRACER,
		"the nodes of graphs stay timed, which adds 5.0 % to a replay (medians of 8 "
		"replays, graph 20: 0.315 ms by node, 0.300 ms as a whole)"));
	assert_false(has_note(WIRE_NOTE_FAULTY, "--graph auto"));
}

/* Also where CUPTI would serve several tools, but the driver does not. */
static void levels_where_nodes_are_dear(void **state)
{
	static const char *const rows[][2] = {
		{"130101", "NONE"}, {"130500", "DOUBLE_CUPTI_SINGLE"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		play_levels("levels-3", DOUBLE_13, rows[i][0], "50", rows[i][1]);
		check_both_levels();
		/* Until nodes are timed again, which the script waits for. */
		assert_true(count_wholes() >= 50);
		assert_true(has_note(WIRE_NOTE_FAULTY,
			"adds 50.0 % to a replay (medians of 8 replays, graph 20: 0.450 ms by "
			"node, 0.300 ms as a whole). From then on graphs are timed as a whole, "
			"and nodes in one replay of 50,"));
	}
}

/* Nobody would end the sample between windows. */
static void levels_when_a_window_ends(void **state)
{
	play_levels("levels-closed", DOUBLE_13, "130101", "50", "NONE");
	check_both_levels();
}

/* A switch would begin another tracing session, or is not possible. */
static void levels_that_are_not_switched(void **state)
{
	static const struct {
		const char *cupti, *version, *why;
	} rows[] = {
		{DOUBLE_12, "28", "wrong correlation ids"},
		{DOUBLE_13, "130100", "wrong correlation ids"},
		{DOUBLE_13, "130500", "several tools may trace with this CUPTI"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		play_levels("levels-0", rows[i].cupti, rows[i].version, "50", "NONE");
		assert_int_equal(count_wholes(), 0);
		assert_int_equal(seen.activity_count, 200 * LEVEL_NODES);
		assert_true(has_note(WIRE_NOTE_FAULTY, rows[i].why));
		assert_true(has_note(WIRE_NOTE_FAULTY,
			"graph 20 (0.450 ms, median of 8) 33.3 % lie between nodes"));
	}
}

/* A graph keeps the level that it was made at: its nodes go on. */
static void levels_that_do_not_change(void **state)
{
	play_levels("levels-2", DOUBLE_13, "130101", "50", "DOUBLE_CUPTI_STICKY");
	assert_int_equal(count_wholes(), 0);
	assert_true(has_note(WIRE_NOTE_FAULTY, "CUPTI went on timing them"));
}

/* Taking back begins another tracing session. */
static void faulty_when_taken_back(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_VERSION", "130100", NULL};

	play_with("taken-over", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_true(has_note(WIRE_NOTE_FAULTY, "correlation ids"));
	settings[1] = "130101";
	play_with("taken-over", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_true(has_note(WIRE_NOTE_TAKEN_BACK, "again"));
	assert_false(has_note(WIRE_NOTE_FAULTY, "correlation ids"));
}

static void fatal_error_is_told(void **state)
{
	play("state");
	assert_non_null(strstr(note_of(WIRE_NOTE_REFUSED), "the double fell over"));
}

static void threads_launch_at_once(void **state)
{
	play("threads");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.launch_count, 3200);
	assert_int_equal(seen.counts.launches, 3200);
	assert_int_equal(seen.activity_count, 400);
	assert_all_joined();
	assert_int_equal(seen.lost, 0);
}

static void window_opens_and_closes(void **state)
{
	play_with("window", WIRE_GATE_CLOSED, DOUBLE_13, NULL);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.launch_count, 2);
	assert_int_equal(seen.activity_count, 2);
	/* Captured before the window: the node is known, the call that made it was not told. */
	assert_true(seen.activities[1].capture != 0);
	assert_null(launch_of(seen.activities[1].capture));
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), "CUPTI"));
	/* What was defined while the gate was closed: the GPU, the stream, the kernel. */
	for (size_t i = 0; i < 2; i++) {
		const struct wire_device_activity *activity = &seen.activities[i].activity;

		assert_string_equal(
			name_of(WIRE_RECORD_DEVICE_DEVICE, activity->device), "Double of a GPU");
		assert_non_null(name_of(WIRE_RECORD_DEVICE_NAME, activity->name));
		assert_non_null(name_of(WIRE_RECORD_DEVICE_QUEUE, activity->queue));
	}
	assert_int_equal(seen.gpu.multiprocessors, 132);
}

/* What a GPU is comes before its work (as in most scripts), after it, or while the gate is closed.
 */
static void late_device_has_its_name(void **state)
{
	play("late-device");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 2);
	assert_string_equal(name_of(WIRE_RECORD_DEVICE_DEVICE, seen.activities[0].activity.device),
		"Double of a GPU");
	assert_int_equal(seen.activities[0].activity.device, seen.gpu.id);
}

static void mig_instances_are_told_apart(void **state)
{
	play("mig");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.gpu.is_mig, 1);
	assert_int_equal(seen.gpu.uuid[0], 11);
	assert_int_equal(seen.activities[0].activity.device, seen.gpu.id);
}

static void buffers_run_out(void **state)
{
	play("buffers");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.counts.refused_buffers, 1);
}

/* Up to 12.8 CUPTI crashes when it is refused a buffer, also after the exit handlers. */
static void buffers_at_the_end(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_VERSION", "26", NULL};

	play_with("asked-at-the-end", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.activity_count, 1);
}

static void long_names_come_whole(void **state)
{
	const char *name;

	play("long-name");
	name = name_of(WIRE_RECORD_DEVICE_NAME, seen.activities[0].activity.name);
	assert_int_equal(strlen(name), 1200);
	assert_int_equal(strspn(name, "n"), 1200);
}

static void memory_is_told(void **state)
{
	play("memory");
	assert_int_equal(seen.memory_count, 2);
	assert_int_equal(seen.memory[0].bytes, 1 << 20);
	assert_int_equal(seen.memory[0].pool_used_bytes, 1 << 20);
	assert_false(seen.memory[0].released);
	assert_true(seen.memory[1].released);
}

static const struct wire_device_sync *sync_of(unsigned type, size_t number)
{
	for (size_t i = 0; i < seen.sync_count; i++)
		if (seen.syncs[i].sync == type && number-- == 0)
			return &seen.syncs[i];
	fail_msg("no wait of type %u", type);
	return NULL;
}

static void check_syncs(bool joined)
{
	const struct wire_device_sync *wait = sync_of(WIRE_SYNC_WAIT, 0);
	const struct wire_device_sync *record = sync_of(WIRE_SYNC_RECORD, 0);

	assert_int_equal(seen.sync_count, 5);
	assert_int_equal(record->event_sync, joined ? 900 : 0);
	assert_int_equal(wait->event_sync, record->event_sync);
	assert_int_equal(sync_of(WIRE_SYNC_EVENT, 0)->event_sync, joined ? 901 : 0);
	assert_int_equal(sync_of(WIRE_SYNC_CONTEXT, 0)->event_sync, 0);
	assert_int_equal(record->stream, 7);
	assert_int_equal(wait->stream, 8);
	assert_int_equal(wait->event, 40);
	assert_int_equal(sync_of(WIRE_SYNC_EVENT, 0)->stream, WIRE_SYNC_NO_STREAM);
	assert_true(sync_of(WIRE_SYNC_EVENT, 0)->start && !wait->start && !record->start);
	assert_int_equal(seen.call_count, 3);
	assert_string_equal(seen.call_names[0], "cudaEventRecord");
	assert_string_equal(seen.call_names[1], "cudaStreamWaitEvent");
	assert_int_equal(seen.calls[0].correlation, record->correlation);
	assert_int_equal(seen.calls[1].correlation, wait->correlation);
	/* Of the host's waits the launch says who waited. */
	assert_int_equal(seen.launches[1].kind, WIRE_DEVICE_WAIT);
	assert_int_equal(seen.launches[1].correlation, sync_of(WIRE_SYNC_EVENT, 0)->correlation);
	assert_int_equal(seen.activity_count, 1);
	assert_int_equal(seen.counts.activities, 1);
}

static void waits_are_told(void **state)
{
	play("sync");
	check_syncs(true);
}

static void waits_are_told_before_12_8(void **state)
{
	const char *settings[] = {"DOUBLE_CUPTI_VERSION", "18", NULL};

	play_with("sync-before-12.8", WIRE_GATE_OPEN, DOUBLE_12, settings);
	check_syncs(false);
}

static void writer_waits_for_room(void **state)
{
	reading = READ_ALL;
	play("many");
	reading = READ_NOTHING;
	assert_int_equal(seen.status, 0);
	/* The launches' thread never waits; the writer does, and loses nothing. */
	assert_int_equal(seen.activity_count, 50000);
	assert_int_equal(seen.counts.waited_out, 0);
	assert_true(seen.lost >= seen.counts.repeated);
	assert_true(seen.launch_count + seen.lost - seen.counts.repeated == 50000);
}

/* Also the record that counts the tries for room is told by its last try. */
static void writer_finds_hardly_room(void **state)
{
	reading = READ_TO_ROOM;
	play("full");
	reading = READ_NOTHING;
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.counts.waited_out, 0);
	assert_true(seen.lost > 0);
	assert_int_equal(seen.counts.repeated, seen.lost);
}

/* The counts of the end find room in a ring that is full, and of which nothing was ever read. */
static void counts_come_where_nobody_reads(void **state)
{
	reading = READ_LATER;
	play("full");
	reading = READ_NOTHING;
	assert_int_equal(seen.status, 0);
	assert_true(seen.activity_count < seen.counts.activities);
	assert_int_equal(seen.counts.activities, FULL_KERNELS);
	assert_true(seen.activity_count + seen.counts.waited_out >= FULL_KERNELS);
	/* Notes are tried, too. */
	assert_true(seen.lost >= seen.counts.repeated + seen.counts.waited_out);
}

/* The writer has more to read than the program's end can wait for: the rest is counted as lost. */
static void the_end_counts_what_is_left(void **state)
{
	const char *settings[] = {"SONDE_CUDA_FLUSH_MS", "3600000", "SONDE_CUDA_END_MS", "0", NULL};

	reading = READ_ALL;
	play_with("many", WIRE_GATE_OPEN, DOUBLE_13, settings);
	reading = READ_NOTHING;
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.counts.launches, 50000);
	assert_int_equal(seen.counts.activities, 50000);
	assert_true(seen.activity_count < 50000);
	assert_true(seen.counts.waited_out > 0);
	/* Pairs of clocks can be lost, too. */
	assert_true(seen.activity_count + seen.counts.waited_out >= 50000);
	assert_true(seen.lost >= seen.counts.repeated + seen.counts.waited_out);
}

/* ---- which libcupti ---- */

static char tree[] = "/tmp/sonde-test-wheels.XXXXXX";

/* A copy of a stand-in under a name of the tree, whose folders are made. */
static const char *plant(const char *library, const char *name)
{
	static char path[512];
	struct stat status = {0};
	int from = open(library, O_RDONLY | O_CLOEXEC), to;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	for (char *slash = strchr(path + strlen(tree) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(from >= 0 && to >= 0 && fstat(from, &status) == 0);
	assert_int_equal(sendfile(to, from, NULL, (size_t)status.st_size), status.st_size);
	close(from);
	close(to);
	return path;
}

static void uproot(const char *name)
{
	char path[512];
	char *slash;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	unlink(path);
	while ((slash = strrchr(path, '/')) && (size_t)(slash - path) >= strlen(tree)) {
		*slash = '\0';
		rmdir(path);
	}
}

#define WHEEL_RUNTIME_12 "nvidia/cuda_runtime/lib/libcudart.so.12"
#define WHEEL_CUPTI_12   "nvidia/cuda_cupti/lib/libcupti.so.12"
#define WHEEL_RUNTIME_13 "nvidia/cu13/lib/libcudart.so.13"
#define WHEEL_CUPTI_13   "nvidia/cu13/lib/libcupti.so.13"
#define OLD_DRIVER       "driver/libcuda.so.550.54.15"

static void play_with_loaded(const char *loaded, const char *wanted)
{
	const char *settings[] = {"PLAY_LOAD", loaded, "SONDE_CUPTI", wanted, NULL};

	play_with("state", WIRE_GATE_OPEN, DOUBLE_12, settings);
	assert_int_equal(seen.status, 0);
}

static void wheel_beside_the_runtime(void **state)
{
	char runtime[512];

	assert_non_null(mkdtemp(tree));
	plant(DOUBLE_12, WHEEL_CUPTI_12);
	snprintf(runtime, sizeof(runtime), "%s", plant(DOUBLE_13, WHEEL_RUNTIME_12));
	play_with_loaded(runtime, "/nonexistent");
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), WHEEL_CUPTI_12));

	plant(DOUBLE_13, WHEEL_CUPTI_13);
	snprintf(runtime, sizeof(runtime), "%s", plant(DOUBLE_12, WHEEL_RUNTIME_13));
	play_with_loaded(runtime, "/nonexistent");
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), WHEEL_CUPTI_13));
}

static void mapped_one_first(void **state)
{
	char mapped[512];

	snprintf(mapped, sizeof(mapped), "%s", plant(DOUBLE_12, WHEEL_CUPTI_12));
	play_with_loaded(mapped, DOUBLE_13);
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), WHEEL_CUPTI_12));
}

static void none_newer_than_the_driver(void **state)
{
	char loaded[2048];

	snprintf(loaded, sizeof(loaded), "%s", plant(DOUBLE_12, OLD_DRIVER));
	snprintf(loaded + strlen(loaded), sizeof(loaded) - strlen(loaded), ":%s",
		plant(DOUBLE_13, WHEEL_RUNTIME_12));
	/* The driver is of CUDA 12: what is wished for is not fit, what the program brings is. */
	play_with_loaded(loaded, DOUBLE_13);
	assert_non_null(strstr(note_of(WIRE_NOTE_TRACER), WHEEL_CUPTI_12));
	uproot(WHEEL_CUPTI_12);
	uproot(WHEEL_RUNTIME_12);
	uproot(WHEEL_CUPTI_13);
	uproot(WHEEL_RUNTIME_13);
	uproot(OLD_DRIVER);
}

static void no_session(void **state)
{
	const char *settings[] = {"SONDE_SESSION", "/nonexistent", NULL};

	play_with("plain", WIRE_GATE_OPEN, DOUBLE_13, settings);
	assert_int_equal(seen.status, 3);
	assert_int_equal(seen.launch_count, 0);
}

static int make_session(void **state)
{
	return mkdtemp(session) ? 0 : -1;
}

static int remove_session(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, session);
	unlink(path);
	return rmdir(session);
}

/* ---- calls that launch nothing ---- */

static void play_all_calls(const char *script, unsigned gate)
{
	call_mode = WIRE_CALLS_ALL;
	play_with(script, gate, DOUBLE_13, NULL);
	call_mode = WIRE_CALLS_LAUNCHES;
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.lost, 0);
}

/* The number of the first call of this name from `from` on. */
static size_t call_named(const char *name, size_t from)
{
	for (size_t i = from; i < seen.call_count; i++)
		if (strcmp(seen.call_names[i], name) == 0)
			return i;
	fail_msg("no call %s from %zu on", name, from);
	return 0;
}

/* The runtime's call and the driver's in it are one; code that is loaded in another is two. */
static void all_calls_are_told(void **state)
{
	const struct wire_device_call *alloc;
	size_t at;

	play_all_calls("calls", WIRE_GATE_OPEN);
	assert_int_equal(seen.launch_count, 1);
	assert_int_equal(seen.call_count, 9);
	alloc = &seen.calls[call_named("cudaMalloc", 0)];
	assert_true(!alloc->failed && alloc->correlation && alloc->tid);
	assert_true(alloc->enter_ns && alloc->enter_ns <= alloc->exit_ns);
	at = call_named("cuMemAlloc_v2", 0);
	assert_true(seen.calls[at].failed);
	assert_false(seen.calls[call_named("cudaEventQuery", 0)].failed);
	at = call_named("cuLibraryLoadData", 0);
	assert_string_equal(seen.call_names[at + 1], "cuKernelGetFunction");
	assert_int_equal(seen.calls[at].correlation, 0); /* that of the launch */
	assert_true(seen.calls[at].enter_ns >= seen.launches[0].enter_ns);
	assert_true(seen.calls[at + 1].exit_ns <= seen.launches[0].exit_ns);
	at = call_named("cudaLibraryLoadData", at);
	assert_string_equal(seen.call_names[at + 1], "cuModuleLoadData");
	assert_string_equal(seen.call_names[at + 2], "cudaMalloc");
	assert_string_equal(seen.call_names[at + 3], "cudaEventRecord");
}

/* But those that allocate, whoever asks for what. */
static void other_calls_are_not_told(void **state)
{
	static const char *const names[] = {
		"cudaMalloc", "cuMemAlloc_v2", "cudaMalloc", "cudaEventRecord"};

	play("calls");
	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.launch_count, 1);
	assert_int_equal(seen.call_count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(seen.call_names[i], names[i]);
	assert_true(seen.calls[1].failed);
}

static void threads_call_at_once(void **state)
{
	play_all_calls("calls-threads", WIRE_GATE_OPEN);
	assert_int_equal(seen.call_count, 64 * 50);
	for (size_t i = 0; i < seen.call_count; i++) {
		const struct wire_device_call *call = &seen.calls[i];

		assert_string_equal(
			seen.call_names[i], call->correlation % 2 ? "cudaMalloc" : "cudaFree");
		assert_true(call->enter_ns <= call->exit_ns);
	}
}

static void calls_of_a_window(void **state)
{
	play_all_calls("calls-window", WIRE_GATE_CLOSED);
	assert_int_equal(seen.call_count, 2);
	assert_string_equal(seen.call_names[0], "cudaFree");
	assert_int_equal(seen.calls[0].correlation & 0xffff, 3);
	assert_string_equal(seen.call_names[1], "cudaFree");
	assert_int_equal(seen.calls[1].correlation & 0xffff, 6);
}

/* The window ended meanwhile, and its last work has not. */
static void a_call_ends_after_the_window(void **state)
{
	play_all_calls("calls-late", WIRE_GATE_CLOSED);
	assert_true(seen.call_count >= 1);
	assert_string_equal(seen.call_names[seen.call_count - 1], "cudaMalloc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_13),
		cmocka_unit_test(plain_12),
		cmocka_unit_test(launches_tell_their_error),
		cmocka_unit_test(clocks_are_paired),
		cmocka_unit_test(clock_step_is_told),
		cmocka_unit_test(zero_times_are_untimed),
		cmocka_unit_test(dropped_records_are_counted),
		cmocka_unit_test(correlation_wraps),
		cmocka_unit_test(graph_replays_know_their_capture),
		cmocka_unit_test(graph_nodes_known_by_their_place),
		cmocka_unit_test(graph_clones_children_and_bodies),
		cmocka_unit_test(graph_events_in_a_burst),
		cmocka_unit_test(graph_level),
		cmocka_unit_test(graphs_that_the_device_launches),
		cmocka_unit_test(device_graphs_are_recorded_on_request),
		cmocka_unit_test(device_graphs_of_a_later_window),
		cmocka_unit_test(refusals_of_device_graphs),
		cmocka_unit_test(graph_that_begins_on_the_host),
		cmocka_unit_test(drains),
		cmocka_unit_test(graph_destroyed_before_its_records),
		cmocka_unit_test(graph_ids_used_again),
		cmocka_unit_test(forked_child_leaves_cupti_alone),
		cmocka_unit_test(end_without_handlers_keeps_what_was_flushed),
		cmocka_unit_test(another_tool_takes_over),
		cmocka_unit_test(long_kernel_is_no_other_tool),
		cmocka_unit_test(another_tool_without_waits),
		cmocka_unit_test(work_in_flight_at_the_end),
		cmocka_unit_test(names_at_one_place),
		cmocka_unit_test(held_by_a_named_tool),
		cmocka_unit_test(held_by_somebody),
		cmocka_unit_test(no_driver),
		cmocka_unit_test(no_library),
		cmocka_unit_test(faulty_versions),
		cmocka_unit_test(faulty_at_graph_level),
		cmocka_unit_test(levels_where_nodes_are_cheap),
		cmocka_unit_test(levels_where_nodes_are_dear),
		cmocka_unit_test(levels_when_a_window_ends),
		cmocka_unit_test(levels_that_are_not_switched),
		cmocka_unit_test(levels_that_do_not_change),
		cmocka_unit_test(faulty_when_taken_back),
		cmocka_unit_test(fatal_error_is_told),
		cmocka_unit_test(threads_launch_at_once),
		cmocka_unit_test(window_opens_and_closes),
		cmocka_unit_test(all_calls_are_told),
		cmocka_unit_test(other_calls_are_not_told),
		cmocka_unit_test(threads_call_at_once),
		cmocka_unit_test(calls_of_a_window),
		cmocka_unit_test(a_call_ends_after_the_window),
		cmocka_unit_test(late_device_has_its_name),
		cmocka_unit_test(mig_instances_are_told_apart),
		cmocka_unit_test(buffers_run_out),
		cmocka_unit_test(buffers_at_the_end),
		cmocka_unit_test(long_names_come_whole),
		cmocka_unit_test(memory_is_told),
		cmocka_unit_test(waits_are_told),
		cmocka_unit_test(waits_are_told_before_12_8),
		cmocka_unit_test(writer_waits_for_room),
		cmocka_unit_test(writer_finds_hardly_room),
		cmocka_unit_test(counts_come_where_nobody_reads),
		cmocka_unit_test(the_end_counts_what_is_left),
		cmocka_unit_test(wheel_beside_the_runtime),
		cmocka_unit_test(mapped_one_first),
		cmocka_unit_test(none_newer_than_the_driver),
		cmocka_unit_test(no_session),
	};

	return cmocka_run_group_tests(tests, make_session, remove_session);
}
