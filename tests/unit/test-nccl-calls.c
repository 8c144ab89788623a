/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of NCCL kernels belong to, and what they move by them. */
#include "model-example.h"

#define PID     7
#define TID     8
#define ID      0xfeedULL
#define UNKNOWN 0

static const struct capture_visitor *const build = &model_builder_visitor;

static struct capture_range_field number(const char *name, uint64_t value)
{
	return (struct capture_range_field){.name = name, .value = value, .type = WIRE_RANGE_U64};
}

static void add_range(struct example *example, const char *name, uint64_t start_ns, uint64_t end_ns,
	const struct capture_range_field *fields, uint32_t field_count)
{
	struct capture_range_event event = {.kind = CAPTURE_RANGE_BEGIN,
		.time_ns = start_ns,
		.pid = PID,
		.tid = TID,
		.track = TID,
		.domain = "NCCL",
		.name = name,
		.category = "",
		.fields = fields,
		.field_count = field_count};

	assert_int_equal(build->range(example->builder, &event), 0);
	if (!end_ns)
		return;
	event.kind = CAPTURE_RANGE_END;
	event.time_ns = end_ns;
	event.field_count = 0;
	assert_int_equal(build->range(example->builder, &event), 0);
}

static void add_call(struct example *example, const char *name, uint64_t bytes, uint64_t start_ns,
	uint64_t end_ns)
{
	const struct capture_range_field fields[] = {
		number("NCCL communicator ID", ID), number("Message size [bytes]", bytes)};

	add_range(example, name, start_ns, end_ns, fields, 2);
}

static void add_plain(struct example *example, const char *name, uint64_t start_ns)
{
	add_range(example, name, start_ns, start_ns + 5, NULL, 0);
}

static void add_making(struct example *example, uint64_t ranks)
{
	const struct capture_range_field fields[] = {
		number("NCCL communicator ID", ID), number("No. of ranks", ranks)};

	add_range(example, "ncclCommInitRank", 100, 200, fields, 2);
}

/* Launched at a time, which is its correlation, too. */
static void add_kernel(struct example *example, const char *name, uint64_t launch_ns)
{
	const struct capture_launch launch = {.time_ns = launch_ns,
		.duration_ns = 1,
		.pid = PID,
		.tid = TID,
		.correlation = launch_ns,
		.kind = WIRE_DEVICE_KERNEL};
	const struct capture_device_work work = {
		.start_ns = launch_ns + 1000000,
		.end_ns = launch_ns + 1000010,
		.pid = PID,
		.correlation = launch_ns,
		.kind = WIRE_DEVICE_KERNEL,
		.name = name,
		.device = "CUDA device 0",
		.gpu = 1,
	};

	assert_int_equal(build->launch(example->builder, &launch), 0);
	assert_int_equal(build->device_work(example->builder, &work), 0);
}

static void begin(struct example *example)
{
	const struct capture_device_event gpu = {
		.kind = CAPTURE_GPU, .pid = PID, .text = "A GPU", .gpu = {.number = 1}};

	example_begin(example, EXAMPLE_PERIOD_NS);
	example_process(example, PID, "train", 0);
	example_thread(example, PID, TID, "main");
	assert_int_equal(build->device_event(example->builder, &gpu), 0);
}

/* Of the kernel that was launched at this time. */
static const struct model_collective *find(const struct model *model, uint64_t launch_ns)
{
	array_foreach (&model->device_works, work) {
		if (work->correlation == launch_ns)
			return work->collective ? &model->collectives.items[work->collective - 1]
						: NULL;
	}
	fail();
	return NULL;
}

static void check(const struct model *model, uint64_t launch_ns, const char *name, uint64_t bytes,
	uint32_t sequence, enum model_size_unknown unknown)
{
	const struct model_collective *found = find(model, launch_ns);

	assert_non_null(found);
	assert_string_equal(found->name, name);
	assert_int_equal(found->bytes, bytes);
	assert_int_equal(found->sequence, sequence);
	assert_int_equal(found->unknown, unknown);
}

