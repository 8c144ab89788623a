/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire records and side-band events in, a capture out, through the real address spaces, file store,
 * resolver and writer. Made-up processes map files that do not exist; where tables and names
 * matter, the process is this test itself, and the file store's thread is held at a gate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <ucontext.h>

#include "base/file.h"
#include "capture/reader/reader.h"
#include "collect/pipeline/pipeline.h"
#include "gated-sampler.h"

/* Beyond every pid that Linux gives: what the tests make up never meets a real process. */
#define PID          (8u << 20)
#define PATIENCE_NS  (60 * NS_PER_S)
#define LARGE_RECORD (1u << 20)

struct fixture {
	struct gated_sampler gate;
	struct address_spaces *spaces;
	struct file_store *files;
	struct resolver *resolver;
	struct python_registry *python;
	struct capture_writer *writer;
	struct pipeline *pipeline;
	struct windows windows; /* none: everything is recorded */
	char path[64];
	struct strbuf log; /* the capture, read back: one line per sample, process and thread */
	char *frames[1024], *stacks[1024];
	const char *mappings[64];
};

/* ---- parts ---- */

static void on_file_added(void *context, const struct mapped_file *file)
{
	assert_int_equal(file_store_add(((struct fixture *)context)->files, file), 0);
}

static void open_capture(struct fixture *fixture)
{
	struct capture_writer_options options = {.size = sizeof(options)};
	struct capture_session session = {
		.sonde_version = "1",
		.host = "host",
		.kernel_release = "6.8",
		.architecture = "x86_64",
		.unwind_mode = "bpf",
		.start_time_ns = 1,
		.start_realtime_ns = 1,
		.start_boottime_ns = 1,
		.period_ns = 1000,
		.cpu_count = 2,
	};
	int fd;

	snprintf(fixture->path, sizeof(fixture->path), "/tmp/sonde-test-pipeline-XXXXXX");
	fd = mkstemp(fixture->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(capture_writer_open(&fixture->writer, fixture->path, &options, NULL), 0);
	assert_int_equal(capture_writer_session(fixture->writer, &session), 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct address_space_listener listener = {.context = fixture, .file_added = on_file_added};
	const struct source_unwinder unwinder = gated_sampler_unwinder(&fixture->gate);
	struct pipeline_parts parts = {0};
	struct errmsg err;

	*state = fixture;
	gated_sampler_init(&fixture->gate, false);
	open_capture(fixture);
	assert_int_equal(file_store_new(&fixture->files, &unwinder, &err), 0);
	assert_int_equal(address_spaces_new(&fixture->spaces, &listener), 0);
	assert_int_equal(
		resolver_new(&fixture->resolver, fixture->spaces, fixture->files, fixture->writer),
		0);
	parts.spaces = fixture->spaces;
	parts.files = fixture->files;
	assert_int_equal(
		python_registry_new(&fixture->python, fixture->files, &unwinder, fixture->writer),
		0);
	parts.resolver = fixture->resolver;
	parts.python = fixture->python;
	parts.writer = fixture->writer;
	fixture->windows.is_whole = true;
	parts.windows = &fixture->windows;
	return pipeline_new(&fixture->pipeline, &parts);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	gated_sampler_open(&fixture->gate);
	pipeline_free(fixture->pipeline);
	resolver_free(fixture->resolver);
	python_registry_free(fixture->python);
	address_spaces_free(fixture->spaces);
	file_store_free(fixture->files);
	capture_writer_free(fixture->writer);
	gated_sampler_done(&fixture->gate);
	strbuf_done(&fixture->log);
	for (size_t i = 0; i < ARRAY_SIZE(fixture->frames); i++) {
		free(fixture->frames[i]);
		free(fixture->stacks[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fixture->mappings); i++)
		free((char *)fixture->mappings[i]);
	unlink(fixture->path);
	free(fixture);
	return 0;
}

/* ---- reading back ---- */

static int read_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct fixture *fixture = context;
	const char *slash = strrchr(mapping->path, '/');

	assert_true(id < ARRAY_SIZE(fixture->mappings));
	fixture->mappings[id] = strdup(slash ? slash + 1 : mapping->path);
	return 0;
}

/* "function", or "file+0x1234". */
static int read_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct fixture *fixture = context;
	int result;

	assert_true(id < ARRAY_SIZE(fixture->frames));
	if (frame->function)
		result = asprintf(&fixture->frames[id], "%s", frame->function);
	else
		result = asprintf(&fixture->frames[id], "%s+0x%" PRIx64,
			frame->mapping ? fixture->mappings[frame->mapping] : "", frame->rel_pc);
	return result < 0 ? -ENOMEM : 0;
}

static int read_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct fixture *fixture = context;

	assert_true(id < ARRAY_SIZE(fixture->stacks));
	strbuf_add(&text, wire_stop_name(stop));
	for (size_t i = 0; i < count; i++)
		strbuf_addf(&text, " %s", fixture->frames[frames[i]]);
	fixture->stacks[id] = TAKE_PTR(text.data);
	return 0;
}

