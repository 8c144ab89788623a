/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution traces of Chakra as rows, for what their converters put there: nodes of a host are
 * operators, those of devices kernels and copies on their streams. Durations are those that a
 * simulator is fed, of operators without those inside. Traces of generators, whose nodes have no
 * durations, are for sonde chakra.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chakra/et/file.h"
#include "importers/importers.h"
#include "importers/rows.h"

#define TYPE(name)  CHAKRA_PROTO_MSG__NODE_TYPE__##name
#define VALUE(kind) CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind

struct chakra_rows {
	struct import_rows rows;
	uint64_t started; /* nodes */
	bool has_no_times;
};

/* ---- attributes ---- */

static int64_t number_of(const et_attribute *attribute, int64_t otherwise)
{
	if (!attribute)
		return otherwise;
	switch (attribute->value_case) {
	case VALUE(INT64_VAL):
		return attribute->int64_val;
	case VALUE(UINT64_VAL):
		return (int64_t)MIN(attribute->uint64_val, (uint64_t)INT64_MAX);
	case VALUE(INT32_VAL):
		return attribute->int32_val;
	case VALUE(UINT32_VAL):
		return attribute->uint32_val;
	default:
		return otherwise;
	}
}

static int64_t attribute_of(const et_node *node, const char *name, int64_t otherwise)
{
	return number_of(et_find_attribute(node, name), otherwise);
}

/* Nodes that do not say it are those of a device: generators for simulators write no others. */
static bool is_host(const et_node *node)
{
	const et_attribute *cpu = et_find_attribute(node, "is_cpu_op");

	return cpu && cpu->value_case == VALUE(BOOL_VAL) && cpu->bool_val;
}

static int64_t saturated_ns(uint64_t us)
{
	return us > (uint64_t)INT64_MAX / NS_PER_US ? INT64_MAX : (int64_t)(us * NS_PER_US);
}

/* ---- nodes ---- */

static bool communicates(const et_node *node)
{
	return node->type >= TYPE(COMM_SEND_NODE) && node->type <= TYPE(COMM_COLL_NODE);
}

static int find_track(struct chakra_rows *chakra, const et_node *node,
	const struct trace_work *work, uint32_t *ret_track)
{
	struct trace_track track;
	char text[64];
	int r;

	if (!work) {
		track = import_rows_thread(-1, attribute_of(node, "tid", 0));
		return import_rows_track(&chakra->rows, &track, 0, ret_track);
	}
	track = import_rows_thread(work->device, work->stream);
	track.is_device = true;
	snprintf(text, sizeof(text), "GPU %lld", (long long)work->device);
	r = import_rows_text(&chakra->rows, text, strlen(text), &track.process_labels);
	snprintf(text, sizeof(text), "stream %lld", (long long)work->stream);
	if (r == 0)
		r = import_rows_text(&chakra->rows, text, strlen(text), &track.thread_name);
	return r < 0 ? r : import_rows_track(&chakra->rows, &track, 1, ret_track);
}

static int add_collective(struct chakra_rows *chakra, const et_node *node, struct trace_work *work)
{
	const et_attribute *group = et_find_attribute(node, "pg_name");
	const char *kind = et_collective_to_string(attribute_of(node, "comm_type", -1));
	struct trace *trace = chakra->rows.trace;
	struct trace_collective collective = {
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = attribute_of(node, "pg_size", TRACE_NO_NUMBER),
		.source = attribute_of(node, "comm_src", TRACE_NO_NUMBER),
		.destination = attribute_of(node, "comm_dst", TRACE_NO_NUMBER),
		.sequence = TRACE_NO_NUMBER,
	};
	int r;

	if (node->type != TYPE(COMM_COLL_NODE))
		kind = node->type == TYPE(COMM_SEND_NODE) ? "send" : "recv";
	kind = kind ?: node->name;
	r = import_rows_text(&chakra->rows, kind, strlen(kind), &collective.name);
	if (r == 0 && group && group->value_case == VALUE(STRING_VAL))
		r = import_rows_text(&chakra->rows, group->string_val, strlen(group->string_val),
			&collective.group_name);
	work->collective = (uint32_t)trace->collectives.count;
	return r < 0 ? r : array_append(&trace->collectives, collective);
}

static int add_work(struct chakra_rows *chakra, const et_node *node, struct trace_event *event)
{
	struct trace_work work = trace_no_work;
	uint32_t rank = chakra->rows.trace->rank;
	int r = 0;

	work.device = attribute_of(node, "device", rank == MODEL_NONE ? 0 : rank);
	work.stream = attribute_of(node, "stream", 0);
	work.bytes = (uint64_t)MAX(attribute_of(node, "bytes", 0), (int64_t)0);
	if (communicates(node))
		r = add_collective(chakra, node, &work);
	if (r == 0)
		r = find_track(chakra, node, &work, &event->track);
	return r < 0 ? r : import_rows_add_work(&chakra->rows, event, &work);
}