static void calls_launch_their_kernels(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, 4);
	add_call(&example, "ncclAllReduce", 4096, 1000, 1100);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1050);
	add_kernel(&example, "gemm", 1060);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1150); /* after it */
	add_call(&example, "ncclReduceScatter", 512, 1200, 1300);
	add_kernel(&example, "ncclDevKernel_ReduceScatter", 1300);
	model = example_end(&example);
	check(model, 1050, "ncclAllReduce", 4096, 1, MODEL_SIZE_KNOWN);
	assert_int_equal(find(model, 1050)->communicator, ID);
	assert_int_equal(find(model, 1050)->ranks, 4);
	assert_null(find(model, 1060));
	check(model, 1150, "", UNKNOWN, 0, MODEL_SIZE_OUTSIDE);
	check(model, 1300, "ncclReduceScatter", 512, 2, MODEL_SIZE_KNOWN);
}

/* Inner groups launch nothing, and a call's own group is not the program's. */
static void the_outermost_group_launches(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, 4);
	add_plain(&example, "ncclGroupStart", 1000);
	add_plain(&example, "ncclGroupStart", 1010);
	add_call(&example, "ncclAllReduce", 100, 1020, 1025);
	add_plain(&example, "ncclGroupEnd", 1030);
	add_call(&example, "ncclAllReduce", 28, 1040, 1045);
	add_range(&example, "ncclGroupEnd", 1050, 1090, NULL, 0);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1060);
	/* A send before 2.22. */
	add_call(&example, "ncclSend", 64, 2000, UNKNOWN);
	add_plain(&example, "ncclGroupStart", 2010);
	add_range(&example, "ncclGroupEnd", 2020, 2050, NULL, 0);
	add_kernel(&example, "ncclDevKernel_SendRecv", 2030);
	model = example_end(&example);
	check(model, 1060, "ncclAllReduce", 128, 1, MODEL_SIZE_KNOWN);
	check(model, 2030, "", UNKNOWN, 0, MODEL_SIZE_OUTSIDE); /* the send has no end */
}

static void sends_have_a_group_of_their_own(void **state)
{
	const struct capture_range_event end = {
		.kind = CAPTURE_RANGE_END, .time_ns = 2060, .pid = PID, .tid = TID, .track = TID};
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_call(&example, "ncclSend", 64, 2000, UNKNOWN);
	add_plain(&example, "ncclGroupStart", 2010);
	add_range(&example, "ncclGroupEnd", 2020, 2050, NULL, 0);
	assert_int_equal(build->range(example.builder, &end), 0);
	add_kernel(&example, "ncclDevKernel_SendRecv", 2030);
	model = example_end(&example);
	check(model, 2030, "ncclSend", 64, 0, MODEL_SIZE_KNOWN);
}

static void kernels_of_a_group(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, 4);
	add_plain(&example, "ncclGroupStart", 1000); /* simulated: nothing is launched */
	add_call(&example, "ncclAllReduce", 100, 1010, 1015);
	add_range(&example, "ncclGroupSimulateEnd", 1020, 1090, NULL, 0);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1030);
	add_plain(&example, "ncclGroupStart", 2000);
	add_call(&example, "ncclAllReduce", 100, 2010, 2015);
	add_call(&example, "ncclAllGather", 100, 2020, 2025); /* another function */
	add_range(&example, "ncclGroupEnd", 2030, 2090, NULL, 0);
	add_kernel(&example, "ncclDevKernel_AllReduce", 2040);
	add_plain(&example, "ncclGroupStart", 3000);
	add_call(&example, "ncclAllReduce", 100, 3010, 3015);
	add_call(&example, "ncclAllReduce", 100, 3020, 3025);
	add_range(&example, "ncclGroupEnd", 3030, 3090, NULL, 0);
	add_kernel(&example, "ncclDevKernel_AllReduce", 3040);
	add_kernel(&example, "ncclDevKernel_AllReduce", 3050);
	add_plain(&example, "ncclGroupEnd", 4000); /* of no group */
	model = example_end(&example);
	check(model, 1030, "", UNKNOWN, 0, MODEL_SIZE_OUTSIDE);
	check(model, 2040, "", UNKNOWN, 0, MODEL_SIZE_SEVERAL);
	assert_int_equal(find(model, 2040)->communicator, ID);
	check(model, 3040, "ncclAllReduce", 100, 4, MODEL_SIZE_KNOWN);
	check(model, 3050, "ncclAllReduce", 100, 5, MODEL_SIZE_KNOWN);
}

