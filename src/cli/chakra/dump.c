/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra dump: a Chakra trace as JSON. */
#include "base/output_file.h"
#include "chakra/et/json.h"
#include "cli/chakra/chakra.h"

static struct {
	const char *output;
	bool pretty;
} arguments = {.output = "-"};

static void add(struct output_file *file, const ProtobufCMessage *message)
{
	et_json_add(&file->out, message, arguments.pretty);
	if (!arguments.pretty)
		strbuf_add_char(&file->out, '\n');
	output_file_keep_small(file);
}

static int dump(const char *path, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	_cleanup_output_file_ struct output_file file = {0};
	const et_node *node;
	int r = et_reader_open(&reader, path, err);

	r = r ?: output_file_open(&file, arguments.output, err);
	if (r < 0)
		return r;
	add(&file, &et_reader_metadata(reader)->base);
	while ((r = et_reader_next(reader, &node, err)) == 1)
		add(&file, &node->base);
	/* Of a damaged file, what comes before the damage is shown. */
	if (r < 0) {
		output_file_close(&file, NULL);
		return r;
	}
	return output_file_close(&file, err);
}

static int run_dump(int count _unused_, char **positional)
{
	struct errmsg err;

	return dump(positional[0], &err) < 0 ? fail(&err) : EXIT_OK;
}

static const struct option dump_options[] = {
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write here. Default: standard output.",
		.value = (void *)&arguments.output},
	{.long_name = "pretty",
		.type = OPTION_FLAG,
		.help = "Indented, exactly as chakra_jsonizer writes it.",
		.value = &arguments.pretty},
	{0},
};

const struct command chakra_dump_command = {
	.name = "chakra dump",
	.summary = "print a Chakra execution trace as JSON",
	.usage = "[--pretty] [-o FILE] TRACE.et",
	.description =
		"One line for the metadata and one for each node, with the names of protobuf's "
		"JSON: \"durationMicros\", \"dataDeps\", 64-bit numbers as strings, unset fields "
		"left out. Of a damaged file, everything before the damage is printed.",
	.examples = "sonde chakra dump model.0.et | grep COMM_COLL_NODE\n"
		    "    All collectives.",
	.options = dump_options,
	.minimum_arguments = 1,
	.maximum_arguments = 1,
	.run = run_dump,
};
