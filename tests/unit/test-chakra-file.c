/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra's .et files: what is written is read, cut and damaged ones are told and never believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "chakra/et/file.h"

#define NODES 3

static void write_message(struct et_writer *writer, const ProtobufCMessage *message)
{
	uint8_t bytes[256];

	assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(bytes));
	et_write_message(writer, bytes, protobuf_c_message_pack(message, bytes));
}

static void write_example(struct et_writer *writer)
{
	et_metadata metadata = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
	et_attribute schema = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
	et_attribute zero = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
	et_attribute *attributes[] = {&schema};
	et_attribute *node_attributes[] = {&zero};

	schema.name = (char *)"schema";
	schema.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL;
	schema.string_val = (char *)"1.1.1-chakra.0.0.4";
	metadata.attr = attributes;
	metadata.n_attr = 1;
	write_message(writer, &metadata.base);
	zero.name = (char *)"comm_type";
	zero.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL;
	for (uint64_t i = 0; i < NODES; i++) {
		et_node node = CHAKRA_PROTO_MSG__NODE__INIT;
		uint64_t deps[] = {i - 1, 300};

		node.id = i;
		node.name = (char *)"aten::mm";
		node.type = CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE;
		node.data_deps = deps;
		node.n_data_deps = i > 0 ? 2 : 0;
		node.attr = node_attributes;
		node.n_attr = 1;
		write_message(writer, &node.base);
	}
}

static struct strbuf example(void)
{
	struct strbuf bytes = {0};
	struct et_writer *writer;
	uint64_t length;

	assert_int_equal(et_writer_open_memory(&writer, &bytes), 0);
	write_example(writer);
	assert_int_equal(et_writer_close(writer, &length, NULL), 0);
	assert_int_equal(length, bytes.length);
	return bytes;
}

static void assert_example(struct et_reader *reader)
{
	const et_node *node;
	struct errmsg err;

	assert_string_equal(et_reader_metadata(reader)->attr[0]->string_val, "1.1.1-chakra.0.0.4");
	for (uint64_t i = 0; i < NODES; i++) {
		assert_int_equal(et_reader_next(reader, &node, &err), 1);
		assert_int_equal(node->id, i);
		assert_string_equal(node->name, "aten::mm");
		assert_int_equal(node->n_data_deps, i > 0 ? 2 : 0);
		assert_int_equal(et_find_attribute(node, "comm_type")->value_case,
			CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL);
		assert_null(et_find_attribute(node, "comm_size"));
	}
	assert_int_equal(et_reader_next(reader, &node, &err), 0);
	assert_int_equal(et_reader_next(reader, &node, &err), 0);
}

static void test_what_is_written_is_read(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf bytes = example();
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	struct errmsg err;

	assert_int_equal(
		et_reader_open_bytes(&reader, bytes.data, bytes.length, "example", &err), 0);
	assert_example(reader);
}

/* A folder of its own for files; removed by remove_folder(). */
static char *new_folder(void)
{
	char *folder = strdup("/tmp/sonde-chakra-XXXXXX");

	assert_non_null(folder);
	assert_non_null(mkdtemp(folder));
	return folder;
}

