/* SPDX-License-Identifier: Apache-2.0 */
/* What Holistic Trace Analysis (HTA) f4d0062 defines otherwise, faults included. */
#pragma once

#include "analyses/definitions.h"

extern const struct trace_definitions hta_definitions;
