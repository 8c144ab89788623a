/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up runtime with a made-up device, for the test of docs/adding-a-runtime.md: the double of
 * a vendor's driver. It calls a library that traces it, as real ones do.
 */
#pragma once

#include <stdint.h>

/* For programs: runs a kernel, which takes so long; returns when it has ended. */
void toy_run(const char *kernel, uint64_t duration_ns);

/* For tracing libraries: $TOY_TRACER is loaded at first use, and its toy_tracer() called. */
struct toy_tracer {
	/* Before work is given to the device; what it returns comes back with the work's end. */
	void *(*launched)(const char *kernel);
	/* CLOCK_MONOTONIC */
	void (*ended)(void *launch, uint64_t start_ns, uint64_t end_ns);
};

/* NULL: it does not want to trace. */
typedef const struct toy_tracer *toy_tracer_function(void);
