/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load_options.h"

#include <stddef.h>

const char *const yes_no_choices[] = {"yes", "no", NULL};
const char *const weight_choices[] = {
	"cpu", "wait", "wall", "gpu", "gpu-idle", "cpu+gpu", "energy", NULL};
const char *const stack_choices[] = {"all", "user", "kernel", NULL};
