/* SPDX-License-Identifier: Apache-2.0 */
/* Reading InternedData: strings, mappings, frames and callstacks of a sequence get ids of this
 * read. */
#include <errno.h>

#include "capture/fields.h"
#include "capture/reader/state.h"

/* What an entry costs us beyond its bytes: index slots and bookkeeping. */
#define ENTRY_BYTES 48
#define IID_BYTES   8
/* Captures of a day stay far below. */
#define RETAINED_MAX ((uint64_t)1 << 30)

int reader_retain(struct reader *reader, size_t bytes)
{
	reader->retained_bytes += bytes;
	if (reader->retained_bytes > RETAINED_MAX)
		return reader_corrupt(reader, "it holds more than 1 GiB of names and stack ids");
	return 0;
}

int reader_string(struct reader *reader, struct pb_bytes bytes, uint32_t *ret_id)
{
	int added = intern_add(
		&reader->strings, bytes.at ? (const char *)bytes.at : "", bytes.length, ret_id);

	return added > 0 ? reader_retain(reader, bytes.length + ENTRY_BYTES) : added;
}

int reader_text(struct reader *reader, struct pb_bytes bytes, const char **ret_text)
{
	uint32_t id;
	int result = reader_string(reader, bytes, &id);

	if (result == 0)
		*ret_text = intern_get(&reader->strings, id);
	return result;
}

void sequence_clear(struct sequence *sequence)
{
	iid_table_clear(&sequence->function_names);
	iid_table_clear(&sequence->source_paths);
	iid_table_clear(&sequence->mapping_paths);
	iid_table_clear(&sequence->build_ids);
	iid_table_clear(&sequence->mappings);
	iid_table_clear(&sequence->frames);
	iid_table_clear(&sequence->callstacks);
	iid_table_clear(&sequence->task_iids);
	iid_table_clear(&sequence->execution_iids);
	iid_table_clear(&sequence->specifications);
	iid_table_clear(&sequence->event_categories);
	iid_table_clear(&sequence->event_names);
	iid_table_clear(&sequence->annotation_names);
	iid_table_clear(&sequence->annotation_texts);
	iid_table_clear(&sequence->contexts);
	iid_table_clear(&sequence->energy_domains);
	sequence->trace_track = 0;
	if (sequence->rows)
		row_state_clear(sequence->rows);
	array_clear(&sequence->tasks);
	array_clear(&sequence->executions);
	sequence->default_clock = CLOCK_ID_BOOTTIME;
}

void sequence_free(struct sequence *sequence)
{
	iid_table_done(&sequence->function_names);
	iid_table_done(&sequence->source_paths);
	iid_table_done(&sequence->mapping_paths);
	iid_table_done(&sequence->build_ids);
	iid_table_done(&sequence->mappings);
	iid_table_done(&sequence->frames);
	iid_table_done(&sequence->callstacks);
	iid_table_done(&sequence->task_iids);
	iid_table_done(&sequence->execution_iids);
	iid_table_done(&sequence->specifications);
	iid_table_done(&sequence->event_categories);
	iid_table_done(&sequence->event_names);
	iid_table_done(&sequence->annotation_names);
	iid_table_done(&sequence->annotation_texts);
	iid_table_done(&sequence->contexts);
	iid_table_done(&sequence->energy_domains);
	if (sequence->rows)
		row_state_done(sequence->rows);
	free(sequence->rows);
	array_done(&sequence->tasks);
	array_done(&sequence->executions);
	clocks_done(&sequence->clocks);
	free(sequence);
}

static int set_iid(struct reader *reader, struct iid_table *table, uint64_t iid, uint32_t id)
{
	int result = reader_retain(reader, IID_BYTES);

	return result < 0 ? result : iid_table_set(table, iid, id);
}

static int read_string(struct reader *reader, struct iid_table *table, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_bytes bytes = {0};
	struct pb_field field;
	uint64_t iid = 0;
	uint32_t id;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(STRING_IID))
			iid = field.value;
		else if (field.tag == PB_BYTES(STRING_BYTES))
			bytes = field.bytes;
	}
	if (more < 0)
		return more;
	result = reader_string(reader, bytes, &id);
	return result < 0 ? result : set_iid(reader, table, iid, id + 1);
}

