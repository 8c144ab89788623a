/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "inject/inject.h"

bool inject_define(uint16_t type, uint32_t id, uint32_t device, const char *text)
{
	struct {
		struct wire_device_definition definition;
		char text[WIRE_DEVICE_TEXT_BYTES];
	} out;
	size_t length = strnlen(text, WIRE_DEVICE_TEXT_BYTES);

	memset(&out, 0, sizeof(out.definition) + (length + 7) / 8 * 8);
	memcpy(out.text, text, length);
	out.definition.record.type = type;
	out.definition.record.length_bytes =
		(uint32_t)(sizeof(out.definition) + (length + 7) / 8 * 8);
	out.definition.id = id;
	out.definition.device = device;
	out.definition.text_bytes = (uint32_t)length;
	return inject_write(&out.definition.record);
}
