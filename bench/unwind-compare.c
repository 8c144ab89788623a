/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind-compare [-n STOPS] [-i MILLISECONDS] [-q] [-j] PID...: stops each process STOPS times at
 * random moments and unwinds every thread with our tables and with elfutils' libdwfl. Prints per
 * process how many frames are the same, and each stack that differs, with both versions from the
 * first difference on (-q: only the numbers; -j: only them, a JSON object a line).
 *
 * Where libdwfl gives up with an error and our stack goes on from the same frames (assembly without
 * call frame information), only the frames that it has are compared; such stacks are counted.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "stopped_process.h"

#define SHOWN_FRAMES 6

struct options {
	int stops, interval_ms;
	bool quiet, json;
};

struct stack {
	uint64_t frames[WIRE_MAX_USER_FRAMES];
	size_t count;
	bool failed;
	const char *end;
};

struct totals {
	uint64_t stacks, same_stacks, frames, same_frames;
	uint64_t reference_failed,
		longer_stacks; /* the latter: those of the former where ours goes on */
	uint64_t stops[WIRE_STOP_MAX];
};

static int add_frame(Dwfl_Frame *state, void *argument)
{
	struct stack *stack = argument;
	Dwarf_Addr pc;
	bool is_exact;

	if (!dwfl_frame_pc(state, &pc, &is_exact) || stack->count == WIRE_MAX_USER_FRAMES)
		return DWARF_CB_ABORT;
	stack->frames[stack->count++] = is_exact ? pc : pc - 1;
	return DWARF_CB_OK;
}

/* The tables of the loaded files are enough: no search for separate debug files. */
static int find_no_debuginfo(Dwfl_Module *module, void **user_data, const char *name,
	Dwarf_Addr base, const char *file_name, const char *link, GElf_Word crc, char **ret_path)
{
	return -1;
}

static Dwfl *open_reference(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = find_no_debuginfo};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (dwfl &&
		(dwfl_linux_proc_report(dwfl, pid) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0 ||
			dwfl_linux_proc_attach(dwfl, pid, true) != 0)) {
		fprintf(stderr, "libdwfl cannot attach to process %d: %s\n", pid, dwfl_errmsg(-1));
		dwfl_end(dwfl);
		return NULL;
	}
	return dwfl;
}

static void unwind_reference(Dwfl *dwfl, pid_t tid, struct stack *stack)
{
	stack->count = 0;
	stack->failed = dwfl_getthread_frames(dwfl, tid, add_frame, stack) < 0;
	stack->end = stack->failed ? dwfl_errmsg(-1) : "complete";
}

static enum wire_stop unwind_ours(
	const struct stopped_process *process, pid_t tid, struct stack *stack)
{
	struct wire_stack_copy registers;
	enum wire_stop stop = WIRE_STOP_NO_USER_STACK;

	stack->count = 0;
	if (stopped_process_registers(tid, &registers) == 0)
		stop = unwind_user_stack(stopped_process_target(process), &registers, stack->frames,
			WIRE_MAX_USER_FRAMES, &stack->count);
	stack->failed = stop != WIRE_STOP_COMPLETE;
	stack->end = wire_stop_name(stop);
	return stop;
}

static void print_frame(const struct stopped_process *process, const char *who, uint64_t frame)
{
	const char *path;
	uint64_t vaddr;

	if (stopped_process_describe(process, frame, &path, &vaddr))
		printf("    %s %s+%#" PRIx64 "\n", who, *path ? path : "(anonymous)", vaddr);
	else
		printf("    %s %#" PRIx64 " (not mapped)\n", who, frame);
}

static void print_rest(const struct stopped_process *process, const char *who,
	const struct stack *stack, size_t from)
{
	for (size_t i = from; i < stack->count && i < from + SHOWN_FRAMES; i++)
		print_frame(process, who, stack->frames[i]);
	printf("    %s ends after %zu frames: %s\n", who, stack->count, stack->end);
}

static void print_difference(const struct stopped_process *process, pid_t tid,
	const struct stack *ours, const struct stack *reference, size_t same)
{
	printf("  thread %d: %zu frames are the same, then\n", tid, same);
	if (same)
		print_frame(process, "last", ours->frames[same - 1]);
	print_rest(process, "ours", ours, same);
	print_rest(process, "dwfl", reference, same);
}

