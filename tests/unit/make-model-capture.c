/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-model-capture hostile FILE: names that break naive writers, for check_exports.py.
 * make-model-capture large FILE: 60,000 samples of 30 frames, for measuring.
 * make-model-capture large-energy FILE: the same, with energy.
 * make-model-capture energy FILE: a program, a GPU, and the energy of both, for check_energy.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/writer/writer.h"

#define PERIOD_NS 10000000
#define START_NS  5000000000

static void check(int r)
{
	if (r == 0)
		return;
	fprintf(stderr, "make-model-capture: %s\n", strerror(-r));
	exit(1);
}

static struct capture_writer *open_capture(const char *path, const char *command)
{
	const char *const words[] = {command, "--flag", "two\nlines"};
	struct capture_session session = {
		.sonde_version = "test",
		.host = "host",
		.kernel_release = "6.8",
		.architecture = "x86_64",
		.command = words,
		.command_count = 3,
		.unwind_mode = "bpf",
		.start_time_ns = START_NS,
		.start_realtime_ns = 1700000000000000000,
		.period_ns = PERIOD_NS,
		.cpu_count = 8,
	};
	struct capture_writer *writer;
	struct errmsg err;

	if (capture_writer_open(&writer, path, NULL, &err) < 0) {
		fprintf(stderr, "make-model-capture: %s\n", err.text);
		exit(1);
	}
	check(capture_writer_session(writer, &session));
	return writer;
}

static void close_capture(struct capture_writer *writer, uint64_t samples)
{
	struct capture_stats stats = {
		.end_time_ns = START_NS + samples * PERIOD_NS,
		.samples = samples,
		.exit_status = 0,
		.complete = true,
	};

	check(capture_writer_stats(writer, &stats));
	check(capture_writer_close(writer, NULL));
}

static capture_id add_frame(struct capture_writer *writer, const char *name, capture_id mapping,
	uint64_t rel_pc, enum capture_frame_kind kind)
{
	struct capture_frame frame = {
		.function = name,
		.mapping = mapping,
		.rel_pc = rel_pc,
		.kind = kind,
		.source_file = name && rel_pc % 2 ? "dir/source \"file\".c" : NULL,
		.line = name && rel_pc % 2 ? 17 : 0,
	};
	capture_id id;

	check(capture_writer_frame(writer, &frame, &id));
	return id;
}

static void add_task(struct capture_writer *writer, uint32_t pid, uint32_t tid, const char *process,
	const char *thread)
{
	struct capture_process descriptor = {
		.pid = pid, .parent_pid = 1, .start_time_ns = START_NS, .name = process};
	struct capture_thread task = {.pid = pid, .tid = tid, .name = thread};

	check(capture_writer_process(writer, &descriptor));
	check(capture_writer_thread(writer, &task));
}

static void add_sample(struct capture_writer *writer, uint64_t index, uint32_t pid, uint32_t tid,
	capture_id callstack)
{
	struct capture_sample sample = {
		.time_ns = START_NS + index * PERIOD_NS,
		.pid = pid,
		.tid = tid,
		.cpu = (uint32_t)(index % 8),
		.mode = CAPTURE_MODE_USER,
		.callstack = callstack,
	};

	check(capture_writer_sample(writer, &sample));
}

