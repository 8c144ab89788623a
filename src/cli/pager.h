/* SPDX-License-Identifier: Apache-2.0 */
/* Long text on a terminal, a screen at a time. */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

/*
 * Writes the text to standard output: by a pager where that is a terminal and the text is longer
 * than its screen. The pager is $SONDE_PAGER, else $PAGER, else less; "" and cat are none. Where it
 * cannot be run the text is written as without one.
 */
void pager_print(const struct strbuf *text);
/* --no-pager: from now on there is none. */
void pager_turn_off(void);

#define PAGER_OPTION(target)                                                                       \
	{                                                                                          \
		.long_name = "no-pager", .type = OPTION_FLAG,                                      \
		.help = "Do not show long text a screen at a time with $SONDE_PAGER, $PAGER or "   \
			"less.",                                                                   \
		.value = &(target)                                                                 \
	}