static void what_calls_do_not_say(void **state)
{
	const struct capture_range_field huge[] = {number("Message size [bytes]", UINT64_MAX)};
	const struct capture_range_field text[] = {
		{.name = "Message size [bytes]", .text = "many", .type = WIRE_RANGE_TEXT}};
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, UINT64_MAX);
	add_range(&example, "ncclAllReduce", 1000, 1090, NULL, 0);
	add_kernel(&example, "ncclKernel_AllReduce", 1010);
	add_range(&example, "ncclAllReduce", 2000, 2090, huge, 1);
	add_kernel(&example, "ncclDevKernel_AllReduce", 2010);
	add_range(&example, "ncclAllReduce", 3000, 3090, text, 1);
	add_kernel(&example, "ncclDevKernel_AllReduce", 3010);
	add_call(&example, "ncclAlltoAll", 100, 4000, 4090);
	add_kernel(&example, "ncclDevKernel_SendRecv", 4010);
	model = example_end(&example);
	check(model, 1010, "ncclAllReduce", UNKNOWN, 0, MODEL_SIZE_NO_PAYLOAD);
	check(model, 2010, "ncclAllReduce", UNKNOWN, 0, MODEL_SIZE_NO_PAYLOAD);
	check(model, 3010, "ncclAllReduce", UNKNOWN, 0, MODEL_SIZE_NO_PAYLOAD);
	check(model, 4010, "ncclAlltoAll", UNKNOWN, 1, MODEL_SIZE_NO_RANKS);
}

static void add_peer(
	struct example *example, const char *name, uint64_t peer, uint64_t bytes, uint64_t start_ns)
{
	const struct capture_range_field fields[] = {number("NCCL communicator ID", ID),
		number("Message size [bytes]", bytes), number("Peer rank", peer)};

	add_range(example, name, start_ns, start_ns + 5, fields, 3);
}

/* As PyTorch's all-to-all, with so many ranks; the last one that is sent to is `last_peer`. */
static void add_exchange(
	struct example *example, uint64_t start_ns, uint64_t ranks, uint64_t last_peer)
{
	add_plain(example, "ncclGroupStart", start_ns);
	for (uint64_t i = 0; i < ranks; i++) {
		uint64_t peer = i + 1 < ranks ? i : last_peer;

		add_peer(example, "ncclSend", peer, 100 + i, start_ns + 10 + i * 20);
		add_peer(example, "ncclRecv", i, 50, start_ns + 20 + i * 20);
	}
	add_range(example, "ncclGroupEnd", start_ns + 500, start_ns + 600, NULL, 0);
	add_kernel(example, "ncclDevKernel_SendRecv", start_ns + 550);
}

static void check_exchange(const struct model *model, uint64_t launch_ns, const char *name,
	uint64_t sent, uint64_t received)
{
	check(model, launch_ns, name, sent, 0, MODEL_SIZE_KNOWN);
	assert_int_equal(find(model, launch_ns)->received, received);
	assert_int_equal(find(model, launch_ns)->communicator, ID);
}

