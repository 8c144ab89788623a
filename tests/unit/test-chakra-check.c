/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra traces with one fault each: it is told, with the node and its place, and nothing else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "chakra/et/check.h"
#include "chakra/et/json.h"
#include "chakra/et/stat.h"

#define TYPE(name)  CHAKRA_PROTO_MSG__NODE_TYPE__##name
#define VALUE(kind) CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind

enum { MAX_ATTRIBUTES = 8 };

/* A trace in memory, with a path. */
struct example {
	struct strbuf *bytes;
	struct et_writer *writer;
	int fd;
	char path[64];
};

static void put(struct example *example, const ProtobufCMessage *message)
{
	uint8_t bytes[1024];

	assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(bytes));
	et_write_message(example->writer, bytes, protobuf_c_message_pack(message, bytes));
}

static et_attribute number(const char *name, int64_t value)
{
	et_attribute attribute = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;

	attribute.name = (char *)name;
	attribute.value_case = VALUE(INT64_VAL);
	attribute.int64_val = value;
	return attribute;
}

static et_attribute small(const char *name, int32_t value)
{
	et_attribute attribute = number(name, 0);

	attribute.value_case = VALUE(INT32_VAL);
	attribute.int32_val = value;
	return attribute;
}

static et_attribute word(const char *name, const char *value)
{
	et_attribute attribute = number(name, 0);

	attribute.value_case = VALUE(STRING_VAL);
	attribute.string_val = (char *)value;
	return attribute;
}

static et_attribute list(const char *name, ChakraProtoMsg__Int64List *values)
{
	et_attribute attribute = number(name, 0);

	attribute.value_case = VALUE(INT64_LIST);
	attribute.int64_list = values;
	return attribute;
}

static struct example new_example(int64_t rank)
{
	struct example example = {.fd = memfd_create("trace", MFD_CLOEXEC),
		.bytes = calloc(1, sizeof(struct strbuf))};
	et_metadata metadata = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
	et_attribute attribute = number("rank", rank), *attributes[] = {&attribute};

	assert_true(example.fd >= 0);
	snprintf(example.path, sizeof(example.path), "/proc/self/fd/%d", example.fd);
	assert_int_equal(et_writer_open_memory(&example.writer, example.bytes), 0);
	metadata.attr = attributes;
	metadata.n_attr = 1;
	put(&example, &metadata.base);
	return example;
}

static void finish(struct example *example)
{
	assert_int_equal(et_writer_close(example->writer, NULL, NULL), 0);
	assert_int_equal(write_all(example->fd, example->bytes->data, example->bytes->length), 0);
	strbuf_done(example->bytes);
	free(example->bytes);
}

/* Attributes end with one without a name. */
static void add_node(
	struct example *example, uint64_t id, int type, uint64_t on, const et_attribute *attributes)
{
	et_node node = CHAKRA_PROTO_MSG__NODE__INIT;
	et_attribute *pointers[MAX_ATTRIBUTES], operations = number("num_ops", 1),
						size = number("tensor_size", 1);
	et_attribute all[] = {operations, size, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT};

	if (!attributes)
		attributes = all;
	node.id = id;
	node.name = (char *)"a";
	node.type = (ChakraProtoMsg__NodeType)type;
	node.start_time_micros = 100 + id;
	node.duration_micros = 10;
	node.data_deps = &on;
	node.n_data_deps = on != UINT64_MAX;
	node.attr = pointers;
	for (; attributes[node.n_attr].name[0]; node.n_attr++)
		pointers[node.n_attr] = (et_attribute *)&attributes[node.n_attr];
	put(example, &node.base);
}

#define NONE UINT64_MAX
#define ATTRIBUTES(...)                                                                            \
	(const et_attribute[])                                                                     \
	{                                                                                          \
		__VA_ARGS__, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT                               \
	}

/* The file is removed with the check. */
static struct et_check *checked(struct example *example)
{
	struct et_check *check = NULL;

	finish(example);
	assert_int_equal(et_check(&check, example->path, NULL), 0);
	return check;
}

