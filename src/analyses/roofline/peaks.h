/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices can do at most, by their makers' data sheets: operations and bytes a second. Dense:
 * figures for sparse matrices, twice as large, are in no program's reach that does not ask for
 * them.
 */
#pragma once

#include "base/errmsg.h"
#include "model/cost/op_inputs.h"

struct peaks {
	double flops[OP_DTYPE_MAX]; /* a second, by what is computed with; 0: not known */
	double bytes_per_s;         /* of the device's memory; 0: not known */
	const char *device;         /* as the table names it; NULL: of --peak alone */
	const char *source;         /* of the figures */
};

/* Of a device by the name that it has in traces; false: it is not in the table. */
bool peaks_of_device(struct peaks *ret_peaks, const char *name);

/*
 * "tflops=312,tbps=2.0", the first for all that is computed with; "bf16=312,fp32=19.5" for some.
 * Figures that are not given stay 0. Returns 0, or -EINVAL with a sentence.
 */
int peaks_parse(struct peaks *ret_peaks, const char *text, struct errmsg *err);
/* Those of `given` in place of those of `peaks`. */
void peaks_override(struct peaks *peaks, const struct peaks *given);
