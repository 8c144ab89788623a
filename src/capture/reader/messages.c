/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the messages that a capture has few of: session, account, processes, threads, symbols. */
#include <errno.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/reader/state.h"

struct texts {
	ARRAY_OF(const char *) list;
};

static void texts_done(struct texts *texts)
{
	array_done(&texts->list);
}

static int texts_add(struct reader *reader, struct texts *texts, struct pb_bytes bytes)
{
	const char *text;
	int result = reader_text(reader, bytes, &text);

	return result < 0 ? result : array_append(&texts->list, text);
}

static int take_session_number(const struct pb_field *field, struct capture_session *session)
{
	switch (field->tag) {
	case PB_VARINT(SESSION_START):
		session->start_time_ns = field->value;
		break;
	case PB_VARINT(SESSION_REALTIME):
		session->start_realtime_ns = field->value;
		break;
	case PB_VARINT(SESSION_BOOTTIME):
		session->start_boottime_ns = field->value;
		break;
	case PB_VARINT(SESSION_PERIOD):
		session->period_ns = field->value;
		break;
	case PB_VARINT(SESSION_WAIT_PERIOD):
		session->wait_period_ns = field->value;
		break;
	case PB_VARINT(SESSION_WAIT_MIN):
		session->wait_min_ns = field->value;
		break;
	case PB_VARINT(SESSION_CPUS):
		session->cpu_count = (uint32_t)field->value;
		break;
	case PB_VARINT(SESSION_CLOCK_SHIFT):
		session->clock.shift_ns = (int64_t)field->value;
		break;
	case PB_FIXED64(SESSION_CLOCK_DRIFT):
		memcpy(&session->clock.drift, &field->value, sizeof(session->clock.drift));
		break;
	case PB_VARINT(SESSION_CLOCK_DRIFT_FROM):
		session->clock.drift_from_ns = field->value;
		break;
	case PB_VARINT(SESSION_CLOCK_ERROR):
		session->clock.error_ns = field->value;
		break;
	case PB_VARINT(SESSION_CLOCK_SOURCE):
		if (field->value < CAPTURE_CLOCK_MAX)
			session->clock.source = (enum capture_clock_source)field->value;
		break;
	case PB_VARINT(SESSION_WHOLE_MACHINE):
		session->whole_machine = field->value != 0;
		break;
	}
	return 0;
}

static int take_session_field(struct reader *reader, const struct pb_field *field,
	struct capture_session *session, struct texts *command)
{
	switch (field->tag) {
	case PB_BYTES(SESSION_VERSION):
		return reader_text(reader, field->bytes, &session->sonde_version);
	case PB_BYTES(SESSION_HOST):
		return reader_text(reader, field->bytes, &session->host);
	case PB_BYTES(SESSION_KERNEL):
		return reader_text(reader, field->bytes, &session->kernel_release);
	case PB_BYTES(SESSION_ARCHITECTURE):
		return reader_text(reader, field->bytes, &session->architecture);
	case PB_BYTES(SESSION_COMMAND):
		return texts_add(reader, command, field->bytes);
	case PB_BYTES(SESSION_UNWIND_MODE):
		return reader_text(reader, field->bytes, &session->unwind_mode);
	case PB_BYTES(SESSION_WAIT_MODE):
		return reader_text(reader, field->bytes, &session->wait_mode);
	case PB_BYTES(SESSION_LAUNCH_STACKS):
		return reader_text(reader, field->bytes, &session->launch_stacks);
	case PB_BYTES(SESSION_UNWIND_REASON):
		return reader_text(reader, field->bytes, &session->unwind_mode_reason);
	case PB_BYTES(SESSION_FILE):
		return reader_text(reader, field->bytes, &session->file);
	default:
		return take_session_number(field, session);
	}
}

