/* SPDX-License-Identifier: Apache-2.0 */
/* Is this file a CPython interpreter, which one, and where does it keep its state? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "elf/elf_file.h"
#include "unwind/python_layout.h"

/* What a file says of the interpreter in it. */
struct python_interpreter {
	struct python_layout layout;
	uint64_t runtime; /* virtual address of _PyRuntime */
	/* _PyEval_EvalFrameDefault with its cold parts and tail-call handlers, sorted: virtual
	 * addresses in the file. */
	struct python_range eval[PYTHON_MAX_EVAL_RANGES];
	uint32_t eval_count;
	char version[32]; /* "3.11.2" */
};

/*
 * Looks for an interpreter in the file. Returns 1 and fills `ret_interpreter`; 0 when it holds
 * none; or a negative errno with a sentence when it is one whose layout is not known or does not
 * hold what this version's should (-ENOTSUP): "Python 3.16.0a1 in /usr/bin/python3.16 is not known
 * to this sonde: its frames are not shown; update sonde". Works on stripped files.
 */
int python_find(struct python_interpreter *ret_interpreter, struct elf_file *file,
	const char *path_for_messages, struct errmsg *err);

/* Reads memory of a living process; 0 on success. */
typedef int python_read_function(void *context, uint64_t address, void *buffer, size_t length);

/*
 * Checks a living interpreter against its layout: interpreters, thread states and the links between
 * them. Returns 1 when all holds, 0 while the interpreter is not initialised yet, -EINVAL with a
 * sentence when something does not fit.
 */
int python_validate(const struct python_layout *layout, uint64_t runtime, pid_t pid,
	python_read_function *read, void *context, struct errmsg *err);

/*
 * The pthread key under which the interpreter keeps each thread's state, found by looking which of
 * a thread's keys holds it (glibc: ARCH_PTHREAD_FIRST_KEYS; the first 32 keys). Returns the key +
 * 1, or 0 when none does.
 */
uint32_t python_find_key(const struct python_layout *layout, uint64_t runtime,
	python_read_function *read, void *context);
