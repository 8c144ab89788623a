/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph's colours: the kernel, interpreted and generated code have their own, each native
 * module has the one that its name picks, or the next free one. Classes give hue, saturation and
 * lightness to flamegraph.css, which makes fills of them for light and dark pages.
 */
#pragma once

#include "analyses/cpu/call_tree.h"
#include "base/strbuf.h"

/* The modules of a tree and their colours. */
struct palette {
	struct intern modules;
	ARRAY_OF(struct palette_module) entries; /* by id of `modules` */
	ARRAY_OF(uint32_t) ranking;              /* entries by self samples, falling */
};

struct palette_module {
	const char *name;
	uint64_t self_samples;
	char class_name[8]; /* "k" kernel, "p" interpreted, "j" generated, "u" unknown, "h0" … */
};

/* Looks at both sides of a finished tree. Returns 0 or -ENOMEM. */
int palette_init(struct palette *palette, const struct call_tree *tree);
void palette_done(struct palette *palette);
#define _cleanup_palette_ _cleanup_(palette_done)

/* Appends the classes as style rules. */
void palette_add_css(struct strbuf *out);
/* The class of a label's frames. */
const char *palette_class(const struct palette *palette, const struct call_tree_label *label);
/*
 * The fill, "#rrggbb", of a class on a light page, for viewers without style sheets. `shade` 0 … 2
 * sets functions of one module apart.
 */
const char *palette_fill(const char *class_name, unsigned shade, char buffer[static 8]);
/* 0 … 2 by the function's name. */
unsigned palette_shade(const char *name);
