/* SPDX-License-Identifier: Apache-2.0 */
/* What toy-source.c plays, and what was asked of it. */
#pragma once

#include "sources/source.h"

#define TOY_SAMPLES 3
#define TOY_LOST    5
#define TOY_NOTE    "these samples are a toy's"

extern struct toy_script {
	bool is_unwanted, refuses, fails;
	char calls[64]; /* a letter each */
} toy_script;

extern const struct source toy_source;
