/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a trace count, at what times, and what devices did: ours, and as HTA has it. */
#include "trace-example.h"

#include "analyses/device/communication.h"
#include "analyses/device/temporal.h"
#include "analyses/trace_order.h"
#include "compat/hta/internal.h"

typedef int init_view(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options);

static init_view *const ours = trace_view_init, *const hta = hta_view_init;

static void view_with(struct trace_view *view, struct trace *trace, init_view *init,
	const struct trace_view_options *options)
{
	example_trace_finish(trace);
	assert_int_equal(init(view, trace, 3, options), 0);
}

static void view(struct trace_view *view, struct trace *trace, init_view *init)
{
	view_with(view, trace, init, &(struct trace_view_options){0});
}

/* ---- order ---- */

static void check_order(const int64_t *keys, const uint32_t *order, size_t count, bool is_stable)
{
	_cleanup_free_ bool *seen = calloc(count + 1, sizeof(*seen));

	for (size_t i = 0; i < count; i++) {
		assert_true(order[i] < count);
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
		if (!i)
			continue;
		assert_true(keys[order[i - 1]] <= keys[order[i]]);
		if (is_stable && keys[order[i - 1]] == keys[order[i]])
			assert_true(order[i - 1] < order[i]);
	}
}

static void orders_sort(void **state)
{
	enum { COUNT = 5000 };
	int64_t keys[COUNT];
	uint32_t order[COUNT];
	uint64_t random = 1;

	for (size_t spread = 1; spread < 1ULL << 62; spread = spread * 8 + 1) {
		for (size_t i = 0; i < COUNT; i++) {
			random = hash_u64(random + i);
			keys[i] = (int64_t)(random % spread) - (int64_t)(spread / 2);
		}
		for (size_t count = 0; count <= COUNT; count = count * 3 + 1) {
			assert_int_equal(trace_order_stable(keys, order, count), 0);
			check_order(keys, order, count, true);
			hta_order(keys, order, count);
			check_order(keys, order, count, false);
		}
	}
	keys[0] = INT64_MAX;
	keys[1] = INT64_MIN;
	assert_int_equal(trace_order_stable(keys, order, 2), 0);
	check_order(keys, order, 2, true);
}

/* As rows of a trace come: few sorted runs, with equal keys in several of them. */
static void runs_are_merged(void **state)
{
	enum { COUNT = 5000 };
	int64_t keys[COUNT];
	uint32_t order[COUNT];

	for (size_t runs = 1; runs < 80; runs += runs / 2 + 1) {
		for (size_t i = 0; i < COUNT; i++)
			keys[i] = (int64_t)(i % (COUNT / runs) / 3 +
					    hash_u64(i / (COUNT / runs)) % 900);
		for (size_t count = 1; count <= COUNT; count = count * 3 + 1) {
			assert_int_equal(trace_order_stable(keys, order, count), 0);
			check_order(keys, order, count, true);
		}
	}
}

static int64_t first_of(const void *item)
{
	return *(const int64_t *)item;
}

static void items_are_sorted_in_place(void **state)
{
	enum { COUNT = 1000 };
	struct {
		int64_t key, number;
	} items[COUNT];

	(void)state;
	for (int64_t i = 0; i < COUNT; i++) {
		items[i].key = (int64_t)(hash_u64((uint64_t)i) % 300);
		items[i].number = i;
	}
	assert_int_equal(
		trace_order_items(items, COUNT, sizeof(*items), first_of, trace_order_stable), 0);
	for (int64_t i = 0; i < COUNT; i++) {
		assert_int_equal(items[i].key, hash_u64((uint64_t)items[i].number) % 300);
		if (i && items[i - 1].key == items[i].key)
			assert_true(items[i - 1].number < items[i].number);
		else if (i)
			assert_true(items[i - 1].key < items[i].key);
	}
}

/* From numpy 1.24: np.argsort(np.array([3,1,2] * 8)). */
static void equal_keys_come_as_from_numpy(void **state)
{
	static const uint32_t expected[] = {1, 19, 4, 16, 7, 13, 10, 22, 11, 20, 17, 14, 23, 8, 5,
		2, 9, 15, 6, 18, 3, 21, 12, 0};
	int64_t keys[24];
	uint32_t order[24];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		keys[i] = (int64_t[]){3, 1, 2}[i % 3];
	hta_order(keys, order, ARRAY_SIZE(keys));
	assert_memory_equal(order, expected, sizeof(expected));
}

