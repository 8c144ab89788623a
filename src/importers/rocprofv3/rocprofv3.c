/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of rocprofv3 as JSON (--output-format json): {"rocprofiler-sdk-tool": [{…}]}, a part for
 * each process, with tables of agents, kernels and operations, and arrays of records by kind.
 */
#include <errno.h>
#include <string.h>

#include "importers/importers.h"
#include "importers/rocprofv3/state.h"

static const char key_beginning[] = "rocprofiler-sdk-";

static void rocprof_done(struct rocprof *rocprof)
{
	array_done(&rocprof->kinds);
	array_done(&rocprof->operations);
	array_done(&rocprof->agents);
	map_u64_done(&rocprof->kernels);
	map_u64_done(&rocprof->markers);
	map_u64_done(&rocprof->held);
}

static int read_tool(struct import_rows *rows, const struct json_text *tool)
{
	_cleanup_(rocprof_done) struct rocprof rocprof = {.rows = rows};
	struct json_text records = json_part_member(tool, "buffer_records");
	int r = rocprof_read_names(&rocprof, tool);

	if (r == 0)
		r = rocprof_read_records(&rocprof, &records);
	if (r == 0 && rocprof.left_out)
		r = import_rows_note(rows,
			"left out, sonde has no rows for them: %llu records of rocprofv3",
			(unsigned long long)rocprof.left_out);
	return r;
}

/* An array of parts, or the only one itself. */
static int read_tools(struct import_rows *rows, const struct json_text *tools)
{
	struct json_reader items = json_part_begin(tools);
	struct json_text item;
	int r = 0;

	if (tools->length && tools->bytes[0] == '{')
		return read_tool(rows, tools);
	while (r == 0 && json_part_next(&items, &item))
		r = read_tool(rows, &item);
	return r;
}

/* A text that is cut off has no end of the member that everything is in. */
static int read_document(struct import_rows *rows, const struct strbuf *bytes)
{
	struct json_reader reader = {
		.at = bytes->data, .end = bytes->data + bytes->length, .is_last = true};
	struct json_text key, value;
	enum json_status status = bytes->data ? json_reader_enter(&reader, '{') : JSON_BAD;
	int r = 0;

	while (r == 0 && status == JSON_OK && json_reader_member(&reader, &key) == JSON_OK) {
		status = json_reader_value(&reader, &value);
		if (status == JSON_OK && key.length > strlen(key_beginning) &&
			memcmp(key.bytes, key_beginning, strlen(key_beginning)) == 0)
			r = read_tools(rows, &value);
	}
	return r;
}

static int rocprofv3_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_import_rows_ struct import_rows rows = {0};
	_cleanup_strbuf_ struct strbuf bytes = {0};
	bool truncated;
	int r = import_read_file(path, options, &bytes, &truncated, err);

	if (r < 0)
		return r;
	r = import_rows_init(&rows, path, options);
	if (r == 0)
		r = read_document(&rows, &bytes);
	return import_rows_finish(&rows, r,
		"no record of a kernel, a copy, a call or a marker is in it, or it is cut off: "
		"have rocprofv3 trace them (--kernel-trace --hip-trace --memory-copy-trace "
		"--marker-trace)",
		ret_trace, err);
}

static bool rocprofv3_knows(const char *head, size_t length)
{
	return import_is_json(head, length) &&
	       memmem(head, length, "\"rocprofiler-sdk-", strlen("\"rocprofiler-sdk-"));
}

const struct importer rocprofv3_importer = {
	.name = "rocprofv3",
	.description = "results of rocprofv3 as JSON",
	.knows = rocprofv3_knows,
	.read = rocprofv3_read,
};