/* The string of an iid: empty when the file does not have it. */
static struct pb_bytes string_of(
	const struct reader *reader, const struct iid_table *table, uint64_t iid)
{
	uint32_t id = iid_table_get(table, iid);
	const struct intern_entry *entry;

	if (!id)
		return (struct pb_bytes){0};
	entry = &reader->strings.entries.items[id - 1];
	return (struct pb_bytes){.at = (const uint8_t *)entry->bytes, .length = entry->length};
}

static const char *text_of(const struct reader *reader, const struct iid_table *table, uint64_t iid)
{
	return (const char *)string_of(reader, table, iid).at;
}

const char *reader_specification(
	const struct reader *reader, const struct sequence *sequence, uint64_t iid)
{
	return text_of(reader, &sequence->specifications, iid);
}

const char *reader_interned_text(
	const struct reader *reader, const struct iid_table *table, uint64_t iid)
{
	const char *text = text_of(reader, table, iid);

	return text ? text : "";
}

void reader_mapping_key(struct strbuf *key, bool verbatim, struct pb_bytes build_id,
	const char *path, size_t path_length)
{
	strbuf_clear(key);
	strbuf_add_char(key, verbatim);
	strbuf_add_char(key, (char)build_id.length);
	strbuf_add_bytes(key, build_id.at, build_id.length);
	strbuf_add_bytes(key, path, path_length);
}

struct mapping_fields {
	uint64_t iid;
	struct pb_bytes build_id;
	struct strbuf components; /* each with a slash before it */
	bool has_verbatim, verbatim, placeholder;
};

static void mapping_fields_done(struct mapping_fields *fields)
{
	strbuf_done(&fields->components);
}

static void add_component(struct mapping_fields *fields, struct pb_bytes component)
{
	if (!fields->has_verbatim && fields->components.length == 0)
		fields->verbatim = component.length && component.at[0] == '[';
	strbuf_add_char(&fields->components, '/');
	strbuf_add_bytes(&fields->components, component.at, component.length);
}

static void take_mapping_field(struct reader *reader, struct sequence *sequence,
	const struct pb_field *field, struct mapping_fields *fields)
{
	switch (field->tag) {
	case PB_VARINT(MAPPING_IID):
		fields->iid = field->value;
		break;
	case PB_VARINT(MAPPING_BUILD_ID):
		fields->build_id = string_of(reader, &sequence->build_ids, field->value);
		break;
	case PB_VARINT(MAPPING_PATH):
		add_component(fields, string_of(reader, &sequence->mapping_paths, field->value));
		break;
	case PB_VARINT(MAPPING_VERBATIM_PATH):
		fields->has_verbatim = true;
		fields->verbatim = field->value;
		break;
	case PB_VARINT(MAPPING_PLACEHOLDER):
		fields->placeholder = field->value;
		break;
	}
}

/* Finds or adds the mapping and gives the new one to the visitor. */
static int add_mapping(struct reader *reader, struct mapping_fields *fields, uint32_t *ret_id)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	const char *path = strbuf_cstr(&fields->components);
	size_t length = fields->components.length;
	struct capture_mapping mapping;
	int added;

	if (fields->verbatim && length) {
		path++;
		length--;
	}
	if (fields->build_id.length > UINT8_MAX)
		fields->build_id.length = 0;
	reader_mapping_key(&key, fields->verbatim, fields->build_id, path, length);
	if (strbuf_status(&key) < 0 || strbuf_status(&fields->components) < 0)
		return -ENOMEM;
	added = intern_add(&reader->mappings, key.data, key.length, ret_id);
	if (added <= 0)
		return added;
	if (reader_retain(reader, key.length + ENTRY_BYTES) < 0)
		return -EBADMSG;
	mapping = (struct capture_mapping){.path = path,
		.build_id = fields->build_id.length ? fields->build_id.at : NULL,
		.build_id_length = (uint8_t)fields->build_id.length};
	return reader_visit(reader, mapping, *ret_id + 1, &mapping);
}

static int read_mapping(struct reader *reader, struct sequence *sequence, struct pb_bytes message)
{
	_cleanup_(mapping_fields_done) struct mapping_fields fields = {0};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint32_t id;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0)
		take_mapping_field(reader, sequence, &field, &fields);
	/* Frames of the placeholder find no mapping, which is what they have. */
	if (more < 0 || fields.placeholder)
		return more;
	result = add_mapping(reader, &fields, &id);
	return result < 0 ? result : set_iid(reader, &sequence->mappings, fields.iid, id + 1);
}

