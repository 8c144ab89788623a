/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a result of rocprofv3: agents, kernels, operations, texts of markers. */
#include <string.h>

#include "importers/rocprofv3/state.h"

#define AGENT_GPU 2

int rocprof_text(struct rocprof *rocprof, const struct json_text *value, uint32_t *ret_string)
{
	const struct json_text inside = json_text_inside(value);
	_cleanup_strbuf_ struct strbuf plain = {0};

	if (!inside.bytes || !inside.escaped)
		return import_rows_text(
			rocprof->rows, inside.bytes ? inside.bytes : "", inside.length, ret_string);
	json_text_unescape(&plain, &inside);
	if (strbuf_status(&plain) < 0)
		return -ENOMEM;
	return import_rows_text(rocprof->rows, strbuf_cstr(&plain), plain.length, ret_string);
}

const char *rocprof_kind_name(const struct rocprof *rocprof, uint64_t kind)
{
	return kind < rocprof->kinds.count
		       ? trace_text(rocprof->rows->trace, rocprof->kinds.items[kind].name)
		       : "";
}

const char *rocprof_operation(const struct rocprof *rocprof, uint64_t kind, uint64_t operation)
{
	const struct rocprof_kind *known;

	if (kind >= rocprof->kinds.count)
		return "";
	known = &rocprof->kinds.items[kind];
	if (operation >= known->count)
		return "";
	return trace_text(
		rocprof->rows->trace, rocprof->operations.items[known->first + operation]);
}

int64_t rocprof_gpu(const struct rocprof *rocprof, uint64_t handle)
{
	array_foreach (&rocprof->agents, agent) {
		if (agent->handle == handle)
			return agent->gpu;
	}
	return -1;
}

/* ---- agents ---- */

/* Numbers of GPUs are theirs in the file, else they are counted. */
static int add_agent(struct rocprof *rocprof, const struct json_text *item, int64_t *next_gpu)
{
	static const char *const names[] = {
		"id", "type", "logical_node_type_id", "product_name", "name", NULL};
	struct rocprof_agent agent = {.gpu = -1};
	struct json_text values[5], handle, text;
	uint32_t name;
	int r;

	json_part_members(item, names, values);
	handle = json_part_member(&values[0], "handle");
	agent.handle = json_part_u64(&handle, 0);
	if (json_part_u64(&values[1], 0) != AGENT_GPU)
		return array_append(&rocprof->agents, agent);
	agent.gpu = json_part_i64(&values[2], *next_gpu);
	*next_gpu = agent.gpu + 1;
	text = json_text_inside(&values[3]).length ? values[3] : values[4];
	r = rocprof_text(rocprof, &text, &name);
	if (r == 0 && name)
		r = trace_name_device(rocprof->rows->trace, agent.gpu,
			trace_text(rocprof->rows->trace, name),
			strlen(trace_text(rocprof->rows->trace, name)));
	return r < 0 ? r : array_append(&rocprof->agents, agent);
}

static int read_agents(struct rocprof *rocprof, const struct json_text *agents)
{
	struct json_reader items = json_part_begin(agents);
	struct json_text item;
	int64_t next_gpu = 0;
	int r = 0;

	while (r == 0 && json_part_next(&items, &item))
		r = add_agent(rocprof, &item, &next_gpu);
	return r;
}

/* ---- kernels ---- */

static int read_kernels(struct rocprof *rocprof, const struct json_text *symbols)
{
	static const char *const names[] = {
		"kernel_id", "formatted_kernel_name", "demangled_kernel_name", "kernel_name", NULL};
	struct json_reader items = json_part_begin(symbols);
	struct json_text item, values[4];
	int r = 0;

	while (r == 0 && json_part_next(&items, &item)) {
		uint32_t name = 0;

		json_part_members(&item, names, values);
		for (int i = 1; r == 0 && !name && i < 4; i++)
			r = rocprof_text(rocprof, &values[i], &name);
		if (r == 0)
			r = map_u64_set(
				&rocprof->kernels, json_part_u64(&values[0], UINT64_MAX - 1), name);
	}
	return r;
}

/* ---- operations ---- */

static int add_kind(struct rocprof *rocprof, const struct json_text *item)
{
	static const char *const names[] = {"kind", "operations", NULL};
	struct rocprof_kind kind = {.first = (uint32_t)rocprof->operations.count};
	struct json_text values[2], operation;
	struct json_reader operations;
	int r;

	json_part_members(item, names, values);
	r = rocprof_text(rocprof, &values[0], &kind.name);
	operations = json_part_begin(&values[1]);
	while (r == 0 && json_part_next(&operations, &operation)) {
		uint32_t name;

		r = rocprof_text(rocprof, &operation, &name);
		if (r == 0)
			r = array_append(&rocprof->operations, name);
	}
	kind.count = (uint32_t)rocprof->operations.count - kind.first;
	return r < 0 ? r : array_append(&rocprof->kinds, kind);
}

/* [{"key": correlation, "value": text}] */
static int read_markers(struct rocprof *rocprof, const struct json_text *markers)
{
	static const char *const names[] = {"key", "value", NULL};
	struct json_reader items = json_part_begin(markers);
	struct json_text item, values[2];
	int r = 0;

	while (r == 0 && json_part_next(&items, &item)) {
		uint32_t text;

		json_part_members(&item, names, values);
		r = rocprof_text(rocprof, &values[1], &text);
		if (r == 0)
			r = map_u64_set(
				&rocprof->markers, json_part_u64(&values[0], UINT64_MAX - 1), text);
	}
	return r;
}

static int read_strings(struct rocprof *rocprof, const struct json_text *strings)
{
	static const char *const names[] = {"buffer_records", "marker_api", NULL};
	struct json_text values[2], item;
	struct json_reader items;
	int r = 0;

	json_part_members(strings, names, values);
	items = json_part_begin(&values[0]);
	while (r == 0 && json_part_next(&items, &item))
		r = add_kind(rocprof, &item);
	return r < 0 ? r : read_markers(rocprof, &values[1]);
}

/* The program, of its command line. */
static int read_metadata(struct rocprof *rocprof, const struct json_text *metadata)
{
	static const char *const names[] = {"pid", "command", NULL};
	struct json_text values[2], program = {0};
	struct json_reader words;
	const char *slash;

	json_part_members(metadata, names, values);
	rocprof->pid = json_part_i64(&values[0], TRACE_NO_NUMBER);
	words = json_part_begin(&values[1]);
	if (!json_part_next(&words, &program))
		return 0;
	program = json_text_inside(&program);
	slash = memrchr(program.bytes, '/', program.length);
	if (slash) {
		program.length -= (size_t)(slash + 1 - program.bytes);
		program.bytes = slash + 1;
	}
	return rocprof_text(rocprof, &program, &rocprof->process_name);
}

int rocprof_read_names(struct rocprof *rocprof, const struct json_text *tool)
{
	static const char *const names[] = {
		"metadata", "agents", "kernel_symbols", "strings", NULL};
	struct json_text values[4];
	int r;

	json_part_members(tool, names, values);
	r = read_metadata(rocprof, &values[0]);
	if (r == 0)
		r = read_agents(rocprof, &values[1]);
	if (r == 0)
		r = read_kernels(rocprof, &values[2]);
	return r < 0 ? r : read_strings(rocprof, &values[3]);
}
