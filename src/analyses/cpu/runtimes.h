/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes that generate code: what makes each give its code names and keep frame pointers. */
#pragma once

#include "analyses/selection.h"
#include "model/model.h"

struct runtime_advice {
	const char *names;  /* what gives generated code its names */
	const char *frames; /* what keeps stacks whole through it */
};

/*
 * For the process that most samples in generated code without a name, or with a stack cut in
 * generated code, are of. General where the runtime is not known. Returns 0 or -ENOMEM.
 */
int runtime_advice_init(
	struct runtime_advice *advice, const struct model *model, const struct selected *selected);
