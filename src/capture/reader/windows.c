/* SPDX-License-Identifier: Apache-2.0 */
/* Reading windows and steps. */
#include "capture/fields.h"
#include "capture/reader/state.h"

static void take_window_number(const struct pb_field *field, struct capture_window *window)
{
	switch (field->tag) {
	case PB_VARINT(WINDOW_NUMBER):
		window->number = (uint32_t)field->value;
		break;
	case PB_VARINT(WINDOW_BEGIN):
		window->begin_ns = field->value;
		break;
	case PB_VARINT(WINDOW_END):
		window->end_ns = field->value;
		break;
	case PB_VARINT(WINDOW_FIRST_STEP):
		window->first_step = field->value;
		break;
	case PB_VARINT(WINDOW_LAST_STEP):
		window->last_step = field->value;
		break;
	case PB_VARINT(WINDOW_OPENED_BY):
		window->opened_by = field->value < CAPTURE_TRIGGER_MAX ? (uint32_t)field->value : 0;
		break;
	case PB_VARINT(WINDOW_CLOSED_BY):
		window->closed_by = field->value < CAPTURE_REASON_MAX ? (uint32_t)field->value : 0;
		break;
	case PB_VARINT(WINDOW_LEADER):
		window->leader_pid = (uint32_t)field->value;
		break;
	}
}

int reader_window(struct reader *reader, struct pb_bytes message)
{
	struct capture_window window = {.first_step = 1, .label = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(WINDOW_LABEL))
			result = reader_text(reader, field.bytes, &window.label);
		else
			take_window_number(&field, &window);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	if (window.end_ns && window.end_ns < window.begin_ns)
		return reader_corrupt(reader, "a window ends before it begins");
	return reader_visit(reader, window, &window);
}

int reader_step(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message)
{
	struct capture_step step = {.time_ns = time_ns, .name = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(STEP_PID))
			step.pid = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(STEP_TID))
			step.tid = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(STEP_NUMBER))
			step.number = field.value;
		else if (field.tag == PB_VARINT(STEP_NAME_IID))
			step.name =
				reader_interned_text(reader, &sequence->event_names, field.value);
	}
	return more < 0 ? more : reader_visit(reader, step, &step);
}