static int read_sample(void *context, const struct capture_sample *sample)
{
	struct fixture *fixture = context;

	strbuf_addf(&fixture->log, "%" PRIu64 "%s %s", sample->time_ns,
		sample->mode == CAPTURE_MODE_KERNEL ? " kernel" : "",
		sample->callstack ? fixture->stacks[sample->callstack] : "-");
	if (sample->wait)
		strbuf_addf(&fixture->log, " [%s %" PRIu64, wire_wait_name(sample->wait),
			sample->duration_ns);
	if (sample->wait_count)
		strbuf_addf(&fixture->log, " of %u", sample->wait_count);
	if (sample->cycles)
		strbuf_addf(&fixture->log, " cycles=%" PRIu64 " instructions=%" PRIu64,
			sample->cycles, sample->instructions);
	if (sample->wait)
		strbuf_addf(&fixture->log, "%s]", sample->wait_is_open ? " open" : "");
	strbuf_add_char(&fixture->log, '\n');
	return 0;
}

static int read_process(void *context, const struct capture_process *process)
{
	strbuf_addf(
		&((struct fixture *)context)->log, "process %u %s\n", process->pid, process->name);
	return 0;
}

static int read_thread(void *context, const struct capture_thread *thread)
{
	strbuf_addf(&((struct fixture *)context)->log, "thread %u %s\n", thread->tid, thread->name);
	return 0;
}

static int read_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		strbuf_addf(&((struct fixture *)context)->log, "symbol %s\n",
			lines[i].function ? lines[i].function : "?");
	return 0;
}

/* Ends the capture; what it says is in fixture->log. */
static const char *read_back(struct fixture *fixture)
{
	static const struct capture_visitor visitor = {
		.mapping = read_mapping,
		.frame = read_frame,
		.callstack = read_callstack,
		.sample = read_sample,
		.process = read_process,
		.thread = read_thread,
		.symbols = read_symbols,
	};
	struct errmsg err;

	assert_int_equal(capture_writer_close(TAKE_PTR(fixture->writer), &err), 0);
	assert_int_equal(capture_read(fixture->path, &visitor, fixture, NULL, &err), 0);
	return strbuf_cstr(&fixture->log);
}

/* ---- records and events ---- */

struct record {
	struct wire_sample sample;
	uint64_t frames[8];
};

static struct record make_record(uint32_t pid, uint64_t time_ns, uint64_t address)
{
	return (struct record){
		.sample =
			{
				.record = {WIRE_RECORD_SAMPLE, 0, sizeof(struct wire_sample) + 8},
				.time_ns = time_ns,
				.pid = pid,
				.tid = pid,
				.user_frame_count = 1,
				.thread_name = "thread",
				.process_name = "process",
			},
		.frames = {address},
	};
}

static void add_record(struct fixture *fixture, const struct record *record)
{
	assert_int_equal(pipeline_add_record(fixture->pipeline, &record->sample.record), 0);
}

static void add_sample(struct fixture *fixture, uint32_t pid, uint64_t time_ns, uint64_t address)
{
	struct record record = make_record(pid, time_ns, address);

	add_record(fixture, &record);
}

static void add_event(struct fixture *fixture, struct sideband_event event)
{
	if (!event.tid)
		event.tid = event.pid;
	assert_int_equal(pipeline_add_event(fixture->pipeline, &event), 0);
}

static void add_map(struct fixture *fixture, uint32_t pid, uint64_t time_ns, uint64_t start,
	uint64_t inode, const char *name)
{
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_MMAP,
				   .time_ns = time_ns,
				   .pid = pid,
				   .address = start,
				   .length = 0x1000,
				   .inode = inode,
				   .name = name});
}

static void process_all(struct fixture *fixture)
{
	assert_int_equal(pipeline_process(fixture->pipeline, UINT64_MAX), 0);
}

static void assert_lines(const char *text, const char *const *lines)
{
	const char *at = text;

	for (; *lines; lines++) {
		at = strstr(at, *lines);
		if (!at)
			fail_msg("\"%s\" is missing, or not in its place, in:\n%s", *lines, text);
		at += strlen(*lines);
	}
}

#define assert_lines_in_order(text, ...)                                                           \
	assert_lines(text, (const char *const[]){__VA_ARGS__, NULL})

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

/* ---- order ---- */

/* Handed over in any order, each sample meets the mappings of its moment. */
static void test_order_of_time(void **state)
{
	struct fixture *fixture = *state;
	const char *log;

	add_sample(fixture, PID, 25, 0x10010);
	add_sample(fixture, PID, 15, 0x10010);
	add_sample(fixture, PID, 20, 0x10020); /* the event of the same moment comes first */
	add_sample(fixture, PID, 5, 0x10010);
	add_map(fixture, PID, 20, 0x10000, 2, "/lib/new");
	add_map(fixture, PID, 10, 0x10000, 1, "/lib/old");
	process_all(fixture);
	log = read_back(fixture);
	assert_lines_in_order(log, "\n5 complete [unmapped]+0x10010\n", "15 complete old+0x10\n",
		"20 complete new+0x20\n", "25 complete new+0x10\n");
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 4);
	assert_int_equal(pipeline_account(fixture->pipeline)->user_frames, 4);
}

