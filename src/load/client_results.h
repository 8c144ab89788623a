/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a load generator, from its file. */
#pragma once

#include "base/errmsg.h"
#include "model/client_results.h"

/* Returns 0 or a negative errno with a sentence. */
int load_client_results(struct client_results *ret_results, const char *path, struct errmsg *err);
