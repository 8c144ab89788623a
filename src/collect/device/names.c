/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/names.h"

#include <string.h>

#include "base/strbuf.h"

/* Ids, definitions and names beyond these are no honest process's. */
#define MAX_ID          (1U << 20)
#define MAX_DEFINITIONS (1U << 20)
#define MAX_NAME_BYTES  (1U << 16)
#define MAX_PART_BYTES  (64U << 20)
#define RUNTIME_BITS    WIRE_DEVICE_IDS_OF(15)

void device_names_done(struct device_names *names)
{
	intern_done(&names->texts);
	map_u64_done(&names->definitions);
}

static uint64_t key_of(uint32_t pid, uint32_t type, uint32_t id)
{
	return (uint64_t)pid << 32 | (uint64_t)(type & 15) << 24 | id;
}

static bool is_id(uint32_t id)
{
	return (id & ~RUNTIME_BITS) && (id & ~RUNTIME_BITS) <= MAX_ID;
}

bool device_definition_text(const struct wire_device_definition *definition, char *ret_text)
{
	if (definition->record.length_bytes < sizeof(*definition) ||
		definition->text_bytes > WIRE_DEVICE_TEXT_BYTES ||
		definition->text_bytes > definition->record.length_bytes - sizeof(*definition) ||
		!is_id(definition->id))
		return false;
	memcpy(ret_text, definition + 1, definition->text_bytes);
	ret_text[definition->text_bytes] = '\0';
	return true;
}

static int set(struct device_names *names, uint64_t key, const char *text)
{
	uint32_t id;
	int result = intern_add(&names->texts, text, strlen(text), &id);

	if (result >= 0)
		result = map_u64_set(&names->definitions, key, id);
	return result < 0 ? result : 1;
}

/* The name grows; what it was before stays in memory, which is why there is a limit to it. */
static int add_part(struct device_names *names, uint32_t pid,
	const struct wire_device_definition *definition, const char *part)
{
	const char *begin = device_names_get(names, pid, WIRE_RECORD_DEVICE_NAME, definition->id);
	_cleanup_strbuf_ struct strbuf whole = {0};

	if (!begin || strlen(begin) + strlen(part) > MAX_NAME_BYTES ||
		names->part_bytes > MAX_PART_BYTES)
		return 0;
	strbuf_add(&whole, begin);
	strbuf_add(&whole, part);
	if (strbuf_status(&whole) < 0)
		return -ENOMEM;
	names->part_bytes += whole.length;
	return set(
		names, key_of(pid, WIRE_RECORD_DEVICE_NAME, definition->id), strbuf_cstr(&whole));
}

int device_names_add(
	struct device_names *names, uint32_t pid, const struct wire_device_definition *definition)
{
	char text[WIRE_DEVICE_TEXT_BYTES + 1];

	if (!device_definition_text(definition, text) ||
		names->definitions.count >= MAX_DEFINITIONS)
		return 0;
	if (definition->record.type == WIRE_RECORD_DEVICE_NAME_PART)
		return add_part(names, pid, definition, text);
	return set(names, key_of(pid, definition->record.type, definition->id), text);
}

const char *device_names_get(
	const struct device_names *names, uint32_t pid, uint32_t type, uint32_t id)
{
	uint64_t text;

	if (!is_id(id) || !map_u64_get(&names->definitions, key_of(pid, type, id), &text))
		return NULL;
	return intern_get(&names->texts, (uint32_t)text);
}