/* ---- rows ---- */

static void kinds_are_known_by_category_and_name(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};
	static const struct {
		enum trace_category category;
		const char *name;
		enum trace_kind ours, hta;
	} rows[] = {
		{TRACE_KERNEL, "gemm", TRACE_COMPUTE, TRACE_COMPUTE},
		{TRACE_KERNEL, "ncclDevKernel_AllReduce", TRACE_COMMUNICATION, TRACE_COMMUNICATION},
		{TRACE_KERNEL, "void ncclKernel_Sum", TRACE_COMMUNICATION, TRACE_COMMUNICATION},
		{TRACE_KERNEL, "hip_gemm", TRACE_COMPUTE, TRACE_COMMUNICATION},
		{TRACE_KERNEL, "rcclKernel", TRACE_COMMUNICATION, TRACE_COMPUTE},
		{TRACE_KERNEL, "void __admamean", TRACE_COMPUTE, TRACE_OTHER_KIND},
		{TRACE_KERNEL, "runFunction - x", TRACE_COMPUTE, TRACE_OTHER_KIND},
		{TRACE_MEMCPY, "Memcpy HtoD (Pinned -> Device)", TRACE_MEMORY, TRACE_MEMORY},
		{TRACE_MEMCPY, "hipMemcpyDtoH", TRACE_MEMORY, TRACE_COMMUNICATION},
		{TRACE_MEMSET, "Memset (Device)", TRACE_MEMORY, TRACE_MEMORY},
		{TRACE_MEMSET, "fill", TRACE_MEMORY, TRACE_COMPUTE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		example_device(trace, rows[i].category, rows[i].name, 0, 7, (int64_t)i * 10, 5, 0);
	/* What a kernel moves among ranks tells as well. */
	example_device(trace, TRACE_KERNEL, "of a group", 0, 7, 500, 5, 0);
	trace->works.items[trace->works.count - 1].collective = 0;
	view(&own, trace, ours);
	view(&theirs, trace, hta);
	assert_int_equal(own.works.count, ARRAY_SIZE(rows) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(own.works.items[i].kind, rows[i].ours);
		assert_int_equal(theirs.works.items[i].kind, rows[i].hta);
	}
	assert_int_equal(own.works.items[ARRAY_SIZE(rows)].kind, TRACE_COMMUNICATION);
	assert_int_equal(own.works.items[ARRAY_SIZE(rows)].communication, COMMUNICATION_BY_GROUP);
	assert_int_equal(theirs.works.items[ARRAY_SIZE(rows)].kind, TRACE_COMPUTE);
}

/* ---- communication ---- */

static void kernels_of_collectives_are_known_by_name(void **state)
{
	static const char *const kernels[] = {
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)",
		"void deep_ep::internode_ll::combine<true, 7168, 9>(void*, void*)",
		"_ZN7deep_ep9intranode7combineI13__nv_bfloat16EEvPT_",
		"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(AllReduceParams)",
		"void "
		"flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<2, "
		"half>(Params)",
		"void (anonymous namespace)::multimem_all_reduce_kernel<float, 4>(float*)",
		"void c10d::symmetric_memory::(anonymous "
		"namespace)::one_shot_all_reduce_kernel<float>()",
		"void nvshmemi_proxy_quiet<16>()",
		"ncclSymkDevKernel_AllGather_LLMC",
		"void moeA2ADispatchKernel<32>(Params)",
	};
	static const char *const others[] = {
		"triton_poi_fused_add_all_reduce_wait_tensor_1",
		"void softmax<float, BlockAllReduce<float>>(float*)",
		"void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>()",
		"void at::native::vectorized_elementwise_kernel<4>()",
		"gemm",
	};
	struct errmsg err;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		assert_int_equal(communication_of_name(kernels[i]), COMMUNICATION_BY_NAME);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(communication_of_name(others[i]), COMMUNICATION_NOT);
	assert_int_equal(communication_add_names("^ge(mm", &err), -EINVAL);
	assert_non_null(strstr(err.text, "regular expression"));
	assert_int_equal(communication_add_names("^ge.m|reduceBy", &err), 0);
	assert_int_equal(communication_of_name("gemm"), COMMUNICATION_BY_USER);
	assert_int_equal(communication_of_name("gemv"), COMMUNICATION_NOT);
	assert_int_equal(communication_add_names("no kernel of any test", &err), 0);
}

