/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "load/load.h"
#include "query/diff.h"
#include "query/paths.h"
#include "query/query.h"
#include "report/table.h"

#define COLUMNS 140

static const struct terminal as_text = {.width = COLUMNS};

/* ---- arguments ---- */

static const char *const format_choices[] = {"text", "json", "csv", NULL};
static const char *const diff_by_choices[] = {"function", "module", "line", "work", NULL};

static const struct {
	const char *name, *help;
	const char *const *choices; /* NULL: any text */
} own_arguments[MCP_ARGUMENT_MAX] = {
	[MCP_CAPTURE] = {"capture",
		"Its name, from list_captures. May be left out where there is one only."},
	[MCP_BEFORE] = {"before", "The name of the capture to compare with."},
	[MCP_AFTER] = {"after", "The name of the capture that is compared with it."},
	[MCP_TEXT] = {"text", "Part of a function's name, in any case."},
	[MCP_FORMAT] = {"format",
		"text, or json with every row and exact figures, or csv with by. Default: text.",
		format_choices},
	[MCP_DIFF_BY] = {"by",
		"Compare functions, modules or lines, and what devices did; or that work alone.",
		diff_by_choices},
};

static bool takes(const struct mcp_tool *tool, enum mcp_argument argument)
{
	return tool->arguments & 1U << argument;
}

static bool is_choice(const char *const *choices, const char *value)
{
	for (; choices && *choices; choices++) {
		if (strcmp(*choices, value) == 0)
			return true;
	}
	return !choices;
}

static int set_argument(
	struct mcp_call *call, enum mcp_argument argument, const char *value, struct errmsg *err)
{
	char *copy;

	if (!is_choice(own_arguments[argument].choices, value))
		return errmsg_set(err, -EINVAL, "%s cannot be '%.64s': %s",
			own_arguments[argument].name, value, own_arguments[argument].help);
	copy = strdup(value);
	if (!copy)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	free(call->arguments[argument]);
	call->arguments[argument] = copy;
	return 0;
}

static int set_one(struct mcp_call *call, const char *name, const char *value, struct errmsg *err)
{
	for (enum mcp_argument i = 0; i < MCP_ARGUMENT_MAX; i++) {
		if (takes(call->tool, i) && strcmp(own_arguments[i].name, name) == 0)
			return set_argument(call, i, value, err);
	}
	for (const struct query_key *key = query_keys; key->name; key++) {
		if ((key->use & call->tool->keys) && strcmp(key->name, name) == 0)
			return query_options_set(&call->options, name, value, err);
	}
	return errmsg_set(err, -EINVAL,
		"%s takes no argument '%.64s': tools/list has those it takes", call->tool->name,
		name);
}

/* Are those there that the tool needs? */
static int check_required(const struct mcp_call *call, struct errmsg *err)
{
	for (enum mcp_argument i = 0; i < MCP_ARGUMENT_MAX; i++) {
		if ((call->tool->required & 1U << i) && !call->arguments[i])
			return errmsg_set(err, -EINVAL, "%s needs the argument %s: %s",
				call->tool->name, own_arguments[i].name, own_arguments[i].help);
	}
	return 0;
}