static bool is_copy(const et_node *node)
{
	return node->type == TYPE(MEM_LOAD_NODE) || node->type == TYPE(MEM_STORE_NODE) ||
	       strncmp(node->name, "Memcpy", strlen("Memcpy")) == 0;
}

static enum trace_category category_of(const et_node *node)
{
	if (is_host(node))
		return TRACE_CPU_OP;
	if (is_copy(node))
		return TRACE_MEMCPY;
	return strncmp(node->name, "Memset", strlen("Memset")) == 0 ? TRACE_MEMSET : TRACE_KERNEL;
}

static int add_node(struct chakra_rows *chakra, const et_node *node)
{
	struct trace_event event = import_rows_event(&chakra->rows, category_of(node));
	int r;

	if (!node->duration_micros && !node->start_time_micros)
		return 0; /* threads, groups of processes: they do not run */
	chakra->started += node->start_time_micros != 0;
	event.start_ns = saturated_ns(node->start_time_micros);
	event.duration_ns = saturated_ns(node->duration_micros);
	r = import_rows_text(&chakra->rows, node->name, strlen(node->name), &event.name);
	if (r < 0)
		return r;
	if (!is_host(node))
		return add_work(chakra, node, &event);
	r = find_track(chakra, node, NULL, &event.track);
	return r < 0 ? r : import_rows_add(&chakra->rows, &event);
}

static void set_rank(struct trace *trace, const et_metadata *metadata)
{
	for (size_t i = 0; i < metadata->n_attr; i++) {
		int64_t rank = number_of(metadata->attr[i], -1);

		if (strcmp(metadata->attr[i]->name, "rank") == 0 && rank >= 0 && rank < MODEL_NONE)
			trace->rank = (uint32_t)rank;
	}
}

/* What precedes the damage counts. */
static int read_nodes(struct chakra_rows *chakra, struct et_reader *reader)
{
	const et_node *node;
	struct errmsg ignored;
	int r = 0, got;

	set_rank(chakra->rows.trace, et_reader_metadata(reader));
	while (r == 0 && (got = et_reader_next(reader, &node, &ignored)) != 0) {
		if (got == -EBADMSG) {
			chakra->rows.trace->damage.truncated = true;
			break;
		}
		r = got < 0 ? got : add_node(chakra, node);
	}
	if (r == 0 && chakra->rows.trace->events.count && !chakra->started)
		r = import_rows_note(&chakra->rows,
			"its nodes have durations and no starts: what needs an order in time is "
			"wrong; sonde chakra convert writes both");
	return r;
}

static int chakra_et_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	struct chakra_rows chakra = {0};
	int r = et_reader_open(&reader, path, err);

	if (r < 0)
		return r;
	r = import_rows_init(&chakra.rows, path, options);
	if (r == 0)
		r = read_nodes(&chakra, reader);
	r = import_rows_finish(&chakra.rows, r,
		"it is an execution trace of Chakra (.et) without a node that has a duration: read "
		"it with `sonde chakra stat`, `sonde chakra dump` or `sonde chakra check`",
		ret_trace, err);
	import_rows_done(&chakra.rows);
	return r;
}

/* ---- what its files are ---- */

/* A varint; false: it does not end, or is larger than 32 bits. */
static bool read_varint(const char *head, size_t length, size_t *at, uint32_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < length && shift < 35; shift += 7) {
		unsigned char byte = (unsigned char)head[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* The length of its GlobalMetadata, whose first field is the version, a text, or an attribute, a
 * message that begins with its name. */
static bool chakra_et_knows(const char *head, size_t length)
{
	uint32_t metadata, field;
	size_t at = 0, end;

	if (!read_varint(head, length, &at, &metadata) || !metadata || at >= length)
		return false;
	end = at + metadata;
	if (head[at] == 0x0a) {
		at++;
		if (!read_varint(head, length, &at, &field) || at + field > end)
			return false;
		return field && field < 64 && at + field <= length &&
		       isdigit((unsigned char)head[at]) && memchr(head + at, '.', field);
	}
	if (head[at] != 0x12)
		return false;
	at++;
	return read_varint(head, length, &at, &field) && at + field <= end && at < length &&
	       head[at] == 0x0a && memmem(head, length, "schema", strlen("schema"));
}

static const char *const endings[] = {".et", NULL};

const struct importer chakra_et_importer = {
	.name = "chakra-et",
	.description = "execution traces of Chakra whose nodes have durations",
	.endings = endings,
	.knows = chakra_et_knows,
	.read = chakra_et_read,
};
