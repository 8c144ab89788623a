/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file around the nodes, and what is to be done where it is broken. PyTorch writes a node when
 * its function ends and does not escape names: files are cut off, two threads write into one
 * another, and a quote in a name ends a string too early. A node is read between its `{"id":` and
 * the next one, so that a broken one costs nothing but itself.
 */
#include "importers/pytorch_et/pytorch_et.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/text_input.h"
#include "importers/importers.h"
#include "importers/pytorch_et/node.h"

/* Nodes may hold objects that begin as nodes do: so many are tried as parts of one. */
#define INNER_MAX 64

struct read {
	struct execution_trace *trace;
	const char *end;
	struct json_reader reader;
	bool has_nodes, has_kineto_events;
	bool ids_first; /* nodes of this file begin with their id, as since 1.0.2 */
};

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

/* Behind the word and the white space after it; NULL when another one is there. */
static const char *after_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(end - at) < length || memcmp(at, word, length) != 0)
		return NULL;
	return skip_space(at + length, end);
}

/*
 * Does a node begin at this bracket? Its first member is "id"; before schema 1.0.2 it is "name",
 * and "id" the second. Attributes begin with a name, too, but have no id.
 */
static bool begins_node(const char *bracket, const char *end, bool ids_first)
{
	const char *at = skip_space(bracket + 1, end);
	const char *name;
	struct json_reader reader = {.end = end, .is_last = true};
	struct json_text text;

	if (end - at > 4 && memcmp(at, "\"id\"", 4) == 0)
		return true;
	name = ids_first ? NULL : after_word(at, end, "\"name\"");
	name = name ? after_word(name, end, ":") : NULL;
	reader.at = name;
	if (!name || json_reader_string(&reader, &text) != JSON_OK)
		return false;
	at = after_word(skip_space(reader.at, end), end, ",");
	return at && after_word(at, end, "\"id\"");
}

/* Where the next node begins; `end` when there is none. */
static const char *find_node(const struct read *read, const char *at)
{
	const char *end = read->end;

	while (at < end && (at = memchr(at, '{', (size_t)(end - at)))) {
		if (begins_node(at, end, read->ids_first))
			return at;
		at++;
	}
	return end;
}

static enum json_status try_node(
	struct read *read, const char *end, bool lenient, struct execution_node *node, int *error)
{
	struct json_reader reader = read->reader;
	size_t works = read->trace->works.count, deps = read->trace->deps.count;
	enum json_status status;

	reader.end = end;
	reader.is_last = true;
	reader.lenient = lenient;
	status = pytorch_et_node(&reader, read->trace, node, error);
	if (status != JSON_OK) {
		read->trace->works.count = works;
		read->trace->deps.count = deps;
		return status;
	}
	read->reader.at = reader.at;
	read->reader.mended = reader.mended;
	return JSON_OK;
}

/*
 * Reads the node that the reader stands before. Its end is not known: first it is looked for before
 * the next node, then, because objects inside of it may look like nodes, before later ones. *next
 * is where to go on when it was none.
 */
static enum json_status read_node(
	struct read *read, struct execution_node *node, const char **next, int *error)
{
	const char *limit = find_node(read, read->reader.at + 1);
	enum json_status status = try_node(read, limit, false, node, error);
	unsigned inner = 1;

	*next = limit;
	if (status == JSON_BAD && !*error)
		return try_node(read, limit, true, node, error);
	while (status == JSON_MORE && limit < read->end && inner < INNER_MAX) {
		for (unsigned i = 0; i < inner && limit < read->end; i++)
			limit = find_node(read, limit + 1);
		inner *= 2;
		status = try_node(read, limit, false, node, error);
	}
	if (status == JSON_MORE && !*error)
		return try_node(read, *next, true, node, error);
	return status;
}

/* Leaves out what is before `next`. */
static void skip_to(struct read *read, const char *from, const char *next)
{
	read->trace->skipped_nodes++;
	read->trace->skipped_bytes += (uint64_t)(next - from);
	read->trace->truncated |= next == read->end;
	read->reader.at = next;
	read->reader.fresh = true;
}

/* Nodes up to the end of the list, or of the file. */
static int read_nodes(struct read *read)
{
	int error = 0;

	while (!error) {
		enum json_status status = json_reader_item(&read->reader);
		const char *from = read->reader.at, *next;
		struct execution_node node;

		if (status != JSON_OK) {
			read->trace->truncated |= status != JSON_DONE;
			return 0;
		}
		if (read_node(read, &node, &next, &error) == JSON_OK) {
			error = array_append(&read->trace->nodes, node);
			read->ids_first = begins_node(from, read->end, true);
		} else if (!error)
			skip_to(read, from, next);
	}
	return error;
}

static enum json_status read_number(struct read *read, uint64_t *ret_number)
{
	struct json_text value;
	enum json_status status = json_reader_value(&read->reader, &value);

	if (status == JSON_OK)
		json_text_u64(&value, ret_number);
	return status;
}

static enum json_status read_string(struct read *read, struct execution_text *ret_text)
{
	struct json_text value;
	enum json_status status = json_reader_value(&read->reader, &value);

	value = status == JSON_OK ? json_text_inside(&value) : value;
	if (status == JSON_OK && value.length <= UINT32_MAX)
		*ret_text = (struct execution_text){value.bytes, (uint32_t)value.length};
	return status;
}

static enum json_status read_member(struct read *read, const struct json_text *key, int *error)
{
	struct execution_trace *trace = read->trace;
	struct json_text rest;

