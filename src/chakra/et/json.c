/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/et/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "chakra/python_text.h"

#define REPLACEMENT 0xfffd

struct printer {
	struct strbuf *out;
	bool pretty;
	unsigned depth;
};

static void new_line(struct printer *printer)
{
	if (!printer->pretty)
		return;
	strbuf_add_char(printer->out, '\n');
	for (unsigned i = 0; i < printer->depth; i++)
		strbuf_add(printer->out, "  ");
}

static void add_escape(struct strbuf *out, uint32_t code)
{
	static const char named[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
	const char *name = code < 0x80 && code > 0 ? strchr(named, (int)code) : NULL;

	if (name)
		strbuf_addf(out, "\\%c", letters[name - named]);
	else if (code < 0x10000)
		strbuf_addf(out, "\\u%04x", code);
	else
		strbuf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			0xdc00 + ((code - 0x10000) & 0x3ff));
}

/* In ASCII, as Python writes it. Bytes that are no UTF-8 become U+FFFD. */
static void add_string(struct strbuf *out, const char *text)
{
	size_t length = strlen(text);

	strbuf_add_char(out, '"');
	while (length > 0) {
		size_t sequence = utf8_sequence_length(text, length);
		uint32_t code = (unsigned char)*text;

		if (sequence == 1 && code >= ' ' && code < 0x7f && code != '"' && code != '\\') {
			strbuf_add_char(out, *text++);
			length--;
			continue;
		}
		if (sequence > 1) {
			code &= 0x7fU >> sequence;
			for (size_t i = 1; i < sequence; i++)
				code = code << 6 | ((unsigned char)text[i] & 0x3f);
		}
		if (code == 0x7f)
			strbuf_add_char(out, 0x7f);
		else
			add_escape(out, sequence > 0 ? code : REPLACEMENT);
		text += sequence ?: 1;
		length -= sequence ?: 1;
	}
	strbuf_add_char(out, '"');
}

static void add_base64(struct strbuf *out, const ProtobufCBinaryData *data)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	strbuf_add_char(out, '"');
	for (size_t i = 0; i < data->len; i += 3) {
		size_t left = data->len - i;
		uint32_t bits = (uint32_t)data->data[i] << 16;

		bits |= left > 1 ? (uint32_t)data->data[i + 1] << 8 : 0;
		bits |= left > 2 ? data->data[i + 2] : 0;
		for (size_t k = 0; k < 4; k++)
			strbuf_add_char(out, k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=');
	}
	strbuf_add_char(out, '"');
}

/* "Infinity" and "NaN" are strings; a float has as few digits as tell it from other floats. */
static void add_double(struct strbuf *out, double number, bool is_float)
{
	char text[40];

	if (isnan(number) || isinf(number)) {
		strbuf_add(out, isnan(number) ? "\"NaN\""
				: number < 0  ? "\"-Infinity\""
					      : "\"Infinity\"");
		return;
	}
	for (int digits = 6; is_float && digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if ((float)strtod(text, NULL) == (float)number) {
			number = strtod(text, NULL);
			break;
		}
	}
	python_text_add_float(out, number);
}

static void add_enum(struct strbuf *out, const ProtobufCFieldDescriptor *field, int number)
{
	const ProtobufCEnumValue *value =
		protobuf_c_enum_descriptor_get_value(field->descriptor, number);

	if (value)
		strbuf_addf(out, "\"%s\"", value->name);
	else
		strbuf_addf(out, "%d", number);
}

static void add_message(struct printer *printer, const ProtobufCMessage *message);

static size_t size_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 4;
	}
}

static void add_value(
	struct printer *printer, const ProtobufCFieldDescriptor *field, const void *value)
{
	struct strbuf *out = printer->out;

	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		strbuf_addf(out, "\"%lld\"", (long long)*(const int64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		strbuf_addf(out, "\"%llu\"", (unsigned long long)*(const uint64_t *)value);
		break;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		strbuf_addf(out, "%d", *(const int32_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		strbuf_addf(out, "%u", *(const uint32_t *)value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		add_double(out, *(const double *)value, false);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		add_double(out, (double)*(const float *)value, true);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		strbuf_add(out, *(const protobuf_c_boolean *)value ? "true" : "false");
		break;
	case PROTOBUF_C_TYPE_ENUM:
		add_enum(out, field, *(const int *)value);
		break;
	case PROTOBUF_C_TYPE_STRING:
		add_string(out, *(char *const *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		add_base64(out, value);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		add_message(printer, *(ProtobufCMessage *const *)value);
		break;
	}
}

static void add_repeated(struct printer *printer, const ProtobufCFieldDescriptor *field,
	const char *items, size_t count)
{
	size_t size = size_of(field->type);

	strbuf_add_char(printer->out, '[');
	printer->depth++;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			strbuf_add_char(printer->out, ',');
		new_line(printer);
		add_value(printer, field, items + i * size);
	}
	printer->depth--;
	new_line(printer);
	strbuf_add_char(printer->out, ']');
}

/* As proto3 has it: a value of a oneof is there when it was chosen, another when it is not 0. */
static bool is_set(
	const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, const void *value)
{
	static const char zeros[sizeof(ProtobufCBinaryData)];
	const void *quantifier = (const char *)message + field->quantifier_offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)quantifier > 0;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)quantifier == field->id;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return **(char *const *)value != '\0';
	return memcmp(value, zeros, size_of(field->type)) != 0;
}

/* "duration_micros" is "durationMicros". */
static void add_key(struct strbuf *out, const char *name)
{
	strbuf_add_char(out, '"');
	for (; *name; name++) {
		bool is_next = *name == '_' && name[1] >= 'a' && name[1] <= 'z';

		name += is_next;
		strbuf_add_char(out, is_next ? (char)(*name - 'a' + 'A') : *name);
	}
	strbuf_add(out, "\":");
}

static void add_message(struct printer *printer, const ProtobufCMessage *message)
{
	bool is_first = true;

	strbuf_add_char(printer->out, '{');
	printer->depth++;
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const char *value = (const char *)message + field->offset;

		if (!is_set(message, field, value))
			continue;
		if (!is_first)
			strbuf_add_char(printer->out, ',');
		is_first = false;
		new_line(printer);
		add_key(printer->out, field->name);
		if (printer->pretty)
			strbuf_add_char(printer->out, ' ');
		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			add_repeated(printer, field, *(char *const *)value,
				*(const size_t *)((const char *)message +
						  field->quantifier_offset));
		else
			add_value(printer, field, value);
	}
	printer->depth--;
	if (!is_first)
		new_line(printer);
	strbuf_add_char(printer->out, '}');
}

void et_json_add(struct strbuf *out, const ProtobufCMessage *message, bool pretty)
{
	struct printer printer = {.out = out, .pretty = pretty};

	add_message(&printer, message);
}
