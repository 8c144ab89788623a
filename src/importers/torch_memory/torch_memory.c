/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of PyTorch's allocator (torch.cuda.memory._dump_snapshot(), and the same as JSON):
 * segments with their blocks, and for each device a history of allocations and releases with their
 * stacks. A row for each, as "[memory]" of a trace; what was allocated before the history begins
 * stands at its begin.
 */
#include "importers/torch_memory/torch_memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "importers/importers.h"

#define MOST_DEVICES 1024

/* ---- texts ---- */

static int add_plain(struct strbuf *out, const struct value *text, size_t most)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	if (text->type != VALUE_TEXT)
		return 0;
	if (text->text.escaped) {
		json_text_unescape(&plain, &text->text);
		if (strbuf_status(&plain) < 0)
			return -ENOMEM;
		strbuf_add_bytes(out, strbuf_cstr(&plain), MIN(plain.length, most));
	} else {
		strbuf_add_bytes(out, text->text.bytes, MIN(text->text.length, most));
	}
	return strbuf_status(out);
}

/* "name (file:line)"; frames without a file are native ones. */
static int add_frame(struct snapshot *snapshot, struct strbuf *out, const struct value *frame)
{
	const struct value name = value_member(&snapshot->document, frame, "name");
	const struct value file = value_member(&snapshot->document, frame, "filename");
	const struct value line = value_member(&snapshot->document, frame, "line");
	size_t begin = out->length;
	int r = add_plain(out, &name, SNAPSHOT_FRAME_BYTES);

	if (r == 0 && file.type == VALUE_TEXT && file.text.length && !value_is(&file, "??")) {
		strbuf_add(out, " (");
		r = add_plain(out, &file, SNAPSHOT_FRAME_BYTES);
		if (value_number(&line, 0) > 0)
			strbuf_addf(out, ":%lld", (long long)line.number);
		strbuf_add_char(out, ')');
	}
	for (size_t i = begin; r == 0 && i < out->length; i++) {
		if (out->data[i] == TRACE_STACK_SEPARATOR)
			out->data[i] = ',';
	}
	return r;
}

/* Frames come innermost first; stacks are written outermost first. */
static int write_stack(struct snapshot *snapshot, const struct value *frames, uint32_t *ret_others)
{
	_cleanup_strbuf_ struct strbuf stack = {0}, argument = {0};
	size_t count = MIN(value_count(&snapshot->document, frames), (size_t)SNAPSHOT_FRAMES);
	int r = 0;

	for (size_t i = count; r == 0 && i-- > 0;) {
		const struct value frame = value_item(&snapshot->document, frames, i);

		if (stack.length)
			strbuf_add_char(&stack, TRACE_STACK_SEPARATOR);
		r = add_frame(snapshot, &stack, &frame);
	}
	if (r < 0 || !stack.length)
		return r;
	strbuf_add(&argument, "\"" TRACE_STACK "\":\"");
	json_escape(&argument, stack.data, stack.length);
	strbuf_add_char(&argument, '"');
	r = strbuf_status(&argument);
	return r < 0 ? r
		     : import_rows_text(
			       &snapshot->rows, argument.data, argument.length, ret_others);
}

/* A pickle has each list of frames once, however many blocks have it. */
int snapshot_stack(struct snapshot *snapshot, const struct value *frames, uint32_t *ret_others)
{
	uint64_t known;
	int r;

	*ret_others = 0;
	if (!value_count(&snapshot->document, frames))
		return 0;
	if (map_u64_get(&snapshot->stacks, frames->container, &known)) {
		*ret_others = (uint32_t)known;
		return 0;
	}
	r = write_stack(snapshot, frames, ret_others);
	return r < 0 ? r : map_u64_set(&snapshot->stacks, frames->container, *ret_others);
}

/* ---- blocks ---- */

static struct value frames_of_block(struct snapshot *snapshot, const struct value *block)
{
	struct value frames = value_member(&snapshot->document, block, "frames");
	struct value history = value_member(&snapshot->document, block, "history");

