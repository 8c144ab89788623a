/* SPDX-License-Identifier: Apache-2.0 */
/* The address that a server listens on, as a person writes it: "127.0.0.1:7077", "[::]:0". */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"

struct listen_place {
	char host[64]; /* an address; "localhost" is 127.0.0.1 */
	int port;      /* 0: a free one */
	bool is_ipv6, is_loopback;
};

/* Returns 0, or -EINVAL with a sentence. */
int listen_parse(struct listen_place *ret_place, const char *text, struct errmsg *err);
/* Can it be listened on now? Returns 0 or a negative errno with a sentence. */
int listen_check(const struct listen_place *place, struct errmsg *err);