static void sends_to_each_are_an_all_to_all(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, 4);
	add_exchange(&example, 1000, 4, 3);
	add_exchange(&example, 2000, 4, 2);          /* one of them twice */
	add_exchange(&example, 3000, 4, 4);          /* none of the communicator's */
	add_exchange(&example, 4000, 3, 2);          /* not to all */
	add_exchange(&example, 5000, 4, UINT64_MAX); /* nobody */
	add_exchange(&example, 6000, 4, 3);
	add_call(&example, "ncclAllReduce", 4096, 7000, 7100); /* numbers go on */
	add_kernel(&example, "ncclDevKernel_AllReduce", 7050);
	model = example_end(&example);
	check_exchange(model, 1550, MODEL_ALL_TO_ALL, 100 + 101 + 102 + 103, 200);
	check_exchange(model, 2550, MODEL_SEND_RECV, 406, 200);
	check_exchange(model, 3550, MODEL_SEND_RECV, 406, 200);
	check_exchange(model, 4550, MODEL_SEND_RECV, 303, 150);
	check_exchange(model, 5550, MODEL_SEND_RECV, 406, 200);
	check_exchange(model, 6550, MODEL_ALL_TO_ALL, 406, 200);
	check(model, 7050, "ncclAllReduce", 4096, 1, MODEL_SIZE_KNOWN);
}

static void sends_whose_size_is_not_known(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_exchange(&example, 1000, 2, 1); /* of how many ranks? */
	add_exchange(&example, 2000, 2, 1);
	add_kernel(&example, "ncclDevKernel_SendRecv", 2560); /* another of the same group */
	add_plain(&example, "ncclGroupStart", 3000);
	add_peer(&example, "ncclSend", 0, INT64_MAX, 3010);
	add_peer(&example, "ncclRecv", 0, INT64_MAX, 3020);
	add_range(&example, "ncclGroupEnd", 3100, 3200, NULL, 0);
	add_kernel(&example, "ncclDevKernel_SendRecv", 3150);
	add_plain(&example, "ncclGroupStart", 4000);
	add_peer(&example, "ncclSend", 0, 100, 4010);
	add_call(&example, "ncclAllReduce", 100, 4020, 4025);
	add_range(&example, "ncclGroupEnd", 4100, 4200, NULL, 0);
	add_kernel(&example, "ncclDevKernel_SendRecv", 4150);
	model = example_end(&example);
	check_exchange(model, 1550, MODEL_SEND_RECV, 201, 100);
	check(model, 2550, MODEL_SEND_RECV, UNKNOWN, 0, MODEL_SIZE_SEVERAL);
	check(model, 2560, MODEL_SEND_RECV, UNKNOWN, 0, MODEL_SIZE_SEVERAL);
	check(model, 3150, MODEL_SEND_RECV, UNKNOWN, 0, MODEL_SIZE_NO_PAYLOAD);
	check(model, 4150, "", UNKNOWN, 0, MODEL_SIZE_SEVERAL);
}

/* Two ranks of one communicator in a process: whose call is which is not known. */
static void several_ranks_have_no_numbers(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_making(&example, 2);
	add_making(&example, 2);
	add_call(&example, "ncclAllReduce", 4096, 1000, 1100);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1050);
	model = example_end(&example);
	check(model, 1050, "ncclAllReduce", 4096, 0, MODEL_SIZE_KNOWN);
	assert_int_equal(find(model, 1050)->ranks, 2);
}

static void without_ranges(void **state)
{
	_cleanup_model_ struct model *model = NULL;
	struct example example;

	(void)state;
	begin(&example);
	add_kernel(&example, "ncclDevKernel_AllReduce", 1050);
	model = example_end(&example);
	check(model, 1050, "", UNKNOWN, 0, MODEL_SIZE_NO_RANGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_launch_their_kernels),
		cmocka_unit_test(the_outermost_group_launches),
		cmocka_unit_test(sends_have_a_group_of_their_own),
		cmocka_unit_test(kernels_of_a_group),
		cmocka_unit_test(what_calls_do_not_say),
		cmocka_unit_test(sends_to_each_are_an_all_to_all),
		cmocka_unit_test(sends_whose_size_is_not_known),
		cmocka_unit_test(several_ranks_have_no_numbers),
		cmocka_unit_test(without_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