/* Later things stay for the next time: older ones may still come. */
static void test_only_up_to_the_moment(void **state)
{
	struct fixture *fixture = *state;

	add_map(fixture, PID, 10, 0x10000, 1, "/lib/old");
	add_sample(fixture, PID, 40, 0x10000);
	add_sample(fixture, PID, 30, 0x10000);
	add_map(fixture, PID, 35, 0x10000, 2, "/lib/new");
	assert_int_equal(pipeline_process(fixture->pipeline, 30), 0);
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 0);
	add_map(fixture, PID, 28, 0x10000, 3, "/lib/late");
	assert_int_equal(pipeline_process(fixture->pipeline, 31), 0);
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 1);
	process_all(fixture);
	assert_lines_in_order(
		read_back(fixture), "30 complete late+0x0\n", "40 complete new+0x0\n");
}

static void test_forks_and_executions(void **state)
{
	struct fixture *fixture = *state;

	add_map(fixture, PID, 10, 0x10000, 1, "/lib/first");
	add_event(fixture,
		(struct sideband_event){
			.type = SIDEBAND_FORK, .time_ns = 20, .pid = PID + 1, .parent_pid = PID});
	add_sample(fixture, PID + 1, 25, 0x10000);
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_COMM,
				   .time_ns = 30,
				   .pid = PID + 1,
				   .name = "other",
				   .is_exec = true});
	add_sample(fixture, PID + 1, 35, 0x10000);
	add_sample(fixture, PID, 36, 0x10000);
	process_all(fixture);
	assert_lines_in_order(read_back(fixture), "25 complete first+0x0\n",
		"35 complete [unmapped]+0x10000\n", "36 complete first+0x0\n");
}

/* ---- who ---- */

static void test_names_are_told_once_and_when_they_change(void **state)
{
	struct fixture *fixture = *state;
	struct record record = make_record(PID, 10, 0);
	const char *log;

	add_record(fixture, &record);
	record.sample.time_ns = 20;
	add_record(fixture, &record);
	record.sample.time_ns = 30;
	memcpy(record.sample.thread_name, "0123456789abcdefgh", 16); /* no terminator */
	add_record(fixture, &record);
	process_all(fixture);
	log = read_back(fixture);
	assert_int_equal(count_of(log, "process "), 1);
	assert_int_equal(count_of(log, "thread "), 2);
	assert_lines_in_order(log, " process\n", " thread\n", "10 complete", "20 complete",
		" 0123456789abcde\n", "30 complete");
}

/* Sampled before it ran its program, and never again: it is known by the program's name. */
static void test_last_name_counts(void **state)
{
	struct fixture *fixture = *state;
	const char *log;

	add_map(fixture, PID, 10, 0x10000, 1, "/lib/first");
	add_sample(fixture, PID, 20, 0x10000);
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_COMM,
				   .time_ns = 30,
				   .pid = PID,
				   .name = "program",
				   .is_exec = true});
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_COMM,
				   .time_ns = 40,
				   .pid = PID,
				   .tid = PID + 1,
				   .name = "a thread"});
	process_all(fixture);
	log = read_back(fixture);
	assert_lines_in_order(log, " process\n", "20 complete", " program\n");
	assert_int_equal(count_of(log, "process 8388608"), 2);
}

/* It launches device work, and is never sampled: its name comes when its program does. */
static void test_a_process_that_only_wrote_records_has_its_name(void **state)
{
	struct fixture *fixture = *state;
	const char *log;

	assert_int_equal(pipeline_see_process(fixture->pipeline, PID), 0);
	assert_int_equal(pipeline_process(fixture->pipeline, 20), 0);
	add_map(fixture, PID, 30, 0x10000, 1, "/lib/first");
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_COMM,
				   .time_ns = 40,
				   .pid = PID,
				   .name = "program",
				   .is_exec = true});
	assert_int_equal(pipeline_see_process(fixture->pipeline, PID), 0);
	process_all(fixture);
	assert_int_equal(pipeline_see_process(fixture->pipeline, PID), 0);
	process_all(fixture);
	log = read_back(fixture);
	assert_lines_in_order(log, " program\n");
	assert_int_equal(count_of(log, "process "), 1);
}

/* ---- waiting ---- */

/* What the samples of this process run through. Returns its own address, for want of another use.
 */
static __attribute__((noinline)) uint64_t sampled_function(void)
{
	return (uint64_t)(uintptr_t)&sampled_function;
}

static void know_self(struct fixture *fixture)
{
	assert_int_equal(address_spaces_add_process(fixture->spaces, (uint32_t)getpid(), NULL), 0);
}

/* As the session does it, until nothing waits. */
static void retry_until_done(struct fixture *fixture)
{
	uint64_t deadline_ns = monotonic_now_ns() + PATIENCE_NS;

	gated_sampler_open(&fixture->gate);
	while (pipeline_waiting(fixture->pipeline)) {
		assert_true(monotonic_now_ns() < deadline_ns);
		assert_int_equal(pipeline_retry(fixture->pipeline, false), 0);
		usleep(1000);
	}
}

static void test_waits_for_names(void **state)
{
	struct fixture *fixture = *state;

	know_self(fixture);
	add_sample(fixture, (uint32_t)getpid(), 10, sampled_function());
	add_sample(fixture, PID, 20, 0x1000); /* needs nothing: is not held up */
	process_all(fixture);
	assert_int_equal(pipeline_waiting(fixture->pipeline), 1);
	assert_int_equal(pipeline_retry(fixture->pipeline, false), 0);
	assert_int_equal(pipeline_waiting(fixture->pipeline), 1);
	retry_until_done(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->gave_up_waiting, 0);
	assert_lines_in_order(read_back(fixture), "20 complete [unmapped]+0x1000\n",
		"10 complete sampled_function\n");
}

