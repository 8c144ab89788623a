/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small capture that uses every field of src/capture/capture.h, and a visitor that turns a
 * capture into text: tests compare what was read with what was written line by line.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "capture/reader/reader.h"
#include "capture/writer/writer.h"

/* Reading: one line per callback. */

static inline void text_string(struct strbuf *out, const char *label, const char *text)
{
	strbuf_addf(out, " %s=", label);
	if (!text) {
		strbuf_add(out, "-");
		return;
	}
	strbuf_add_char(out, '"');
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == '"')
			strbuf_addf(out, "\\x%02x", (unsigned char)*text);
		else
			strbuf_add_char(out, *text);
	}
	strbuf_add_char(out, '"');
}

static inline void text_strings(
	struct strbuf *out, const char *label, const char *const *texts, uint32_t count)
{
	for (uint32_t i = 0; texts && i < count; i++)
		text_string(out, label, texts[i]);
}

static inline int text_session(void *context, const struct capture_session *session)
{
	struct strbuf *out = context;

	strbuf_add(out, "session");
	text_string(out, "version", session->sonde_version);
	text_string(out, "host", session->host);
	text_string(out, "kernel", session->kernel_release);
	text_string(out, "architecture", session->architecture);
	text_strings(out, "command", session->command, session->command_count);
	text_string(out, "unwind", session->unwind_mode);
	text_string(out, "reason", session->unwind_mode_reason);
	text_string(out, "wait", session->wait_mode);
	strbuf_addf(out,
		" start=%" PRIu64 " realtime=%" PRIu64 " boottime=%" PRIu64 " period=%" PRIu64
		" cpus=%u wait_period=%" PRIu64 "\n",
		session->start_time_ns, session->start_realtime_ns, session->start_boottime_ns,
		session->period_ns, session->cpu_count, session->wait_period_ns);
	return 0;
}

static inline int text_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct strbuf *out = context;

	strbuf_addf(out, "mapping %u", id);
	text_string(out, "path", mapping->path);
	strbuf_add(out, " build_id=");
	for (unsigned i = 0; i < mapping->build_id_length; i++)
		strbuf_addf(out, "%02x", mapping->build_id[i]);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct strbuf *out = context;

	strbuf_addf(out, "frame %u", id);
	text_string(out, "function", frame->function);
	strbuf_addf(out, " mapping=%u rel_pc=%#" PRIx64 " kind=%d", frame->mapping, frame->rel_pc,
		frame->kind);
	text_string(out, "source", frame->source_file);
	strbuf_addf(out, " line=%u\n", frame->line);
	return 0;
}

