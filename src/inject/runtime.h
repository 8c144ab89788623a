/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes that give work to devices: CUDA, HIP, OpenCL. Each is one const struct runtime at the
 * bottom of its own file and one line in runtimes.c; the rest of the library knows none by name. To
 * add one (docs/adding-a-runtime.md has more; tests/doubles/toy is one):
 *   1. src/inject/NAME/: its door, exported in inject.map, and `const struct runtime NAME_runtime`,
 *      declared in NAME/runtime.h; its line in runtimes.c, its files in src/inject/meson.build;
 *   2. choose one of the two shapes of records in wire/device.h: a launch and its work in one
 *      record, or apart, with records of the clock;
 *   3. take a free number for WIRE_DEVICE_IDS_OF(), and write it down above that macro;
 *   4. the variable that has the driver load the library: a line in `doors` of
 *      collect/session/device.c. Where the vendor's library calls ours from within a launch, its
 *      name goes into lies_in_caller() of collect/pipeline/stack.c, for pipeline_skip_injected().
 *      There is nothing else to do in collect/, the capture, analyses and reports;
 *   5. tests with a double of the driver, a row in `sonde doctor`, docs/gpu.md.
 *
 * A runtime enters through its own door, a function that its driver or loader calls, which calls
 * runtime_enter(). From then on it tells the collector what was launched and when it ran, with the
 * functions of inject.h and launch/stack.h and the records of wire/device.h:
 *
 *   on the thread that launches   inject_is_open(), inject_correlation(), inject_launch_stack(),
 *                                 inject_write()
 *   once per device, queue, name  inject_define() with an id of its own: WIRE_DEVICE_IDS_OF(number)
 *   when times are known          a WIRE_RECORD_DEVICE_ACTIVITY with the launch's correlation id,
 *                                 on any thread
 *   where there will be none      a WIRE_RECORD_DEVICE_LAUNCH that says why
 */
#pragma once

#include <stdbool.h>

struct runtime {
	/*
	 * Once, in an open session, when the program first uses the runtime: loads what times its
	 * work and asks for it. False: nothing comes of it, and `stop` is not called; a note
	 * (WIRE_RECORD_DEVICE_NOTE) says why. It runs on a thread of the program's.
	 */
	bool (*start)(void);
	/*
	 * At the program's end, in the reverse order of their starts: writes what is known of work
	 * that has ended, in bounded time. Not in a forked child.
	 */
	void (*stop)(void);
	/*
	 * The process is about to end without atexit(): writes what is known, in bounded time, as
	 * `stop` does, and goes on. NULL: everything is written at once.
	 */
	void (*flush)(void);
	/* The process has moved to another session. NULL: it sees that by itself. */
	void (*join_session)(void);
	/*
	 * A profiler within the program, which traces the same devices, is about to start, or has
	 * stopped. NULL: it is no rival.
	 */
	void (*meet_profiler)(bool runs);
	/* In a forked child, whose gate is closed. NULL: it has nothing to forget. */
	void (*fork_child)(void);
};

/* Ends with NULL; at most RUNTIMES_MAX. */
#define RUNTIMES_MAX 16
extern const struct runtime *const runtimes[];

/*
 * The program uses this runtime, which is in the table: the first call opens the session and starts
 * the runtime. False: there is no session, or the start failed. errno is kept.
 */
bool runtime_enter(const struct runtime *runtime);
/* The process has moved to another session: what runs is told. errno is kept. */
void runtime_join_session(void);
/* For who ends by _exit(): the runtimes that were started write what they know. errno is kept. */
void sonde_flush(void);
/* Hooks of torch.profiler call it before that starts, and after it has stopped. */
void sonde_profiler(int runs);
