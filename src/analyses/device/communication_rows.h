/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels of a trace communicate: by their arguments, by the operators around their launches,
 * by name, by what their streams are used for. */
#pragma once

#include "analyses/device/communication.h"
#include "model/trace.h"

/*
 * For each row enum communication_evidence; that of all but kernels is COMMUNICATION_NOT. The
 * caller frees it. Returns 0 or -ENOMEM.
 */
int communication_of_rows(const struct trace *trace, uint8_t **ret_evidence);