static void compare_thread(const struct stopped_process *process, Dwfl *dwfl, pid_t tid,
	const struct options *options, struct totals *totals)
{
	struct stack ours, reference;
	size_t same = 0, compared;
	bool longer;

	totals->stops[unwind_ours(process, tid, &ours)]++;
	unwind_reference(dwfl, tid, &reference);
	while (same < ours.count && same < reference.count &&
		ours.frames[same] == reference.frames[same])
		same++;
	longer = reference.failed && same == reference.count && same < ours.count;
	compared = longer ? reference.count : MAX(ours.count, reference.count);
	totals->stacks++;
	totals->same_stacks += same == compared;
	totals->frames += compared;
	totals->same_frames += same;
	totals->reference_failed += reference.failed;
	totals->longer_stacks += longer;
	if (!options->quiet && same < compared)
		print_difference(process, tid, &ours, &reference, same);
}

static int compare_once(struct stopped_process *process, pid_t pid, const struct options *options,
	struct totals *totals, struct errmsg *err)
{
	int result = stopped_process_stop(process, err);
	Dwfl *dwfl;

	if (result < 0)
		return result;
	dwfl = open_reference(pid);
	for (size_t i = 0; dwfl && i < stopped_process_thread_count(process); i++)
		compare_thread(process, dwfl, stopped_process_thread(process, i), options, totals);
	dwfl_end(dwfl);
	stopped_process_resume(process);
	return 0;
}

/* Between half and one and a half times the interval, so that no period of the target is hit again
 * and again. */
static void pause_randomly(int interval_ms)
{
	long us = interval_ms * 500L + random() % (interval_ms * 1000L + 1);
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&time, NULL);
}

static void print_totals(pid_t pid, const struct totals *totals)
{
	printf("%d: %" PRIu64 " of %" PRIu64 " stacks identical; %" PRIu64 " of %" PRIu64
	       " frames identical (%.3f %%); libdwfl gave up in %" PRIu64
	       ", ours went on in %" PRIu64 " of these; ends:",
		pid, totals->same_stacks, totals->stacks, totals->same_frames, totals->frames,
		totals->frames ? 100.0 * (double)totals->same_frames / (double)totals->frames : 0.0,
		totals->reference_failed, totals->longer_stacks);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		if (totals->stops[stop])
			printf(" %s %" PRIu64, wire_stop_name(stop), totals->stops[stop]);
	printf("\n");
}

static void print_json(pid_t pid, const struct totals *totals)
{
	const char *separator = "";

	printf("{\"pid\": %d, \"stacks\": %" PRIu64 ", \"same_stacks\": %" PRIu64
	       ", \"frames\": %" PRIu64 ", \"same_frames\": %" PRIu64
	       ", \"reference_failed\": %" PRIu64 ", \"longer_stacks\": %" PRIu64 ", \"stops\": {",
		pid, totals->stacks, totals->same_stacks, totals->frames, totals->same_frames,
		totals->reference_failed, totals->longer_stacks);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++) {
		if (!totals->stops[stop])
			continue;
		printf("%s\"%s\": %" PRIu64, separator, wire_stop_name(stop), totals->stops[stop]);
		separator = ", ";
	}
	printf("}}\n");
}

static int compare_process(pid_t pid, const struct options *options)
{
	_cleanup_stopped_process_ struct stopped_process *process = NULL;
	struct totals totals = {0};
	struct errmsg err;
	int result = stopped_process_open(&process, pid, &err);

	for (int i = 0; result == 0 && i < options->stops; i++) {
		pause_randomly(options->interval_ms);
		result = compare_once(process, pid, options, &totals, &err);
	}
	if (options->json)
		print_json(pid, &totals);
	else
		print_totals(pid, &totals);
	if (result < 0)
		fprintf(stderr, "%s\n", err.text);
	return result;
}

/* A positive number that fills the whole argument, else 0. */
static int read_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	return *text && *end == '\0' && number > 0 && number <= INT32_MAX ? (int)number : 0;
}

int main(int argc, char **argv)
{
	struct options options = {.stops = 1, .interval_ms = 20};
	int option, failures = 0;

	while ((option = getopt(argc, argv, "n:i:qj")) != -1) {
		if (option == 'n')
			options.stops = read_number(optarg);
		else if (option == 'i')
			options.interval_ms = read_number(optarg);
		else if (option == 'q')
			options.quiet = true;
		else if (option == 'j')
			options.json = options.quiet = true;
		else
			optind = argc + 1;
	}
	if (optind >= argc || options.stops == 0 || options.interval_ms == 0) {
		fprintf(stderr,
			"usage: unwind-compare [-n STOPS] [-i MILLISECONDS] [-q] [-j] PID...\n");
		return 2;
	}
	srandom((unsigned)getpid());
	for (int i = optind; i < argc; i++)
		failures += compare_process(read_number(argv[i]), &options) < 0;
	return failures ? 1 : 0;
}
