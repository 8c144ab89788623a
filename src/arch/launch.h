/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of device work, in the injected library: written in assembly for each processor. */
#pragma once

#include <stdint.h>

#include "arch/arch.h"

/*
 * The registers that calls keep and the stack pointer, as they are after the return, by DWARF
 * number; the others are left as they are in `ret_registers`. Returns the program counter there.
 */
uint64_t arch_launch_registers(uint64_t ret_registers[static ARCH_REGISTERS]);

/*
 * Does nothing; the program for stacks of launches probes it. It begins with an instruction that
 * the kernel can run a probe on without a trap, where there is one.
 */
void sonde_launch_marker(uint64_t correlation);