int reader_session(struct reader *reader, struct pb_bytes message)
{
	_cleanup_(texts_done) struct texts command = {0};
	struct capture_session session = {.sonde_version = "",
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "",
		.clock.error_ns = UINT64_MAX};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	reader->is_ours = true;
	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = take_session_field(reader, &field, &session, &command);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	session.command = command.list.items;
	session.command_count = (uint32_t)command.list.count;
	return reader_visit(reader, session, &session);
}

struct stats_fields {
	struct capture_stats stats;
	ARRAY_OF(struct capture_loss) losses;
	struct texts notes;
};

static void stats_fields_done(struct stats_fields *fields)
{
	array_done(&fields->losses);
	texts_done(&fields->notes);
}

/* One reason and how many stacks have it. */
static int read_count(struct pb_bytes message, uint64_t *stacks_by_reason, uint32_t reason_count)
{
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t reason = 0, stacks = 0;
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(STOP_REASON))
			reason = field.value;
		else if (field.tag == PB_VARINT(STOP_STACKS))
			stacks = field.value;
	}
	if (more == 0 && reason < reason_count)
		stacks_by_reason[reason] = stacks;
	return more;
}

static int read_loss(struct reader *reader, struct pb_bytes message, struct stats_fields *fields)
{
	struct capture_loss loss = {.where = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(LOSS_WHERE))
			result = reader_text(reader, field.bytes, &loss.where);
		else if (field.tag == PB_VARINT(LOSS_CPU))
			loss.cpu = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(LOSS_COUNT))
			loss.count = field.value;
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return array_append(&fields->losses, loss);
}

/* Numbers in the order of a struct's fields, from field 1 on. */
static int read_numbers(struct pb_bytes message, uint64_t *ret_values, uint32_t count)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		uint32_t at = (field.tag >> 3) - 1;

		if ((field.tag & 7) == PB_WIRE_VARINT && at < count)
			ret_values[at] = field.value;
	}
	return more;
}

static int read_device_stats(struct pb_bytes message, struct capture_device_stats *ret_device)
{
	uint64_t values[CAPTURE_DEVICE_STATS] = {0};
	int result = read_numbers(message, values, CAPTURE_DEVICE_STATS);

	memcpy(ret_device, values, sizeof(values));
	return result;
}

static int read_range_stats(struct pb_bytes message, struct capture_range_stats *ret_ranges)
{
	uint64_t values[CAPTURE_RANGE_STATS] = {0};
	int result = read_numbers(message, values, CAPTURE_RANGE_STATS);

	memcpy(ret_ranges, values, sizeof(values));
	return result;
}

/* Where a plain number of the message goes; NULL for another field. */
static uint64_t *stats_number(struct capture_stats *stats, uint32_t tag)
{
	switch (tag) {
	case PB_VARINT(STATS_END):
		return &stats->end_time_ns;
	case PB_VARINT(STATS_SAMPLES):
		return &stats->samples;
	case PB_VARINT(STATS_SAMPLES_LOST):
		return &stats->samples_lost;
	case PB_VARINT(STATS_USER_FRAMES):
		return &stats->user_frames;
	case PB_VARINT(STATS_KERNEL_FRAMES):
		return &stats->kernel_frames;
	case PB_VARINT(STATS_BPF_RUNS):
		return &stats->bpf_run_count;
	case PB_VARINT(STATS_BPF_TIME):
		return &stats->bpf_run_time_ns;
	case PB_VARINT(STATS_USER_UNWOUND):
		return &stats->stacks_unwound_in_user_space;
	case PB_VARINT(STATS_CPU_TIME):
		return &stats->collector_cpu_ns;
	case PB_VARINT(STATS_PEAK_RSS):
		return &stats->collector_peak_rss_bytes;
	case PB_VARINT(STATS_TABLES_BUILT):
		return &stats->tables_built;
	case PB_VARINT(STATS_TABLES_CACHED):
		return &stats->tables_from_cache;
	case PB_VARINT(STATS_TABLE_TIME):
		return &stats->table_build_ns;
	case PB_VARINT(STATS_BYTES_WRITTEN):
		return &stats->bytes_written;
	case PB_VARINT(STATS_PYTHON_FRAMES):
		return &stats->python_frames;
	case PB_VARINT(STATS_WAIT_SAMPLES):
		return &stats->wait_samples;
	case PB_VARINT(STATS_WAITED):
		return &stats->waited_ns;
	case PB_VARINT(STATS_WAIT_RUNS):
		return &stats->wait_run_count;
	case PB_VARINT(STATS_WAIT_TIME):
		return &stats->wait_run_time_ns;
	case PB_VARINT(STATS_START_CPU_TIME):
		return &stats->collector_start_cpu_ns;
	case PB_VARINT(STATS_END_CPU_TIME):
		return &stats->collector_end_cpu_ns;
	default:
		return NULL;
	}
}

