/* SPDX-License-Identifier: Apache-2.0 */
/* Device work, its launches and what else there is of devices. */
#include <assert.h>
#include <errno.h>

#include "capture/device_messages.h"
#include "capture/fields.h"
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

void writer_name_queue(const struct capture_device_work *work, struct strbuf *out)
{
	strbuf_addf(out, "%s, pid %u, ", work->device, work->pid);
	if (!work->gpu)
		strbuf_addf(out, "queue %u", work->queue);
	else if (work->context > 1)
		strbuf_addf(out, "stream %u of context %u", work->stream, work->context);
	else
		strbuf_addf(out, "stream %u", work->stream);
}

/* Queues are called after their device: a name is made once, not for each piece of work. */
static int intern_queue(struct capture_writer *writer, const struct capture_device_work *work,
	struct device_work_names *names)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t key = (uint64_t)work->pid << 32 | work->queue, known;
	int result;

	if (map_u64_get(&writer->queues, key, &known) && known >> 32 == names->device) {
		names->queue = (uint32_t)known;
		return 0;
	}
	writer_name_queue(work, &text);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	result = interning_specification(&writer->interning, strbuf_cstr(&text), &names->queue);
	return result < 0 ? result
			  : map_u64_set(&writer->queues, key, names->device << 32 | names->queue);
}

/* Work without a name is called after its kind. */
static int intern_work(struct capture_writer *writer, const struct capture_device_work *work,
	struct device_work_names *ret_names)
{
	int result = interning_specification(&writer->interning,
		work->name ? work->name : wire_device_kind_name(work->kind), &ret_names->name);

	if (result == 0)
		result = interning_specification(
			&writer->interning, work->device, &ret_names->device);
	return result < 0 ? result : intern_queue(writer, work, ret_names);
}

/* No other capture has it, whatever it is joined with. */
static uint64_t next_event_id(struct capture_writer *writer)
{
	return (uint64_t)writer->sequence_id << 32 | ++writer->device_works;
}

int capture_writer_device_work(
	struct capture_writer *writer, const struct capture_device_work *work)
{
	struct device_work_names names;
	int result;

	if (writer->visitor)
		return writer->visitor->device_work
			       ? writer->visitor->device_work(writer->visitor_context, work)
			       : 0;
	result = writer_start(writer);
	if (result == 0)
		result = intern_work(writer, work, &names);
	if (result == 0 && work->pid)
		result = interning_context(&writer->interning, work->pid, work->gpu);
	if (result < 0)
		return result;
	put_device_work(writer_begin_timed_packet(writer, work->start_ns), work, &names,
		next_event_id(writer));
	result = writer_end_timed_packet(writer);
	if (result == 0 && writer->device_slices)
		result = writer_put_work_slices(writer, work);
	return result;
}

int capture_writer_launch(struct capture_writer *writer, const struct capture_launch *launch)
{
	int result;

	if (writer->visitor)
		return writer->visitor->launch
			       ? writer->visitor->launch(writer->visitor_context, launch)
			       : 0;
	result = writer_start(writer);
	if (result < 0)
		return result;
	put_launch(writer_begin_timed_packet(writer, launch->time_ns), launch);
	result = writer_end_timed_packet(writer);
	if (result == 0 && writer->device_slices)
		result = writer_put_launch_slice(writer, launch);
	return result;
}

int capture_writer_launch_stack(
	struct capture_writer *writer, const struct capture_launch_stack *stack)
{
	int result;

	assert(writer_knows_callstack(writer, stack->callstack));
	if (writer->visitor)
		return writer->visitor->launch_stack
			       ? writer->visitor->launch_stack(writer->visitor_context, stack)
			       : 0;
	result = writer_start(writer);
	if (result < 0)
		return result;
	put_launch_stack(writer_begin_timed_packet(writer, stack->time_ns), stack);
	return writer_end_timed_packet(writer);
}

int capture_writer_device_event(
	struct capture_writer *writer, const struct capture_device_event *event)
{
	struct strbuf *packet;
	int result;

	if (writer->visitor)
		return writer->visitor->device_event
			       ? writer->visitor->device_event(writer->visitor_context, event)
			       : 0;
	result = writer_start(writer);
	if (result < 0)
		return result;
	packet = event->time_ns ? writer_begin_timed_packet(writer, event->time_ns)
				: writer_begin_packet(writer);
	put_device_event(packet, event);
	return event->time_ns ? writer_end_timed_packet(writer) : writer_end_packet(writer);
}
