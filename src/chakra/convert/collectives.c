/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/collectives.h"

#include <errno.h>
#include <string.h>

#include "chakra.pb-c.h"
#include "chakra/convert/tensors.h"
#include "chakra/json_piece.h"
#include "model/trace.h"

/* From a kernel to the operator that describes it: nccl:*, record_param_comms, c10d::* */
#define MAX_ANCESTORS 3

static const char operator_name[] = "record_param_comms";

/* Without quotes, where it has some. */
static struct execution_text bare(struct execution_text text)
{
	if (json_piece_is_string(text))
		return (struct execution_text){text.bytes + 1, text.length - 2};
	return text;
}

static bool same(struct execution_text a, struct execution_text b)
{
	a = bare(a);
	b = bare(b);
	return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* Groups. */

static void add_group(struct chakra_groups *groups, struct execution_text object, int *error)
{
	struct chakra_group group = {.size = TRACE_NO_NUMBER};
	struct execution_text value;

	json_piece_find(object, "pg_name", &group.name);
	json_piece_find(object, "pg_desc", &group.description);
	json_piece_find(object, "ranks", &group.ranks);
	if (json_piece_find(object, "group_size", &value))
		json_piece_i64(value, &group.size);
	if (group.name.length > 0 && *error == 0)
		*error = array_append(&groups->items, group);
}

static bool is_group_node(const struct execution_node *node)
{
	return execution_text_contains(node->name, "process_group:init");
}

/* The first input is a string that holds a list of objects. */
int chakra_groups_read(struct chakra_groups *groups, const struct execution_trace *trace)
{
	int r = 0;

	array_foreach (&trace->nodes, node) {
		if (is_group_node(node))
			json_piece_add_text(&groups->text, tensor_value(&node->inputs, 0));
		if (is_group_node(node))
			strbuf_add_char(&groups->text, '\n');
	}
	if (strbuf_status(&groups->text) < 0)
		return -ENOMEM;
	for (const char *line = strbuf_cstr(&groups->text), *end; *line; line = end + 1) {
		struct json_piece list;
		struct execution_text object;

		end = strchr(line, '\n');
		list = json_piece_list((struct execution_text){line, (uint32_t)(end - line)});
		while (json_piece_next(&list, &object))
			add_group(groups, object, &r);
	}
	return r;
}

void chakra_groups_done(struct chakra_groups *groups)
{
	array_done(&groups->items);
	strbuf_done(&groups->text);
}

/* NULL when there is none of that name, which may be in quotes. */
static const struct chakra_group *chakra_groups_find(
	const struct chakra_groups *groups, struct execution_text name)
{
	array_foreach (&groups->items, group) {
		if (name.length > 0 && same(group->name, name))
			return group;
	}
	return NULL;
}

/* Kinds. */

/* Lower case, without what is no letter. */
static size_t letters_of(struct execution_text text, char *letters, size_t size)
{
	size_t length = 0;

	for (uint32_t i = 0; i < text.length && length + 1 < size; i++) {
		char letter = (char)(text.bytes[i] | 0x20);

		if (letter >= 'a' && letter <= 'z')
			letters[length++] = letter;
	}
	letters[length] = '\0';
	return length;
}

/* The first that is in the name: longer words stand before those that are in them. */
static int8_t kind_of(struct execution_text name)
{
	static const struct {
		const char *word;
		int8_t kind;
	} kinds[] = {
		{"allreduce", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE},
		{"alltoall", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL},
		{"allgather", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER},
		{"reducescatter", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER},
		{"broadcast", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST},
		{"barrier", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER},
		{"sendrecv", COLLECTIVE_NONE}, /* the kernel for many things */
		{"send", COLLECTIVE_SEND},
		{"recv", COLLECTIVE_RECEIVE},
		{"scatter", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__SCATTER},
		{"gather", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__GATHER},
		{"reduce", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE},
	};
	char letters[128];

	letters_of(name, letters, sizeof(letters));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strstr(letters, kinds[i].word))
			return kinds[i].kind;
	}
	return COLLECTIVE_NONE;
}

