/* SPDX-License-Identifier: Apache-2.0 */
/* What Chakra's converter, chakra_converter 1.0.0, makes of a linked trace, with its faults
 * (docs/chakra.md). */
#pragma once

#include "chakra/convert/graph.h"

/* The `definition` of struct chakra_convert_options. */
extern const struct chakra_definition chakra_converter;
