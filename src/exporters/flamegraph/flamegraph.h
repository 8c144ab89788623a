/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flame graphs as one self-contained SVG: readable as a still picture, and searched, zoomed and
 * walked with the keyboard in a browser. Roots are on top.
 */
#pragma once

#include "exporters/exporter.h"

/*
 * A difference: before on side 0, after on side 1 of a finished tree. A frame is as wide as the
 * mean of its shares of the samples before and after, so that nothing vanishes, and red where its
 * share grew, blue where it fell. `weight`: what the samples count. Returns 0 or -ENOMEM.
 */
int flamegraph_write_diff(const struct call_tree *tree, enum model_weight weight,
	const char *before_name, const char *after_name, struct strbuf *out);