static int take_stats_field(
	struct reader *reader, const struct pb_field *field, struct stats_fields *fields)
{
	uint64_t *number = stats_number(&fields->stats, field->tag);

	if (number)
		*number = field->value;
	switch (field->tag) {
	case PB_BYTES(STATS_BY_STOP):
		return read_count(field->bytes, fields->stats.stacks_by_stop, WIRE_STOP_MAX);
	case PB_BYTES(STATS_BY_PYTHON):
		return read_count(field->bytes, fields->stats.stacks_by_python, WIRE_PYTHON_MAX);
	case PB_BYTES(STATS_DEVICE):
		return read_device_stats(field->bytes, &fields->stats.device);
	case PB_BYTES(STATS_RANGES):
		return read_range_stats(field->bytes, &fields->stats.ranges);
	case PB_BYTES(STATS_LOSSES):
		return read_loss(reader, field->bytes, fields);
	case PB_BYTES(STATS_NOTES):
		return texts_add(reader, &fields->notes, field->bytes);
	case PB_VARINT(STATS_EXIT_STATUS):
		fields->stats.exit_status = (int32_t)field->value;
		return 0;
	case PB_VARINT(STATS_COMPLETE):
		fields->stats.complete = field->value;
		return 0;
	default:
		return 0;
	}
}

int reader_stats(struct reader *reader, struct pb_bytes message)
{
	_cleanup_(stats_fields_done) struct stats_fields fields = {.stats = {.exit_status = -1}};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = take_stats_field(reader, &field, &fields);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	fields.stats.losses = fields.losses.items;
	fields.stats.loss_count = (uint32_t)fields.losses.count;
	fields.stats.notes = fields.notes.list.items;
	fields.stats.note_count = (uint32_t)fields.notes.list.count;
	return reader_visit(reader, stats, &fields.stats);
}

static int take_process_field(struct reader *reader, const struct pb_field *field,
	struct capture_process *process, struct texts *cmdline)
{
	switch (field->tag) {
	case PB_VARINT(PROCESS_PID):
		process->pid = (uint32_t)field->value;
		return 0;
	case PB_BYTES(PROCESS_CMDLINE):
		return texts_add(reader, cmdline, field->bytes);
	case PB_BYTES(PROCESS_NAME):
		return reader_text(reader, field->bytes, &process->name);
	case PB_VARINT(PROCESS_START_TIME):
		process->start_time_ns = field->value;
		return 0;
	default:
		return 0;
	}
}

static int read_process_info(
	struct reader *reader, struct pb_bytes message, struct capture_process *process)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		process->has_rank |= field.tag == PB_VARINT(PROCESS_INFO_RANK);
		if (field.tag == PB_VARINT(PROCESS_INFO_PARENT))
			process->parent_pid = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(PROCESS_INFO_WORLD_SIZE))
			process->world_size = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(PROCESS_INFO_RANK))
			process->rank = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(PROCESS_INFO_CGROUP))
			result = reader_text(reader, field.bytes, &process->cgroup);
	}
	return result < 0 ? result : more;
}

