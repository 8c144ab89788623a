/* SPDX-License-Identifier: Apache-2.0 */
/* How Chakra's linker, chakra_trace_link 1.0.0, links two traces: link.c has its faults. */
#pragma once

#include "chakra/link/link.h"

/* The `definition` of struct chakra_link_options. */
int chakra_trace_link(struct link *link, struct errmsg *err);
