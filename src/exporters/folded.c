/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: "root;child;leaf COUNT", one line for each different stack. Frames end in _[k]
 * (kernel),
 * _[j] (generated code) or _[i] (inlined) as flame graph tools colour them. Counts are samples.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/escape.h"
#include "exporters/exporters.h"

static const char *suffix_of(const struct call_tree_label *label)
{
	if (label->kind == CALL_TREE_KERNEL)
		return "_[k]";
	if (label->inlined)
		return "_[i]";
	return label->kind == CALL_TREE_JIT ? "_[j]" : "";
}

/* The frames from below the root to `node`; `path` has room for the deepest. */
static void add_line(
	struct strbuf *out, const struct call_tree *tree, uint32_t node, uint32_t *path)
{
	uint64_t samples = tree->nodes.items[node].self[0];
	uint32_t depth = 0;

	for (; node; node = tree->nodes.items[node].parent)
		path[depth++] = node;
	while (depth-- > 0) {
		const struct call_tree_label *label = call_tree_label(tree, path[depth]);

		escape_folded(out, label->name);
		strbuf_add(out, suffix_of(label));
		strbuf_add_char(out, depth ? ';' : ' ');
	}
	strbuf_addf(out, "%llu\n", (unsigned long long)samples);
}

static int add_lines(struct strbuf *out, const struct call_tree *tree)
{
	_cleanup_free_ uint32_t *path = calloc(tree->max_depth + 1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nodes.count; i++) {
		if (tree->nodes.items[i].self[0])
			add_line(out, tree, i, path);
	}
	return 0;
}

static int folded_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_call_tree_ struct call_tree tree = {0};
	int r = selection_apply(selection, model, &selected, err);

	options = export_options_or_default(options);
	r = r ?: call_tree_init(&tree);
	r = r ?: call_tree_add(&tree, 0, model, &selected, options->roots);
	r = r ?: call_tree_finish(&tree);
	r = r ?: add_lines(out, &tree);
	return export_result(r, out, "folded", err);
}

const struct exporter folded_exporter = {
	.name = "folded",
	.description = "one line per stack and its samples, for flame graph tools",
	.extension = ".folded",
	.is_weighed = true,
	.export = folded_export,
};
