/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/et/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "chakra/json_piece.h"

#define VALUE(kind)      CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind
#define TYPE(name)       CHAKRA_PROTO_MSG__NODE_TYPE__##name
#define COLLECTIVE(name) CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__##name
#define MAX_PATH_NODES   12
#define SHOWN_NAME       60 /* bytes of it */

static const char *const kind_names[ET_FAULT_KIND_MAX] = {
	[ET_FAULT_NO_NODES] = "no nodes",
	[ET_FAULT_DAMAGED] = "damaged file",
	[ET_FAULT_EMPTY] = "empty message",
	[ET_FAULT_REPEATED_ID] = "repeated id",
	[ET_FAULT_MISSING_DEP] = "missing dependency",
	[ET_FAULT_CYCLE] = "cycle",
	[ET_FAULT_TYPE] = "node type",
	[ET_FAULT_ATTRIBUTE] = "missing attribute",
	[ET_FAULT_COLLECTIVE] = "collective",
	[ET_FAULT_GROUP] = "process group",
	[ET_FAULT_METADATA] = "metadata node",
	[ET_FAULT_UTF8] = "text",
	[ET_NOTE_NO_TIMES] = "no times",
	[ET_NOTE_NO_ARITHMETIC] = "no arithmetic",
	[ET_NOTE_RANKS] = "ranks without a file",
};

const char *et_fault_kind_to_string(enum et_fault_kind kind)
{
	return kind_names[kind];
}

void et_check_add(struct et_check *check, enum et_fault_kind kind, const char *format, ...)
{
	struct et_fault fault = {.kind = kind};
	va_list arguments;
	int length;

	check->counts[kind]++;
	if (check->faults.count >= ET_MAX_FAULTS || check->error < 0)
		return;
	va_start(arguments, format);
	length = vasprintf(&fault.text, format, arguments);
	va_end(arguments);
	if (length < 0)
		check->error = -ENOMEM;
	else if (array_append(&check->faults, fault) < 0) {
		free(fault.text);
		check->error = -ENOMEM;
	}
}

/* Nodes, as they are read. */

/* "node 118 (ncclKernel…) at byte 4711" */
struct label {
	char text[160];
};

static struct label label_of(const et_node *node, struct et_place place)
{
	struct label label;

	snprintf(label.text, sizeof(label.text), "node %llu (%.*s) at byte %llu",
		(unsigned long long)node->id, SHOWN_NAME, node->name,
		(unsigned long long)place.offset);
	return label;
}

static bool has(const et_node *node, const char *name, ChakraProtoMsg__AttributeProto__ValueCase a,
	ChakraProtoMsg__AttributeProto__ValueCase b)
{
	const et_attribute *attribute = et_find_attribute(node, name);

	return attribute && (attribute->value_case == a || attribute->value_case == b);
}

static void need(struct et_check *check, const et_node *node, struct et_place place,
	const char *name, ChakraProtoMsg__AttributeProto__ValueCase a,
	ChakraProtoMsg__AttributeProto__ValueCase b)
{
	if (!has(node, name, a, b))
		et_check_add(check, ET_FAULT_ATTRIBUTE,
			"%s is of type %s and has no number %s: a simulator stops at it",
			label_of(node, place).text, et_node_type_to_string(node->type), name);
}

static void check_collective(struct et_check *check, const et_node *node, struct et_place place)
{
	const et_attribute *kind = et_find_attribute(node, "comm_type");
	const char *name;

	need(check, node, place, "comm_type", VALUE(INT64_VAL), VALUE(UINT64_VAL));
	need(check, node, place, "comm_size", VALUE(INT64_VAL), VALUE(UINT64_VAL));
	if (!kind || kind->value_case != VALUE(INT64_VAL))
		return;
	switch (kind->int64_val) {
	case COLLECTIVE(ALL_REDUCE):
	case COLLECTIVE(ALL_TO_ALL):
	case COLLECTIVE(ALL_GATHER):
	case COLLECTIVE(REDUCE_SCATTER):
	case COLLECTIVE(BROADCAST):
		return;
	default:
		name = et_collective_to_string(kind->int64_val);
		et_check_add(check, ET_FAULT_COLLECTIVE,
			"%s has comm_type %lld (%s), which astra-sim does not simulate",
			label_of(node, place).text, (long long)kind->int64_val, name ?: "no kind");
	}
}

/* Simulators number groups by their names. */
static void check_group(struct et_check *check, const et_node *node, struct et_place place)
{
	const et_attribute *group = et_find_attribute(node, "pg_name");
	size_t length;

	if (!group || group->value_case != VALUE(STRING_VAL))
		return;
	length = strlen(group->string_val);
	if (length > 0 && strspn(group->string_val, "0123456789") < length)
		et_check_add(check, ET_FAULT_GROUP,
			"%s has the process group \"%.60s\", and astra-sim wants a number",
			label_of(node, place).text, group->string_val);
}