static int read_process(
	struct reader *reader, struct pb_bytes message, struct pb_bytes process_info)
{
	_cleanup_(texts_done) struct texts cmdline = {0};
	struct capture_process process = {.name = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0)
		result = take_process_field(reader, &field, &process, &cmdline);
	if (result == 0 && more == 0)
		result = read_process_info(reader, process_info, &process);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	process.cmdline = cmdline.list.items;
	process.cmdline_count = (uint32_t)cmdline.list.count;
	return reader_visit(reader, process, &process);
}

static int read_thread(struct reader *reader, struct pb_bytes message)
{
	struct capture_thread thread = {.name = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(THREAD_PID))
			thread.pid = (uint32_t)field.value;
		else if (field.tag == PB_VARINT(THREAD_TID))
			thread.tid = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(THREAD_NAME))
			result = reader_text(reader, field.bytes, &thread.name);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_visit(reader, thread, &thread);
}

int reader_track(struct reader *reader, struct pb_bytes track, struct pb_bytes process_info)
{
	struct pb_cursor cursor = pb_cursor(track);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(TRACK_PROCESS))
			result = read_process(reader, field.bytes, process_info);
		else if (field.tag == PB_BYTES(TRACK_THREAD))
			result = read_thread(reader, field.bytes);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_event_track(reader, track);
}

struct symbol_lines {
	ARRAY_OF(struct capture_symbol_line) list;
};

static void symbol_lines_done(struct symbol_lines *lines)
{
	array_done(&lines->list);
}

static int read_line(struct reader *reader, struct pb_bytes message, struct symbol_lines *lines)
{
	struct capture_symbol_line line = {.function = ""};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(LINE_FUNCTION))
			result = reader_text(reader, field.bytes, &line.function);
		else if (field.tag == PB_BYTES(LINE_FILE))
			result = reader_text(reader, field.bytes, &line.file);
		else if (field.tag == PB_VARINT(LINE_NUMBER))
			line.line = (uint32_t)field.value;
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return array_append(&lines->list, line);
}

static int read_address(struct reader *reader, struct pb_bytes message, capture_id mapping)
{
	_cleanup_(symbol_lines_done) struct symbol_lines lines = {0};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	uint64_t address = 0;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(ADDRESS_VALUE))
			address = field.value;
		else if (field.tag == PB_BYTES(ADDRESS_LINES))
			result = read_line(reader, field.bytes, &lines);
	}
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	return reader_visit(reader, symbols, mapping, address, lines.list.items, lines.list.count);
}

static int read_addresses(struct reader *reader, struct pb_bytes module, capture_id mapping)
{
	struct pb_cursor cursor = pb_cursor(module);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_BYTES(MODULE_ADDRESSES))
			result = read_address(reader, field.bytes, mapping);
	}
	return result < 0 ? result : more;
}

/* Symbols for one of the two mappings that Perfetto would call `path`, when the file has it. */
static int read_symbols_of(struct reader *reader, struct pb_bytes module, bool verbatim,
	struct pb_bytes path, struct pb_bytes build_id)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t id;

	if (verbatim && path.length) {
		path.at++;
		path.length--;
	}
	reader_mapping_key(&key, verbatim, build_id, (const char *)path.at, path.length);
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	if (!intern_find(&reader->mappings, key.data, key.length, &id))
		return 0;
	return read_addresses(reader, module, id + 1);
}

int reader_module_symbols(struct reader *reader, struct pb_bytes message)
{
	struct pb_bytes path = {0}, build_id = {0};
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_BYTES(MODULE_PATH))
			path = field.bytes;
		else if (field.tag == PB_BYTES(MODULE_BUILD_ID))
			build_id = field.bytes;
	}
	if (more < 0)
		return more;
	if (path.length == 0 && build_id.length == 0)
		return read_addresses(reader, message, 0);
	result = read_symbols_of(reader, message, false, path, build_id);
	return result < 0 ? result : read_symbols_of(reader, message, true, path, build_id);
}
