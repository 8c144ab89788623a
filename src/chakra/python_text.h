/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values as Python's str() prints them, since that is the form of the lists in Chakra's nodes:
 * ['cuda:0', 1e-05, True, None].
 */
#pragma once

#include "base/strbuf.h"
#include "model/execution_trace.h"

/* Appends the list; "[]" for an empty text. What is no JSON is kept as it is, as valid UTF-8. */
void python_text_add(struct strbuf *out, struct execution_text json);
/* Appends the number as Python's repr() has it, with the fewest digits that mean it: 1e-05. */
void python_text_add_float(struct strbuf *out, double number);