/* Its mapping is replaced and the process ends meanwhile: it still names what it ran through. */
static void test_waits_with_its_own_mappings(void **state)
{
	struct fixture *fixture = *state;
	uint64_t page = sampled_function() & ~4095ULL;
	uint32_t pid = (uint32_t)getpid();

	know_self(fixture);
	add_sample(fixture, pid, monotonic_now_ns(), sampled_function());
	process_all(fixture);
	add_map(fixture, pid, monotonic_now_ns(), page, 77, "/lib/other");
	add_event(
		fixture, (struct sideband_event){
				 .type = SIDEBAND_EXIT, .time_ns = monotonic_now_ns(), .pid = pid});
	process_all(fixture);
	address_spaces_forget_exited(fixture->spaces, UINT64_MAX);
	retry_until_done(fixture);
	assert_lines_in_order(read_back(fixture), "complete sampled_function\n");
}

static void test_gives_up(void **state)
{
	struct fixture *fixture = *state;
	const struct symbol_table *symbols;
	struct line_account lines;
	const char *log;

	know_self(fixture);
	add_sample(fixture, (uint32_t)getpid(), 10, sampled_function());
	process_all(fixture);
	assert_int_equal(pipeline_retry(fixture->pipeline, true), 0);
	assert_int_equal(pipeline_waiting(fixture->pipeline), 0);
	assert_int_equal(pipeline_account(fixture->pipeline)->gave_up_waiting, 1);
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 1);
	/* Its name comes after all, by the end of the recording. */
	gated_sampler_open(&fixture->gate);
	for (uint32_t i = 0; address_spaces_file(fixture->spaces, i); i++) {
		while (file_store_symbols(fixture->files, i, &symbols) == FILE_PENDING)
			usleep(1000);
	}
	resolver_write_lines(fixture->resolver, UINT64_MAX, NULL, NULL, &lines);
	assert_int_equal(lines.addresses_left_out, 0);
	log = read_back(fixture);
	assert_lines_in_order(log, "10 complete test-pipeline+0x", "symbol sampled_function");
}

/* Memory for waiting samples is bounded; those that need not wait are no loss. */
static void test_limit_of_waiting(void **state)
{
	struct fixture *fixture = *state;
	const struct pipeline_account *account = pipeline_account(fixture->pipeline);
	struct record small = make_record((uint32_t)getpid(), 0, sampled_function());
	struct wire_sample *large = calloc(1, LARGE_RECORD);

	know_self(fixture);
	assert_non_null(large);
	memcpy(large, &small, small.sample.record.length_bytes);
	large->record.length_bytes = LARGE_RECORD;
	for (uint64_t i = 0; i < 70; i++) {
		large->time_ns = i;
		assert_int_equal(pipeline_add_record(fixture->pipeline, &large->record), 0);
		process_all(fixture);
	}
	free(large);
	assert_in_range(pipeline_waiting(fixture->pipeline), 64, 66);
	assert_int_equal(account->samples, 70 - pipeline_waiting(fixture->pipeline));
	assert_int_equal(account->gave_up_waiting, 1); /* the others then knew the nameless frame */
	add_sample(fixture, PID, 100, 0x1000);
	process_all(fixture);
	assert_int_equal(account->gave_up_waiting, 1);
	retry_until_done(fixture);
	assert_int_equal(account->samples, 71);
}

/* ---- copied stacks ---- */

struct copied_record {
	struct wire_sample sample;
	struct wire_stack_copy copy;
	uint8_t bytes[WIRE_MAX_STACK_COPY_BYTES];
};

static uint64_t own_stack_top(void)
{
	pthread_attr_t attributes;
	void *bottom;
	size_t size;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
	assert_int_equal(pthread_attr_getstack(&attributes, &bottom, &size), 0);
	pthread_attr_destroy(&attributes);
	return (uint64_t)(uintptr_t)bottom + size;
}

static void copy_registers(struct wire_stack_copy *copy, const greg_t *registers)
{
	static const int dwarf_order[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
		REG_R15};

	for (int i = 0; i < 16; i++)
		copy->leaf[i] = (uint64_t)registers[dwarf_order[i]];
	copy->pc = (uint64_t)registers[REG_RIP];
	copy->sp = (uint64_t)registers[REG_RSP];
	copy->fp = (uint64_t)registers[REG_RBP];
	copy->second = (uint64_t)registers[REG_RBX];
}

/* Byte by byte, with no red zones in between: the whole stack is to be read. */
static __attribute__((noinline, no_sanitize_address)) void copy_stack(
	uint8_t *to, const volatile uint8_t *from, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		to[i] = from[i];
}

