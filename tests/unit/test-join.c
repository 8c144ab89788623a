/* SPDX-License-Identifier: Apache-2.0 */
/* Captures of several hosts as one: pids, ids, times, accounts, and the file that they merge into.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/split/merge.h"
#include "model/model.h"

#define PID 100
#define S   UINT64_C(1000000000)

/* A process of this pid, with one sample and a range, on a machine that booted `since_ns` before.
 */
static void write_capture(
	const char *path, const char *host, uint32_t rank, uint64_t since_ns, const char *function)
{
	const struct capture_session session = {
		.sonde_version = "",
		.host = host,
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "",
		.start_time_ns = since_ns,
		.start_realtime_ns = 1000 * S,
		.start_boottime_ns = since_ns,
		.period_ns = 1000000,
	};
	const struct capture_process process = {
		.pid = PID, .name = "rank", .has_rank = true, .rank = rank, .world_size = 2};
	const struct capture_frame frame = {
		.function = function, .rel_pc = 1, .kind = CAPTURE_FRAME_NATIVE};
	const struct capture_loss loss = {.where = "sample_ring", .count = rank + 1};
	const struct capture_stats stats = {
		.end_time_ns = since_ns + S,
		.samples = 1,
		.samples_lost = rank + 1,
		.losses = &loss,
		.loss_count = 1,
		.exit_status = (int32_t)rank,
		.complete = true,
	};
	struct capture_sample sample = {
		.pid = PID, .tid = PID, .time_ns = since_ns + S / 2, .mode = CAPTURE_MODE_USER};
	struct capture_range_event range = {.pid = PID,
		.tid = PID,
		.domain = "",
		.name = "work",
		.category = "",
		.kind = CAPTURE_RANGE_BEGIN,
		.time_ns = since_ns + S / 4};
	struct capture_writer *writer;
	struct errmsg err;
	capture_id id;

	assert_int_equal(capture_writer_open(&writer, path, NULL, &err), 0);
	assert_int_equal(capture_writer_session(writer, &session), 0);
	assert_int_equal(capture_writer_process(writer, &process), 0);
	assert_int_equal(capture_writer_frame(writer, &frame, &id), 0);
	assert_int_equal(
		capture_writer_callstack(writer, &id, 1, WIRE_STOP_COMPLETE, 0, &sample.callstack),
		0);
	assert_int_equal(capture_writer_sample(writer, &sample), 0);
	assert_int_equal(capture_writer_range(writer, &range), 0);
	range.kind = CAPTURE_RANGE_END;
	range.time_ns += S / 8;
	assert_int_equal(capture_writer_range(writer, &range), 0);
	assert_int_equal(capture_writer_stats(writer, &stats), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
}

struct run {
	char paths[2][64], merged[64];
	struct model_source sources[2];
};

/* The second host booted 3 s later: its times are less by so much. */
static void begin_run(struct run *run, const char *second_host)
{
	for (int i = 0; i < 2; i++) {
		snprintf(run->paths[i], sizeof(run->paths[i]), "/tmp/sonde-join-%d-%d.pftrace",
			(int)getpid(), i);
		run->sources[i] = (struct model_source){.path = run->paths[i]};
	}
	snprintf(run->merged, sizeof(run->merged), "/tmp/sonde-join-%d.pftrace", (int)getpid());
	write_capture(run->paths[0], "a", 0, 5 * S, "first");
	write_capture(run->paths[1], second_host, 1, 2 * S, "second");
	run->sources[0].clock =
		(struct capture_clock){.source = CAPTURE_CLOCK_HOSTS, .error_ns = UINT64_MAX};
	run->sources[1].clock = (struct capture_clock){
		.source = CAPTURE_CLOCK_COLLECTIVES, .shift_ns = 3 * (int64_t)S, .error_ns = 7};
}

static void end_run(const struct run *run)
{
	unlink(run->paths[0]);
	unlink(run->paths[1]);
	unlink(run->merged);
}

static const char *leaf_of(const struct model *model, const struct model_sample *sample)
{
	const struct model_frame *frame =
		&model->frames.items[model_stack_leaf(model, sample->stack)];

	return model->functions.items[frame->function].name;
}

static void check_model(const struct model *model)
{
	assert_int_equal(model->recordings.count, 2);
	assert_int_equal(model->processes.count, 2);
	assert_int_equal(model->processes.items[0].pid, PID);
	assert_true(model->processes.items[1].pid > 1 << 22);
	assert_int_equal(model->processes.items[1].rank, 1);
	assert_string_equal(model->processes.items[1].host, "b");
	assert_int_equal(model->processes.items[1].recording, 1);
	assert_int_equal(model->threads.items[1].tid, model->processes.items[1].pid);
	assert_int_equal(model->samples.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		uint32_t process = model->threads.items[sample->thread].process;

		assert_int_equal(sample->time_ns, 5 * S + S / 2);
		assert_string_equal(leaf_of(model, sample), process ? "second" : "first");
		assert_int_equal(model->ranges.items[i].start_ns, 5 * S + S / 4);
		assert_int_equal(model->ranges.items[i].end_ns, 5 * S + S / 4 + S / 8);
		assert_int_equal(model->recordings.items[i].samples_lost, i + 1);
	}
	assert_int_equal(model->recordings.items[1].clock.shift_ns, 3 * S);
	assert_int_equal(model->recordings.items[1].clock.error_ns, 7);
	assert_int_equal(model->stats.values.samples, 2);
	assert_int_equal(model->stats.values.samples_lost, 3);
	assert_int_equal(model->stats.values.loss_count, 1);
	assert_int_equal(model->stats.values.losses[0].count, 3);
	assert_int_equal(model->stats.values.exit_status, 1);
	assert_int_equal(model_duration_ns(model), S);
	assert_int_equal(model->cut_off_count, 0);
}

static void captures_of_two_hosts_are_a_run(void **state)
{
	struct run run;
	struct model *model;
	struct errmsg err;

	(void)state;
	begin_run(&run, "b");
	assert_int_equal(model_load_run(&model, run.sources, 2, NULL, NULL, NULL, &err), 0);
	check_model(model);
	model_free(model);
	end_run(&run);
}

static void merged_they_are_the_same(void **state)
{
	const struct capture_writer_options options = {.size = sizeof(options)};
	struct capture_merge_source sources[2];
	struct run run;
	struct model *model;
	struct errmsg err;
	uint64_t bytes;

	(void)state;
	begin_run(&run, "b");
	for (int i = 0; i < 2; i++)
		sources[i] = (struct capture_merge_source){run.paths[i], run.sources[i].clock};
	assert_int_equal(capture_merge(run.merged, sources, 2, &options, &bytes, &err), 0);
	assert_int_equal(model_load(&model, run.merged, NULL, NULL, &err), 0);
	check_model(model);
	assert_string_equal(model->recordings.items[1].file, run.paths[1]);
	model_free(model);
	end_run(&run);
}

/* Of one host a pid is one process, in however many captures it is. */
static void a_pid_of_one_host_is_one_process(void **state)
{
	struct run run;
	struct model *model;
	struct errmsg err;

	(void)state;
	begin_run(&run, "a");
	assert_int_equal(model_load_run(&model, run.sources, 2, NULL, NULL, NULL, &err), 0);
	assert_int_equal(model->processes.count, 1);
	assert_int_equal(model->samples.count, 2);
	model_free(model);
	end_run(&run);
}

static void a_clock_drifts(void **state)
{
	struct capture_clock clock = {.shift_ns = -5, .drift = 1e-3, .drift_from_ns = 1000000};

	(void)state;
	assert_int_equal(capture_clock_ns(&clock, 3000000), 3000000 - 5 + 2000);
	clock.drift = 1e300; /* a file may say anything */
	assert_int_equal(capture_clock_ns(&clock, 3000000), 3000000 - 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures_of_two_hosts_are_a_run),
		cmocka_unit_test(merged_they_are_the_same),
		cmocka_unit_test(a_pid_of_one_host_is_one_process),
		cmocka_unit_test(a_clock_drifts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