	if (frames.type == VALUE_LIST || !value_count(&snapshot->document, &history))
		return frames;
	history = value_item(&snapshot->document, &history, 0); /* of PyTorch 2.0 */
	return value_member(&snapshot->document, &history, "frames");
}

static int add_block(struct snapshot *snapshot, struct snapshot_device *device,
	const struct value *block, uint64_t address)
{
	const struct value state = value_member(&snapshot->document, block, "state");
	const struct value size = value_member(&snapshot->document, block, "size");
	const struct value asked = value_member(&snapshot->document, block, "requested_size");
	const struct value frames = frames_of_block(snapshot, block);
	int64_t bytes = value_number(&size, 0);
	struct snapshot_block held = {.address = address};
	int r;

	if (state.type != VALUE_TEXT || bytes < 0 || bytes > SNAPSHOT_MOST_BYTES)
		return 0;
	if (value_is(&state, "inactive")) {
		device->pool.free_blocks++;
		device->pool.free_bytes += bytes;
		device->pool.largest_free = MAX(device->pool.largest_free, bytes);
		return 0;
	}
	held.bytes = value_number(&asked, 0) > 0 ? MIN(asked.number, bytes) : bytes;
	device->pool.active_bytes += bytes;
	r = snapshot_stack(snapshot, &frames, &held.others);
	return r < 0 ? r : array_append(&device->blocks, held);
}

/* Blocks follow one another from the segment's address on, where they do not say theirs. */
static int add_segment(struct snapshot *snapshot, const struct value *segment)
{
	const struct value number = value_member(&snapshot->document, segment, "device");
	const struct value total = value_member(&snapshot->document, segment, "total_size");
	const struct value start = value_member(&snapshot->document, segment, "address");
	const struct value blocks = value_member(&snapshot->document, segment, "blocks");
	size_t count = value_count(&snapshot->document, &blocks);
	uint64_t address = (uint64_t)value_number(&start, 0);
	struct snapshot_device *device = NULL;
	int r = snapshot_find_device(snapshot, value_number(&number, 0), &device);

	if (r < 0 || !device)
		return r;
	device->pool.segments++;
	device->pool.reserved_bytes +=
		MIN(MAX(value_number(&total, 0), (int64_t)0), SNAPSHOT_MOST_BYTES);
	for (size_t i = 0; r == 0 && i < count && snapshot->visits; i++) {
		const struct value block = value_item(&snapshot->document, &blocks, i);
		const struct value own = value_member(&snapshot->document, &block, "address");
		const struct value size = value_member(&snapshot->document, &block, "size");

		snapshot->visits--;
		if (own.type == VALUE_NUMBER)
			address = (uint64_t)own.number;
		r = add_block(snapshot, device, &block, address);
		address += (uint64_t)value_number(&size, 0);
	}
	return r;
}

int snapshot_find_device(
	struct snapshot *snapshot, int64_t number, struct snapshot_device **ret_device)
{
	int r = 0;

	number = number >= 0 && number < MOST_DEVICES ? number : 0;
	while (r == 0 && snapshot->devices.count <= (size_t)number) {
		const struct snapshot_device device = {.number = (int64_t)snapshot->devices.count};

		r = array_append(&snapshot->devices, device);
	}
	if (r == 0)
		*ret_device = &snapshot->devices.items[number];
	return r;
}

static int read_segments(struct snapshot *snapshot)
{
	const struct value segments =
		value_member(&snapshot->document, &snapshot->document.root, "segments");
	size_t count = value_count(&snapshot->document, &segments);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count && snapshot->visits; i++) {
		const struct value segment = value_item(&snapshot->document, &segments, i);

		snapshot->visits--;
		r = add_segment(snapshot, &segment);
	}
	return r;
}

/* ---- what is free ---- */

