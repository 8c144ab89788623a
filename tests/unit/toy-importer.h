/* SPDX-License-Identifier: Apache-2.0 */
/* What toy-importer.c reads: "TOY", "rank N", and rows "NAME START_NS DURATION_NS". */
#pragma once

#include "importers/importer.h"

extern const struct importer toy_importer;
