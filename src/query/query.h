/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are opened, and what can be asked of them: their report, a call tree, a timeline.
 * `sonde report`, the server and assistants (`sonde mcp`) use it.
 *
 * An answer may use the model up: samples are weighed and filters leave things out for good. So of
 * what is open one thing can be asked; asserted. Who wants more opens the files once, and forks for
 * each question: parent and children share the memory of the model, and a question that fails does
 * so alone. timeline.h does not use the model up.
 *
 * Functions return 0 or a negative errno with a sentence. -EINVAL: the question is wrong; -ENODATA:
 * the files do not have what was asked for.
 */
#pragma once

#include "model/model.h"
#include "query/options.h"
#include "report/render.h"

/* Zero-initialise. */
struct query {
	const char *const *paths; /* of query_open() */
	size_t count;
	struct model *model; /* as recorded: nothing is hidden or left out, but other windows */
	bool has_samples;    /* it is one recording, or a run of several; else of rows alone */
	const char *window;  /* the windows that were loaded; NULL: all */
	bool is_used_up;
};

/*
 * Loads what load_model() takes, as these options need it; NULL: all that there is. `paths` and
 * texts of `options` outlive the query.
 */
int query_open(struct query *query, const char *const *paths, size_t count,
	const struct query_options *options, struct errmsg *err);
void query_close(struct query *query);
#define _cleanup_query_ _cleanup_(query_close)

/*
 * Appends the report, or its section `options->by`. `terminal`: of REPORT_FORM_TERMINAL; NULL: a
 * file. Where the options need other windows, or rows alone, the files are read again. May change
 * `options`.
 */
int query_report(struct query *query, struct query_options *options, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err);
/* Appends what can be asked for with `by`: a JSON array of {"name", "summary"}. 0 or -ENOMEM. */
int query_sections(const struct query *query, struct strbuf *out);

/*
 * Appends a call tree of the samples, weighed by `options->shown.weight`, as a JSON object:
 *   unit: "ns", "uj", "bytes", or "samples" where it is not known how long one stands for;
 *   paths, totals: of each side; one, or two of a diff;
 *   names, modules, kinds: of labels;
 *   label, parent: of nodes, an array each: indices; the root is node 0, and its parent -1; parents
 *     come before their children;
 *   self, total: of nodes, an array for each side;
 *   pruned: {nodes, total} of what is left out: below `minimum_share_percent` of the totals. Its
 *     total is that of the outermost ones, and lies in the total of their parents.
 *   notes: sentences.
 */
int query_call_tree(
	struct query *query, struct query_options *options, struct strbuf *out, struct errmsg *err);
/* Of two recordings, before and after. Both are used up. */
int query_call_tree_diff(struct query *before, struct query *after, struct query_options *options,
	struct strbuf *out, struct errmsg *err);