/* "x" is launched by an operator of collectives; what such an operator copies before is not. */
static void kernels_are_known_by_the_operator_that_launched_them(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};

	example_host(trace, TRACE_CPU_OP, "c10d::allgather_", EXAMPLE_PID, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "aten::copy_", EXAMPLE_PID, 10, 20, 0);
	example_launch(trace, "flatten", 7, 12, 5, 50, 10, 1);
	example_host(trace, TRACE_CPU_OP, "record_param_comms", EXAMPLE_PID, 40, 40, 0);
	example_launch(trace, "x", 7, 50, 5, 100, 10, 2);
	example_host(
		trace, TRACE_CPU_OP, "symm_mem::fused_all_gather_matmul", EXAMPLE_PID, 200, 100, 0);
	example_launch(trace, "gemm", 7, 210, 5, 300, 10, 3);
	view(&own, trace, ours);
	view(&theirs, trace, hta);
	assert_int_equal(own.works.items[0].kind, TRACE_COMPUTE);
	assert_int_equal(own.works.items[1].kind, TRACE_COMMUNICATION);
	assert_int_equal(own.works.items[1].communication, COMMUNICATION_BY_OPERATOR);
	assert_int_equal(own.works.items[2].kind, TRACE_COMPUTE);
	for (size_t i = 0; i < theirs.works.count; i++)
		assert_int_equal(theirs.works.items[i].kind, TRACE_COMPUTE);
}

/* Nine of ten kernels of stream 20 communicate: what else runs there, and no operator launched. */
static void kernels_are_known_by_their_stream(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	uint32_t notify, copy;

	for (int i = 0; i < 20; i++)
		example_device(trace, TRACE_KERNEL, "ncclDevKernel", 0, 20, i * 10, 5, 0);
	notify = example_device(trace, TRACE_KERNEL, "notify", 0, 20, 300, 5, 0);
	example_host(trace, TRACE_CPU_OP, "c10d::barrier", EXAMPLE_PID, 100, 10, 0);
	example_host(trace, TRACE_CPU_OP, "aten::cat", EXAMPLE_PID, 320, 10, 0);
	copy = example_launch(trace, "CatArray", 20, 322, 2, 330, 5, 9);
	example_device(trace, TRACE_KERNEL, "gemm", 0, 7, 0, 100, 0);
	view(&own, trace, ours);
	assert_int_equal(trace_view_kind(&own, &trace->events.items[notify]), TRACE_COMMUNICATION);
	assert_int_equal(own.communication[notify], COMMUNICATION_BY_STREAM);
	assert_int_equal(trace_view_kind(&own, &trace->events.items[copy]), TRACE_COMPUTE);
}

/* A device with one stream computes on it, even if it communicates there nearly all of the time. */
static void the_stream_for_computing_is_not_for_communication(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	uint32_t row;

	for (int i = 0; i < 20; i++)
		example_device(trace, TRACE_KERNEL, "ncclDevKernel", 0, 7, i * 10, 5, 0);
	row = example_device(trace, TRACE_KERNEL, "gemm", 0, 7, 300, 5, 0);
	view(&own, trace, ours);
	assert_int_equal(trace_view_kind(&own, &trace->events.items[row]), TRACE_COMPUTE);
}