/* Free memory in pieces that no large allocation fits in is what fragmentation is. */
static int note_pools(struct snapshot *snapshot)
{
	int r = 0;

	array_foreach (&snapshot->devices, device) {
		const struct snapshot_pool *pool = &device->pool;

		if (r < 0 || !pool->segments)
			continue;
		r = import_rows_note(&snapshot->rows,
			"when the snapshot of GPU %lld was taken, %.2f MiB of %.2f MiB that were "
			"reserved were free inside %llu segments: in %llu blocks, the largest "
			"%.2f MiB",
			(long long)device->number, (double)pool->free_bytes / 1048576,
			(double)pool->reserved_bytes / 1048576, (unsigned long long)pool->segments,
			(unsigned long long)pool->free_blocks,
			(double)pool->largest_free / 1048576);
	}
	return r;
}

/* ---- the file ---- */

static bool is_pickle(const struct strbuf *bytes)
{
	return bytes->length >= 2 && (unsigned char)bytes->data[0] == 0x80 && bytes->data[1] >= 2 &&
	       bytes->data[1] <= 5;
}

static int read_document(struct snapshot *snapshot, const char *path, struct errmsg *err)
{
	const struct strbuf *bytes = &snapshot->bytes;
	int r;

	if (is_pickle(bytes))
		r = value_read_pickle(&snapshot->document, bytes->data, bytes->length);
	else
		r = value_read_json(&snapshot->document, strbuf_cstr(bytes), bytes->length);
	if (r == -EPERM)
		return errmsg_set(err, -EINVAL,
			"cannot read %s: the pickle would import or call something, which a "
			"snapshot of PyTorch's memory does not; sonde runs nothing of a file",
			path);
	if (r == -EBADMSG)
		return errmsg_set(err, r,
			"cannot read %s: the snapshot is damaged or cut off; write it again with "
			"torch.cuda.memory._dump_snapshot()",
			path);
	return r;
}

static void snapshot_done(struct snapshot *snapshot)
{
	array_foreach (&snapshot->devices, device)
		array_done(&device->blocks);
	array_done(&snapshot->devices);
	map_u64_done(&snapshot->stacks);
	value_document_done(&snapshot->document);
	import_rows_done(&snapshot->rows);
	strbuf_done(&snapshot->bytes);
}

static int torch_memory_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_(snapshot_done) struct snapshot snapshot = {0};
	bool truncated;
	int r = import_read_file(path, options, &snapshot.bytes, &truncated, err);

	if (r == 0)
		r = import_rows_init(&snapshot.rows, path, options);
	snapshot.document.max_bytes = import_max_bytes(options);
	snapshot.visits = 4 * snapshot.bytes.length + 1000;
	if (r == 0) {
		r = read_document(&snapshot, path, err);
		if (r == -EINVAL || r == -EBADMSG)
			return r;
	} else if (!snapshot.rows.trace) {
		return r == -ENOMEM ? errmsg_set(err, r, "cannot read %s: out of memory", path) : r;
	}
	if (r == 0)
		r = read_segments(&snapshot);
	if (r == 0)
		r = snapshot_read_history(&snapshot);
	if (r == 0)
		r = note_pools(&snapshot);
	if (r == 0)
		snapshot.rows.trace->damage.truncated = truncated || !snapshot.visits;
	return import_rows_finish(&snapshot.rows, r,
		"no block that is in use and no history of allocations is in it, which a snapshot "
		"of PyTorch's memory would have: call torch.cuda.memory._record_memory_history() "
		"before what it should show",
		ret_trace, err);
}

/* A pickled dict whose keys are those of snapshots, or the same in JSON. */
static bool torch_memory_knows(const char *head, size_t length)
{
	bool pickled;

	assert(head);
	pickled = length >= 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
	if (!pickled && !import_is_json(head, length))
		return false;
	if (pickled)
		return memmem(head, length, "segments", 8) ||
		       memmem(head, length, "device_traces", 13);
	return memmem(head, length, "\"segments\"", 10) &&
	       (memmem(head, length, "\"total_size\"", 12) ||
		       memmem(head, length, "\"device_traces\"", 15));
}

static const char *const endings[] = {".pickle", ".pkl", NULL};

const struct importer torch_memory_importer = {
	.name = "torch-memory",
	.description = "snapshots of PyTorch's memory, pickled or as JSON",
	.endings = endings,
	.knows = torch_memory_knows,
	.read = torch_memory_read,
};
