/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/samples/samples.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

int samples_begin(struct samples *samples, uint64_t period_ns, uint64_t start_realtime_ns)
{
	const char *const command[] = {samples->input->path};
	const struct capture_session session = {
		.sonde_version = SONDE_VERSION,
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.command = command,
		.command_count = 1,
		.unwind_mode = "",
		.start_time_ns = 1,
		.start_realtime_ns = start_realtime_ns,
		.start_boottime_ns = 1,
		.period_ns = period_ns,
	};

	samples->time_ns = 1;
	samples->step_ns = MAX(period_ns, (uint64_t)1);
	return capture_writer_session(samples->writer, &session);
}

int samples_add_task(struct samples *samples, uint32_t pid, uint32_t tid, const char *name)
{
	const struct capture_process process = {.pid = pid, .name = name};
	const struct capture_thread thread = {.pid = pid, .tid = tid, .name = name};
	int r = pid == tid ? capture_writer_process(samples->writer, &process) : 0;

	return r < 0 ? r : capture_writer_thread(samples->writer, &thread);
}

static enum capture_frame_kind kind_of(const struct samples_frame *frame, const char *module)
{
	if (strncmp(module, "[kernel", strlen("[kernel")) == 0 || text_ends_in(module, ".ko"))
		return CAPTURE_FRAME_KERNEL;
	if (frame->file_length > 3 && memcmp(frame->file + frame->file_length - 3, ".py", 3) == 0)
		return CAPTURE_FRAME_INTERPRETED;
	return CAPTURE_FRAME_NATIVE;
}

int samples_add_frame(struct samples *samples, const struct samples_frame *frame)
{
	_cleanup_strbuf_ struct strbuf name = {0}, module = {0}, file = {0};
	struct capture_frame out = {.rel_pc = frame->address, .line = frame->line};
	struct capture_mapping mapping = {0};
	int r = 0;

	if (samples->frame_count == SAMPLES_FRAMES) {
		samples->frames_left_out++;
		return 0;
	}
	strbuf_add_bytes(&name, frame->name, MIN(frame->name_length, (size_t)SAMPLES_NAME_BYTES));
	strbuf_add_bytes(
		&module, frame->module, MIN(frame->module_length, (size_t)SAMPLES_NAME_BYTES));
	strbuf_add_bytes(&file, frame->file, MIN(frame->file_length, (size_t)SAMPLES_NAME_BYTES));
	strbuf_inherit_status(&name, &module);
	strbuf_inherit_status(&name, &file);
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	out.function = name.length ? name.data : NULL;
	out.source_file = file.length ? file.data : NULL;
	out.kind = kind_of(frame, strbuf_cstr(&module));
	mapping.path = strbuf_cstr(&module);
	if (module.length)
		r = capture_writer_mapping(samples->writer, &mapping, &out.mapping);
	return r < 0 ? r
		     : capture_writer_frame(
			       samples->writer, &out, &samples->frames[samples->frame_count++]);
}

int samples_end_stack(struct samples *samples)
{
	capture_id outermost_first[SAMPLES_FRAMES];
	size_t count = samples->frame_count;

	for (size_t i = 0; i < count; i++)
		outermost_first[i] = samples->frames[count - 1 - i];
	samples->frame_count = 0;
	samples->stack = 0;
	if (!count)
		return 0;
	return capture_writer_callstack(samples->writer, outermost_first, count, WIRE_STOP_COMPLETE,
		WIRE_PYTHON_NONE, &samples->stack);
}

int samples_add(struct samples *samples, struct capture_sample sample, uint64_t count)
{
	bool has_time = sample.time_ns != 0;
	int r = 0;

	sample.callstack = samples->stack;
	sample.mode = CAPTURE_MODE_USER;
	samples->has_no_times |= !has_time;
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		if (!has_time)
			sample.time_ns = samples->time_ns += samples->step_ns;
		samples->time_ns = MAX(samples->time_ns, sample.time_ns);
		r = capture_writer_sample(samples->writer, &sample);
		samples->written++;
	}
	return r;
}

uint64_t samples_unit(struct samples *samples, uint64_t total)
{
	uint64_t unit = total / SAMPLES_MOST + (total % SAMPLES_MOST != 0);

	if (unit > 1)
		import_note(samples->result,
			"one sample here stands for %llu of the file, whose weights add up to "
			"%llu",
			(unsigned long long)unit, (unsigned long long)total);
	return MAX(unit, (uint64_t)1);
}

int samples_end(struct samples *samples, int r, const char *what, struct errmsg *err)
{
	if (r == -ENOMEM)
		return errmsg_set(err, r, "memory ran out while reading %s", samples->input->path);
	if (r < 0)
		return r;
	if (!samples->written)
		return errmsg_set(err, -ENODATA, "cannot read %s: %s", samples->input->path, what);
	if (samples->has_no_times)
		import_note(samples->result,
			"the file does not say when samples were taken: they follow one another");
	if (samples->lines_left_out)
		import_note(samples->result, "%llu lines were not understood and are left out",
			(unsigned long long)samples->lines_left_out);
	if (samples->frames_left_out)
		import_note(samples->result, "%llu frames are left out: stacks are deeper than %d",
			(unsigned long long)samples->frames_left_out, SAMPLES_FRAMES);
	samples->result->samples = samples->written;
	samples->result->begin_ns = 1;
	samples->result->end_ns = samples->time_ns;
	return 0;
}
