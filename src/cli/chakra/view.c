/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chakra/view.h"

#include "cli/chakra/say.h"
#include "model/format.h"

#define TYPE(name) CHAKRA_PROTO_MSG__NODE_TYPE__##name

struct chakra_read_result chakra_read_result_of(const struct execution_trace *trace)
{
	return (struct chakra_read_result){.skipped_nodes = trace->skipped_nodes,
		.skipped_bytes = trace->skipped_bytes,
		.repeated_ids = trace->repeated_ids,
		.truncated = trace->truncated};
}

/* "note" lines, each for a count that is not 0. */
static void note(uint64_t count, const char *what)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (count == 0)
		return;
	format_count(&text, count);
	chakra_note("%s %s", strbuf_cstr(&text), what);
}

static void say_kinds(const struct chakra_convert_result *result)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct {
		uint64_t count;
		const char *what;
	} kinds[] = {
		{result->types[TYPE(COMP_NODE)], "compute"},
		{result->types[TYPE(COMM_COLL_NODE)], "collectives"},
		{result->types[TYPE(COMM_SEND_NODE)], "sends"},
		{result->types[TYPE(COMM_RECV_NODE)], "receives"},
		{result->types[TYPE(MEM_LOAD_NODE)] + result->types[TYPE(MEM_STORE_NODE)],
			"memory"},
		{result->types[TYPE(METADATA_NODE)], "metadata"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].count == 0)
			continue;
		strbuf_add(&text, text.length > 0 ? ", " : "");
		format_count(&text, kinds[i].count);
		strbuf_addf(&text, " %s", kinds[i].what);
	}
	chakra_say_more("nodes", "%s", strbuf_cstr(&text));
}

static void say_deps(const struct chakra_convert_result *result)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (int kind = 0; kind < CHAKRA_DEP_KIND_MAX; kind++) {
		if (result->deps[kind] == 0)
			continue;
		strbuf_addf(&text, "%s%s ", text.length > 0 ? ", " : "",
			chakra_dep_kind_to_string((enum chakra_dep_kind)kind));
		format_count(&text, result->deps[kind]);
	}
	if (text.length > 0)
		chakra_say_more("order", "%s", strbuf_cstr(&text));
}

void chakra_say_converted(const char *input, const char *output,
	const struct chakra_read_result *read, const struct chakra_convert_result *result)
{
	_cleanup_strbuf_ struct strbuf size = {0}, nodes = {0}, devices = {0};

	format_bytes(&size, result->bytes);
	format_count(&nodes, result->nodes);
	format_count(&devices, result->device_nodes);
	chakra_say("wrote %s (%s): %s nodes, %s of them device work", output, strbuf_cstr(&size),
		strbuf_cstr(&nodes), strbuf_cstr(&devices));
	say_kinds(result);
	say_deps(result);
	note(read->skipped_nodes, "nodes of the input were damaged and left out");
	if (read->truncated)
		chakra_note("%s is cut off: its last nodes are missing", input);
	if (result->device_nodes == 0)
		chakra_note("no device work: link with a device trace first, unless the program "
			    "used only the CPU");
	note(result->repeated_ids, "nodes with the id of another node left out");
	note(result->missing_deps, "dependencies on missing nodes left out");
	note(result->late_deps, "dependencies on nodes that began later left out");
	note(result->without_time, "nodes without times: nothing matched them in the device trace");
	note(result->unknown_collectives, "communicate in an unknown way: they are compute nodes");
	note(result->without_bytes, "communicate an unknown amount");
	note(result->without_peer, "sends and receives without a known peer");
	note(result->cut_deps, "dependencies removed to break cycles");
}
