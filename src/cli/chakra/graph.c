/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra graph: a Chakra trace for programs that draw and look at graphs. */
#include "exporters/chakra_graph.h"

#include <errno.h>
#include <string.h>

#include "cli/chakra/chakra.h"
#include "cli/chakra/say.h"
#include "model/format.h"

#define NO_NODE UINT64_MAX

static const char *const format_choices[] = {"dot", "graphml", NULL};

static struct {
	const char *output, *format;
	uint64_t around, hops;
} arguments = {.output = "-", .around = NO_NODE, .hops = 3};

/* By the option, else by the file's name. */
static int choose_format(enum chakra_graph_format *ret_format, struct errmsg *err)
{
	if (!arguments.format &&
		(text_ends_in(arguments.output, ".pdf") || text_ends_in(arguments.output, ".svg") ||
			text_ends_in(arguments.output, ".png")))
		return errmsg_set(err, -EINVAL,
			"%s is drawn by Graphviz: write a .dot file, then `dot -T%s FILE.dot -o "
			"%s`",
			arguments.output, strrchr(arguments.output, '.') + 1, arguments.output);
	*ret_format = CHAKRA_GRAPH_DOT;
	if (arguments.format ? strcmp(arguments.format, "graphml") == 0
			     : text_ends_in(arguments.output, ".graphml"))
		*ret_format = CHAKRA_GRAPH_GRAPHML;
	return 0;
}

static void say_written(const struct chakra_graph_result *result)
{
	_cleanup_strbuf_ struct strbuf nodes = {0}, edges = {0}, missing = {0};

	format_count(&nodes, result->nodes);
	format_count(&edges, result->edges);
	format_count(&missing, result->missing);
	if (strcmp(arguments.output, "-") != 0)
		chakra_say("wrote %s: %s nodes, %s dependencies", arguments.output,
			strbuf_cstr(&nodes), strbuf_cstr(&edges));
	if (result->missing)
		chakra_note("%s dependencies on missing nodes left out", strbuf_cstr(&missing));
}

static int run_graph(int count _unused_, char **positional)
{
	struct chakra_graph_options options = {.has_around = arguments.around != NO_NODE,
		.around = arguments.around,
		.hops = (unsigned)arguments.hops};
	struct chakra_graph_result result;
	struct errmsg err;

	if (choose_format(&options.format, &err) < 0 ||
		chakra_graph_write(positional[0], arguments.output, &options, &result, &err) < 0)
		return fail(&err);
	say_written(&result);
	return EXIT_OK;
}

static const struct option graph_options[] = {
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write here; a name that ends in .graphml asks for that format. Default: "
			"standard output.",
		.value = (void *)&arguments.output},
	{.short_name = 'f',
		.long_name = "format",
		.type = OPTION_CHOICE,
		.argument = "FORMAT",
		.help = "dot: Graphviz's language. graphml: for Gephi, yEd, networkx.",
		.value = (void *)&arguments.format,
		.choices = format_choices},
	{.long_name = "around",
		.type = OPTION_U64,
		.argument = "ID",
		.help = "Only this node and its neighbours: thousands of nodes cannot be drawn.",
		.value = &arguments.around,
		.maximum = 1.8e19},
	{.long_name = "hops",
		.type = OPTION_U64,
		.argument = "N",
		.help = "Neighbours up to this many dependencies away, in both directions. "
			"Default: 3.",
		.value = &arguments.hops,
		.minimum = 0,
		.maximum = 100},
	{0},
};

const struct command chakra_graph_command = {
	.name = "chakra graph",
	.summary = "write a Chakra execution trace as a graph to draw",
	.usage = "[-f dot|graphml] [--around ID [--hops N]] [-o FILE] TRACE.et",
	.description =
		"Each node with its name, id, type and duration; edges lead from a dependency to "
		"what waits for it, those of control dashed in dot, and named \"control\" or "
		"\"data\" in GraphML. Replaces chakra_visualizer; for PDF, SVG and PNG, Graphviz "
		"draws the dot file.",
	.examples = "sonde chakra graph --around 1042 -o near.dot model.0.et && dot -Tsvg near.dot "
		    "-o near.svg\n"
		    "    What node 1042 waits for, and what waits for it.",
	.options = graph_options,
	.minimum_arguments = 1,
	.maximum_arguments = 1,
	.run = run_graph,
};
