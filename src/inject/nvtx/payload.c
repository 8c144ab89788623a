/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's payload extension: libraries register the layouts of structs and give these with their
 * events. Read are the numbers and texts of structs of a fixed layout, which is what NCCL has;
 * arrays, unions and structs in structs are left out.
 */
#include <string.h>

#include "inject/nvtx/nvtx.h"

#define EXPORTED    __attribute__((visibility("default")))
#define MAX_SCHEMAS 256
#define MAX_ENUMS   64
#define MAX_VALUES  32 /* of an enumeration */
/* Of one event. */
#define MAX_DATA 4

EXPORTED int InitializeInjectionNvtxExtension(struct nvtx_extension *extension);

/* One entry of a schema, with its place. */
struct entry {
	struct nvtx_text *name;
	uint64_t type, offset;
	bool is_message;
};

struct schema {
	_Atomic bool is_ready;
	uint64_t id;
	nvtx_handle domain;
	struct nvtx_text *name;
	uint32_t entry_count;
	struct entry entries[WIRE_RANGE_MAX_FIELDS];
};

struct enumeration {
	_Atomic bool is_ready;
	uint64_t id;
	nvtx_handle domain;
	size_t bytes;
	uint32_t value_count;
	struct {
		struct nvtx_text *name;
		uint64_t value;
	} values[MAX_VALUES];
};

/* They grow only: a place is taken, filled, and then ready. */
static struct schema schemas[MAX_SCHEMAS];
static struct enumeration enumerations[MAX_ENUMS];
static _Atomic uint32_t schema_count, enumeration_count;
static _Atomic uint64_t last_id = NVTX_SCHEMA_DYNAMIC_ID;

/* The next place of a table, or its size where all are taken. */
static uint32_t take_place(_Atomic uint32_t *count, uint32_t maximum)
{
	uint32_t taken = atomic_load_explicit(count, memory_order_relaxed);

	while (taken < maximum && !atomic_compare_exchange_weak_explicit(count, &taken, taken + 1,
					  memory_order_relaxed, memory_order_relaxed))
		;
	return taken;
}

static struct schema *find_schema(nvtx_handle domain, uint64_t id)
{
	uint32_t count = atomic_load_explicit(&schema_count, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		struct schema *one = &schemas[i];

		if (atomic_load_explicit(&one->is_ready, memory_order_acquire) && one->id == id &&
			one->domain == domain)
			return one;
	}
	return NULL;
}

static const struct enumeration *find_enumeration(nvtx_handle domain, uint64_t id)
{
	uint32_t count = atomic_load_explicit(&enumeration_count, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		const struct enumeration *one = &enumerations[i];

		if (atomic_load_explicit(&one->is_ready, memory_order_acquire) && one->id == id &&
			one->domain == domain)
			return one;
	}
	return NULL;
}

/* ---- values ---- */

/* 0: not a type that is read. */
static size_t bytes_of(nvtx_handle domain, uint64_t type)
{
	const struct enumeration *enumeration;

	switch (type) {
	case NVTX_ENTRY_CHAR:
	case NVTX_ENTRY_UCHAR:
	case NVTX_ENTRY_INT8:
	case NVTX_ENTRY_UINT8:
	case NVTX_ENTRY_BYTE:
		return 1;
	case NVTX_ENTRY_SHORT:
	case NVTX_ENTRY_USHORT:
	case NVTX_ENTRY_INT16:
	case NVTX_ENTRY_UINT16:
		return 2;
	case NVTX_ENTRY_INT:
	case NVTX_ENTRY_UINT:
	case NVTX_ENTRY_INT32:
	case NVTX_ENTRY_UINT32:
	case NVTX_ENTRY_FLOAT:
	case NVTX_ENTRY_FLOAT32:
	case NVTX_ENTRY_CATEGORY:
		return 4;
	case NVTX_ENTRY_LONG:
	case NVTX_ENTRY_ULONG:
	case NVTX_ENTRY_LONGLONG:
	case NVTX_ENTRY_ULONGLONG:
	case NVTX_ENTRY_INT64:
	case NVTX_ENTRY_UINT64:
	case NVTX_ENTRY_DOUBLE:
	case NVTX_ENTRY_FLOAT64:
	case NVTX_ENTRY_SIZE:
	case NVTX_ENTRY_ADDRESS:
	case NVTX_ENTRY_CSTRING:
	case NVTX_ENTRY_CSTRING_UTF8:
	case NVTX_ENTRY_REGISTERED_STRING:
		return 8;
	default:
		enumeration = find_enumeration(domain, type);
		return enumeration && enumeration->bytes <= 8 ? enumeration->bytes : 0;
	}
}

static bool is_signed(uint64_t type)
{
	switch (type) {
	case NVTX_ENTRY_CHAR:
	case NVTX_ENTRY_SHORT:
	case NVTX_ENTRY_INT:
	case NVTX_ENTRY_LONG:
	case NVTX_ENTRY_LONGLONG:
	case NVTX_ENTRY_INT8:
	case NVTX_ENTRY_INT16:
	case NVTX_ENTRY_INT32:
	case NVTX_ENTRY_INT64:
		return true;
	default:
		return false;
	}
}