static void check_communication(struct et_check *check, const et_node *node, struct et_place place)
{
	bool sends = node->type == TYPE(COMM_SEND_NODE);

	check_group(check, node, place);
	if (node->type == TYPE(COMM_COLL_NODE)) {
		check_collective(check, node, place);
		return;
	}
	need(check, node, place, sends ? "comm_dst" : "comm_src", VALUE(INT32_VAL),
		VALUE(UINT32_VAL));
	need(check, node, place, "comm_tag", VALUE(INT32_VAL), VALUE(UINT32_VAL));
	need(check, node, place, "comm_size", VALUE(INT64_VAL), VALUE(UINT64_VAL));
}

/*
 * Groups are in the node's first input, a string in a list as Python prints it: "['[…]']". The two
 * characters at each end are taken off, and the rest is read as JSON.
 */
static void check_metadata(struct et_check *check, const et_node *node, struct et_place place)
{
	const char *values = node->inputs ? node->inputs->values : "";
	size_t length = strlen(values);
	struct json_piece groups;
	struct execution_text group, name;
	bool good = length > 4;

	groups = good ? json_piece_list((struct execution_text){values + 2, (uint32_t)length - 4})
		      : (struct json_piece){0};
	good = good && groups.is_open;
	while (good && json_piece_next(&groups, &group))
		good = json_piece_find(group, "pg_name", &name);
	if (!good)
		et_check_add(check, ET_FAULT_METADATA,
			"%s is a process group, and its input is not a list of groups",
			label_of(node, place).text);
}

static bool is_utf8(const char *text)
{
	size_t length = strlen(text), sequence;

	for (; length > 0; text += sequence, length -= sequence) {
		sequence = utf8_sequence_length(text, length);
		if (sequence == 0)
			return false;
	}
	return true;
}

static bool values_are_utf8(const et_values *values)
{
	return !values ||
	       (is_utf8(values->values) && is_utf8(values->shapes) && is_utf8(values->types));
}

static void check_texts(struct et_check *check, const et_node *node, struct et_place place)
{
	bool good = is_utf8(node->name) && values_are_utf8(node->inputs) &&
		    values_are_utf8(node->outputs);

	for (size_t i = 0; good && i < node->n_attr; i++) {
		const et_attribute *attribute = node->attr[i];

		good = is_utf8(attribute->name) && is_utf8(attribute->doc_string) &&
		       (attribute->value_case != VALUE(STRING_VAL) ||
			       is_utf8(attribute->string_val));
	}
	if (!good)
		et_check_add(check, ET_FAULT_UTF8,
			"node %llu at byte %llu has text that is not UTF-8: protobuf refuses it",
			(unsigned long long)node->id, (unsigned long long)place.offset);
}

static void check_type(struct et_check *check, const et_node *node, struct et_place place)
{
	const et_attribute *cpu = et_find_attribute(node, "is_cpu_op");
	bool is_device = !cpu || cpu->value_case != VALUE(BOOL_VAL) || !cpu->bool_val;

	switch (node->type) {
	case TYPE(METADATA_NODE):
		check_metadata(check, node, place);
		break;
	case TYPE(MEM_LOAD_NODE):
	case TYPE(MEM_STORE_NODE):
		need(check, node, place, "tensor_size", VALUE(UINT64_VAL), VALUE(INT64_VAL));
		break;
	case TYPE(COMM_SEND_NODE):
	case TYPE(COMM_RECV_NODE):
	case TYPE(COMM_COLL_NODE):
		check_communication(check, node, place);
		break;
	case TYPE(COMP_NODE):
		if (is_device &&
			(!has(node, "num_ops", VALUE(INT64_VAL), VALUE(UINT64_VAL)) ||
				!has(node, "tensor_size", VALUE(INT64_VAL), VALUE(UINT64_VAL))))
			check->without_arithmetic++;
		break;
	default:
		et_check_add(check, ET_FAULT_TYPE, "%s has the unknown type %d",
			label_of(node, place).text, (int)node->type);
	}
}

static void check_node(const et_node *node, struct et_place place, void *context)
{
	struct et_check *check = context;

	if (place.length == 0)
		et_check_add(check, ET_FAULT_EMPTY,
			"the message at byte %llu is empty: readers in Python stop there",
			(unsigned long long)place.offset);
	check_type(check, node, place);
	check_texts(check, node, place);
	check->timed += node->start_time_micros > 0;
}

/* The whole. */