static void devices_and_streams_are_told_apart(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};
	_cleanup_strbuf_ struct strbuf name = {0};

	example_device(trace, TRACE_KERNEL, "a", 1, 7, 30, 10, 0);
	example_device(trace, TRACE_KERNEL, "a", 0, 7, 10, 10, 0);
	example_device(trace, TRACE_SYNC, "Stream Sync", 0, 9, 15, 10, 5);
	view(&own, trace, ours);
	assert_int_equal(own.rank, 3);
	assert_int_equal(own.works.count, 2);
	assert_int_equal(own.works.items[0].row, 1); /* by start */
	assert_int_equal(own.devices.count, 2);
	assert_int_equal(own.streams.count, 2);
	trace_view_device_name(&own, own.streams.items[0].device, &name);
	trace_view_stream_name(&own, 0, &name);
	assert_string_equal(strbuf_cstr(&name), "GPU 1stream 7");

	/* HTA: one device, streams by number, waits that have a stream are rows like others. */
	view(&theirs, trace, hta);
	assert_int_equal(theirs.works.count, 3);
	assert_int_equal(theirs.works.items[0].row, 0);
	assert_int_equal(theirs.devices.count, 1);
	assert_int_equal(theirs.streams.count, 2);
	assert_int_equal(theirs.streams.items[0].works, 2);
	assert_true(theirs.works.items[2].is_wait);
}

/* By its name where that tells it from the others, else by its number. */
static void devices_have_their_names(void **state)
{
	static const char properties[] =
		"[{\"id\": 1, \"name\": \"A \\\"100\\\"\", \"x\": []}, {\"id\": \"?\", \"name\": "
		"\"B\"}, {\"id\": 0}, {\"id\": 2, \"name\": \"C\"}, {\"id\": 3, \"name\": \"C\"";
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_strbuf_ struct strbuf names = {0};

	for (int device = 0; device < 4; device++)
		example_device(trace, TRACE_KERNEL, "a", device, 7, device, 1, 0);
	assert_int_equal(trace_read_devices(trace, &(struct json_text){.bytes = properties,
							   .length = strlen(properties)}),
		0);
	trace->header = example_text(trace, "\"a\": 1, \"deviceProperties\": [{\"id\": 3, "
					    "\"name\": \"C\"}]");
	assert_int_equal(trace_read_header_devices(trace), 0);
	view(&own, trace, ours);
	for (uint32_t device = 0; device < 4; device++) {
		trace_view_device_name(&own, device, &names);
		strbuf_add_char(&names, ';');
	}
	assert_string_equal(strbuf_cstr(&names), "GPU 0;A \"100\";GPU 2;GPU 3;");
	assert_string_equal(trace_device_name(trace, 3), "C");
}

static void hta_rounds_to_microseconds(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0}, theirs = {0};

	example_device(trace, TRACE_KERNEL, "a", 0, 7, 1001, 2500, 0);
	example_device(trace, TRACE_KERNEL, "a", 0, 7, 5100, 100, 0);
	trace->has_fractions = true;
	view(&theirs, trace, hta);
	assert_int_equal(theirs.works.items[0].start_ns, 2000);
	assert_int_equal(theirs.works.items[0].end_ns, 3000);
	assert_int_equal(theirs.works.items[1].start_ns, 6000);
	assert_int_equal(theirs.works.items[1].end_ns, 5000);
	view(&own, trace, ours);
	assert_int_equal(own.works.items[0].start_ns, 1001);
	assert_int_equal(own.works.items[0].end_ns, 3501);
}

/* Two steps; the work of the first step's launch runs in the second. */
static struct trace *two_steps(void)
{
	struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0, 1000, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", EXAMPLE_PID, 1000, 1000, 0);
	example_launch(trace, "first", 7, 900, 10, 1500, 100, 1);
	example_launch(trace, "second", 7, 1100, 10, 1700, 100, 2);
	example_device(trace, TRACE_KERNEL, "unlaunched", 0, 7, 950, 20, 3);
	return trace;
}

static void the_last_step_stays_unless_asked(void **state)
{
	_cleanup_trace_ struct trace *trace = two_steps();
	_cleanup_trace_view_ struct trace_view all = {0}, less = {0}, theirs = {0}, kept = {0};

	view(&all, trace, ours);
	assert_int_equal(all.steps, 2);
	assert_int_equal(all.works.count, 3);
	assert_int_equal(all.works_without_launch, 1);
	view_with(&less, trace, ours, &(struct trace_view_options){.drop_last_step = true});
	assert_int_equal(less.works.count, 2);
	assert_int_equal(less.dropped_works, 1);
	assert_true(trace_view_has(&less, &trace->events.items[2]));
	assert_false(trace_view_has(&less, &trace->events.items[4]));

	/* HTA drops the last one, and with it what no call of the file launched. */
	view(&theirs, trace, hta);
	assert_int_equal(theirs.works.count, 1);
	assert_int_equal(theirs.dropped_works, 2);
	view_with(&kept, trace, hta, &(struct trace_view_options){.keep_last_step = true});
	assert_int_equal(kept.works.count, 2);
}

