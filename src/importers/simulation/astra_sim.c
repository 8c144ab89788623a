/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of astra-sim, a simulator, as rows: a trace for each system that it simulates, in which
 * a node runs from its issue to its callback. Ticks are nanoseconds. The log does not say which
 * compute nodes were operators of a host and which work of a device: the name decides, and where a
 * trace is at hand that the simulator was fed, trace_take_kinds() does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "importers/importers.h"
#include "importers/rows.h"
#include "importers/simulation/line.h"

/* Each costs some memory, whatever the log has of it. */
#define SYSTEMS_MAX 65536
/* What a row takes, with the number of its node. */
#define ROW_BYTES (sizeof(struct trace_event) + sizeof(struct trace_work) + 64)

enum lane {
	LANE_HOST,
	LANE_COMPUTE,
	LANE_MEMORY,
	LANE_COMMUNICATION,
	LANE_MAX,
};

static const char *const lane_names[LANE_MAX] = {"host", "compute", "memory", "communication"};

struct simulated_system {
	uint32_t number;
	struct import_rows rows;
	struct map_u64 running; /* node → event */
};

struct simulation {
	const char *path;
	const struct trace_read_options *options;
	ARRAY_OF(struct simulated_system *) systems; /* by first line */
	struct map_u64 system_of;                    /* number → index */
	uint64_t rows, never_issued, systems_left_out, highest;
	bool truncated;
};

static struct simulated_system *system_free(struct simulated_system *system)
{
	if (system) {
		import_rows_done(&system->rows);
		map_u64_done(&system->running);
	}
	free(system);
	return NULL;
}

static void simulation_done(struct simulation *simulation)
{
	array_foreach (&simulation->systems, system)
		system_free(*system);
	array_done(&simulation->systems);
	map_u64_done(&simulation->system_of);
}

/* ---- systems ---- */

static int name_device(struct simulated_system *system)
{
	char name[64];

	snprintf(name, sizeof(name), "system %u of astra-sim", system->number);
	return trace_name_device(system->rows.trace, system->number, name, strlen(name));
}

static int add_system(struct simulation *simulation, uint32_t number)
{
	struct simulated_system *system = calloc(1, sizeof(*system));
	int r = system ? 0 : -ENOMEM;

	if (r == 0) {
		system->number = number;
		r = import_rows_init(&system->rows, simulation->path, simulation->options);
	}
	if (r == 0) {
		system->rows.trace->rank = number;
		system->rows.trace->is_simulated = true;
		r = name_device(system);
	}
	if (r == 0)
		r = map_u64_set(&simulation->system_of, number, simulation->systems.count);
	if (r == 0)
		r = array_append(&simulation->systems, system);
	if (r < 0)
		system_free(system);
	return r;
}

/* NULL in *ret_system: it is one too many. */
static int find_system(
	struct simulation *simulation, uint32_t number, struct simulated_system **ret_system)
{
	uint64_t index;
	int r = 0;

	*ret_system = NULL;
	if (!map_u64_get(&simulation->system_of, number, &index)) {
		if (simulation->systems.count >= SYSTEMS_MAX) {
			simulation->systems_left_out++;
			return 0;
		}
		index = simulation->systems.count;
		r = add_system(simulation, number);
	}
	if (r == 0) {
		simulation->highest = MAX(simulation->highest, (uint64_t)number);
		*ret_system = simulation->systems.items[index];
	}
	return r;
}

/* ---- nodes ---- */

/* Operators of PyTorch, its annotations and its functions of gradients, by what no kernel's name
 * has. */
static bool is_host_name(const char *name, size_t length)
{
	static const char *const beginnings[] = {"aten::", "c10d::", "c10::", "autograd::",
		"torch::", "prim::", "nccl:", "gloo:", "record_param_comms", "ProfilerStep#",
		"Optimizer.", "nn.Module", "enumerate(DataLoader)", "[pytorch|"};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		size_t count = strlen(beginnings[i]);

		if (length >= count && memcmp(name, beginnings[i], count) == 0)
			return true;
	}
	return length > 9 && memcmp(name + length - 9, "Backward0", 9) == 0;
}

