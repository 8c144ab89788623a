/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the schema gives to numbers, and attributes by theirs. */
#include <limits.h>
#include <string.h>

#include "chakra/et/file.h"

static const char *name_of(const ProtobufCEnumDescriptor *descriptor, int64_t number)
{
	const ProtobufCEnumValue *value;

	if (number < 0 || number > INT_MAX)
		return NULL;
	value = protobuf_c_enum_descriptor_get_value(descriptor, (int)number);
	return value ? value->name : NULL;
}

const char *et_node_type_to_string(int64_t type)
{
	return name_of(&chakra_proto_msg__node_type__descriptor, type);
}

const char *et_collective_to_string(int64_t type)
{
	return name_of(&chakra_proto_msg__collective_comm_type__descriptor, type);
}

const et_attribute *et_find_attribute(const et_node *node, const char *name)
{
	for (size_t i = 0; i < node->n_attr; i++) {
		if (strcmp(node->attr[i]->name, name) == 0)
			return node->attr[i];
	}
	return NULL;
}
