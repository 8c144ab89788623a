/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs that a program can often do without, recognised in the stacks of its threads: a slow
 * library, threads that spin, loops in the interpreter, waiting for data; and what keeps CPUs from
 * running it. Their sentences, and the shares from which they count, stand in
 * report/cpu/avoidable_rules.c.
 *
 * To add one: a value below, what recognises it in avoidable.c, its rule in the report's
 * (report/cpu/avoidable_rules.c), a program that has it and nothing else in
 * tests/e2e/test_avoidable.py, and a row in docs/record.md.
 */
#pragma once

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

enum avoidable {
	AVOIDABLE_REFERENCE_BLAS, /* in the BLAS or LAPACK that is written for reading, not speed */
	AVOIDABLE_SPINNING,       /* at barriers and in idle loops of OpenMP and BLAS threads */
	AVOIDABLE_PAGE_FAULTS,    /* in the kernel, giving the program memory */
	AVOIDABLE_ALLOCATION,     /* in malloc, free and their like */
	AVOIDABLE_IMPORTS,        /* of Python modules */
	AVOIDABLE_INTERPRETER,    /* in Python code of the user's own itself */
	AVOIDABLE_LOADING,        /* of data by PyTorch, in the thread that trains */
	AVOIDABLE_ONE_THREAD,     /* in a library that could use more threads than this one */
	AVOIDABLE_DEBUG_BUILD,    /* in checks, and small functions that optimisers leave out */
	/* These are of threads that wait. */
	AVOIDABLE_CPU_WAIT,  /* for a CPU */
	AVOIDABLE_GIL_WAIT,  /* for Python's interpreter lock */
	AVOIDABLE_DATA_WAIT, /* for PyTorch's workers that load data */
	AVOIDABLE_LOCK_WAIT, /* for a mutex or a read-write lock of the C library */
	/* for a threading.Lock, at a line of the user's own; not in the conditions and queues of
	 * Python's library, where workers are idle */
	AVOIDABLE_PYTHON_LOCK_WAIT,
	AVOIDABLE_LOOP_WAIT, /* in a callback of an event loop, which has others to call */
	/* These are of no thread: capture/capture.h has their counters. */
	AVOIDABLE_QUOTA, /* the cgroup had used up its CPUs' time */
	AVOIDABLE_HEAT,  /* CPUs were slowed down since they were hot */
	AVOIDABLE_MAX,
};

struct avoidable_use {
	uint64_t time_ns; /* on CPUs or waiting, of all threads together */
	uint32_t threads;
	/*
	 * The line that most of it is charged to (analyses/cpu/charge.h), and how much of it;
	 * MODEL_NONE: no stack says. `leaf`: the innermost frame of user space of its stacks, in
	 * the function where most of that line's time was.
	 */
	uint32_t frame, leaf;
	uint64_t frame_ns;
};

struct avoidable_uses {
	uint64_t running_ns; /* of all threads together */
	uint64_t samples;    /* of running threads */
	double quota_cpus;   /* of AVOIDABLE_QUOTA; 0: there is none */
	/* The thread that held the interpreter lock for most of AVOIDABLE_GIL_WAIT; MODEL_NONE. */
	uint32_t gil_holder;
	uint64_t gil_holder_ns;
	/* The thread that ran, or waited for a CPU, for most of AVOIDABLE_LOCK_WAIT, in the same
	 * process: who holds such a lock no record says. MODEL_NONE: none did. */
	uint32_t lock_runner;
	uint64_t lock_runner_ns;
	/* The same of AVOIDABLE_PYTHON_LOCK_WAIT, of all threads together that wait so themselves:
	 * they take turns. May exceed the wait where several ran. */
	uint64_t python_lock_ran_ns;
	struct avoidable_use items[AVOIDABLE_MAX];
};

/* `selection`: as for CPU samples. Returns 0, -ENOMEM, or -EINVAL as selection_apply(). */
int avoidable_uses_init(struct avoidable_uses *uses, const struct model *model,
	const struct selection *selection, struct errmsg *err);