bool chakra_is_communication(struct execution_text kernel)
{
	return execution_text_begins(kernel, "nccl") ||
	       execution_text_contains(kernel, "ncclKernel") ||
	       execution_text_contains(kernel, "ncclDevKernel") ||
	       execution_text_begins(kernel, "rccl") || execution_text_begins(kernel, "hccl") ||
	       execution_text_contains(kernel, "mscclKernel");
}

/*
 * Where PyTorch describes what is communicated, that operator; gloo's own where it does not. A
 * barrier of gloo moves nothing, and simulators know none.
 */
static bool is_host_communication(const struct execution_node *node)
{
	return execution_text_equals(node->name, operator_name) ||
	       (execution_text_begins(node->name, "gloo:") &&
		       kind_of(node->name) != CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER);
}

/* What is known so far, and the operators above the node, nearest first. */
struct finder {
	const struct execution_trace *trace;
	struct chakra_collective *found;
	struct execution_text dtype;
	int64_t in_elements, out_elements;
};

static void prefer(struct execution_text *known, struct execution_text value)
{
	value = bare(value);
	if (known->length == 0)
		*known = value;
}

static void prefer_number(int64_t *known, struct execution_text value)
{
	int64_t number;

	if (*known == TRACE_NO_NUMBER && json_piece_i64(bare(value), &number))
		*known = number;
}

static void prefer_kind(struct finder *finder, struct execution_text name)
{
	if (finder->found->kind == COLLECTIVE_NONE)
		finder->found->kind = kind_of(name);
}

static void take_work(struct finder *finder, const struct execution_work *work)
{
	struct chakra_collective *found = finder->found;

	found->group = work->group_name;
	found->ranks = work->group_ranks;
	found->group_size = work->group_size;
	found->source = work->source;
	found->destination = work->destination;
	finder->dtype = bare(work->dtype);
	finder->in_elements = work->in_elements;
	finder->out_elements = work->out_elements;
}

/* Since schema 1.1.0: {"name": "collective_name", "type": "string", "value": "allreduce"}, … */
static void take_attributes(struct finder *finder, const struct execution_node *node)
{
	struct json_piece piece = json_piece_elements(node->other_attrs);
	struct chakra_collective *found = finder->found;
	struct execution_text attribute, name, value;

	while (json_piece_next(&piece, &attribute)) {
		if (!json_piece_find(attribute, "name", &name) ||
			!json_piece_find(attribute, "value", &value))
			continue;
		name = bare(name);
		if (execution_text_equals(name, "collective_name"))
			prefer_kind(finder, bare(value));
		else if (execution_text_equals(name, "pg_name"))
			prefer(&found->group, value);
		else if (execution_text_equals(name, "pg_desc"))
			prefer(&found->description, value);
		else if (execution_text_equals(name, "pg_size"))
			prefer_number(&found->group_size, value);
		else if (execution_text_equals(name, "dtype"))
			prefer(&finder->dtype, value);
		else if (execution_text_equals(name, "in_msg_nelems"))
			prefer_number(&finder->in_elements, value);
		else if (execution_text_equals(name, "out_msg_nelems"))
			prefer_number(&finder->out_elements, value);
	}
}

static void set_peer(struct finder *finder, struct execution_text rank)
{
	struct chakra_collective *found = finder->found;

	if (found->kind == COLLECTIVE_SEND)
		prefer_number(&found->destination, rank);
	if (found->kind == COLLECTIVE_RECEIVE)
		prefer_number(&found->source, rank);
}

/*
 * record_param_comms ([tensors], sequence, ["group", "description"] …, rank, "kind", …): before
 * schema 1.0.3 the group is a number.
 */