/* One fault of this kind, with these words, and no other error. */
static void assert_fault(struct example *example, enum et_fault_kind kind, const char *words)
{
	struct et_check *check = checked(example);

	for (int other = 0; other < ET_FAULT_KIND_MAX; other++)
		assert_int_equal(check->counts[other], other == (int)kind);
	assert_int_equal(check->faults.count, 1);
	if (!strstr(check->faults.items[0].text, words))
		fail_msg("%s", check->faults.items[0].text);
	assert_int_equal(et_check_is_fine(check), !et_fault_is_error(kind));
	et_check_free(check);
	close(example->fd);
}

static void test_a_good_trace(void **state _unused_)
{
	struct example example = new_example(0);
	struct et_check *check;

	add_node(&example, 7, TYPE(COMP_NODE), NONE, NULL);
	add_node(&example, 3, TYPE(COMP_NODE), 7, NULL); /* ids have no order */
	add_node(&example, 9, TYPE(COMM_COLL_NODE), 3,
		ATTRIBUTES(number("comm_type", 0), number("comm_size", 8), word("pg_name", "12")));
	add_node(&example, 10, TYPE(COMM_SEND_NODE), 9,
		ATTRIBUTES(small("comm_dst", 1), small("comm_tag", 0), number("comm_size", 8)));
	add_node(&example, 11, TYPE(COMM_RECV_NODE), 9,
		ATTRIBUTES(small("comm_src", 1), small("comm_tag", 0), number("comm_size", 8)));
	add_node(&example, 12, TYPE(MEM_LOAD_NODE), 9, ATTRIBUTES(number("tensor_size", 8)));
	check = checked(&example);
	assert_true(et_check_is_fine(check));
	assert_int_equal(check->faults.count, 0);
	assert_int_equal(check->deps, 5);
	et_check_free(check);
	close(example.fd);
}

static void test_ids_and_dependencies(void **state _unused_)
{
	struct example repeated = new_example(0), missing = new_example(0), self = new_example(0),
		       circle = new_example(0), empty = new_example(0);

	add_node(&repeated, 1, TYPE(COMP_NODE), NONE, NULL);
	add_node(&repeated, 1, TYPE(COMP_NODE), NONE, NULL);
	assert_fault(&repeated, ET_FAULT_REPEATED_ID, "has the id of the node at byte");
	add_node(&missing, 1, TYPE(COMP_NODE), 0, NULL);
	assert_fault(&missing, ET_FAULT_MISSING_DEP, "a data dependency on node 0, which is not");
	add_node(&self, 1, TYPE(COMP_NODE), 1, NULL);
	assert_fault(&self, ET_FAULT_CYCLE, "node 1 (a) at byte 11 waits for itself");
	add_node(&circle, 1, TYPE(COMP_NODE), 3, NULL);
	add_node(&circle, 2, TYPE(COMP_NODE), 1, NULL);
	add_node(&circle, 3, TYPE(COMP_NODE), 2, NULL);
	add_node(&circle, 4, TYPE(COMP_NODE), 3, NULL);
	assert_fault(
		&circle, ET_FAULT_CYCLE, "3 nodes wait for one another: 1 a -> 3 a -> 2 a -> 1");
	assert_fault(&empty, ET_FAULT_NO_NODES, "no node");
}

