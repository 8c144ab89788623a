/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what is interned, and the symbols that come for it later. */
#include <assert.h>

#include "capture/fields.h"
#include "capture/protobuf.h"
#include "capture/writer/state.h"

/* Was the thing with this id, one of `table`'s, new to a writer without a file? */
static bool is_news(struct capture_writer *writer, const struct intern *table, size_t count_before)
{
	if (!writer->visitor)
		return false;
	strbuf_clear(&writer->interning.pending);
	return table->entries.count > count_before;
}

int capture_writer_mapping(
	struct capture_writer *writer, const struct capture_mapping *mapping, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.mappings;
	size_t before = table->entries.count;
	int result = interning_mapping(&writer->interning, mapping, ret_id);

	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->mapping(writer->visitor_context, *ret_id, mapping);
	return result;
}

int capture_writer_frame(
	struct capture_writer *writer, const struct capture_frame *frame, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.frames;
	size_t before = table->entries.count;
	int result = interning_frame(&writer->interning, frame, ret_id);

	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->frame(writer->visitor_context, *ret_id, frame);
	return result;
}

int capture_writer_callstack(struct capture_writer *writer, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, capture_id *ret_id)
{
	const struct intern *table = &writer->interning.callstacks;
	size_t before = table->entries.count;
	int result = interning_callstack(&writer->interning, frames, count, stop, python, ret_id);

	if (result == 0)
		*ret_id += writer->callstack_base;
	if (result == 0 && !writer->visitor)
		result = sampled_interned(&writer->sampled, *ret_id, frames, count);
	if (result == 0 && is_news(writer, table, before))
		result = writer->visitor->callstack(
			writer->visitor_context, *ret_id, frames, count, stop, python);
	return result;
}

void capture_writer_forget_callstacks(struct capture_writer *writer)
{
	assert(writer->visitor);
	intern_done(&writer->interning.callstacks);
}

/* Ids begin anew after two thousand million stacks, when nobody has one of the first. */
void capture_writer_renew_callstacks(struct capture_writer *writer)
{
	size_t count = writer->interning.callstacks.entries.count;

	capture_writer_forget_callstacks(writer);
	writer->callstack_base = writer->callstack_base > UINT32_MAX / 2
					 ? 0
					 : writer->callstack_base + (uint32_t)count;
}

void writer_put_interned(struct capture_writer *writer, struct strbuf *packet)
{
	const struct strbuf *pending = &writer->interning.pending;

	pb_put_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	if (pending->length)
		pb_put_bytes(packet, PACKET_INTERNED_DATA, pending->data, pending->length);
}

int writer_put_interned_packet(struct capture_writer *writer)
{
	int result = writer_start(writer);

	if (result < 0 || writer->interning.pending.length == 0)
		return result;
	writer_put_interned(writer, writer_begin_packet(writer));
	result = writer_end_packet(writer);
	if (result == 0)
		strbuf_clear(&writer->interning.pending);
	return result;
}

static int put_batch(struct capture_writer *writer, struct symbol_batch *batch)
{
	uint32_t field = batch == &writer->symbols ? PACKET_MODULE_SYMBOLS : PACKET_SONDE_SYMBOLS;
	int result;

	if (symbol_batch_is_empty(batch))
		return 0;
	result = writer_put_interned_packet(writer);
	if (result == 0)
		result = writer_put_message(writer, field, &batch->module);
	symbol_batch_clear(batch);
	return result;
}

int writer_put_symbols(struct capture_writer *writer)
{
	int result = put_batch(writer, &writer->symbols);

	if (result == 0)
		result = put_batch(writer, &writer->other_symbols);
	return result;
}

int capture_writer_symbols(struct capture_writer *writer, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct symbol_batch *batch;

	if (writer->visitor)
		return writer->visitor->symbols(
			writer->visitor_context, mapping, rel_pc, lines, count);
	/* Mapping 0 has no path that Perfetto could find it by. */
	batch = mapping && sampled_knows(&writer->sampled, mapping, rel_pc)
			? &writer->symbols
			: &writer->other_symbols;
	if (!symbol_batch_takes(batch, mapping) || batch->module.length > PENDING_BYTES) {
		int result = put_batch(writer, batch);

		if (result < 0)
			return result;
		symbol_batch_start(batch, &writer->interning, mapping);
	}
	return symbol_batch_add(batch, rel_pc, lines, count);
}
