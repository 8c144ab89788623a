/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/output.h"

static bool has(const struct device_output *output, uint64_t time_ns)
{
	return !output->windows || windows_has(output->windows, time_ns);
}

int device_output_launch(const struct device_output *output, uint32_t pid,
	const struct wire_device_launch *launch, unsigned untimed)
{
	const struct capture_launch out = {
		.time_ns = launch->enter_ns,
		.duration_ns = launch->exit_ns - launch->enter_ns,
		.pid = pid,
		.tid = launch->tid,
		.correlation = launch->correlation,
		.kind = launch->kind,
		.untimed = untimed,
		.queue = launch->queue,
	};

	if (has(output, out.time_ns))
		return capture_writer_launch(output->writer, &out);
	output->account->outside++;
	return 0;
}

/* It ran, and not in a window: of its launch that is all there is to say. */
static int write_late(const struct device_output *output, const struct capture_device_work *work)
{
	const struct capture_launch out = {
		.time_ns = work->launch_ns,
		.duration_ns = work->launch_duration_ns,
		.pid = work->pid,
		.tid = work->tid,
		.correlation = work->correlation,
		.kind = work->kind,
		.untimed = WIRE_DEVICE_AFTER_WINDOW,
		.queue = work->queue,
	};

	if (!work->launch_ns || !has(output, work->launch_ns)) {
		output->account->outside++;
		return 0;
	}
	output->account->after_window++;
	return capture_writer_launch(output->writer, &out);
}

int device_output_work(const struct device_output *output, const struct capture_device_work *work)
{
	struct capture_device_work out = *work;

	if (!has(output, work->start_ns))
		return write_late(output, work);
	output->account->works++;
	if (out.launch_ns && !has(output, out.launch_ns))
		out.launch_ns = out.launch_duration_ns = 0;
	return capture_writer_device_work(output->writer, &out);
}

int device_output_counter(const struct device_output *output, const struct capture_counter *counter)
{
	if (has(output, counter->time_ns))
		return capture_writer_counter(output->writer, counter);
	output->account->outside++;
	return 0;
}

int device_output_event(
	const struct device_output *output, const struct capture_device_event *event)
{
	if (!capture_device_event_is_moment(event) || has(output, event->time_ns))
		return capture_writer_device_event(output->writer, event);
	output->account->outside++;
	return 0;
}
