/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inject/runtime.h"

extern const struct runtime cuda_runtime;
