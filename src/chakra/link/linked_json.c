/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/link/linked_json.h"

#include <inttypes.h>

#include "base/json.h"
#include "model/trace.h"

static void add_word(struct strbuf *out, const char *word)
{
	strbuf_add_bytes(out, word, strlen(word));
}

static void add_u64(struct strbuf *out, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	strbuf_add_bytes(out, at, (size_t)(digits + sizeof(digits) - at));
}

static void add_i64(struct strbuf *out, int64_t value)
{
	if (value < 0)
		strbuf_add_char(out, '-');
	add_u64(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Nanoseconds as microseconds, with decimals where it has some. */
static void add_us(struct strbuf *out, int64_t ns)
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	if (ns < 0)
		strbuf_add_char(out, '-');
	add_u64(out, magnitude / 1000);
	if (magnitude % 1000)
		strbuf_addf(out, ".%03" PRIu64, magnitude % 1000);
}

static void add_string(struct strbuf *out, struct execution_text text)
{
	strbuf_add_char(out, '"');
	json_escape(out, text.bytes, text.length);
	strbuf_add_char(out, '"');
}

/* JSON of the file, without the bytes that would make it invalid. */
static void add_cleaned(struct strbuf *out, struct execution_text text)
{
	for (size_t i = 0; i < text.length;) {
		size_t sequence = utf8_sequence_length(text.bytes + i, text.length - i);

		if (!sequence)
			add_word(out, "\xef\xbf\xbd");
		else if ((unsigned char)text.bytes[i] < 0x20)
			strbuf_add_char(out, ' ');
		else
			strbuf_add_bytes(out, text.bytes + i, sequence);
		i += sequence ? sequence : 1;
	}
}

/* ASCII without control characters, eight bytes at a time: nearly all text is. */
static bool is_plain(struct execution_text text)
{
	uint64_t odd = 0;
	size_t i = 0;

	for (; i + 8 <= text.length; i += 8) {
		uint64_t bytes;

		memcpy(&bytes, text.bytes + i, sizeof(bytes));
		/* The high bit of bytes below 0x20, where the lowest of them is, and above 0x7f. */
		odd |= (bytes - 0x2020202020202020) | bytes;
	}
	for (; i < text.length; i++)
		odd |= text.bytes[i] >= 0x20 ? 0 : 0x80;
	return !(odd & 0x8080808080808080);
}

static void add_raw(struct strbuf *out, struct execution_text text, const char *standard)
{
	if (!text.length)
		add_word(out, standard);
	else if (is_plain(text))
		strbuf_add_bytes(out, text.bytes, text.length);
	else
		add_cleaned(out, text);
}

/* The comma and the name before a value. */
static void add_key(struct strbuf *out, const char *name)
{
	add_word(out, ",\"");
	add_word(out, name);
	add_word(out, "\":");
}

static void add_values(struct strbuf *out, const char *name, const struct execution_values *values)
{
	add_key(out, name);
	add_word(out, "{\"values\":");
	add_raw(out, values->values, "[]");
	add_key(out, "shapes");
	add_raw(out, values->shapes, "[]");
	add_key(out, "types");
	add_raw(out, values->types, "[]");
	if (values->strides.length) {
		add_key(out, "strides");
		add_raw(out, values->strides, "[]");
	}
	strbuf_add_char(out, '}');
}

/* An attribute's beginning, with a number and its end in one piece: most of the text is these. */
#define add_attribute(out, name, value)                                                            \
	add_numbered(out, "{\"name\":\"" name "\",\"type\":\"uint64\",\"value\":", value)

static void add_numbered(struct strbuf *out, const char *begin, uint64_t value)
{
	add_word(out, begin);
	add_u64(out, value);
	add_word(out, "},");
}

static void add_attributes(struct strbuf *out, const struct execution_node *node)
{
	add_word(out, ",\"attrs\":[");
	if (node->rf_id != EXECUTION_NO_ID)
		add_attribute(out, "rf_id", node->rf_id);
	add_attribute(out, "fw_parent", node->fw_parent);
	add_word(out, "{\"name\":\"seq_id\",\"type\":\"int64\",\"value\":");
	add_i64(out, node->seq_id);
	add_word(out, "},");
	add_attribute(out, "scope", node->scope);
	add_attribute(out, "tid", node->tid);
	add_attribute(out, "fw_tid", node->fw_tid);
	add_word(out, "{\"name\":\"op_schema\",\"type\":\"string\",\"value\":");
	add_string(out, node->op_schema);
	strbuf_add_char(out, '}');
	if (node->other_attrs.length) {
		strbuf_add_char(out, ',');
		add_raw(out, node->other_attrs, "");
	}
	strbuf_add_char(out, ']');
}

/* `count` of `all`, from `first` on. */
static void add_ids(
	struct strbuf *out, const char *name, const uint64_t *all, uint32_t first, uint32_t count)
{
	const uint64_t *ids;

	if (!count)
		return;
	ids = all + first;
	add_key(out, name);
	strbuf_add_char(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			strbuf_add_char(out, ',');
		add_u64(out, ids[i]);
	}
	strbuf_add_char(out, ']');
}

static void add_time_member(struct strbuf *out, const char *name, int64_t ns)
{
	if (ns == TRACE_NO_NUMBER)
		return;
	add_key(out, name);
	add_us(out, ns);
}

static void add_times(struct strbuf *out, const struct execution_node *node)
{
	if (node->start_ns == TRACE_NO_NUMBER)
		return;
	add_time_member(out, "inclusive_dur", node->inclusive_ns);
	add_time_member(out, "exclusive_dur", node->exclusive_ns);
	add_time_member(out, "ts", node->start_ns);
	add_word(out, ",\"inter_thread_dep\":");
	if (node->inter_thread_dep == EXECUTION_NO_ID)
		add_word(out, "null");
	else
		add_u64(out, node->inter_thread_dep);
}

static void add_text_member(struct strbuf *out, const char *name, struct execution_text text)
{
	if (!text.length)
		return;
	add_key(out, name);
	add_string(out, text);
}

static void add_number_member(struct strbuf *out, const char *name, int64_t value)
{
	if (value == TRACE_NO_NUMBER)
		return;
	add_key(out, name);
	add_i64(out, value);
}

static void add_count_member(struct strbuf *out, const char *name, uint64_t value)
{
	if (!value)
		return;
	add_key(out, name);
	add_u64(out, value);
}

static void add_size_member(struct strbuf *out, const char *name, const uint32_t size[3])
{
	if (size[0] || size[1] || size[2])
		strbuf_addf(out, ",\"%s\":[%u,%u,%u]", name, size[0], size[1], size[2]);
}

/* What Chakra's linker says of device work. */
static void add_common_work(struct strbuf *out, const struct execution_work *work)
{
	add_word(out, ",\"cat\":");
	add_string(out, work->category);
	add_word(out, ",\"ph\":\"X\",\"stream\":");
	if (work->stream == TRACE_NO_NUMBER)
		add_word(out, "null");
	else
		add_i64(out, work->stream);
	add_text_member(out, "pg_name", work->group_name);
}

static void add_further_work(struct strbuf *out, const struct execution_work *work)
{
	add_number_member(out, "device", work->device);
	add_count_member(out, "correlation", work->correlation);
	add_count_member(out, "bytes", work->bytes);
	add_size_member(out, "grid", work->grid);
	add_size_member(out, "block", work->block);
	add_count_member(out, "graph_id", work->graph);
	add_count_member(out, "graph_node_id", work->graph_node);
	add_text_member(out, "pg_ranks", work->group_ranks);
	add_text_member(out, "collective_name", work->collective);
	add_text_member(out, "dtype", work->dtype);
	add_number_member(out, "in_msg_nelems", work->in_elements);
	add_number_member(out, "out_msg_nelems", work->out_elements);
	add_number_member(out, "pg_size", work->group_size);
	add_number_member(out, "src_rank", work->source);
	add_number_member(out, "dst_rank", work->destination);
}

static void add_node(struct strbuf *out, const struct execution_trace *trace,
	const struct execution_node *node, bool is_plain)
{
	const struct execution_work *work =
		node->work == MODEL_NONE ? NULL : &trace->works.items[node->work];

	add_word(out, "{\"id\":");
	add_u64(out, node->id);
	add_word(out, ",\"name\":");
	add_string(out, node->name);
	if (node->parent != EXECUTION_NO_ID) {
		add_word(out, ",\"ctrl_deps\":");
		add_u64(out, node->parent);
	}
	add_values(out, "inputs", &node->inputs);
	add_values(out, "outputs", &node->outputs);
	add_attributes(out, node);
	add_times(out, node);
	add_ids(out, "sync_dep", trace->deps.items, node->first_sync_dep, node->sync_dep_count);
	if (work)
		add_common_work(out, work);
	if (is_plain) {
		strbuf_add_char(out, '}');
		return;
	}
	add_ids(out, "order_dep", trace->deps.items, node->first_order_dep, node->order_dep_count);
	if (work)
		add_further_work(out, work);
	if (node->match != EXECUTION_UNMATCHED) {
		add_key(out, "match");
		strbuf_add_char(out, '"');
		add_word(out, execution_match_to_string(node->match));
		strbuf_add_char(out, '"');
	}
	strbuf_add_char(out, '}');
}

void linked_json_write(const struct execution_trace *trace,
	const struct linked_json_options *options, struct output_file *file)
{
	struct strbuf *out = &file->out;

	add_word(out, "{\n\"schema\":");
	add_string(out, execution_trace_schema(trace));
	strbuf_addf(out, ",\"pid\":%" PRIu64 ",\"time\":", trace->pid);
	add_string(out, trace->time);
	strbuf_addf(out, ",\"start_ts\":%" PRIu64 ",\n\"nodes\":[", trace->start_ts);
	for (size_t i = 0; i < trace->nodes.count; i++) {
		add_word(out, i ? ",\n" : "\n");
		add_node(out, trace, &trace->nodes.items[i], options->is_plain);
		output_file_keep_small(file);
	}
	add_word(out, "\n]");
	if (trace->has_finish)
		strbuf_addf(out, ",\n\"finish_ts\":%" PRIu64, trace->finish_ts);
	add_word(out, "\n}\n");
}