static void set_text(struct wire_range_field *field, struct nvtx_text *text)
{
	field->type = WIRE_RANGE_TEXT;
	field->value = nvtx_text_id(text);
}

/* A number, sign-extended from its size; or the name of a value of an enumeration. */
static void set_number(
	struct wire_range_field *field, nvtx_handle domain, uint64_t type, size_t bytes)
{
	const struct enumeration *enumeration = find_enumeration(domain, type);
	unsigned shift = 64 - 8 * (unsigned)bytes;

	field->type = is_signed(type) ? WIRE_RANGE_I64 : WIRE_RANGE_U64;
	if (is_signed(type))
		field->value = (uint64_t)((int64_t)(field->value << shift) >> shift);
	for (uint32_t i = 0; enumeration && i < enumeration->value_count; i++) {
		if (enumeration->values[i].value == field->value) {
			set_text(field, enumeration->values[i].name);
			return;
		}
	}
}

static void set_value(
	struct wire_range_field *field, nvtx_handle domain, uint64_t type, size_t bytes)
{
	double real;
	float small;

	switch (type) {
	case NVTX_ENTRY_FLOAT:
	case NVTX_ENTRY_FLOAT32:
		memcpy(&small, &field->value, sizeof(small));
		real = (double)small;
		memcpy(&field->value, &real, sizeof(real));
		__attribute__((fallthrough));
	case NVTX_ENTRY_DOUBLE:
	case NVTX_ENTRY_FLOAT64:
		field->type = WIRE_RANGE_DOUBLE;
		break;
	case NVTX_ENTRY_CSTRING:
	case NVTX_ENTRY_CSTRING_UTF8:
		set_text(field, nvtx_text_ascii((const char *)(uintptr_t)field->value));
		break;
	case NVTX_ENTRY_REGISTERED_STRING:
		set_text(field, nvtx_text_registered((void *)(uintptr_t)field->value));
		break;
	default:
		set_number(field, domain, type, bytes);
	}
}

static struct nvtx_text *message_of(uint64_t type, uint64_t value)
{
	return type == NVTX_ENTRY_REGISTERED_STRING
		       ? nvtx_text_registered((void *)(uintptr_t)value)
		       : nvtx_text_ascii((const char *)(uintptr_t)value);
}

static void read_entry(
	struct nvtx_event *event, const struct entry *entry, const struct nvtx_payload_data *data)
{
	struct wire_range_field *field = &event->fields[event->field_count];
	size_t bytes = bytes_of(event->domain, entry->type);

	if (!bytes || event->field_count == WIRE_RANGE_MAX_FIELDS ||
		(data->bytes != SIZE_MAX &&
			(entry->offset > data->bytes || bytes > data->bytes - entry->offset)))
		return;
	field->value = 0;
	memcpy(&field->value, (const char *)data->data + entry->offset, bytes);
	if (entry->is_message) {
		if (!event->name)
			event->name = message_of(entry->type, field->value);
		return;
	}
	field->name = nvtx_text_id(entry->name);
	set_value(field, event->domain, entry->type, bytes);
	event->field_count++;
}

void nvtx_payload_read(struct nvtx_event *event, const struct nvtx_payload_data *data, size_t count)
{
	for (size_t i = 0; data && i < count && i < MAX_DATA; i++) {
		const struct schema *schema = find_schema(event->domain, data[i].schema);

		for (uint32_t j = 0; schema && data[i].data && j < schema->entry_count; j++)
			read_entry(event, &schema->entries[j], &data[i]);
		if (schema && !event->name)
			event->name = schema->name;
	}
}

/* ---- registering ---- */

static bool is_message_type(uint64_t type)
{
	return type == NVTX_ENTRY_CSTRING || type == NVTX_ENTRY_CSTRING_UTF8 ||
	       type == NVTX_ENTRY_REGISTERED_STRING;
}

/*
 * Where entries lie: as they say, or after the one before as C would put them. After one of an
 * unknown size nobody knows, and entries without an offset are left out.
 */
static void take_entries(struct schema *schema, const struct nvtx_schema_attributes *from)
{
	size_t align = from->fields & NVTX_SCHEMA_HAS_ALIGN ? from->align : 0;
	uint64_t next = 0;
	bool is_known = true;

	for (size_t i = 0; i < from->entry_count; i++) {
		const struct nvtx_schema_entry *entry = &from->entries[i];
		bool is_plain = !(entry->flags & NVTX_ENTRY_FLAGS_NOT_PLAIN);
		size_t bytes = bytes_of(schema->domain, entry->type);
		size_t natural = align && align < bytes ? align : bytes;
		uint64_t offset = entry->offset;

		if (i && !offset && natural)
			offset = (next + natural - 1) / natural * natural;
		if (entry->offset || !i)
			is_known = true;
		/* An enumeration may be registered later. */
		if (is_plain && is_known && (bytes || entry->type >= NVTX_SCHEMA_FIRST_ID) &&
			schema->entry_count < WIRE_RANGE_MAX_FIELDS)
			schema->entries[schema->entry_count++] = (struct entry){
				.name = nvtx_text_ascii(entry->name),
				.type = entry->type,
				.offset = offset,
				.is_message = entry->flags & NVTX_ENTRY_FLAG_MESSAGE &&
					      is_message_type(entry->type),
			};
		is_known = is_known && is_plain && bytes;
		next = offset + bytes;
	}
}