	if (json_text_equals(key, "schema"))
		return read_string(read, &trace->schema);
	if (json_text_equals(key, "time"))
		return read_string(read, &trace->time);
	if (json_text_equals(key, "pid"))
		return read_number(read, &trace->pid);
	if (json_text_equals(key, "start_ts"))
		return read_number(read, &trace->start_ts);
	if (json_text_equals(key, "finish_ts")) {
		trace->has_finish = true;
		return read_number(read, &trace->finish_ts);
	}
	if (json_text_equals(key, "nodes") && json_reader_enter(&read->reader, '[') == JSON_OK) {
		read->has_nodes = true;
		*error = read_nodes(read);
		return *error ? JSON_BAD : trace->truncated ? JSON_MORE : JSON_OK;
	}
	read->has_kineto_events |= json_text_equals(key, "traceEvents");
	return read->has_kineto_events ? JSON_BAD : json_reader_value(&read->reader, &rest);
}

/* A file whose beginning is broken still has nodes. */
static int read_from_first_node(struct read *read)
{
	const char *first = find_node(read, read->trace->bytes);

	read->trace->skipped_bytes += (uint64_t)(first - read->trace->bytes);
	read->reader.at = first;
	read->reader.fresh = true;
	return first < read->end ? read_nodes(read) : 0;
}

static int read_object(struct read *read)
{
	enum json_status status = json_reader_enter(&read->reader, '{');
	struct json_text key;
	int error = 0;

	while (status == JSON_OK && (status = json_reader_member(&read->reader, &key)) == JSON_OK)
		status = read_member(read, &key, &error);
	if (error < 0)
		return error;
	read->trace->truncated |= status == JSON_MORE;
	return read->has_nodes || read->has_kineto_events ? 0 : read_from_first_node(read);
}

static int say_nothing_read(const struct read *read, struct errmsg *err)
{
	const char *path = read->trace->path;

	if (read->has_kineto_events)
		return errmsg_set(err, -ENODATA,
			"%s is Kineto's trace, not an execution trace: name the file that the "
			"ExecutionTraceObserver wrote",
			path);
	if (read->trace->skipped_nodes)
		return errmsg_set(err, -ENODATA,
			"%s has no node that could be read: %" PRIu64 " were tried", path,
			read->trace->skipped_nodes);
	return errmsg_set(err, -ENODATA,
		"%s is not an execution trace of PyTorch: it has no list of nodes with ids", path);
}

int pytorch_et_parse(struct execution_trace *trace, struct errmsg *err)
{
	struct read read = {
		.trace = trace,
		.end = trace->bytes + trace->length,
		.reader = {.at = trace->bytes,
			.end = trace->bytes + trace->length,
			.is_last = true},
	};
	int r = read_object(&read);

	if (r == 0 && !trace->nodes.count)
		return say_nothing_read(&read, err);
	r = r ?: execution_trace_index(trace);
	trace->mended = read.reader.mended;
	return r < 0 ? errmsg_set(err, r, "cannot read %s: %s", trace->path, strerror(-r)) : 0;
}

static void free_bytes(struct execution_trace *trace)
{
	free((char *)trace->bytes);
}

static uint64_t default_max_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The whole text, unpacked. */
static int load(struct execution_trace *trace, uint64_t max_bytes, struct errmsg *err)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct text_window window = {0};
	uint64_t size;
	int r = text_input_open(&input, trace->path, err);

	if (r < 0)
		return r;
	text_input_position(input, &size);
	strbuf_reserve(&text, MIN(size, max_bytes) + 1);
	while (r == 0 && !window.is_last) {
		r = text_input_move(input, window.length, &window, err);
		if (r == 0 && text.length + window.length > max_bytes)
			return errmsg_set(err, -EFBIG,
				"%s unpacks to more than %" PRIu64
				" MB, half of the memory of this machine: use one with more",
				trace->path, max_bytes >> 20);
		strbuf_add_bytes(&text, window.bytes, window.length);
	}
	if (r == 0 && strbuf_status(&text) < 0)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", trace->path);
	if (r < 0)
		return r;
	trace->truncated = text_input_damage(input) != TEXT_WHOLE;
	trace->skipped_bytes += text_input_trailing(input);
	trace->length = text.length;
	trace->bytes = TAKE_PTR(text.data);
	trace->release = free_bytes;
	return 0;
}

int pytorch_et_read(struct execution_trace **ret_trace, const char *path,
	const struct pytorch_et_options *options, struct errmsg *err)
{
	_cleanup_execution_trace_ struct execution_trace *trace = execution_trace_new(path);
	uint64_t max_bytes =
		options && options->max_bytes ? options->max_bytes : default_max_bytes();
	int r;

	if (!trace)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
	r = load(trace, max_bytes, err);
	r = r ?: pytorch_et_parse(trace, err);
	if (r < 0)
		return r;
	*ret_trace = TAKE_PTR(trace);
	return 0;
}

/* It says "schema" before its nodes; Kineto "schemaVersion", or nothing. */
static bool knows(const char *head, size_t length)
{
	static const char key[] = "\"schema\"", other[] = "\"traceEvents\"";

	return import_is_json(head, length) && memmem(head, length, key, sizeof(key) - 1) &&
	       !memmem(head, length, other, sizeof(other) - 1);
}

const struct importer pytorch_et_importer = {
	.name = "pytorch-et",
	.description = "execution traces of PyTorch, for sonde chakra",
	.knows = knows,
	.refusal = "is an execution trace, which has no times",
	.instead = "name the Kineto trace of the same run, or link both with `sonde chakra link`",
};
