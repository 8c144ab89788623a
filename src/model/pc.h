/* SPDX-License-Identifier: Apache-2.0 */
/* An instruction of a device's code that was sampled: a part of model.h, which includes this. */
#pragma once

#include <stdint.h>

/* Samples of an instruction of a kernel, for one reason. */
struct model_pc {
	uint64_t time_ns;                               /* when counting them began */
	uint64_t cubin, pc_offset, samples, not_issued; /* as in struct capture_pc */
	uint32_t process, line;
	const char *function, *reason, *file; /* file: NULL: not known */
};