static void test_what_types_of_nodes_need(void **state _unused_)
{
	static const struct {
		int type;
		const char *name; /* that is left out */
	} cases[] = {
		{TYPE(COMM_COLL_NODE), "comm_type"},
		{TYPE(COMM_COLL_NODE), "comm_size"},
		{TYPE(COMM_SEND_NODE), "comm_dst"},
		{TYPE(COMM_SEND_NODE), "comm_size"},
		{TYPE(COMM_SEND_NODE), "comm_tag"},
		{TYPE(COMM_RECV_NODE), "comm_src"},
		{TYPE(MEM_STORE_NODE), "tensor_size"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		et_attribute all[] = {number("comm_type", 0), number("comm_size", 8),
			small("comm_dst", 1), small("comm_src", 1), small("comm_tag", 0),
			number("tensor_size", 1), CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT};
		struct example example = new_example(0);

		for (size_t k = 0; k + 1 < ARRAY_SIZE(all); k++) {
			if (strcmp(all[k].name, cases[i].name) == 0)
				all[k] = number("other", 0);
		}
		add_node(&example, 1, cases[i].type, NONE, all);
		assert_fault(&example, ET_FAULT_ATTRIBUTE, cases[i].name);
	}
}

static void test_what_is_not_simulated(void **state _unused_)
{
	struct example kind = new_example(0), group = new_example(0), type = new_example(0),
		       metadata = new_example(0), bytes = new_example(0), plain = new_example(0);

	add_node(&kind, 1, TYPE(COMM_COLL_NODE), NONE,
		ATTRIBUTES(number("comm_type", 9), number("comm_size", 8)));
	assert_fault(&kind, ET_FAULT_COLLECTIVE, "comm_type 9 (BARRIER)");
	add_node(&group, 1, TYPE(COMM_COLL_NODE), NONE,
		ATTRIBUTES(number("comm_type", 0), number("comm_size", 8),
			word("pg_name", "default_pg")));
	assert_fault(&group, ET_FAULT_GROUP, "\"default_pg\", and astra-sim wants a number");
	add_node(&type, 1, 42, NONE, NULL);
	assert_fault(&type, ET_FAULT_TYPE, "unknown type 42");
	add_node(&metadata, 1, TYPE(METADATA_NODE), NONE, NULL);
	assert_fault(&metadata, ET_FAULT_METADATA, "not a list of groups");
	add_node(&bytes, 1, TYPE(COMP_NODE), NONE,
		ATTRIBUTES(
			word("op_schema", "\xff"), number("num_ops", 1), number("tensor_size", 1)));
	assert_fault(&bytes, ET_FAULT_UTF8, "not UTF-8");
	add_node(&plain, 1, TYPE(COMP_NODE), NONE, ATTRIBUTES(number("num_ops", 1)));
	assert_fault(&plain, ET_NOTE_NO_ARITHMETIC, "1 compute nodes");
}

static void test_a_cut_file(void **state _unused_)
{
	struct example example = new_example(0);
	struct et_check *check = NULL;

	add_node(&example, 1, TYPE(COMP_NODE), NONE, NULL);
	add_node(&example, 2, TYPE(COMP_NODE), 1, NULL);
	finish(&example);
	assert_int_equal(ftruncate(example.fd, lseek(example.fd, 0, SEEK_END) - 3), 0);
	assert_int_equal(et_check(&check, example.path, NULL), 0);
	assert_int_equal(check->counts[ET_FAULT_DAMAGED], 1);
	assert_int_equal(check->table->rows.count, 1);
	et_check_free(check);
	close(example.fd);
}

static ChakraProtoMsg__Int64List ranks_of(int64_t *values, size_t count)
{
	ChakraProtoMsg__Int64List ranks = CHAKRA_PROTO_MSG__INT64_LIST__INIT;

	ranks.values = values;
	ranks.n_values = count;
	return ranks;
}

/* Two collectives of group 1, the second of that kind and size. */
static struct et_check *rank_check(
	int64_t rank, ChakraProtoMsg__Int64List *ranks, int64_t kind, int64_t size, int *ret_fd)
{
	struct example example = new_example(rank);

	add_node(&example, 1, TYPE(COMM_COLL_NODE), NONE,
		ATTRIBUTES(number("comm_type", 0), number("comm_size", 8), word("pg_name", "1"),
			list("pg_ranks", ranks)));
	add_node(&example, 2, TYPE(COMM_COLL_NODE), 1,
		ATTRIBUTES(number("comm_type", kind), number("comm_size", size),
			word("pg_name", "1"), list("pg_ranks", ranks)));
	*ret_fd = example.fd;
	return checked(&example);
}

static void assert_groups(ChakraProtoMsg__Int64List *ranks, int64_t kind, int64_t size,
	int64_t rank, uint64_t faults, const char *words)
{
	int64_t both[] = {0, 4};
	ChakraProtoMsg__Int64List first = ranks_of(both, 2);
	int fds[2];
	struct et_check *checks[] = {rank_check(0, &first, 2, 16, &fds[0]),
		rank_check(rank, ranks, kind, size, &fds[1])};

	assert_int_equal(et_check_groups(checks, 2, NULL), 0);
	assert_int_equal(checks[1]->counts[ET_FAULT_GROUP], faults);
	if (words)
		assert_non_null(strstr(checks[1]->faults.items[0].text, words));
	for (int i = 0; i < 2; i++) {
		et_check_free(checks[i]);
		close(fds[i]);
	}
}

static void test_groups_over_ranks(void **state _unused_)
{
	int64_t both[] = {0, 4}, others[] = {0, 2};
	ChakraProtoMsg__Int64List same = ranks_of(both, 2), other = ranks_of(others, 2);

	assert_groups(&same, 2, 16, 4, 0, NULL);
	assert_groups(&same, 2, 99, 4, 0, NULL); /* gathering, ranks may bring what they have */
	assert_groups(&same, 0, 16, 4, 1,
		"collective 2 of process group \"1\" is node 2, ALL_REDUCE of 16 bytes");
	assert_groups(&other, 2, 16, 2, 1, "has the ranks [0, 2], and in");
	assert_groups(&same, 2, 16, 3, 1, "the trace is of rank 3");
}

static void test_numbers(void **state _unused_)
{
	struct example example = new_example(0);
	struct et_stat *stat = NULL;

	add_node(&example, 1, TYPE(COMP_NODE), NONE, NULL);
	add_node(&example, 2, TYPE(COMP_NODE), 1, NULL);
	add_node(&example, 3, TYPE(COMM_COLL_NODE), 1,
		ATTRIBUTES(number("comm_type", 6), number("comm_size", 8)));
	add_node(&example, 4, TYPE(COMM_COLL_NODE), 3,
		ATTRIBUTES(number("comm_type", 6), number("comm_size", 8)));
	finish(&example);
	assert_int_equal(et_stat_read(&stat, example.path, NULL), 0);
	assert_int_equal(stat->types[TYPE(COMP_NODE)], 2);
	assert_int_equal(stat->data_deps, 3);
	assert_int_equal(stat->critical_us, 30);
	assert_int_equal(stat->depth, 3);
	assert_int_equal(stat->span_us, 13);
	assert_int_equal(stat->device_us, 40);
	assert_int_equal(stat->collectives.count, 1);
	assert_int_equal(stat->collectives.items[0].count, 2);
	assert_int_equal(stat->collectives.items[0].bytes, 16);
	assert_string_equal(et_stat_kind(&stat->collectives.items[0]), "ALL_TO_ALL");
	et_stat_free(stat);
	close(example.fd);
}

/* The wanted texts are those of Google's MessageToJson. */
static void test_values_as_json(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	et_attribute attribute = number("a\"\n\x7f\xc3\xa9\xf0\x9f\x98\x80", 0);
	float floats[] = {0.1F, 3, 1e-20F};
	ChakraProtoMsg__FloatList list_of_floats = CHAKRA_PROTO_MSG__FLOAT_LIST__INIT;

	et_json_add(&out, &attribute.base, false);
	assert_string_equal(
		out.data, "{\"name\":\"a\\\"\\n\x7f\\u00e9\\ud83d\\ude00\",\"int64Val\":\"0\"}");
	list_of_floats.values = floats;
	list_of_floats.n_values = 3;
	attribute = number("b", 0);
	attribute.value_case = VALUE(FLOAT_LIST);
	attribute.float_list = &list_of_floats;
	strbuf_clear(&out);
	et_json_add(&out, &attribute.base, true);
	assert_string_equal(out.data,
		"{\n  \"name\": \"b\",\n  \"floatList\": {\n    \"values\": [\n      0.1,\n      "
		"3.0,\n      1e-20\n    ]\n  }\n}");
	attribute.value_case = VALUE(BYTES_VAL);
	attribute.bytes_val = (ProtobufCBinaryData){.len = 4, .data = (uint8_t *)"ab\xff\xfe"};
	strbuf_clear(&out);
	et_json_add(&out, &attribute.base, false);
	assert_string_equal(out.data, "{\"name\":\"b\",\"bytesVal\":\"YWL//g==\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_good_trace),
		cmocka_unit_test(test_ids_and_dependencies),
		cmocka_unit_test(test_what_types_of_nodes_need),
		cmocka_unit_test(test_what_is_not_simulated),
		cmocka_unit_test(test_a_cut_file),
		cmocka_unit_test(test_groups_over_ranks),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_values_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