static void write_hostile(const char *path)
{
	static const char *const names[] = {
		"semi;colon",
		"quotes \" and ' and `",
		"two\nlines\r\nand\ttabs",
		"\x1b[31mred\x1b[0m \x07 bell \x7f",
		"not UTF-8: \xff\xfe \xc3( \xed\xa0\x80",
		"]]> <![CDATA[ <script>alert(1)</script> &amp;",
		"std::map<std::string, std::vector<int>>::operator[](std::string const&)",
		"\xe2\x80\xae turned \xf0\x9f\x94\xa5",
		"comma, \"quoted\"",
		"ends in 42",
		" spaces ",
		"back\\slash \\n %s %n",
		"=SUM(A1:A9)",
	};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	struct capture_writer *writer = open_capture(path, "evil <command> & \"more\"");
	struct capture_mapping mapping = {.path = "/lib/bad;na<m>e&\"\n.so"};
	struct capture_symbol_line lines[] = {
		{"inlined;\n<T>", "in.h", 3}, {"outer", "a,\"b\".c", 9}};
	char *longest = malloc(65537);
	capture_id frames[COUNT + 4], module, stack, inlined;
	uint64_t samples = 0;

	if (!longest)
		exit(1);
	memset(longest, 'L', 65536);
	longest[65536] = '\0';
	check(capture_writer_mapping(writer, &mapping, &module));
	for (uint32_t i = 0; i < COUNT; i++)
		frames[i] = add_frame(writer, names[i], module, 16 + i, CAPTURE_FRAME_NATIVE);
	frames[COUNT] = add_frame(writer, longest, module, 1, CAPTURE_FRAME_JIT);
	frames[COUNT + 1] = add_frame(writer, NULL, 0, 0xdeadbeef, CAPTURE_FRAME_NATIVE);
	frames[COUNT + 2] = add_frame(writer, "schedule", 0, 2, CAPTURE_FRAME_KERNEL);
	inlined = frames[COUNT + 3] = add_frame(writer, NULL, module, 99, CAPTURE_FRAME_NATIVE);
	check(capture_writer_symbols(writer, module, 99, lines, 2));
	add_task(writer, 7, 7, "proc;ess <&>\n", "thr\"ead\x1b");
	add_task(writer, 7, 8, "proc;ess <&>\n", "\xff");
	for (uint32_t depth = 1; depth <= COUNT + 4; depth++) {
		check(capture_writer_callstack(writer, frames, depth,
			depth % 3 ? 0 : WIRE_STOP_NO_RULE, WIRE_PYTHON_NONE, &stack));
		for (uint32_t i = 0; i < depth; i++)
			add_sample(writer, samples++, 7, 7 + depth % 2, stack);
	}
	check(capture_writer_callstack(
		writer, &inlined, 1, WIRE_STOP_COMPLETE, WIRE_PYTHON_NONE, &stack));
	add_sample(writer, samples++, 7, 7, stack);
	add_sample(writer, samples++, 9, 9, 0);
	close_capture(writer, samples);
	free(longest);
}

/* Deterministic, so that measurements compare. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void add_rail(
	struct capture_writer *writer, uint32_t id, uint32_t part, const char *name, double idle_w)
{
	const struct wire_energy_domain domain = {
		.id = id,
		.part = part,
		.quality = WIRE_ENERGY_COUNTER,
		.is_replayed = true,
		.name = name,
		.source = "replay",
		.device = "",
		.period_ns = PERIOD_NS,
		.relative_error = 0.05,
		.idle_w = idle_w,
	};

	check(capture_writer_energy_domain(writer, &domain));
}

/* One sampling period. */
static void add_energy(
	struct capture_writer *writer, uint32_t rail, uint64_t index, double energy_j)
{
	const struct wire_energy_interval interval = {
		.start_ns = START_NS + index * PERIOD_NS,
		.end_ns = START_NS + (index + 1) * PERIOD_NS,
		.domain = rail,
		.energy_nj = (uint64_t)(energy_j * 1e9),
		.busy_ns = 2 * PERIOD_NS,
	};

	check(capture_writer_energy_interval(writer, &interval));
}

static void add_kernel(
	struct capture_writer *writer, const char *name, uint64_t index, uint64_t correlation)
{
	const struct capture_device_work work = {
		.start_ns = START_NS + index * PERIOD_NS,
		.end_ns = START_NS + index * PERIOD_NS + PERIOD_NS / 2,
		.launch_ns = START_NS + index * PERIOD_NS - 1000,
		.launch_duration_ns = 500,
		.pid = 100,
		.tid = 100,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.name = name,
		.device = "gpu",
	};

	check(capture_writer_device_work(writer, &work));
}

