/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as JSON with the names and forms of protobuf's mapping, which chakra_jsonizer's files
 * have: "durationMicros", 64-bit numbers as strings, what is not set left out.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "chakra/et/file.h"

/* Pretty: over several lines as Python's indent=2 has them; neither ends with a newline. */
void et_json_add(struct strbuf *out, const ProtobufCMessage *message, bool pretty);
