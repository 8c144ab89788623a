/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde top` shows of a model, as lines of text, and what keys change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyses/cpu/breakdown.h"
#include "analyses/selection.h"
#include "base/strbuf.h"
#include "model/shown.h"

#define TOP_TEXT 160

struct top_view {
	enum breakdown_by by;
	enum breakdown_sort sort;
	enum model_weight weight;
	enum model_side side;
	bool interpreter, fold; /* show the interpreter's functions; charge libraries to callers */
	bool frozen, help;
	bool has_energy; /* there are rails */
	/* Filters, "" for none: an extended regular expression on functions, a pid, a tid. */
	char symbol[TOP_TEXT], process[16], thread[16];
	bool editing; /* the next filter is being typed */
	char edited[TOP_TEXT];
	char message[2 * TOP_TEXT]; /* in place of the keys, until the next one */
	size_t selected, first;     /* rows: under the cursor, the uppermost shown */
	char chosen[TOP_TEXT];      /* what Enter filters by: the selected row's name, pid or tid */
	size_t width, height;       /* of the screen; height 0: all, and no cursor */
	uint64_t window_ns;         /* what is shown */
	uint64_t seen_ns;           /* of that, since the recording began */
};

/* Where lines of a special kind are; SIZE_MAX: there is none. */
struct top_lines {
	size_t header, selected;
};

/*
 * Appends at most `height` lines, each ended by a newline. Hides and folds frames of the model and
 * weighs its samples: once per model. A filter that is no pattern is dropped with a message.
 * Returns 0 or -ENOMEM.
 */
int top_view_print(struct top_view *view, struct model *model, struct strbuf *out,
	struct top_lines *ret_lines);

/* How much ran or waited in each second of the time shown, on average. */
struct top_load {
	double busy_cpus, waiting_threads;
};
struct top_load top_view_load(const struct top_view *view, const struct model *model);

/* Hides, folds, weighs and selects as the view says: see top_view_print(). */
int top_view_prepare(struct top_view *view, struct model *model, struct selected *ret_selected);

/* The same as one line of JSON, with all rows. */
int top_view_json(struct top_view *view, struct model *model, struct strbuf *out);

/* Keys that are no characters. */
enum {
	TOP_KEY_UP = 0x110000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_BACKSPACE,
	TOP_KEY_OTHER,
};
#define TOP_KEY_ENTER  '\n'
#define TOP_KEY_ESCAPE '\033'

/* Returns false for the key that ends it. */
bool top_view_key(struct top_view *view, int key);
