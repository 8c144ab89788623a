/* SPDX-License-Identifier: Apache-2.0 */
/* What toy-section.c shows: the longest span of each thread and stream. */
#pragma once

#include "report/section.h"

extern const struct report_section toy_section;