/* 50 W of two processors, of which one is the program's and 10 W are idle; 100 W of a GPU. */
static void write_energy(const char *path)
{
	enum { SAMPLES = 200 };
	struct capture_writer *writer = open_capture(path, "energy");
	struct capture_mapping mapping = {.path = "/srv/app/generate.py"};
	const struct wire_energy_absence absence = {
		.source = "perf", .reason = "this is a test's recording"};
	static const char *const names[] = {"main", "attend", "project"};
	capture_id module, frames[3], stacks[2];

	check(capture_writer_mapping(writer, &mapping, &module));
	for (uint32_t i = 0; i < 3; i++) {
		struct capture_frame frame = {
			.function = names[i],
			.mapping = module,
			.rel_pc = 10 + i,
			.kind = CAPTURE_FRAME_INTERPRETED,
			.source_file = mapping.path,
			.line = 10 + i,
		};

		check(capture_writer_frame(writer, &frame, &frames[i]));
	}
	for (uint32_t i = 0; i < 2; i++) {
		const capture_id of[] = {frames[0], frames[1 + i]};

		check(capture_writer_callstack(
			writer, of, 2, WIRE_STOP_COMPLETE, WIRE_PYTHON_FRAMES, &stacks[i]));
	}
	add_task(writer, 100, 100, "python3", "python3");
	add_rail(writer, 1, WIRE_ENERGY_CPU, "package-0", 10);
	add_rail(writer, 2, WIRE_ENERGY_GPU, "gpu0", 20);
	check(capture_writer_energy_absence(writer, &absence));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct capture_launch_stack stack = {
			.time_ns = START_NS + i * PERIOD_NS - 1000,
			.pid = 100,
			.tid = 100,
			.correlation = i + 1,
			.callstack = stacks[i % 2],
		};

		add_sample(writer, i, 100, 100, stacks[i % 4 == 3]);
		add_kernel(writer, i % 2 ? "gemm" : "softmax", i, i + 1);
		check(capture_writer_launch_stack(writer, &stack));
		add_energy(writer, 1, i, 0.5);
		add_energy(writer, 2, i, 1);
	}
	close_capture(writer, SAMPLES);
}

static void write_large(const char *path, bool energy)
{
	enum { SAMPLES = 60000, DEPTH = 30, STACKS = 20000, FRAMES = 4000 };
	struct capture_writer *writer = open_capture(path, "large");
	struct capture_mapping mapping = {.path = "/lib/liblarge.so"};
	capture_id module, *frames = calloc(FRAMES, sizeof(*frames));
	capture_id *stacks = calloc(STACKS, sizeof(*stacks)), path_of[DEPTH];
	uint32_t random = 1;
	char name[64];

	if (!frames || !stacks)
		exit(1);
	check(capture_writer_mapping(writer, &mapping, &module));
	for (uint32_t i = 0; i < FRAMES; i++) {
		snprintf(name, sizeof(name), "namespace_%u::function_%u(int)", i % 40, i / 2);
		frames[i] = add_frame(writer, name, module, 16 + i, CAPTURE_FRAME_NATIVE);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		/* Callers repeat, callees differ, as in programs. */
		for (uint32_t k = 0; k < DEPTH; k++)
			path_of[k] =
				frames[(k * 131 + next_random(&random) % (1 + k * k / 4)) % FRAMES];
		check(capture_writer_callstack(
			writer, path_of, DEPTH, WIRE_STOP_COMPLETE, WIRE_PYTHON_NONE, &stacks[i]));
	}
	for (uint32_t tid = 0; tid < 16; tid++)
		add_task(writer, 100, 100 + tid, "large", "worker");
	for (uint64_t i = 0; i < SAMPLES; i++)
		add_sample(writer, i, 100, 100 + (uint32_t)i % 16,
			stacks[next_random(&random) % STACKS]);
	if (energy)
		add_rail(writer, 1, WIRE_ENERGY_CPU, "package-0", 10);
	for (uint64_t i = 0; energy && i < SAMPLES; i++)
		add_energy(writer, 1, i, 0.3 + 0.001 * (next_random(&random) % 500));
	close_capture(writer, SAMPLES);
	free(frames);
	free(stacks);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "hostile") == 0)
		write_hostile(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "large") == 0)
		write_large(argv[2], false);
	else if (argc == 3 && strcmp(argv[1], "large-energy") == 0)
		write_large(argv[2], true);
	else if (argc == 3 && strcmp(argv[1], "energy") == 0)
		write_energy(argv[2]);
	else
		return 2;
	return 0;
}
