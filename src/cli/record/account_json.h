/* SPDX-License-Identifier: Apache-2.0 */
/* The account at the end of `sonde record` as one JSON object: docs/record.md lists its members. */
#pragma once

#include "base/strbuf.h"
#include "collect/session/session.h"

/* `error`: the sentence of a recording that failed; NULL. Returns 0 or -ENOMEM. */
int record_account_json(const struct session_result *result, const struct session_options *options,
	const char *error, struct strbuf *out);