/* As the samplers send it when a table is missing: no frames, registers and stack. */
static __attribute__((noinline)) void copy_own_stack(struct copied_record *record, uint64_t most)
{
	ucontext_t context;

	*record = (struct copied_record){.sample = make_record((uint32_t)getpid(), 10, 0).sample};
	record->sample.user_frame_count = 0;
	record->sample.stop = WIRE_STOP_NO_TABLE;
	record->sample.flags = WIRE_SAMPLE_STACK_COPY;
	getcontext(&context);
	copy_registers(&record->copy, context.uc_mcontext.gregs);
	record->copy.stack_bytes = MIN(most, own_stack_top() - record->copy.sp);
	copy_stack(
		record->bytes, (const void *)(uintptr_t)record->copy.sp, record->copy.stack_bytes);
	record->sample.record.length_bytes =
		(uint32_t)(offsetof(struct copied_record, bytes) + record->copy.stack_bytes);
}

static void test_copied_stack(void **state)
{
	struct fixture *fixture = *state;
	static struct copied_record record;

	know_self(fixture);
	copy_own_stack(&record, sizeof(record.bytes));
	assert_int_equal(pipeline_add_record(fixture->pipeline, &record.sample.record), 0);
	process_all(fixture);
	assert_int_equal(pipeline_waiting(fixture->pipeline), 1); /* for tables first */
	retry_until_done(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->unwound_in_user_space, 1);
	assert_int_equal(
		pipeline_account(fixture->pipeline)->stacks_by_stop[WIRE_STOP_COMPLETE], 1);
	assert_lines_in_order(
		read_back(fixture), "10 complete ", " main ", " test_copied_stack copy_own_stack");
}

static void test_copied_stack_that_is_too_short(void **state)
{
	struct fixture *fixture = *state;
	static struct copied_record record;

	know_self(fixture);
	copy_own_stack(&record, 64);
	assert_int_equal(pipeline_add_record(fixture->pipeline, &record.sample.record), 0);
	process_all(fixture);
	retry_until_done(fixture);
	assert_int_equal(
		pipeline_account(fixture->pipeline)->stacks_by_stop[WIRE_STOP_STACK_COPY], 1);
	assert_lines_in_order(read_back(fixture), "10 stack_copy ", "copy_own_stack");
}

/* A stack pointer at either end of memory: nothing outside the copy is read. */
static void test_copied_stack_at_the_ends_of_memory(void **state)
{
	static const uint64_t pointers[] = {0, 4, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 64};
	struct fixture *fixture = *state;
	static struct copied_record record;

	know_self(fixture);
	gated_sampler_open(&fixture->gate);
	for (size_t i = 0; i < ARRAY_SIZE(pointers) * 2; i++) {
		copy_own_stack(&record, i % 2 ? 0 : 64);
		record.copy.sp = record.copy.fp = record.copy.second = pointers[i / 2];
		record.copy.leaf[6] = record.copy.leaf[7] = pointers[i / 2];
		assert_int_equal(pipeline_add_record(fixture->pipeline, &record.sample.record), 0);
		process_all(fixture);
		retry_until_done(fixture);
	}
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, ARRAY_SIZE(pointers) * 2);
}

/* The sampler came further than the copy leads: its frames and its reason stay. */
static void test_longer_stack_wins(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct wire_sample sample;
		uint64_t frames[3];
		struct wire_stack_copy copy;
	} record = {.sample = make_record(PID, 10, 0).sample, .frames = {0x11, 0x12, 0x13}};

	record.sample.record.length_bytes = sizeof(record);
	record.sample.user_frame_count = 3;
	record.sample.flags = WIRE_SAMPLE_STACK_COPY;
	record.sample.stop = WIRE_STOP_READ_FAULT;
	record.copy.pc = 0x11;
	assert_int_equal(pipeline_add_record(fixture->pipeline, &record.sample.record), 0);
	process_all(fixture);
	assert_lines_in_order(read_back(fixture),
		"10 read_fault [unmapped]+0x13 [unmapped]+0x12 [unmapped]+0x11\n");
}

/* Counts have the places of times that only waits have. */
static void test_counts(void **state)
{
	struct fixture *fixture = *state;
	struct record record = make_record(PID, 1000, 0x11);

	record.sample.cycles = 3000;
	record.sample.instructions = 9000;
	add_record(fixture, &record);
	record.sample.time_ns = 2000;
	record.sample.flags = WIRE_SAMPLE_COUNTED;
	add_record(fixture, &record);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->waited_ns, 0);
	assert_lines_in_order(read_back(fixture),
		"1000 complete [unmapped]+0x11\n"
		"2000 complete [unmapped]+0x11 cycles=3000 instructions=9000\n");
}

/* ---- waits ---- */

static void add_wait(struct fixture *fixture, uint64_t time_ns, uint64_t waited_ns,
	uint64_t runnable_ns, uint8_t flags)
{
	struct record record = make_record(PID, time_ns, 0x11);

	record.sample.wait = WIRE_WAIT_LOCK;
	record.sample.waited_ns = waited_ns;
	record.sample.runnable_ns = runnable_ns;
	record.sample.flags = flags;
	add_record(fixture, &record);
}

static void add_wake(struct fixture *fixture, const struct wire_wake *parts)
{
	struct wire_wake wake = *parts;

	wake.record = (struct wire_record){WIRE_RECORD_WAKE, 0, sizeof(wake)};
	wake.pid = wake.tid = PID;
	assert_int_equal(pipeline_add_record(fixture->pipeline, &wake.record), 0);
}

