/* SPDX-License-Identifier: Apache-2.0 */
/* Why threads are called as their process is. */
#pragma once

#include "model/model.h"

/* A sentence with what to do, where Python threads of the capture have no names; else NULL. */
const char *thread_names_missing(const struct model *model);
