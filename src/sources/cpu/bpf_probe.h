/* SPDX-License-Identifier: Apache-2.0 */
/* Can BPF programs sample and unwind here? Each answer comes of loading one. */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"

/* Returns 0, or a negative errno with the reason, a sentence. */
int bpf_probe(struct errmsg *reason);

/* libbpf prints what it says only with $SONDE_DEBUG_BPF. */
void bpf_set_print(void);

/* Of a process that may load BPF programs. Kernel lockdown for confidentiality takes it away. */
bool bpf_may_read_kernel(void);
/* The same: does the kernel have bpf_loop? If not, the reason is a sentence with its release. */
bool bpf_has_loops(struct errmsg *reason);
/* By the release alone, as far as that can be said without loading programs. */
bool bpf_release_has_loops(void);