static void one_step_is_kept(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view theirs = {0};

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0, 1000, 0);
	example_device(trace, TRACE_KERNEL, "unlaunched", 0, 7, 950, 20, 3);
	view(&theirs, trace, hta);
	assert_int_equal(theirs.works.count, 1);
}

static void negative_durations_are_counted(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};

	example_device(trace, TRACE_KERNEL, "a", 0, 7, 100, -50, 0);
	view(&own, trace, ours);
	assert_int_equal(own.negative_durations, 1);
	assert_int_equal(own.works.items[0].end_ns, 100);
}

/* ---- what devices did ---- */

static void each_moment_counts_once(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_temporal_ struct temporal temporal = {0};
	const struct temporal_device *device;

	/* Kernels that overlap on one stream; communication beside one of them; a copy alone. */
	example_device(trace, TRACE_KERNEL, "a", 0, 7, 1000, 100, 0);
	example_device(trace, TRACE_KERNEL, "b", 0, 7, 1050, 100, 0);
	example_device(trace, TRACE_KERNEL, "ncclKernel", 0, 20, 1120, 80, 0);
	example_device(trace, TRACE_MEMCPY, "Memcpy", 0, 7, 1300, 10, 0);
	example_device(trace, TRACE_KERNEL, "elsewhere", 1, 7, 5000, 10, 0);
	view(&own, trace, ours);
	assert_int_equal(temporal_init(&temporal, &own), 0);
	assert_int_equal(temporal.devices.count, 2);
	device = &temporal.devices.items[0];
	assert_int_equal(temporal_span_ns(device), 310);
	assert_int_equal(device->busy_ns, 210);
	assert_int_equal(device->idle_ns, 100);
	assert_int_equal(device->by_kind_ns[TRACE_COMPUTE], 150);
	assert_int_equal(device->by_kind_ns[TRACE_COMMUNICATION], 80);
	assert_int_equal(device->by_kind_ns[TRACE_MEMORY], 10);
	assert_int_equal(temporal_non_compute_ns(device), 60);
	assert_int_equal(device->communication_beside_compute_ns, 30);
	assert_int_equal(device->by_set_ns[1 << TRACE_COMPUTE], 120);
	assert_int_equal(device->by_set_ns[1 << TRACE_COMPUTE | 1 << TRACE_COMMUNICATION], 30);
	assert_int_equal(device->by_set_ns[1 << TRACE_COMMUNICATION], 50);
	assert_int_equal(device->by_set_ns[1 << TRACE_MEMORY], 10);
	assert_int_equal(temporal_span_ns(&temporal.devices.items[1]), 10);
}

static void a_trace_without_devices_has_none(void **state)
{
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view own = {0};
	_cleanup_temporal_ struct temporal temporal = {0};

	example_host(trace, TRACE_CPU_OP, "aten::add", EXAMPLE_PID, 0, 10, 0);
	view(&own, trace, ours);
	assert_int_equal(temporal_init(&temporal, &own), 0);
	assert_int_equal(temporal.devices.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_sort),
		cmocka_unit_test(runs_are_merged),
		cmocka_unit_test(items_are_sorted_in_place),
		cmocka_unit_test(equal_keys_come_as_from_numpy),
		cmocka_unit_test(kinds_are_known_by_category_and_name),
		cmocka_unit_test(kernels_of_collectives_are_known_by_name),
		cmocka_unit_test(kernels_are_known_by_the_operator_that_launched_them),
		cmocka_unit_test(kernels_are_known_by_their_stream),
		cmocka_unit_test(the_stream_for_computing_is_not_for_communication),
		cmocka_unit_test(devices_and_streams_are_told_apart),
		cmocka_unit_test(devices_have_their_names),
		cmocka_unit_test(hta_rounds_to_microseconds),
		cmocka_unit_test(the_last_step_stays_unless_asked),
		cmocka_unit_test(one_step_is_kept),
		cmocka_unit_test(negative_durations_are_counted),
		cmocka_unit_test(each_moment_counts_once),
		cmocka_unit_test(a_trace_without_devices_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