/* First for the lock, then, where it took long enough, for a CPU. */
static void test_exact_waits_have_two_parts(void **state)
{
	struct fixture *fixture = *state;

	add_wait(fixture, 1000, 100, 30, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_FOR_CPU);
	add_wait(fixture, 2000, 100, 5, WIRE_SAMPLE_EXACT);
	add_wait(fixture, 3000, 100, 0, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_OPEN);
	add_wait(fixture, 4000, 100, 400, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_FOR_CPU);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->wait_samples, 4 + 1 - 1 + 1);
	assert_int_equal(pipeline_account(fixture->pipeline)->waited_ns, 100 + 95 + 100 + 100);
	assert_lines_in_order(read_back(fixture),
		"970 kernel complete [unmapped]+0x11 [lock 70]\n"
		"1000 kernel complete [unmapped]+0x11 [cpu 30]\n"
		"1995 kernel complete [unmapped]+0x11 [lock 95]\n"
		"3000 kernel complete [unmapped]+0x11 [lock 100 open]\n"
		"4000 kernel complete [unmapped]+0x11 [cpu 100]\n");
}

/* The stack came when the wait began; what is too short gets no time. */
static void test_exact_wait_whose_stack_came_first(void **state)
{
	struct fixture *fixture = *state;

	add_wait(fixture, 100, 0, 0, 0);
	add_wait(fixture, 1000, 0, 0, 0);
	add_wake(fixture, &(struct wire_wake){.time_ns = 1500,
				  .waited_ns = 500,
				  .runnable_ns = 100,
				  .flags = WIRE_SAMPLE_EXACT | WIRE_SAMPLE_FOR_CPU});
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->waited_ns, 500);
	assert_lines_in_order(read_back(fixture),
		"1400 kernel complete [unmapped]+0x11 [lock 400]\n"
		"1500 kernel complete [unmapped]+0x11 [cpu 100]\n");
}

/* `sonde top` forgets callstacks: their ids will be those of others. */
static void test_a_wait_that_was_forgotten(void **state)
{
	struct fixture *fixture = *state;

	add_wait(fixture, 100, 0, 0, 0);
	process_all(fixture);
	pipeline_forget_waits(fixture->pipeline);
	add_wake(fixture, &(struct wire_wake){.time_ns = 1500, .waited_ns = 500});
	process_all(fixture);
	assert_lines_in_order(read_back(fixture), "1500 kernel - [unseen 500]\n");
}

static void test_counted_waits(void **state)
{
	struct fixture *fixture = *state;
	struct wire_wait_count counted = {
		.record = {WIRE_RECORD_WAIT_COUNT, 0, sizeof(counted)},
		.time_ns = 1000,
		.waited_ns = 77,
		.count = 12,
		.pid = PID,
		.tid = PID,
		.wait = WIRE_WAIT_SLEEP,
	};

	assert_int_equal(pipeline_add_record(fixture->pipeline, &counted.record), 0);
	counted.wait = WIRE_WAIT_MAX;
	assert_int_equal(pipeline_add_record(fixture->pipeline, &counted.record), 0);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->malformed, 1);
	assert_lines_in_order(read_back(fixture), "1000 kernel - [sleep 77 of 12]\n");
}

/* What began before the recording or ended after it counts as far as it was recorded. */
static void test_waits_are_cut_to_the_recording(void **state)
{
	struct fixture *fixture = *state;
	struct wire_wait_count counted = {
		.record = {WIRE_RECORD_WAIT_COUNT, 0, sizeof(counted)},
		.time_ns = 1300,
		.waited_ns = 900,
		.count = 12,
		.pid = PID,
		.tid = PID,
		.wait = WIRE_WAIT_SLEEP,
	};

	fixture->windows.whole_begin_ns = 1000;
	fixture->windows.whole_end_ns = 2000;
	add_wait(fixture, 900, 500, 0, WIRE_SAMPLE_EXACT);
	add_wait(fixture, 1100, 500, 10, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_FOR_CPU);
	add_wait(fixture, 1200, 0, 0, 0); /* its stack: how long comes with the wake */
	assert_int_equal(pipeline_add_record(fixture->pipeline, &counted.record), 0);
	add_wake(fixture, &(struct wire_wake){.time_ns = 1900, .waited_ns = 1500});
	add_wake(fixture, &(struct wire_wake){.time_ns = 2400, .waited_ns = 500});
	add_wake(fixture, &(struct wire_wake){.time_ns = 2900, .waited_ns = 500});
	add_wait(fixture, 2500, 600, 520, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_FOR_CPU);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->outside, 2);
	assert_int_equal(pipeline_account(fixture->pipeline)->waited_ns,
		(90 + 10) + 300 + 900 + 100 + (80 + 20));
	assert_lines_in_order(read_back(fixture),
		"1090 kernel complete [unmapped]+0x11 [lock 90]\n"
		"1100 kernel complete [unmapped]+0x11 [cpu 10]\n",
		"1300 kernel - [sleep 300 of 12]\n",
		"1900 kernel complete [unmapped]+0x11 [lock 900]\n",
		"2000 kernel complete [unmapped]+0x11 [lock 100]\n"
		"1980 kernel complete [unmapped]+0x11 [lock 80]\n"
		"2000 kernel complete [unmapped]+0x11 [cpu 20]\n");
}

