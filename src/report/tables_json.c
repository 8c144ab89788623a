/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_json.h"

#include <string.h>

void json_member_range_field(struct json_writer *json, const struct model_range_field *field)
{
	double real;

	json_key(json, *field->name ? field->name : "value");
	switch (field->type) {
	case WIRE_RANGE_U64:
		json_u64(json, field->value);
		break;
	case WIRE_RANGE_I64:
		json_i64(json, (int64_t)field->value);
		break;
	case WIRE_RANGE_DOUBLE:
		memcpy(&real, &field->value, sizeof(real));
		json_double(json, real, 9);
		break;
	default:
		json_string(json, field->text);
	}
}

void json_member_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

void json_member_u64(struct json_writer *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_member_known(struct json_writer *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_null(json);
}

void json_member_double(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value, 9);
}