static void take_frame_field(const struct reader *reader, const struct sequence *sequence,
	const struct pb_field *field, struct capture_frame *frame)
{
	switch (field->tag) {
	case PB_VARINT(FRAME_FUNCTION):
		frame->function = text_of(reader, &sequence->function_names, field->value);
		break;
	case PB_VARINT(FRAME_MAPPING):
		frame->mapping = iid_table_get(&sequence->mappings, field->value);
		break;
	case PB_VARINT(FRAME_REL_PC):
		frame->rel_pc = field->value;
		break;
	case PB_VARINT(FRAME_SOURCE_PATH):
		frame->source_file = text_of(reader, &sequence->source_paths, field->value);
		break;
	case PB_VARINT(FRAME_LINE):
		frame->line = (uint32_t)field->value;
		break;
	case PB_VARINT(FRAME_KIND):
		/* Kinds of other recorders (garbage collector, runtime) are native code. */
		if (field->value >= CAPTURE_FRAME_NATIVE && field->value <= CAPTURE_FRAME_JIT)
			frame->kind = (enum capture_frame_kind)field->value;
		break;
	}
}

static int read_frame(struct reader *reader, struct sequence *sequence, struct pb_bytes message)
{
	struct capture_frame frame = {.kind = CAPTURE_FRAME_NATIVE};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint64_t iid = 0;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(FRAME_IID))
			iid = field.value;
		else
			take_frame_field(reader, sequence, &field, &frame);
	}
	if (more < 0)
		return more;
	result = set_iid(reader, &sequence->frames, iid, ++reader->frame_count);
	if (result < 0)
		return result;
	return reader_visit(reader, frame, reader->frame_count, &frame);
}

static int add_frame_id(struct reader *reader, const struct sequence *sequence, uint64_t iid)
{
	capture_id id = iid_table_get(&sequence->frames, iid);

	if (!id)
		reader->lacks_state = true;
	return array_append(&reader->frame_ids, id);
}

static int add_packed_frame_ids(
	struct reader *reader, const struct sequence *sequence, struct pb_bytes packed)
{
	struct pb_cursor cursor = pb_cursor(packed);
	uint64_t iid;

	while (cursor.at < cursor.end) {
		int result = pb_read_varint(&cursor, &iid);

		if (result > 0)
			result = add_frame_id(reader, sequence, iid);
		if (result < 0)
			return result;
	}
	return 0;
}

static int add_callstack(struct reader *reader, struct sequence *sequence, uint64_t iid,
	enum wire_stop stop, enum wire_python python)
{
	int result = set_iid(reader, &sequence->callstacks, iid, ++reader->callstack_count);

	if (result < 0)
		return result;
	return reader_visit(reader, callstack, reader->callstack_count, reader->frame_ids.items,
		reader->frame_ids.count, stop, python);
}

static int read_callstack(struct reader *reader, struct sequence *sequence, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	enum wire_stop stop = WIRE_STOP_COMPLETE;
	enum wire_python python = WIRE_PYTHON_NONE;
	bool lacked_before = reader->lacks_state;
	struct pb_field field;
	uint64_t iid = 0;
	int more, result = 0;

	array_clear(&reader->frame_ids);
	reader->lacks_state = false;
	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(CALLSTACK_FRAMES))
			result = add_frame_id(reader, sequence, field.value);
		else if (field.tag == PB_BYTES(CALLSTACK_FRAMES))
			result = add_packed_frame_ids(reader, sequence, field.bytes);
		else if (field.tag == PB_VARINT(CALLSTACK_IID))
			iid = field.value;
		else if (field.tag == PB_VARINT(CALLSTACK_STOP) && field.value < WIRE_STOP_MAX)
			stop = (enum wire_stop)field.value;
		else if (field.tag == PB_VARINT(CALLSTACK_PYTHON) && field.value < WIRE_PYTHON_MAX)
			python = (enum wire_python)field.value;
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	/* A stack with holes would be a wrong stack: samples that name it are skipped. */
	if (!reader->lacks_state)
		result = add_callstack(reader, sequence, iid, stop, python);
	reader->lacks_state |= lacked_before;
	return result;
}