static void test_files_plain_and_compressed(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf plain = {0}, compressed = {0}, bytes = example();
	_cleanup_free_ char *folder = new_folder();
	struct et_reader *reader = NULL;
	struct et_writer *writer;
	struct stat status;
	const et_node *node;
	struct errmsg err;
	gzFile file;
	int r;

	strbuf_addf(&plain, "%s/a.et", folder);
	strbuf_addf(&compressed, "%s/a.et.gz", folder);
	assert_int_equal(et_writer_open(&writer, plain.data, &err), 0);
	write_example(writer);
	assert_int_not_equal(stat(plain.data, &status), 0); /* only when it is whole */
	assert_int_equal(et_writer_close(writer, NULL, &err), 0);
	assert_int_equal(stat(plain.data, &status), 0);
	assert_int_equal(status.st_size, bytes.length);
	assert_int_equal(et_reader_open(&reader, plain.data, &err), 0);
	assert_example(reader);
	et_reader_free(reader);

	file = gzopen(compressed.data, "wb");
	assert_int_equal(gzwrite(file, bytes.data, (unsigned)bytes.length), bytes.length);
	assert_int_equal(gzclose(file), Z_OK);
	assert_int_equal(et_reader_open(&reader, compressed.data, &err), 0);
	assert_example(reader);
	et_reader_free(reader);

	assert_int_equal(stat(compressed.data, &status), 0);
	assert_int_equal(truncate(compressed.data, status.st_size - 12), 0);
	assert_int_equal(et_reader_open(&reader, compressed.data, &err), 0);
	while ((r = et_reader_next(reader, &node, &err)) == 1)
		;
	et_reader_free(reader);
	assert_int_equal(r, -EBADMSG);
	assert_non_null(strstr(err.text, "gzip data are cut off"));
	unlink(plain.data);
	unlink(compressed.data);
	assert_int_equal(rmdir(folder), 0);
}

/* A writer that is thrown away leaves nothing; a full device is told. */
static void test_failures_leave_no_file(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf path = {0};
	_cleanup_free_ char *folder = new_folder();
	struct et_writer *writer = NULL;
	struct errmsg err;

	strbuf_addf(&path, "%s/a.et", folder);
	assert_int_equal(et_writer_open(&writer, path.data, &err), 0);
	write_example(writer);
	et_writer_free(writer);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(et_writer_open(&writer, path.data, &err), -ENOENT);
	assert_non_null(strstr(err.text, path.data));
	assert_int_equal(et_writer_open(&writer, "/dev/full", &err), 0);
	write_example(writer);
	assert_int_equal(et_writer_close(writer, NULL, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "/dev/full"));
}

/* Cut anywhere: the nodes before the cut are read as they were, and only whole messages count. */
static void test_cut_at_every_byte(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf bytes = example();

	for (size_t length = 0; length < bytes.length; length++) {
		_cleanup_et_reader_ struct et_reader *reader = NULL;
		_cleanup_free_ char *cut = malloc(length ?: 1); /* ASan sees its end */
		const et_node *node;
		struct errmsg err;
		uint64_t nodes = 0;
		int r;

		memcpy(cut, bytes.data, length);
		r = et_reader_open_bytes(&reader, cut, length, "cut", &err);
		while (r == 0 && (r = et_reader_next(reader, &node, &err)) == 1) {
			assert_int_equal(node->id, nodes++);
			r = 0;
		}
		assert_true(r == 0 || r == -EBADMSG);
		assert_true(nodes < NODES || r < 0);
	}
}

static void assert_damaged(const void *bytes, size_t length, const char *how)
{
	struct et_reader *reader = NULL;
	const et_node *node;
	struct errmsg err = {{0}};
	int r = et_reader_open_bytes(&reader, bytes, length, "foreign", &err);

	while (r == 0 && et_reader_next(reader, &node, &err) > 0)
		;
	et_reader_free(reader);
	assert_non_null(strstr(err.text, how));
}

static void test_damage_is_told(void **state _unused_)
{
	assert_damaged("", 0, "is empty");
	assert_damaged("\x02\x08\x01", 3, "not a Chakra execution trace"); /* a node comes first */
	assert_damaged("\x00\xff\xff\xff\xff\xff\xff", 7, "not a 32-bit number");
	assert_damaged("\x00\xff\xff\xff\xff\x0f", 6, "more than 32 MB");
	assert_damaged("\x00\x02\x0a\x00", 4, "not a Chakra message");
	assert_damaged("\x00\x05\x08", 3, "cut off in message 1, at byte 1");
}

static void test_names(void **state _unused_)
{
	assert_string_equal(et_node_type_to_string(7), "COMM_COLL_NODE");
	assert_null(et_node_type_to_string(8));
	assert_null(et_node_type_to_string(-1));
	assert_string_equal(et_collective_to_string(6), "ALL_TO_ALL");
	assert_null(et_collective_to_string(INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_files_plain_and_compressed),
		cmocka_unit_test(test_failures_leave_no_file),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_damage_is_told),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