static void test_samples_outside_of_the_recording(void **state)
{
	struct fixture *fixture = *state;

	fixture->windows.whole_begin_ns = 1000;
	fixture->windows.whole_end_ns = 2000;
	for (uint64_t time_ns = 999; time_ns <= 2001; time_ns++)
		if (time_ns < 1002 || time_ns > 1998)
			add_sample(fixture, PID, time_ns, 0x11);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 4);
	assert_int_equal(pipeline_account(fixture->pipeline)->outside, 2);
}

/* ---- what samplers say ---- */

static void test_stops_and_kernel_stacks(void **state)
{
	struct fixture *fixture = *state;
	const struct pipeline_account *account = pipeline_account(fixture->pipeline);
	struct record record = make_record(PID, 0, 0x1000);
	const char *log;

	add_map(fixture, PID, 1, 0x400000, 1, "/nonexistent/program");
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++) {
		record.sample.stop = (uint8_t)stop;
		record.sample.time_ns = 100 + stop;
		add_record(fixture, &record);
	}
	record.sample.record.length_bytes = sizeof(record.sample) + 3 * 8;
	record.sample.stop = WIRE_STOP_NO_USER_STACK;
	record.sample.time_ns = 200;
	record.sample.flags = WIRE_SAMPLE_KERNEL_MODE;
	record.sample.user_frame_count = 0;
	record.sample.kernel_frame_count = 3;
	memcpy(record.frames, (uint64_t[]){5, 6, 7}, 24); /* no kernel has anything there */
	add_record(fixture, &record);
	process_all(fixture);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		assert_int_equal(
			account->stacks_by_stop[stop], stop == WIRE_STOP_NO_USER_STACK ? 2 : 1);
	assert_int_equal(account->user_frames, WIRE_STOP_MAX);
	assert_int_equal(account->kernel_frames, 3);
	log = read_back(fixture);
	assert_lines_in_order(log, "100 complete [unmapped]+0x1000\n",
		"102 no_mapping [unmapped]+0x1000\n", "110 compat [unmapped]+0x1000\n",
		"111 new_mapping [unmapped]+0x1000\n", "200 kernel no_user_stack ");
	/* Outermost first; all but the innermost are return addresses. */
	assert_lines_in_order(log, "200 kernel", "+0x6 ", "+0x5 ", "+0x5\n");
}

/* The sampler did not know an address's mapping: because there is none, or because it was new. */
static void test_addresses_that_the_sampler_did_not_know(void **state)
{
	struct fixture *fixture = *state;
	const struct pipeline_account *account = pipeline_account(fixture->pipeline);
	struct record record = make_record(PID, 10, 0x400010);
	const char *log;

	record.sample.stop = WIRE_STOP_NO_MAPPING;
	add_record(fixture, &record); /* of a process without a mapping */
	add_map(fixture, PID, 20, 0x400000, 1, "/nonexistent/program");
	record.sample.time_ns = 30;
	add_record(fixture, &record);
	record.sample.time_ns = 40;
	record.sample.record.length_bytes = sizeof(record.sample) + 2 * 8;
	record.sample.user_frame_count = 2;
	record.frames[1] = 0x77; /* the stack ran off into data */
	add_record(fixture, &record);
	process_all(fixture);
	assert_int_equal(account->stacks_by_stop[WIRE_STOP_NEW_MAPPING], 2);
	assert_int_equal(account->stacks_by_stop[WIRE_STOP_NO_MAPPING], 1);
	log = read_back(fixture);
	assert_lines_in_order(
		log, "10 new_mapping [unmapped]+0x400010\n", "30 new_mapping ", "40 no_mapping ");
	assert_null(strstr(log, "+0x77"));
}

static void test_side_band_losses(void **state)
{
	struct fixture *fixture = *state;

	add_event(fixture, (struct sideband_event){.type = SIDEBAND_LOST, .time_ns = 1, .lost = 7});
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_LOST, .time_ns = 2, .lost = 5});
	add_event(fixture, (struct sideband_event){.type = SIDEBAND_KSYMBOL,
				   .time_ns = 3,
				   .address = 0xffffffffc0000000,
				   .length = 64,
				   .name = "bpf_prog_1"});
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->side_band_lost, 12);
}

static void assert_dropped(struct fixture *fixture, const void *record)
{
	uint64_t before = pipeline_account(fixture->pipeline)->malformed;

	assert_int_equal(pipeline_add_record(fixture->pipeline, record), 0);
	assert_int_equal(pipeline_account(fixture->pipeline)->malformed, before + 1);
}

