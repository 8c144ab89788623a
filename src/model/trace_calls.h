/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of a recording that launch or wait are named in rows: recordings know their kind, not
 * their name.
 */
#pragma once

#include "model/model.h"

enum trace_calls { TRACE_CALLS_OPENCL, TRACE_CALLS_CUDA, TRACE_CALLS_HIP };

bool trace_is_of_hip(const struct model_device_work *work);
/* The call that launched it. */
const char *trace_launch_call(const struct model_device_work *work);
/* A call of `kind` (enum wire_device_kind) that captured it, where it is a node of a graph. */
const char *trace_captured_call(const struct model_device_work *work, uint8_t kind);
/*
 * A call of `kind` (enum wire_device_kind) that waits; `sync` is what it waited for by the tracing
 * library (enum wire_device_sync_type), or 0.
 */
const char *trace_wait_call(enum trace_calls calls, uint8_t kind, uint32_t sync);