static void take_inputs(struct finder *finder, const struct execution_node *node)
{
	struct json_piece values = json_piece_list(node->inputs.values), group;
	struct json_piece types = json_piece_list(node->inputs.types);
	struct execution_text value, type, before = {0};

	while (json_piece_next(&values, &value) && json_piece_next(&types, &type)) {
		if (execution_text_equals(type, "\"Tuple[String,String]\"")) {
			group = json_piece_list(value);
			if (json_piece_next(&group, &value))
				prefer(&finder->found->group, value);
			if (json_piece_next(&group, &value))
				prefer(&finder->found->description, value);
		} else if (execution_text_equals(type, "\"String\"")) {
			prefer_kind(finder, bare(value));
			set_peer(finder, before);
			return;
		}
		before = value;
	}
}

static const struct execution_node *parent_of(
	const struct execution_trace *trace, const struct execution_node *node)
{
	return node->parent == node->id ? NULL : execution_trace_find(trace, node->parent);
}

static void take_operators(struct finder *finder, const struct execution_node *node)
{
	for (int i = 0; node && i <= MAX_ANCESTORS; i++) {
		bool describes = execution_text_equals(node->name, operator_name);

		if (node->work == MODEL_NONE && describes) {
			take_attributes(finder, node);
			take_inputs(finder, node);
			return;
		}
		if (node->work == MODEL_NONE)
			prefer_kind(finder, node->name);
		if (execution_text_begins(node->name, "c10d::")) /* ([tensors], group, peer, tag) */
			set_peer(finder, tensor_value(&node->inputs, 2));
		node = parent_of(finder->trace, node);
	}
}

/* The tensors of the nearest that has some. */
static void sum_tensors(struct finder *finder, const struct execution_node *node)
{
	for (int i = 0; node && i <= MAX_ANCESTORS; i++) {
		struct tensor_sum sum = tensor_sum(&node->inputs);

		if (sum.tensors > 0) {
			finder->found->bytes = sum.bytes;
			finder->found->has_bytes = true;
			return;
		}
		node = parent_of(finder->trace, node);
	}
}

static void set_bytes(struct finder *finder, const struct execution_node *node)
{
	bool receives = finder->found->kind == COLLECTIVE_RECEIVE;
	int64_t elements = receives ? finder->out_elements : finder->in_elements;
	uint64_t bytes;

	if (elements >= 0 && tensor_type_bytes(finder->dtype) > 0 &&
		!__builtin_mul_overflow(
			(uint64_t)elements, tensor_type_bytes(finder->dtype), &bytes)) {
		finder->found->bytes = bytes;
		finder->found->has_bytes = true;
	} else {
		sum_tensors(finder, node);
	}
}

static void take_group(struct chakra_collective *found, const struct chakra_group *group)
{
	if (!group)
		return;
	prefer(&found->description, group->description);
	if (found->ranks.length == 0)
		found->ranks = group->ranks;
	if (found->group_size == TRACE_NO_NUMBER)
		found->group_size = group->size;
}

bool chakra_collective_of(const struct execution_trace *trace, const struct chakra_groups *groups,
	const struct execution_node *node, struct chakra_collective *ret_collective)
{
	struct chakra_collective found = {.kind = COLLECTIVE_NONE,
		.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER};
	struct finder finder = {.trace = trace,
		.found = &found,
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER};
	bool is_device = node->work != MODEL_NONE;

	if (is_device ? !chakra_is_communication(node->name) : !is_host_communication(node))
		return false;
	if (is_device) {
		/* A barrier, as an example, is made of another collective: what the device does. */
		prefer_kind(&finder, node->name);
		prefer_kind(&finder, trace->works.items[node->work].collective);
		take_work(&finder, &trace->works.items[node->work]);
	}
	take_operators(&finder, node);
	if (is_device && found.kind == COLLECTIVE_NONE &&
		execution_text_contains(node->name, "SendRecv"))
		found.kind = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL;
	/* "init", "wait" and others are identified by the same operator, and move nothing. */
	if (!is_device && found.kind == COLLECTIVE_NONE)
		return false;
	set_bytes(&finder, node);
	take_group(&found, chakra_groups_find(groups, found.group));
	*ret_collective = found;
	return true;
}
