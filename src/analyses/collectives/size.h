/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a collective moves, and how fast, as NCCL's tests define it:
 * https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md. The size S is that of the
 * larger buffer of a rank: of an all-gather all that it gets, of a reduce-scatter all that it puts
 * in. The algorithm's bandwidth is S / t. The bus's is that times a factor, so that it can be
 * compared with the hardware's, whatever the number of ranks n: 2 (n - 1) / n of an all-reduce,
 * (n - 1) / n of all-gather, reduce-scatter and all-to-all, else 1.
 */
#pragma once

#include <stdint.h>

/* Bytes of one element by its name in traces, "Float", "BFloat16"; 0: not known. */
unsigned collective_element_bytes(const char *dtype);
/* Does every rank get what all put in, or one part of it? Then a rank's own part is 1 / n of S. */
int64_t collective_size_of_part(const char *name, int64_t part_bytes, int64_t ranks);
/* What the algorithm's bandwidth is multiplied by; 0: not one that has a bus's bandwidth. */
double collective_bus_factor(const char *name, uint32_t ranks);
/* "RING" of "ncclDevKernel_AllReduce_Sum_f16_RING_LL(…)", "" where the kernel does not say; and the
 * protocol. `size` 16 are enough. */
void collective_algorithm(const char *kernel, char *algorithm, char *protocol, unsigned size);
