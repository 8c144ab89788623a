/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/range_fields.h"

#include <string.h>

const struct model_range_field *range_field(
	const struct model *model, const struct model_range *range, const char *name)
{
	for (uint32_t i = 0; i < range->field_count; i++) {
		const struct model_range_field *field =
			&model->range_fields.items[range->first_field + i];

		if (strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

bool range_double(const struct model *model, const struct model_range *range, const char *name,
	double *ret_value)
{
	const struct model_range_field *field = range_field(model, range, name);

	if (!field || field->type == WIRE_RANGE_TEXT)
		return false;
	if (field->type == WIRE_RANGE_DOUBLE)
		memcpy(ret_value, &field->value, sizeof(*ret_value));
	else if (field->type == WIRE_RANGE_I64)
		*ret_value = (double)(int64_t)field->value;
	else
		*ret_value = (double)field->value;
	return true;
}

bool range_u64(const struct model *model, const struct model_range *range, const char *name,
	uint64_t *ret_value)
{
	const struct model_range_field *field = range_field(model, range, name);
	double value;

	if (!field || field->type == WIRE_RANGE_TEXT)
		return false;
	if (field->type == WIRE_RANGE_U64) {
		*ret_value = field->value;
	} else if (field->type == WIRE_RANGE_I64) {
		*ret_value = (int64_t)field->value < 0 ? 0 : field->value;
	} else {
		memcpy(&value, &field->value, sizeof(value));
		*ret_value = value > 0 && value < 0x1p63 ? (uint64_t)value : 0;
	}
	return true;
}

uint64_t range_u64_or_0(
	const struct model *model, const struct model_range *range, const char *name)
{
	uint64_t value = 0;

	range_u64(model, range, name, &value);
	return value;
}

const char *range_text(const struct model *model, const struct model_range *range, const char *name)
{
	const struct model_range_field *field = range_field(model, range, name);

	return field && field->type == WIRE_RANGE_TEXT ? field->text : "";
}

bool range_is(const struct model_range *range, const char *domain, const char *name)
{
	return strcmp(range->domain, domain) == 0 && strcmp(range->name, name) == 0;
}
