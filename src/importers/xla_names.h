/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What XLA's profiler (JAX, TensorFlow) calls things, in its Chrome JSON and in XPlane protobuf
 * alike: work of a device is recognised by the names of its process or plane, "/device:GPU:0", and
 * of its thread or line, "Stream #13(Compute)", of a TPU "XLA Ops". Other rows of a device are sums
 * of these, which count as annotations of the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/trace.h"

enum xla_kind {
	XLA_NOT,    /* a thread of the host, or another tool's */
	XLA_STREAM, /* its rows are kernels, copies and fills */
	XLA_SUM,    /* of work: modules, steps, operators of the framework */
};

struct xla_track {
	enum xla_kind kind;
	int64_t device;
	int64_t stream; /* as it was given, where the name has none */
};

/* `number`: of the thread or line. */
struct xla_track xla_track_of(const char *process, const char *thread, int64_t number);
/* Of work: a kernel, a copy or a fill. */
enum trace_category xla_work_category(const char *name);
/* Of the host, by name: a call of the driver or a function of Python; TRACE_OTHER: neither. */
enum trace_category xla_host_category(const char *name, bool has_correlation);