static inline int text_callstack(void *context, capture_id id, const capture_id *frames,
	size_t count, enum wire_stop stop, enum wire_python python)
{
	struct strbuf *out = context;

	strbuf_addf(out, "callstack %u %s", id, wire_stop_name(stop));
	if (python != WIRE_PYTHON_NONE)
		strbuf_addf(out, " %s", wire_python_name(python));
	for (size_t i = 0; i < count; i++)
		strbuf_addf(out, " %u", frames[i]);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_process(void *context, const struct capture_process *process)
{
	struct strbuf *out = context;

	strbuf_addf(out, "process %u parent=%u start=%" PRIu64, process->pid, process->parent_pid,
		process->start_time_ns);
	text_string(out, "name", process->name);
	text_strings(out, "argument", process->cmdline, process->cmdline_count);
	text_string(out, "cgroup", process->cgroup);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_thread(void *context, const struct capture_thread *thread)
{
	struct strbuf *out = context;

	strbuf_addf(out, "thread %u/%u", thread->pid, thread->tid);
	text_string(out, "name", thread->name);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_sample(void *context, const struct capture_sample *sample)
{
	struct strbuf *out = context;

	strbuf_addf(out, "sample time=%" PRIu64 " %u/%u cpu=%u mode=%d callstack=%u",
		sample->time_ns, sample->pid, sample->tid, sample->cpu, sample->mode,
		sample->callstack);
	if (sample->gil != WIRE_GIL_NONE)
		strbuf_addf(out, " gil=%s/%u", wire_gil_name(sample->gil), sample->gil_holder_tid);
	if (sample->wait != WIRE_WAIT_NONE)
		strbuf_addf(out, " %s=%" PRIu64, wire_wait_name(sample->wait), sample->duration_ns);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct strbuf *out = context;

	strbuf_addf(out, "symbols mapping=%u rel_pc=%#" PRIx64, mapping, rel_pc);
	for (size_t i = 0; i < count; i++) {
		text_string(out, "function", lines[i].function);
		text_string(out, "file", lines[i].file);
		strbuf_addf(out, " line=%u", lines[i].line);
	}
	strbuf_add_char(out, '\n');
	return 0;
}

static inline void text_stats_numbers(struct strbuf *out, const struct capture_stats *stats)
{
	strbuf_addf(out, "stats end=%" PRIu64 " samples=%" PRIu64 " lost=%" PRIu64,
		stats->end_time_ns, stats->samples, stats->samples_lost);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		strbuf_addf(out, " %s=%" PRIu64, wire_stop_name(stop), stats->stacks_by_stop[stop]);
	strbuf_addf(out,
		" user_frames=%" PRIu64 " kernel_frames=%" PRIu64 " bpf=%" PRIu64 "/%" PRIu64,
		stats->user_frames, stats->kernel_frames, stats->bpf_run_count,
		stats->bpf_run_time_ns);
	strbuf_addf(out, " in_user_space=%" PRIu64 " cpu=%" PRIu64 " rss=%" PRIu64,
		stats->stacks_unwound_in_user_space, stats->collector_cpu_ns,
		stats->collector_peak_rss_bytes);
	if (stats->collector_start_cpu_ns)
		strbuf_addf(out, " start=%" PRIu64 " end=%" PRIu64, stats->collector_start_cpu_ns,
			stats->collector_end_cpu_ns);
	strbuf_addf(out, " tables=%" PRIu64 "/%" PRIu64 "/%" PRIu64 " bytes=%" PRIu64,
		stats->tables_built, stats->tables_from_cache, stats->table_build_ns,
		stats->bytes_written);
	for (unsigned python = 0; python < WIRE_PYTHON_MAX; python++)
		strbuf_addf(out, " %s=%" PRIu64, wire_python_name(python),
			stats->stacks_by_python[python]);
	strbuf_addf(out,
		" python_frames=%" PRIu64 " waits=%" PRIu64 "/%" PRIu64 " %" PRIu64 "/%" PRIu64,
		stats->python_frames, stats->wait_samples, stats->waited_ns, stats->wait_run_count,
		stats->wait_run_time_ns);
}

static inline int text_stats(void *context, const struct capture_stats *stats)
{
	struct strbuf *out = context;

	text_stats_numbers(out, stats);
	for (uint32_t i = 0; i < stats->loss_count; i++) {
		text_string(out, "loss", stats->losses[i].where);
		strbuf_addf(out, " cpu=%u count=%" PRIu64, stats->losses[i].cpu,
			stats->losses[i].count);
	}
	text_strings(out, "note", stats->notes, stats->note_count);
	strbuf_addf(out, " exit=%d complete=%d\n", stats->exit_status, stats->complete);
	return 0;
}

static const struct capture_visitor text_visitor = {
	.session = text_session,
	.mapping = text_mapping,
	.frame = text_frame,
	.callstack = text_callstack,
	.process = text_process,
	.thread = text_thread,
	.sample = text_sample,
	.symbols = text_symbols,
	.stats = text_stats,
};

/* Writing. Each returns 0, or the first failure. */

static const char *const example_command[] = {"python3", "train.py", "--name=h\xc3\xa9llo", ""};

static const struct capture_session example_session = {
	.sonde_version = "0.1.0",
	.host = "node-7",
	.kernel_release = "6.18.0",
	.architecture = "x86_64",
	.command = example_command,
	.command_count = 4,
	.unwind_mode = "user",
	.unwind_mode_reason = "no permission to load BPF programs; run as root",
	.start_time_ns = 1000000000000,
	.start_realtime_ns = 1700000000000000000,
	.start_boottime_ns = 1000500000000,
	.period_ns = 10101010,
	.cpu_count = 128,
	.wait_mode = "sample",
	.wait_period_ns = 100000000,
};

static const struct capture_mapping example_mappings[] = {
	{"/usr/bin/python3.11", (const uint8_t *)"\x01\x00\xff\x7f", 4},
	{"/usr/lib/libtorch.so", NULL, 0},
	{"[kernel]", NULL, 0},
	{"[vdso]", (const uint8_t *)"0123456789abcdefghij", 20},
	{"relative/a.out", NULL, 0},
	{"/", NULL, 0},
	{"", NULL, 0},
	{"/[odd]/x", NULL, 0},
	{"//double//slash/", NULL, 0},
	{"/tmp/\xe6\xa8\xa1\xe5\x9e\x8b/\xff\xfe bad utf8", NULL, 0},
};

#define EXAMPLE_MAPPINGS (sizeof(example_mappings) / sizeof(example_mappings[0]))

static const struct capture_frame example_frames[] = {
	{.function = "_start", .mapping = 1, .rel_pc = 0x1040, .kind = CAPTURE_FRAME_NATIVE},
	{.function = "train_step",
		.rel_pc = 0,
		.kind = CAPTURE_FRAME_INTERPRETED,
		.source_file = "/home/me/train.py",
		.line = 42},
	{.function = NULL,
		.mapping = 2,
		.rel_pc = 0xffffffffffffffff,
		.kind = CAPTURE_FRAME_NATIVE},
	{.function = "", .mapping = 4, .rel_pc = 1, .kind = CAPTURE_FRAME_NATIVE},
	{.function = "std::vector<\xc3\xa9>::push_back(\"\n\")",
		.mapping = 2,
		.rel_pc = 77,
		.kind = CAPTURE_FRAME_NATIVE,
		.source_file = "",
		.line = 4294967295u},
	{.function = "jit", .rel_pc = 0x7f0000001000, .kind = CAPTURE_FRAME_JIT},
	{.function = "do_syscall_64",
		.mapping = 3,
		.rel_pc = 0xffffffff81000000,
		.kind = CAPTURE_FRAME_KERNEL},
};

#define EXAMPLE_FRAMES (sizeof(example_frames) / sizeof(example_frames[0]))

static const char *const example_cmdline[] = {"python3", "", "bad\xff name"};

static const struct capture_process example_processes[] = {
	{.pid = 4242,
		.parent_pid = 1,
		.start_time_ns = 999999999999,
		.name = "python3",
		.cmdline = example_cmdline,
		.cmdline_count = 3,
		.cgroup = "/user.slice/job-7"},
	{.pid = 4243, .name = "sh"},
	{.pid = 4243, .parent_pid = 4242, .name = "renamed by exec", .cgroup = ""},
};

static const struct capture_thread example_threads[] = {
	{4242, 4242, "MainThread"}, {4242, 4300, "pt_autograd_0"}, {4242, 4301, ""}};

static inline int write_example_things(struct capture_writer *writer)
{
	int result = capture_writer_session(writer, &example_session);
	capture_id id;

	for (size_t i = 0; result == 0 && i < 3; i++)
		result = capture_writer_process(writer, &example_processes[i]);
	for (size_t i = 0; result == 0 && i < 3; i++)
		result = capture_writer_thread(writer, &example_threads[i]);
	for (size_t i = 0; result == 0 && i < EXAMPLE_MAPPINGS; i++)
		result = capture_writer_mapping(writer, &example_mappings[i], &id);
	for (size_t i = 0; result == 0 && i < EXAMPLE_FRAMES; i++)
		result = capture_writer_frame(writer, &example_frames[i], &id);
	return result;
}

/* The callstack whose id is one more than `stop`. */
static inline int write_example_stack(struct capture_writer *writer, unsigned stop)
{
	static const capture_id frames[] = {1, 2, 3, 4, 5, 6, 7, 1};
	capture_id id;

	return capture_writer_callstack(writer, frames, 1 + stop % 8, (enum wire_stop)stop,
		(enum wire_python)(stop % WIRE_PYTHON_USER_MODE), &id);
}

static inline int write_example_stacks(struct capture_writer *writer)
{
	int result = 0;

	for (unsigned stop = 0; result == 0 && stop < WIRE_STOP_MAX; stop++)
		result = write_example_stack(writer, stop);
	return result;
}

static inline int write_example_samples(struct capture_writer *writer)
{
	/* In order, at the same time, long after, and older than the one before. */
	static const int64_t times[] = {0, 0, 10000000, 7200000000000, 5000, 7200000000001, -500};
	int result = 0;

	for (unsigned i = 0; result == 0 && i < 7; i++) {
		struct capture_sample sample = {
			.time_ns = example_session.start_time_ns + (uint64_t)times[i],
			.pid = 4242,
			.tid = i % 2 ? 4300 : 4242,
			.cpu = i * 21,
			.mode = i % 3 ? CAPTURE_MODE_USER : CAPTURE_MODE_KERNEL,
			.callstack = i == 2 ? 0 : i + 1,
			.gil = (enum wire_gil)(i % WIRE_GIL_MAX),
			.gil_holder_tid = i == 2 ? 4300 : 0};

		result = write_example_stack(writer, i);
		if (result == 0)
			result = capture_writer_sample(writer, &sample);
	}
	for (unsigned wait = WIRE_WAIT_CPU; result == 0 && wait < WIRE_WAIT_MAX; wait++) {
		struct capture_sample sample = {
			.time_ns = example_session.start_time_ns + 7200000000002 + wait,
			.pid = 4242,
			.tid = 4300,
			.cpu = wait,
			.mode = CAPTURE_MODE_KERNEL,
			.callstack = wait == WIRE_WAIT_SLEEP ? 0 : wait % 8 + 1,
			.gil = (enum wire_gil)(wait % WIRE_GIL_MAX),
			.gil_holder_tid = wait == WIRE_WAIT_GIL ? 4242 : 0,
			.wait = (enum wire_wait)wait,
			.duration_ns = 1000000ULL * wait};

		result = capture_writer_sample(writer, &sample);
	}
	return result;
}

static inline int write_example_symbols(struct capture_writer *writer)
{
	static const struct capture_symbol_line lines[] = {
		{"inlined\xff", "/src/a.h", 7}, {"outer", NULL, 0}, {"", "", 1}};
	int result = capture_writer_symbols(writer, 2, 0x1234, lines, 3);

	if (result == 0)
		result = capture_writer_symbols(writer, 4, 9, lines, 1);
	if (result == 0)
		result = capture_writer_symbols(writer, 8, 9, NULL, 0);
	if (result == 0)
		result = capture_writer_symbols(writer, 10, 10, NULL, 0);
	/* The only one of a frame that a sample has: these come by themselves. */
	if (result == 0)
		result = capture_writer_symbols(writer, 2, 0xffffffffffffffff, lines + 1, 1);
	return result == 0 ? capture_writer_symbols(writer, 0, 0x7f0000001000, lines + 1, 1)
			   : result;
}

static inline int write_example_stats(struct capture_writer *writer)
{
	static const struct capture_loss losses[] = {
		{"sample_ring", 3, 17}, {"sideband_ring", 4294967295u, 18446744073709551615u}};
	static const char *const notes[] = {"GPU energy is missing: no NVML.", ""};
	struct capture_stats stats = {.end_time_ns = 1000000000001,
		.samples = 7,
		.samples_lost = 2,
		.user_frames = 11,
		.kernel_frames = 12,
		.bpf_run_count = 13,
		.bpf_run_time_ns = 14,
		.stacks_unwound_in_user_space = 15,
		.collector_cpu_ns = 16,
		.collector_peak_rss_bytes = 17,
		.collector_start_cpu_ns = 27,
		.collector_end_cpu_ns = 28,
		.tables_built = 18,
		.tables_from_cache = 19,
		.table_build_ns = 20,
		.bytes_written = 21,
		.python_frames = 22,
		.wait_samples = 23,
		.waited_ns = 24,
		.wait_run_count = 25,
		.wait_run_time_ns = 26,
		.losses = losses,
		.loss_count = 2,
		.notes = notes,
		.note_count = 2,
		.exit_status = 137,
		.complete = true};
	int result = capture_writer_stats(
		writer, &(struct capture_stats){.exit_status = -1, .samples = 1});

	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		stats.stacks_by_stop[stop] = stop * 1000;
	for (unsigned python = 0; python < WIRE_PYTHON_MAX; python++)
		stats.stacks_by_python[python] = python * 100;
	return result == 0 ? capture_writer_stats(writer, &stats) : result;
}

static inline int write_example(struct capture_writer *writer)
{
	int result = write_example_things(writer);

	if (result == 0)
		result = write_example_stacks(writer);
	if (result == 0)
		result = write_example_samples(writer);
	if (result == 0)
		result = write_example_symbols(writer);
	return result == 0 ? write_example_stats(writer) : result;
}

typedef int write_function(struct capture_writer *writer);

static inline int write_file(
	const char *path, bool uncompressed, bool stack_sample, write_function *write_contents)
{
	struct capture_writer_options options = {.size = sizeof(options),
		.uncompressed = uncompressed,
		.stack_sample = stack_sample};
	struct capture_writer *writer;
	struct errmsg err;
	int result = capture_writer_open(&writer, path, &options, &err);

	if (result == 0) {
		result = write_contents(writer);
		if (result < 0)
			capture_writer_free(writer);
		else
			result = capture_writer_close(writer, &err);
	}
	return result;
}

static inline int write_example_file(const char *path, bool uncompressed, bool stack_sample)
{
	return write_file(path, uncompressed, stack_sample, write_example);
}