static enum lane lane_of(const struct astra_line *line)
{
	switch (line->type) {
	case ASTRA_MEM_LOAD:
	case ASTRA_MEM_STORE:
		return LANE_MEMORY;
	case ASTRA_COMM_SEND:
	case ASTRA_COMM_RECV:
	case ASTRA_COMM_COLL:
		return LANE_COMMUNICATION;
	case ASTRA_METADATA:
		return LANE_HOST;
	default:
		return is_host_name(line->name, line->name_length) ? LANE_HOST : LANE_COMPUTE;
	}
}

static int find_track(struct simulated_system *system, enum lane lane, uint32_t *ret_track)
{
	struct trace_track track = import_rows_thread(system->number, lane);
	char process[64];
	int r;

	snprintf(process, sizeof(process), "system %u", system->number);
	track.is_device = lane != LANE_HOST;
	r = import_rows_text(&system->rows, process, strlen(process), &track.process_name);
	if (r == 0)
		r = import_rows_text(&system->rows, lane_names[lane], strlen(lane_names[lane]),
			&track.thread_name);
	return r < 0 ? r : import_rows_track(&system->rows, &track, 0, ret_track);
}

/* What makes a row one of communication: that it says what it moves. */
static int add_collective(struct simulated_system *system, const struct astra_line *line,
	uint32_t name, struct trace_work *work)
{
	struct trace *trace = system->rows.trace;
	struct trace_collective collective = {
		.name = name,
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
		.sequence = TRACE_NO_NUMBER,
	};
	const char *kind = line->type == ASTRA_COMM_SEND   ? "send"
			   : line->type == ASTRA_COMM_RECV ? "recv"
							   : NULL;
	int r = 0;

	if (kind)
		r = import_rows_text(&system->rows, kind, strlen(kind), &collective.name);
	work->collective = (uint32_t)trace->collectives.count;
	return r < 0 ? r : array_append(&trace->collectives, collective);
}

static int add_row(struct simulated_system *system, const struct astra_line *line, enum lane lane,
	struct trace_event *event)
{
	struct trace_work work = trace_no_work;
	int r = 0;

	if (lane == LANE_HOST)
		return import_rows_add(&system->rows, event);
	work.device = system->number;
	work.stream = lane;
	if (lane == LANE_COMMUNICATION)
		r = add_collective(system, line, event->name, &work);
	return r < 0 ? r : import_rows_add_work(&system->rows, event, &work);
}

static int begin_node(struct simulated_system *system, const struct astra_line *line)
{
	static const enum trace_category categories[LANE_MAX] = {
		TRACE_CPU_OP, TRACE_KERNEL, TRACE_MEMCPY, TRACE_KERNEL};
	enum lane lane = lane_of(line);
	struct trace_event event = import_rows_event(&system->rows, categories[lane]);
	char number[32];
	int r;

	event.start_ns = line->tick;
	if (line->name_length) {
		r = import_rows_text(&system->rows, line->name, line->name_length, &event.name);
	} else {
		snprintf(number, sizeof(number), "node %llu", (unsigned long long)line->node);
		r = import_rows_text(&system->rows, number, strlen(number), &event.name);
	}
	if (r == 0)
		r = map_u64_set(&system->running, line->node, system->rows.trace->events.count);
	if (r == 0)
		r = find_track(system, lane, &event.track);
	return r < 0 ? r : add_row(system, line, lane, &event);
}

static void end_node(struct simulation *simulation, struct simulated_system *system,
	const struct astra_line *line)
{
	struct trace_event *event;
	uint64_t index;

	if (!map_u64_get(&system->running, line->node, &index)) {
		simulation->never_issued++;
		return;
	}
	map_u64_remove(&system->running, line->node);
	event = &system->rows.trace->events.items[index];
	event->duration_ns = line->tick - event->start_ns;
	if (event->duration_ns < 0) {
		event->duration_ns = 0;
		system->rows.trace->damage.repaired_times++;
	}
}

static int add_line(struct simulation *simulation, const struct astra_line *line)
{
	struct simulated_system *system;
	int r = find_system(simulation, line->system, &system);

	if (r < 0 || !system)
		return r;
	if (line->is_end) {
		end_node(simulation, system, line);
		return 0;
	}
	if (++simulation->rows > import_max_bytes(simulation->options) / ROW_BYTES)
		return -EFBIG;
	return begin_node(system, line);
}