static uint64_t schema_register(nvtx_handle domain, const struct nvtx_schema_attributes *from)
{
	struct schema *schema;
	uint32_t place;
	uint64_t id;

	if (!from || !from->entries || from->type != NVTX_SCHEMA_STATIC)
		return 0;
	id = from->fields & NVTX_SCHEMA_HAS_ID && from->id
		     ? from->id
		     : atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
	if (find_schema(domain, id)) /* by another module */
		return id;
	place = take_place(&schema_count, MAX_SCHEMAS);
	if (place == MAX_SCHEMAS)
		return 0;
	schema = &schemas[place];
	schema->id = id;
	schema->domain = domain;
	schema->name = from->fields & NVTX_SCHEMA_HAS_NAME ? nvtx_text_ascii(from->name) : NULL;
	take_entries(schema, from);
	atomic_store_explicit(&schema->is_ready, true, memory_order_release);
	return id;
}

static uint64_t enum_register(nvtx_handle domain, const struct nvtx_enum_attributes *from)
{
	struct enumeration *enumeration;
	uint32_t place;
	uint64_t id;

	if (!from || !from->entries)
		return 0;
	id = from->fields & NVTX_ENUM_HAS_ID && from->id
		     ? from->id
		     : atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
	if (find_enumeration(domain, id))
		return id;
	place = take_place(&enumeration_count, MAX_ENUMS);
	if (place == MAX_ENUMS)
		return 0;
	enumeration = &enumerations[place];
	enumeration->id = id;
	enumeration->domain = domain;
	enumeration->bytes = from->bytes;
	for (size_t i = 0; i < from->entry_count && i < MAX_VALUES; i++) {
		enumeration->values[i].name = nvtx_text_ascii(from->entries[i].name);
		enumeration->values[i].value = from->entries[i].value;
		enumeration->value_count++;
	}
	atomic_store_explicit(&enumeration->is_ready, true, memory_order_release);
	return id;
}

/* ---- events by their payload alone ---- */

static void begin(struct nvtx_event *event, nvtx_handle domain,
	const struct nvtx_payload_data *data, size_t count)
{
	event->domain = domain;
	event->name = NULL;
	event->category = 0;
	event->id = 0;
	event->field_count = 0;
	nvtx_payload_read(event, data, count);
}

static void mark(nvtx_handle domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;

	if (!nvtx_enter())
		return;
	begin(&event, domain, data, count);
	nvtx_mark(&event);
	nvtx_leave();
}

static int push(nvtx_handle domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin(&event, domain, data, count);
	level = nvtx_push(&event);
	nvtx_leave();
	return level;
}

static int pop(nvtx_handle domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin(&event, domain, data, count);
	level = nvtx_pop(&event);
	nvtx_leave();
	return level;
}

static uint64_t start(nvtx_handle domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;
	uint64_t range;

	if (!nvtx_enter())
		return 0;
	begin(&event, domain, data, count);
	range = nvtx_start(&event);
	nvtx_leave();
	return range;
}

static void end(
	nvtx_handle domain, uint64_t range, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;

	if (!range || !nvtx_enter())
		return;
	begin(&event, domain, data, count);
	event.id = range;
	nvtx_end(&event);
	nvtx_leave();
}

/* A slot that stays as it is, is a call that does nothing; of other extensions all do. */
int InitializeInjectionNvtxExtension(struct nvtx_extension *extension)
{
	static const intptr_t functions[] = {
		[NVTX_PAYLOAD_SCHEMA_REGISTER] = (intptr_t)schema_register,
		[NVTX_PAYLOAD_ENUM_REGISTER] = (intptr_t)enum_register,
		[NVTX_PAYLOAD_MARK] = (intptr_t)mark,
		[NVTX_PAYLOAD_PUSH] = (intptr_t)push,
		[NVTX_PAYLOAD_POP] = (intptr_t)pop,
		[NVTX_PAYLOAD_START] = (intptr_t)start,
		[NVTX_PAYLOAD_END] = (intptr_t)end,
	};
	const struct nvtx_extension_segment *segment;

	if (!extension || extension->bytes < offsetof(struct nvtx_extension, get_export) ||
		!nvtx_open())
		return 0;
	if (extension->module != NVTX_EXTENSION_PAYLOAD || !extension->segment_count)
		return 1;
	segment = &extension->segments[0];
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (i < segment->slot_count)
			segment->slots[i] = functions[i];
	}
	return 1;
}
