/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a session whose processes write what they like to its gate, while `sonde ctl` asks
 * any line. The input: a byte that chooses what opens windows, then acts, each a byte and what
 * stands at it below. Whatever they are, windows follow one another, end no later than now, and
 * every answer is one line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_reader.h"
#include "collect/session/internal.h"
#include "target.h"

static const char *const specs[] = {
	"manual", "steps:wait=1,warmup=1,active=3,repeat=2", "calls:2-4,7-7", "signal:USR2"};

enum act {
	ACT_EDGE,   /* an edge, as the leader writes it */
	ACT_GATE,   /* an offset in two bytes, a length, bytes: anywhere in the gate */
	ACT_LINE,   /* a line on the control socket, with its line feed */
	ACT_STEP,   /* a struct wire_step */
	ACT_SIGNAL, /* nothing */
	ACT_MAX
};

struct input {
	const uint8_t *bytes;
	size_t length;
};

/* One for each choice, since opening one takes long. */
#define CHOICES (ARRAY_SIZE(specs) * 4)

static struct world {
	struct session_options options;
	struct session_result result;
	struct session session;
	struct session begun;        /* as it was before the first input */
	struct wire_gate *unchanged; /* the same of its gate */
	uint64_t last_end_ns;
	uint32_t last_number;
} worlds[CHOICES];

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

/* What the input lacks is zero. */
static void take(struct input *input, void *room, size_t length)
{
	size_t there = MIN(length, input->length);

	memset(room, 0, length);
	memcpy(room, input->bytes, there);
	input->bytes += there;
	input->length -= there;
}

static uint8_t take_byte(struct input *input)
{
	uint8_t byte;

	take(input, &byte, 1);
	return byte;
}

/* As the capture sees them: opened, and then with their end, one after the other. */
static int see_window(void *context, const struct capture_window *window)
{
	struct world *world = context;
	uint64_t now_ns = monotonic_now_ns();

	check(window->begin_ns >= world->last_end_ns && window->begin_ns <= now_ns);
	check(window->number == world->last_number + 1);
	if (window->end_ns) {
		check(window->end_ns >= window->begin_ns && window->end_ns <= now_ns);
		world->last_end_ns = window->end_ns;
		world->last_number++;
	}
	return 0;
}

static const struct capture_visitor visitor = {.window = see_window};

static void close_worlds(void)
{
	for (size_t i = 0; i < CHOICES; i++) {
		if (!worlds[i].unchanged)
			continue;
		session_windows_close(&worlds[i].session);
		capture_writer_free(worlds[i].session.writer);
		target_rings_free(worlds[i].session.device.rings);
		free(worlds[i].unchanged);
	}
}

static void world_open(struct world *world, uint8_t choice)
{
	static bool is_registered;
	struct session *session = &world->session;
	struct target_gate_options gate = {.is_closed = true};
	struct errmsg err;

	*world = (struct world){.options = {.output = "capture", .scope = SESSION_SCOPE_GPU}};
	check(window_spec_parse(&world->options.window, specs[choice % ARRAY_SIZE(specs)], &err) ==
		0);
	world->options.window.max_steps = choice / (uint8_t)ARRAY_SIZE(specs);
	world->options.live.visitor = &visitor;
	session->options = &world->options;
	session->result = &world->result;
	session->start_ns = monotonic_now_ns();
	session->windows.poll_fd = session->windows.poke_fd = session->windows.timer_fd = -1;
	gate.schedule = world->options.window.schedule;
	gate.schedule.max_steps = world->options.window.max_steps;
	check(target_rings_open(&session->device.rings, &gate, &err) == 0);
	check(capture_writer_open_live(&session->writer, &visitor, world, NULL) == 0);
	check(session_windows_open(session, &err) == 0);
	check(session_windows_start(session, &err) == 0);
	world->begun = *session;
	world->unchanged = malloc(sizeof(*world->unchanged));
	check(world->unchanged != NULL);
	memcpy(world->unchanged, target_rings_gate(session->device.rings)->memory,
		sizeof(*world->unchanged));
	if (!is_registered)
		atexit(close_worlds);
	is_registered = true;
}

/* The session ends, and is as it was at its begin. */
static void world_end(struct world *world)
{
	struct session *session = &world->session;
	uint64_t most_ns;

	session_windows_end(session);
	check(session_windows_write(session) == 0);
	session_windows_finish(session);
	most_ns = monotonic_now_ns() - session->start_ns;
	check(world->result.windows_ns <= most_ns);
	check(world->last_number == world->result.window_count);
	array_done(&session->windows.step_sources);
	windows_done(&session->windows.list);
	*session = world->begun;
	world->result = (struct session_result){0};
	memcpy(target_rings_gate(session->device.rings)->memory, world->unchanged,
		sizeof(*world->unchanged));
}

static void write_edge(struct wire_gate *gate, struct input *input)
{
	uint64_t at = atomic_load(&gate->edges_written);

	take(input, &gate->edges[at % WIRE_WINDOW_EDGES], sizeof(gate->edges[0]));
	atomic_store(&gate->edges_written, at + 1);
}

/* Whoever holds the lock makes us wait; that is bounded, and here it would cost the time. */
static void write_gate(struct wire_gate *gate, struct input *input)
{
	uint16_t offset;
	uint8_t length;

	take(input, &offset, sizeof(offset));
	length = take_byte(input);
	offset %= sizeof(*gate);
	take(input, (uint8_t *)gate + offset, MIN((size_t)length, sizeof(*gate) - offset));
	atomic_store(&gate->locked_by, WIRE_GATE_NOBODY);
}

static void ask(struct session *session, struct input *input)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	char line[CONTROL_LINE_BYTES], *at = line;
	struct json_reader reader;
	struct json_text value;
	bool is_text;

	while (at < line + sizeof(line) - 1 && input->length && *input->bytes != '\n')
		*at++ = (char)take_byte(input);
	*at = '\0';
	take_byte(input);
	is_text = strncmp(line, "text ", 5) == 0;
	session_windows_answer(session, line, &out);
	check(out.length && !strchr(out.data, '\n'));
	if (is_text)
		return;
	reader =
		(struct json_reader){.at = out.data, .end = out.data + out.length, .is_last = true};
	check(json_reader_value(&reader, &value) == JSON_OK && reader.at == reader.end);
}

static void act(struct session *session, struct input *input)
{
	struct wire_gate *gate = target_rings_gate(session->device.rings)->memory;
	struct wire_step step;

	switch ((enum act)(take_byte(input) % ACT_MAX)) {
	case ACT_EDGE:
		write_edge(gate, input);
		break;
	case ACT_GATE:
		write_gate(gate, input);
		break;
	case ACT_LINE:
		ask(session, input);
		break;
	case ACT_STEP:
		take(input, &step, sizeof(step));
		check(session_windows_step(session, 77, &step) == 0);
		break;
	default:
		session_windows_signal(session);
	}
	check(session_windows_run(session) == 0 && session->failure == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input input = {.bytes = bytes, .length = length};
	struct world *world;
	uint8_t choice;

	if (!length)
		return 0;
	choice = take_byte(&input) % CHOICES;
	world = &worlds[choice];
	if (!world->unchanged)
		world_open(world, choice);
	world->last_end_ns = world->session.start_ns;
	world->last_number = 0;
	while (input.length)
		act(&world->session, &input);
	world_end(world);
	return 0;
}