/* One argument: texts without quotes, numbers and words as they stand. */
static int set_member(struct mcp_call *call, const struct json_text *key,
	const struct json_text *value, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_text inside = json_text_inside(value);

	json_text_unescape(&name, key);
	json_text_unescape(&text, &inside);
	if (strbuf_status(&name) < 0 || strbuf_status(&text) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	if (strlen(strbuf_cstr(&name)) != name.length || strlen(strbuf_cstr(&text)) != text.length)
		return errmsg_set(err, -EINVAL, "arguments cannot have a zero byte");
	if (value->bytes[0] == '{' || value->bytes[0] == '[')
		return errmsg_set(err, -EINVAL, "%.64s is a text, a number or true or false",
			strbuf_cstr(&name));
	return set_one(call, strbuf_cstr(&name), strbuf_cstr(&text), err);
}

int mcp_call_set_all(struct mcp_call *call, const struct json_text *arguments, struct errmsg *err)
{
	struct json_reader reader = {.at = arguments->bytes,
		.end = arguments->bytes + arguments->length,
		.is_last = true};
	struct json_text key, value;
	enum json_status status = json_reader_enter(&reader, '{');
	int r = 0;

	while (r == 0 && status == JSON_OK &&
		(status = json_reader_member(&reader, &key)) == JSON_OK) {
		status = json_reader_value(&reader, &value);
		/* Some assistants send null for what is left out. */
		if (status == JSON_OK && !json_text_equals(&value, "null"))
			r = set_member(call, &key, &value, err);
	}
	if (r == 0 && status != JSON_DONE)
		return errmsg_set(err, -EINVAL, "arguments is an object");
	return r < 0 ? r : check_required(call, err);
}

void mcp_call_done(struct mcp_call *call)
{
	for (int i = 0; i < MCP_ARGUMENT_MAX; i++)
		free(call->arguments[i]);
	query_options_done(&call->options);
}

/* ---- what tools do ---- */

static int list_captures(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	static const char *const kinds[] = {
		[TRACE_FILE_OTHER] = "unreadable",
		[TRACE_FILE_FOREIGN] = "trace of another tool",
		[TRACE_FILE_LOG] = "log of another tool",
		[TRACE_FILE_IMPORTED] = "imported trace",
		[TRACE_FILE_CAPTURE] = "recording",
		[TRACE_FILE_FOLDER] = "folder of traces",
	};
	struct json_writer json = {.out = out};

	json_begin_array(&json);
	array_foreach (&call->captures->items, capture) {
		json_begin_object(&json);
		json_member_text(&json, "capture", capture->path);
		json_member_text(&json, "kind", kinds[capture->file]);
		json_member_u64(&json, "bytes", capture->bytes);
		json_member_u64(&json, "modified_s", (uint64_t)MAX(capture->modified_s, 0));
		json_end_object(&json);
	}
	json_end_array(&json);
	return strbuf_status(out) < 0 ? errmsg_set(err, -ENOMEM, "memory ran out") : 0;
}

/* `ret_path` outlives the query. */
static int open_capture(
	struct mcp_call *call, const char **ret_path, struct query *query, struct errmsg *err)
{
	int r = mcp_captures_choose(call->captures, call->arguments[MCP_CAPTURE], ret_path, err);

	if (r == 0)
		r = query_options_parse(&call->options, err);
	return r < 0 ? r : query_open(query, ret_path, 1, &call->options, err);
}

static int list_sections(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_ struct query query = {0};
	const char *path;
	int r = open_capture(call, &path, &query, err);

	if (r < 0)
		return r;
	r = query_sections(&query, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while listing sections") : 0;
}

static enum report_form form_of(const struct mcp_call *call)
{
	const char *format = call->arguments[MCP_FORMAT];

	if (!format || format[0] == 't')
		return REPORT_FORM_TERMINAL;
	return format[0] == 'j' ? REPORT_FORM_JSON : REPORT_FORM_CSV;
}

static int report(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_ struct query query = {0};
	const char *path;
	int r = mcp_captures_choose(call->captures, call->arguments[MCP_CAPTURE], &path, err);

	if (r == 0)
		r = query_options_check(&call->options, path,
			query_wants_rows_only(&call->options) || load_is_foreign(&path, 1), err);
	if (r == 0 && form_of(call) == REPORT_FORM_CSV && !call->options.by)
		r = errmsg_set(err, -EINVAL, "csv is of one table: name it with by");
	if (r == 0)
		r = open_capture(call, &path, &query, err);
	return r < 0 ? r : query_report(&query, &call->options, form_of(call), &as_text, out, err);
}

static int diff(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	const struct query_diff_options options = {
		.selection = call->options.selection,
		.shown = call->options.shown,
		.by = call->arguments[MCP_DIFF_BY],
		.sort = call->options.sort,
		.limit = call->options.limit,
	};
	_cleanup_query_diff_ struct query_diff made = {0};
	const char *before, *after;
	int r = mcp_captures_choose(call->captures, call->arguments[MCP_BEFORE], &before, err);

	if (r == 0)
		r = mcp_captures_choose(call->captures, call->arguments[MCP_AFTER], &after, err);
	if (r == 0)
		r = query_diff_check(&made, before, after, &options, err);
	if (r == 0)
		r = query_diff_make(&made, &options, err);
	if (r < 0)
		return r;
	r = query_diff_write(&made, &options, form_of(call), &as_text, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the comparison") : 0;
}

static int flame_paths(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_ struct query query = {0};
	const char *path;
	int r = open_capture(call, &path, &query, err);

	return r < 0 ? r : query_paths(&query, &call->options, out, err);
}

static int search_functions(struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	_cleanup_query_ struct query query = {0};
	const char *path;
	int r = open_capture(call, &path, &query, err);

	if (r < 0)
		return r;
	return query_functions(&query, &call->options, call->arguments[MCP_TEXT], out, err);
}

/* ---- the table ---- */

#define STACK_KEYS (QUERY_KEY_FILTERS | QUERY_KEY_STACKS | QUERY_KEY_LIMIT)

const struct mcp_tool mcp_tools[] = {
	{"list_captures",
		"Lists the recordings and traces that can be asked about, with kind, size and time.",
		.ask = list_captures},
	{"sections", "Lists the sections of a capture's report, each with a summary: for report.",
		.arguments = 1U << MCP_CAPTURE, .ask = list_sections},
	{"report",
		"What a recording or trace shows: where time went, why devices were idle, what would "
		"help. Without by the summary of all; with by one section, in full.",
		.keys = STACK_KEYS | QUERY_KEY_REPORT,
		.arguments = 1U << MCP_CAPTURE | 1U << MCP_FORMAT, .ask = report},
	{"diff",
		"What changed from one capture to another: functions, device work, ranges, with "
		"significance.",
		.keys = QUERY_KEY_FILTERS | QUERY_KEY_LIMIT,
		.arguments =
			1U << MCP_BEFORE | 1U << MCP_AFTER | 1U << MCP_FORMAT | 1U << MCP_DIFF_BY,
		.required = 1U << MCP_BEFORE | 1U << MCP_AFTER, .ask = diff},
	{"flame_paths",
		"The heaviest paths of the call tree, as a flame graph has them: indented lines with "
		"share, time, time in the function itself. weight gpu is the time of device work by "
		"what launched it, gpu-idle why devices were idle, gpu-bytes what was in use of "
		"their memory at their peaks, wait what threads waited for.",
		.keys = STACK_KEYS | QUERY_KEY_CALL_TREE, .arguments = 1U << MCP_CAPTURE,
		.ask = flame_paths},
	{"search_functions", "Functions by a part of their names, with the time they took.",
		.keys = STACK_KEYS, .arguments = 1U << MCP_CAPTURE | 1U << MCP_TEXT,
		.required = 1U << MCP_TEXT, .ask = search_functions},
	{NULL},
};

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++) {
		if (strcmp(tool->name, name) == 0)
			return tool;
	}
	return NULL;
}

/* ---- their schemas ---- */

static void write_choices(struct json_writer *json, const char *const *choices)
{
	if (!choices)
		return;
	json_key(json, "enum");
	json_begin_array(json);
	for (; *choices; choices++)
		json_string(json, *choices);
	json_end_array(json);
}

static void write_property(struct json_writer *json, const char *name, const char *type,
	const char *help, const char *const *choices)
{
	json_key(json, name);
	json_begin_object(json);
	json_member_text(json, "type", type);
	json_member_text(json, "description", help);
	write_choices(json, choices);
	json_end_object(json);
}

static void write_schema(struct json_writer *json, const struct mcp_tool *tool)
{
	static const char *const types[] = {
		[QUERY_KEY_TEXT] = "string",
		[QUERY_KEY_CHOICE] = "string",
		[QUERY_KEY_NUMBER] = "integer",
		[QUERY_KEY_REAL] = "number",
		[QUERY_KEY_FLAG] = "boolean",
	};

	json_begin_object(json);
	json_member_text(json, "type", "object");
	json_key(json, "properties");
	json_begin_object(json);
	for (int i = 0; i < MCP_ARGUMENT_MAX; i++) {
		if (takes(tool, (enum mcp_argument)i))
			write_property(json, own_arguments[i].name, "string", own_arguments[i].help,
				own_arguments[i].choices);
	}
	for (const struct query_key *key = query_keys; key->name; key++) {
		if (key->use & tool->keys)
			write_property(json, key->name, types[key->type], key->help, key->choices);
	}
	json_end_object(json);
	json_key(json, "required");
	json_begin_array(json);
	for (int i = 0; i < MCP_ARGUMENT_MAX; i++) {
		if (tool->required & 1U << i)
			json_string(json, own_arguments[i].name);
	}
	json_end_array(json);
	json_key(json, "additionalProperties");
	json_bool(json, false);
	json_end_object(json);
}

void mcp_tools_write(struct json_writer *json)
{
	json_key(json, "tools");
	json_begin_array(json);
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++) {
		json_begin_object(json);
		json_member_text(json, "name", tool->name);
		json_member_text(json, "description", tool->description);
		json_key(json, "inputSchema");
		write_schema(json, tool);
		json_key(json, "annotations");
		json_begin_object(json);
		json_key(json, "readOnlyHint");
		json_bool(json, true);
		json_end_object(json);
		json_end_object(json);
	}
	json_end_array(json);
}