static void check_row(struct et_check *check, uint32_t index)
{
	const struct et_table *table = check->table;
	const struct et_row *row = &table->rows.items[index];
	uint32_t deps = row->ctrl_deps + row->data_deps;
	uint64_t other;

	check->deps += deps;
	if (map_u64_get(&table->index, row->id, &other) && other != index)
		et_check_add(check, ET_FAULT_REPEATED_ID,
			"node %llu at byte %llu has the id of the node at byte %llu",
			(unsigned long long)row->id, (unsigned long long)row->offset,
			(unsigned long long)table->rows.items[other].offset);
	for (uint32_t d = 0; d < deps; d++) {
		uint64_t id = table->deps.items[row->first_dep + d];

		if (!map_u64_get(&table->index, id, &other))
			et_check_add(check, ET_FAULT_MISSING_DEP,
				"node %llu (%.*s) at byte %llu has %s on node %llu, which is not "
				"in the file",
				(unsigned long long)row->id, SHOWN_NAME,
				et_table_text(table, row->name), (unsigned long long)row->offset,
				d < row->ctrl_deps ? "a control dependency" : "a data dependency",
				(unsigned long long)id);
		else if (other == index)
			et_check_add(check, ET_FAULT_CYCLE,
				"node %llu (%.*s) at byte %llu waits for itself",
				(unsigned long long)row->id, SHOWN_NAME,
				et_table_text(table, row->name), (unsigned long long)row->offset);
	}
}

static int tell_cycle(struct et_check *check, const struct waits *waits,
	const struct components *components, uint32_t node)
{
	const struct et_table *table = check->table;
	_cleanup_strbuf_ struct strbuf path = {0};
	struct node_list cycle = {0};
	int r = components_cycle(waits, components, node, &cycle);

	for (size_t i = 0; r == 0 && i < MIN(cycle.nodes.count, (size_t)MAX_PATH_NODES); i++) {
		const struct et_row *row = &table->rows.items[cycle.nodes.items[i]];

		strbuf_addf(&path, "%llu %.*s -> ", (unsigned long long)row->id, SHOWN_NAME,
			et_table_text(table, row->name));
	}
	if (cycle.nodes.count > MAX_PATH_NODES)
		strbuf_addf(&path, "%zu more -> ", cycle.nodes.count - MAX_PATH_NODES);
	if (r == 0)
		et_check_add(check, ET_FAULT_CYCLE, "%u nodes wait for one another: %s%llu",
			components->sizes[components->of[node]], strbuf_cstr(&path),
			(unsigned long long)table->rows.items[cycle.nodes.items[0]].id);
	array_done(&cycle.nodes);
	return r;
}

/* One sentence for each group of nodes that wait for one another. */
static int check_cycles(struct et_check *check)
{
	_cleanup_et_waits_ struct et_waits waits = {0};
	_cleanup_components_ struct components components = {0};
	int r = et_table_waits(check->table, &waits);

	r = r ?: components_find(&waits.waits, &components);
	for (uint32_t i = 0; r == 0 && i < waits.waits.count; i++) {
		uint32_t *size = &components.sizes[components.of[i]];

		if (*size > 1 && check->counts[ET_FAULT_CYCLE] < ET_MAX_FAULTS) {
			r = tell_cycle(check, &waits.waits, &components, i);
			*size = 1; /* reported */
		}
	}
	return r;
}

static int check_whole(struct et_check *check)
{
	for (uint32_t i = 0; i < check->table->rows.count; i++)
		check_row(check, i);
	if (check->table->rows.count == 0)
		et_check_add(check, ET_FAULT_NO_NODES, "the file has metadata and no node");
	else if (check->timed == 0)
		et_check_add(check, ET_NOTE_NO_TIMES, "no node has a start time");
	if (check->without_arithmetic > 0)
		et_check_add(check, ET_NOTE_NO_ARITHMETIC,
			"%llu compute nodes of devices have no num_ops or no tensor_size: "
			"astra-sim stops at them when it goes by a roofline",
			(unsigned long long)check->without_arithmetic);
	return check_cycles(check) ?: check->error;
}

int et_check(struct et_check **ret_check, const char *path, struct errmsg *err)
{
	struct et_check *check = calloc(1, sizeof(*check));
	struct errmsg damage;
	int r = check ? et_table_read(&check->table, path, check_node, check, &damage) : -ENOMEM;

	if (check && check->table) {
		if (r < 0)
			et_check_add(check, ET_FAULT_DAMAGED, "%s", damage.text);
		r = check_whole(check);
	} else if (check && err) {
		*err = damage;
	}
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while checking %s", path);
	if (r < 0) {
		et_check_free(check);
		return r;
	}
	*ret_check = check;
	return 0;
}

bool et_check_is_fine(const struct et_check *check)
{
	for (int kind = 0; kind < ET_FAULT_KIND_MAX; kind++) {
		if (et_fault_is_error((enum et_fault_kind)kind) && check->counts[kind] > 0)
			return false;
	}
	return true;
}

struct et_check *et_check_free(struct et_check *check)
{
	if (!check)
		return NULL;
	array_foreach (&check->faults, fault)
		free(fault->text);
	array_done(&check->faults);
	et_table_free(check->table);
	free(check);
	return NULL;
}