static int read_context(
	struct reader *reader, struct sequence *sequence, struct pb_bytes message, bool is_task)
{
	struct sample_context context = {0};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint64_t iid = 0;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(TASK_IID))
			iid = field.value;
		else if (field.tag == PB_VARINT(TASK_PID))
			context.first = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(TASK_TID))
			context.second = (uint32_t)field.value;
	}
	if (more < 0)
		return more;
	result = reader_retain(reader, sizeof(context));
	if (result < 0)
		return result;
	if (is_task) {
		result = array_append(&sequence->tasks, context);
		return result < 0 ? result
				  : set_iid(reader, &sequence->task_iids, iid,
					    (uint32_t)sequence->tasks.count);
	}
	result = array_append(&sequence->executions, context);
	return result < 0 ? result
			  : set_iid(reader, &sequence->execution_iids, iid,
				    (uint32_t)sequence->executions.count);
}

/* Strings and what refers to nothing. Entries of the later passes are noted in *ret_later. */
static int first_pass(struct reader *reader, struct sequence *sequence,
	const struct pb_field *field, bool *ret_later)
{
	switch (field->tag) {
	case PB_BYTES(INTERNED_FUNCTION_NAMES):
		return read_string(reader, &sequence->function_names, field->bytes);
	case PB_BYTES(INTERNED_SOURCE_PATHS):
		return read_string(reader, &sequence->source_paths, field->bytes);
	case PB_BYTES(INTERNED_MAPPING_PATHS):
		return read_string(reader, &sequence->mapping_paths, field->bytes);
	case PB_BYTES(INTERNED_SPECIFICATIONS): /* the same field numbers */
		return read_string(reader, &sequence->specifications, field->bytes);
	case PB_BYTES(INTERNED_EVENT_CATEGORIES):
		return read_string(reader, &sequence->event_categories, field->bytes);
	case PB_BYTES(INTERNED_EVENT_NAMES):
		return read_string(reader, &sequence->event_names, field->bytes);
	case PB_BYTES(INTERNED_ANNOTATION_NAMES):
		return read_string(reader, &sequence->annotation_names, field->bytes);
	case PB_BYTES(INTERNED_CONTEXTS):
		return reader_graphics_context(reader, sequence, field->bytes);
	case PB_BYTES(INTERNED_ANNOTATION_TEXTS):
		return read_string(reader, &sequence->annotation_texts, field->bytes);
	case PB_BYTES(INTERNED_BUILD_IDS):
		return read_string(reader, &sequence->build_ids, field->bytes);
	case PB_BYTES(INTERNED_TASK_CONTEXTS):
		return read_context(reader, sequence, field->bytes, true);
	case PB_BYTES(INTERNED_EXECUTION_CONTEXTS):
		return read_context(reader, sequence, field->bytes, false);
	default:
		*ret_later = true;
		return 0;
	}
}

typedef int entry_function(
	struct reader *reader, struct sequence *sequence, struct pb_bytes message);

static int read_list(struct reader *reader, struct sequence *sequence, struct pb_bytes data,
	uint32_t tag, entry_function *read_entry)
{
	struct pb_cursor cursor = pb_cursor(data);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		int result = field.tag == tag ? read_entry(reader, sequence, field.bytes) : 0;

		if (result < 0)
			return result;
	}
	return more;
}

int reader_interned_data(struct reader *reader, struct sequence *sequence, struct pb_bytes data)
{
	struct pb_cursor cursor = pb_cursor(data);
	struct pb_field field;
	bool later = false;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = first_pass(reader, sequence, &field, &later);
	if (result < 0 || more < 0 || !later)
		return result < 0 ? result : more;
	/* The lists may stand in any order; what is referred to is read first. */
	result = read_list(reader, sequence, data, PB_BYTES(INTERNED_MAPPINGS), read_mapping);
	if (result == 0)
		result = read_list(reader, sequence, data, PB_BYTES(INTERNED_FRAMES), read_frame);
	if (result == 0)
		result = read_list(
			reader, sequence, data, PB_BYTES(INTERNED_CALLSTACKS), read_callstack);
	return result;
}
