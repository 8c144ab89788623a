/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs count by PM sampling: as counters of a process they are called "GPU 0 SM busy (%)". */
#pragma once

#include "wire/device.h"

/* The name behind that of the GPU, "SM busy (%)"; static. */
const char *capture_gpu_counter_name(enum wire_pm_counter counter);