static void test_malformed_records(void **state)
{
	struct fixture *fixture = *state;
	struct copied_record *whole = calloc(1, sizeof(*whole)), *broken;

	whole->sample = make_record(PID, 10, 0).sample;
	whole->sample.user_frame_count = 0;
	whole->sample.flags = WIRE_SAMPLE_STACK_COPY;
	whole->sample.record.length_bytes = offsetof(struct copied_record, bytes) + 8;
	whole->copy.stack_bytes = 8;
	broken = malloc(sizeof(*broken));
#define assert_dropped_with(field, value)                                                          \
	({                                                                                         \
		*broken = *whole;                                                                  \
		broken->field = value;                                                             \
		assert_dropped(fixture, broken);                                                   \
	})
	assert_dropped_with(sample.record.type, 0);
	assert_dropped_with(sample.record.type, WIRE_RECORD_SAMPLE + 1);
	assert_dropped_with(sample.record.length_bytes, 0);
	assert_dropped_with(sample.record.length_bytes, sizeof(struct wire_sample) - 1);
	assert_dropped_with(sample.record.length_bytes, offsetof(struct copied_record, bytes) - 1);
	assert_dropped_with(sample.record.length_bytes, offsetof(struct copied_record, bytes) + 7);
	assert_dropped_with(sample.user_frame_count, WIRE_MAX_USER_FRAMES + 1);
	assert_dropped_with(sample.user_frame_count, 100);
	assert_dropped_with(sample.user_left_out, 1);
	assert_dropped_with(sample.python_left_out, 1);
	assert_dropped_with(sample.evaluations_left_out, 1);
	assert_dropped_with(sample.kernel_frame_count, WIRE_MAX_KERNEL_FRAMES + 1);
	assert_dropped_with(sample.kernel_frame_count, 100);
	assert_dropped_with(sample.stop, WIRE_STOP_MAX);
	assert_dropped_with(copy.stack_bytes, 9);
	assert_dropped_with(copy.stack_bytes, UINT64_MAX);
#undef assert_dropped_with
	assert_int_equal(pipeline_add_record(fixture->pipeline, &whole->sample.record), 0);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->samples, 1);
	free(whole);
	free(broken);
}

/* The outermost frames of a deep stack are a ring in the record. */
static void test_deep_stacks_are_put_in_order(void **state)
{
	enum { INNER = WIRE_MAX_USER_FRAMES - WIRE_OUTER_USER_FRAMES, LEFT_OUT = 300 };
	struct {
		struct wire_sample sample;
		uint64_t frames[WIRE_MAX_USER_FRAMES];
	} record = {.sample = make_record(PID, 10, 0).sample};
	struct fixture *fixture = *state;
	const char *log, *gap, *outer;

	record.sample.record.length_bytes = sizeof(record);
	record.sample.user_frame_count = WIRE_MAX_USER_FRAMES;
	record.sample.user_left_out = LEFT_OUT;
	/* Each address is the frame's depth: the last frame is at depth 811. */
	for (size_t depth = 0; depth < WIRE_MAX_USER_FRAMES + LEFT_OUT; depth++)
		record.frames[depth < INNER ? depth
					    : INNER + (depth - INNER) % WIRE_OUTER_USER_FRAMES] =
			0x100000 + depth;
	assert_int_equal(pipeline_add_record(fixture->pipeline, &record.sample.record), 0);
	process_all(fixture);
	assert_int_equal(pipeline_account(fixture->pipeline)->deep_stacks, 1);
	assert_int_equal(pipeline_account(fixture->pipeline)->frames_left_out, LEFT_OUT);
	log = read_back(fixture);
	outer = strstr(log, "10032b");
	gap = strstr(log, "256 to 511 frames left out");
	assert_non_null(outer);
	assert_non_null(gap);
	assert_true(outer < strstr(log, "1002ac") && strstr(log, "1002ac") < gap);
	assert_null(strstr(log, "1002ab"));
	assert_true(gap < strstr(log, "10017f"));
}

/* What was never processed, and what waits, is freed. */
static void test_ends_with_work_left(void **state)
{
	struct fixture *fixture = *state;

	know_self(fixture);
	add_sample(fixture, (uint32_t)getpid(), 10, sampled_function());
	process_all(fixture);
	assert_int_equal(pipeline_waiting(fixture->pipeline), 1);
	add_sample(fixture, PID, 20, 0x1000);
	add_map(fixture, PID, 30, 0x10000, 1, "/lib/first");
	add_event(
		fixture, (struct sideband_event){.type = SIDEBAND_EXIT, .time_ns = 40, .pid = PID});
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_order_of_time),
		test(test_only_up_to_the_moment),
		test(test_forks_and_executions),
		test(test_names_are_told_once_and_when_they_change),
		test(test_last_name_counts),
		test(test_a_process_that_only_wrote_records_has_its_name),
		test(test_waits_for_names),
		test(test_waits_with_its_own_mappings),
		test(test_gives_up),
		test(test_limit_of_waiting),
		test(test_counts),
		test(test_exact_waits_have_two_parts),
		test(test_exact_wait_whose_stack_came_first),
		test(test_a_wait_that_was_forgotten),
		test(test_counted_waits),
		test(test_waits_are_cut_to_the_recording),
		test(test_samples_outside_of_the_recording),
		test(test_copied_stack),
		test(test_copied_stack_that_is_too_short),
		test(test_copied_stack_at_the_ends_of_memory),
		test(test_longer_stack_wins),
		test(test_stops_and_kernel_stacks),
		test(test_addresses_that_the_sampler_did_not_know),
		test(test_side_band_losses),
		test(test_malformed_records),
		test(test_deep_stacks_are_put_in_order),
		test(test_ends_with_work_left),
	};

	return cmocka_run_group_tests(tests, make_own_cache, remove_own_cache);
}
