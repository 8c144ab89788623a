/* SPDX-License-Identifier: Apache-2.0 */
/* One node of an execution trace, for pytorch_et.c. */
#pragma once

#include "base/json_reader.h"
#include "model/execution_trace.h"

/*
 * Reads the object that the reader stands before. Texts of *ret_node point into the reader's bytes,
 * or into blocks of `trace`, which gets the node's device work and dependencies. JSON_BAD for what
 * is no node: it needs an id. Running out of memory is JSON_BAD with -ENOMEM in *ret_error.
 */
enum json_status pytorch_et_node(struct json_reader *reader, struct execution_trace *trace,
	struct execution_node *ret_node, int *ret_error);