static int read_lines(struct simulation *simulation, const struct strbuf *bytes)
{
	const char *at = bytes->data, *end = bytes->data + bytes->length;
	int r = 0;

	while (r == 0 && at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)) ?: end;
		struct astra_line line;

		if (astra_line_parse(at, (size_t)(newline - at), &line))
			r = add_line(simulation, &line);
		at = newline + (newline < end);
	}
	return r;
}

/* ---- traces ---- */

/* The first trace says what holds for all. */
static int add_notes(struct simulation *simulation, struct import_rows *rows)
{
	int r = 0;

	if (simulation->never_issued)
		r = import_rows_note(rows,
			"left out: %llu nodes that ended and were not issued, or are skipped: the "
			"simulator has no time for them",
			(unsigned long long)simulation->never_issued);
	if (r == 0 && simulation->systems_left_out)
		r = import_rows_note(rows, "left out: %llu lines of systems beyond the first %u",
			(unsigned long long)simulation->systems_left_out, SYSTEMS_MAX);
	return r;
}

static int give_system(struct simulation *simulation, struct simulated_system *system,
	import_take_trace *take, void *context, struct errmsg *err)
{
	struct trace *trace = system->rows.trace, *finished;
	int r = 0;

	trace->damage.unended_events = system->running.count;
	trace->damage.truncated = simulation->truncated;
	trace->world_size = (uint32_t)MIN(simulation->highest + 1, (uint64_t)UINT32_MAX);
	if (system == simulation->systems.items[0])
		r = add_notes(simulation, &system->rows);
	r = import_rows_finish(&system->rows, r, "no node of it was issued", &finished, err);
	return r < 0 ? r : take(context, finished);
}

static int give_all(
	struct simulation *simulation, import_take_trace *take, void *context, struct errmsg *err)
{
	int r = 0;

	if (!simulation->rows)
		return errmsg_set(err, -ENODATA,
			"%s has no line of a node that was issued: have astra-sim write them "
			"(\"trace-enabled\": 1 in its system file, and debug as the level of its "
			"log)",
			simulation->path);
	array_foreach (&simulation->systems, system) {
		if (r == 0 && (*system)->rows.trace->events.count)
			r = give_system(simulation, *system, take, context, err);
	}
	return r;
}

static int failed(const struct simulation *simulation, int r, struct errmsg *err)
{
	if (r == -EFBIG)
		return errmsg_set(err, r,
			"cannot read %s: its first %llu nodes need more memory than the limit "
			"here; simulate less, or read it on a machine with more",
			simulation->path, (unsigned long long)simulation->rows);
	return errmsg_set(err, r, "cannot read %s: out of memory", simulation->path);
}

static int astra_sim_read(const char *path, const struct trace_read_options *options,
	import_take_trace *take, void *context, struct errmsg *err)
{
	_cleanup_(simulation_done) struct simulation simulation = {
		.path = path, .options = options};
	_cleanup_strbuf_ struct strbuf bytes = {0};
	int r = import_read_file(path, options, &bytes, &simulation.truncated, err);

	if (r < 0)
		return r;
	r = read_lines(&simulation, &bytes);
	return r < 0 ? failed(&simulation, r, err) : give_all(&simulation, take, context, err);
}

static bool contains(const char *head, size_t length, const char *text)
{
	return memmem(head, length, text, strlen(text)) != NULL;
}

/* What it says of its topology may fill the beginning. */
static bool astra_sim_knows(const char *head, size_t length)
{
	return contains(head, length, "issue,sys->id=") ||
	       contains(head, length, "callback,sys->id=") ||
	       (contains(head, length, "ring of node ") &&
		       contains(head, length, "index in ring")) ||
	       contains(head, length, "] [workload] [");
}

const struct importer astra_sim_importer = {
	.name = "astra-sim",
	.description = "logs of astra-sim, a simulator of Chakra's traces",
	.knows = astra_sim_knows,
	.read_ranks = astra_sim_read,
};
