/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of a trace are called. */
#include <errno.h>

#include "base/strbuf.h"
#include "model/trace.h"

/* Of one host: files that say more are made up. */
#define MAX_DEVICES 1024

const char *trace_device_name(const struct trace *trace, int64_t number)
{
	array_foreach (&trace->devices, device) {
		if (device->number == number)
			return trace_text(trace, device->name);
	}
	return "";
}

int trace_name_device(struct trace *trace, int64_t number, const char *name, size_t length)
{
	struct trace_device device = {.number = number};
	int r;

	if (trace->devices.count == MAX_DEVICES || *trace_device_name(trace, number))
		return 0;
	r = intern_add(&trace->strings, name, length, &device.name);
	return r < 0 ? r : array_append(&trace->devices, device);
}

/* An object of the array. */
static int read_device(struct trace *trace, struct json_reader *reader)
{
	enum json_status status = json_reader_enter(reader, '{');
	_cleanup_strbuf_ struct strbuf name = {0};
	struct json_text key, value, inside;
	int64_t number = TRACE_NO_NUMBER;
	int r;

	while (status == JSON_OK) {
		status = json_reader_member(reader, &key);
		if (status == JSON_OK)
			status = json_reader_value(reader, &value);
		if (status != JSON_OK)
			break;
		inside = json_text_inside(&value);
		if (json_text_equals(&key, "id") && json_text_i64(&inside, &number) < 0)
			number = TRACE_NO_NUMBER;
		if (json_text_equals(&key, "name") && !name.length)
			json_text_unescape(&name, &inside);
	}
	if (status != JSON_DONE)
		return (int)status;
	r = strbuf_status(&name);
	if (r < 0 || number == TRACE_NO_NUMBER || !name.length)
		return r;
	return trace_name_device(trace, number, name.data, name.length);
}

/* What cannot be read is left out. */
int trace_read_devices(struct trace *trace, const struct json_text *properties)
{
	struct json_reader reader = {.at = properties->bytes,
		.end = properties->bytes + properties->length,
		.is_last = true};
	int r = (int)json_reader_enter(&reader, '[');

	while (r == JSON_OK && json_reader_item(&reader) == JSON_OK)
		r = read_device(trace, &reader);
	return MIN(r, 0);
}

int trace_read_header_devices(struct trace *trace)
{
	_cleanup_strbuf_ struct strbuf object = {0};
	struct json_text key, value;
	struct json_reader reader;
	enum json_status status;

	if (!strstr(trace_text(trace, trace->header), "\"deviceProperties\""))
		return 0;
	strbuf_addf(&object, "{%s}", trace_text(trace, trace->header));
	if (strbuf_status(&object) < 0)
		return -ENOMEM;
	reader = (struct json_reader){
		.at = object.data, .end = object.data + object.length, .is_last = true};
	status = json_reader_enter(&reader, '{');
	while (status == JSON_OK) {
		status = json_reader_member(&reader, &key);
		if (status == JSON_OK)
			status = json_reader_value(&reader, &value);
		if (status == JSON_OK && json_text_equals(&key, "deviceProperties"))
			return trace_read_devices(trace, &value);
	}
	return 0;
}
