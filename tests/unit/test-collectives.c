/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of several ranks: which belong together, whom ranks waited for, and what their clocks
 * show. The last test simulates jobs of 64 ranks whose delays and clock errors are known.
 */
#include "trace-example.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyses/collectives/calls.h"
#include "analyses/collectives/collectives.h"
#include "analyses/collectives/size.h"

#define MS     INT64_C(1000000)
#define US     INT64_C(1000)
#define STREAM 8

/* Ranks of one job. */
struct job {
	uint32_t ranks;
	struct trace **traces;
	struct trace_view *views;
	struct collectives found;
};

static void begin_job(struct job *job, uint32_t ranks)
{
	*job = (struct job){
		.ranks = ranks,
		.traces = calloc(ranks, sizeof(*job->traces)),
		.views = calloc(ranks, sizeof(*job->views)),
	};
	assert_true(job->traces && job->views);
	for (uint32_t i = 0; i < ranks; i++) {
		job->traces[i] = example_trace_new();
		job->traces[i]->rank = i;
		job->traces[i]->world_size = ranks;
	}
}

static void analyse(struct job *job)
{
	const struct trace_view_options options = {.keep_last_step = true};

	for (uint32_t i = 0; i < job->ranks; i++) {
		example_trace_finish(job->traces[i]);
		assert_int_equal(trace_view_init(&job->views[i], job->traces[i], i, &options), 0);
	}
	assert_int_equal(collectives_init(&job->found, job->views, job->ranks), 0);
}

static void end_job(struct job *job)
{
	collectives_done(&job->found);
	for (uint32_t i = 0; i < job->ranks; i++) {
		trace_view_done(&job->views[i]);
		trace_free(job->traces[i]);
	}
	free(job->views);
	free(job->traces);
}

static const struct collective_rank *rank_of(const struct job *job, uint32_t number)
{
	array_foreach (&job->found.ranks, rank) {
		if (rank->rank == number)
			return rank;
	}
	fail();
	return NULL;
}

/* A kernel, and its launch shortly before. */
static struct trace_work *add_kernel(
	struct trace *trace, const char *name, int64_t start_ns, int64_t end_ns)
{
	uint64_t correlation = trace->events.count + 1;

	example_launch(trace, name, STREAM, start_ns - 2 * US, US, start_ns, end_ns - start_ns,
		correlation);
	return &trace->works.items[trace->works.count - 1];
}

struct group {
	const char *name, *ranks;
	int64_t size, sequence;
};

static void add_in_group(struct trace *trace, const char *name, const struct group *group,
	int64_t start_ns, int64_t end_ns)
{
	struct trace_work *work =
		add_kernel(trace, "ncclDevKernel_Generic(ncclDevKernelArgs)", start_ns, end_ns);
	const struct trace_collective row = {
		.name = example_text(trace, name),
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = group->size,
		.group_name = example_text(trace, group->name),
		.group_ranks = example_text(trace, group->ranks),
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
		.sequence = group->sequence,
	};

	work->collective = (uint32_t)trace->collectives.count;
	assert_int_equal(array_append(&trace->collectives, row), 0);
}

#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"

/* ---- waits ---- */

/*
 * Two steps of ten all-reduces on eight ranks. Rank 3 is 2 ms late in all but the last of each
 * step, in which rank 5 is, by 1 ms. To look at the last of each step alone names rank 5.
 */
static void all_collectives_count(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 8);
	for (uint32_t i = 0; i < 8; i++) {
		example_host(job.traces[i], TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0,
			100 * MS, 0);
		example_host(job.traces[i], TRACE_USER_ANNOTATION, "ProfilerStep#2", EXAMPLE_PID,
			100 * MS, 100 * MS, 0);
		for (int64_t j = 0; j < 20; j++) {
			bool is_last = j % 10 == 9;
			int64_t begin_ns = (j + 1) * 10 * MS - 9 * MS;
			int64_t end_ns = begin_ns + (is_last ? 1 : 2) * MS + 500 * US;

			begin_ns += i == 3 && !is_last ? 2 * MS : 0;
			begin_ns += i == 5 && is_last ? MS : 0;
			add_kernel(job.traces[i], ALL_REDUCE, begin_ns, end_ns);
		}
	}
	analyse(&job);
	assert_int_equal(job.found.matched, 20);
	assert_int_equal(job.found.by_sequence, 0);
	assert_int_equal(job.found.end_error_ns, 0);
	assert_int_equal(job.found.absent + job.found.apart + job.found.unmatched, 0);
	assert_int_equal(job.found.ranks.items[0].rank, 3);
	assert_int_equal(job.found.ranks.items[0].last, 18);
	assert_int_equal(job.found.ranks.items[0].caused_ns, 18 * 7 * 2 * MS);
	assert_int_equal(job.found.ranks.items[0].alone_ns, 18 * 2 * MS);
	assert_int_equal(job.found.ranks.items[0].suffered_ns, 2 * MS);
	assert_int_equal(job.found.ranks.items[0].transfer_ns, 20 * 500 * US);
	assert_int_equal(job.found.ranks.items[1].rank, 5);
	assert_int_equal(job.found.ranks.items[1].caused_ns, 2 * 7 * MS);
	assert_int_equal(rank_of(&job, 0)->suffered_ns, 18 * 2 * MS + 2 * MS);
	assert_int_equal(collectives_waited_ns(&job.found), 18 * 7 * 2 * MS + 2 * 7 * MS);
	assert_int_equal(job.found.kinds.count, 1);
	assert_int_equal(job.found.kinds.items[0].last_rank, 3);
	assert_int_equal(job.found.kinds.items[0].ranks, 8);
	end_job(&job);
}

/* The rank whose clock is 40 ms fast seems to begin last: it waits for the other. */
static void clocks_need_not_agree(void **state)
{
	const int64_t error_ns = 40 * MS;
	struct job job;

	(void)state;
	begin_job(&job, 2);
	for (int64_t j = 0; j < 20; j++) {
		int64_t end_ns = (j + 1) * 10 * MS;

		add_kernel(job.traces[0], ALL_REDUCE, end_ns - MS, end_ns);
		/* It gains 10 µs in each 10 ms, too. */
		add_kernel(job.traces[1], ALL_REDUCE, end_ns - 3 * MS + error_ns + j * 5,
			end_ns + error_ns + j * 5);
	}
	analyse(&job);
	assert_int_equal(job.found.matched, 20);
	assert_int_equal(job.found.ranks.items[0].rank, 0);
	assert_int_equal(job.found.ranks.items[0].caused_ns, 20 * 2 * MS);
	assert_true(job.found.end_error_ns < 10);
	assert_true(rank_of(&job, 1)->has_clock);
	assert_true(labs(rank_of(&job, 1)->clock_error_ns - error_ns) < 100);
	end_job(&job);
}

/* Ranks 0 and 1 are a group, 2 and 3 another, and 0 and 2 a third. Rank 1 delays all. */
static void delays_are_passed_on(void **state)
{
	static const char *const pairs[2] = {"[0, 1]", "[2, 3]"};
	struct job job;

	(void)state;
	begin_job(&job, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct group pair = {"tp", pairs[i / 2], 2, 7};
		const struct group column = {"dp", i % 2 ? "[1, 3]" : "[0, 2]", 2, 1};
		int64_t delay_ns = i == 1 ? 5 * MS : 0;
		int64_t end_ns = 12 * MS + (i < 2 ? 5 * MS : 0);

		add_in_group(job.traces[i], "allreduce", &pair, 10 * MS + delay_ns, end_ns);
		add_in_group(job.traces[i], "allreduce", &column, end_ns + MS, 20 * MS);
	}
	analyse(&job);
	assert_int_equal(job.found.matched, 4);
	assert_int_equal(job.found.by_sequence, 4);
	assert_int_equal(job.found.kinds.count, 4);
	/* Rank 2 waits for rank 0, which waited for rank 1 before. */
	assert_int_equal(job.found.ranks.items[0].rank, 1);
	assert_int_equal(job.found.ranks.items[0].caused_ns, 3 * 5 * MS);
	assert_int_equal(rank_of(&job, 0)->caused_ns, 0);
	assert_int_equal(rank_of(&job, 0)->last, 1);
	assert_int_equal(rank_of(&job, 2)->suffered_ns, 5 * MS);
	assert_true(rank_of(&job, 3)->has_clock);
	end_job(&job);
}

/* ---- what belongs together ---- */

/* One trace begins two collectives later: numbers tell, order does not. */
static void sequence_numbers_count(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 2);
	for (uint32_t i = 0; i < 2; i++) {
		for (int64_t j = i * 2; j < 12; j++) {
			const struct group group = {"0", "[0, 1]", 2, 100 + j};
			int64_t end_ns = (j + 1) * 10 * MS;

			add_in_group(job.traces[i], "allreduce", &group,
				end_ns - MS - (i == 0 ? MS * (j % 3) : 0), end_ns);
		}
	}
	analyse(&job);
	assert_int_equal(job.found.matched, 10);
	assert_int_equal(job.found.unmatched, 2);
	assert_int_equal(job.found.end_error_ns, 0);
	assert_int_equal(job.found.ranks.items[0].rank, 1);
	end_job(&job);
}

/* No groups are known: ranks 0 and 1 work on their own, and so do 2 and 3. */
static void ranks_that_never_meet_are_split(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 4);
	for (uint32_t i = 0; i < 4; i++) {
		int64_t time_ns = 0;

		for (int64_t j = 0; j < 20; j++) {
			time_ns += (10 + (i < 2 ? j * 7 % 5 : j * 3 % 7)) * MS;
			add_kernel(job.traces[i], ALL_REDUCE,
				time_ns - MS - (i == 1 || i == 2 ? 2 * MS : 0), time_ns);
		}
	}
	analyse(&job);
	assert_int_equal(job.found.matched, 40);
	assert_int_equal(job.found.kinds.count, 2);
	assert_int_equal(rank_of(&job, 0)->caused_ns, 40 * MS);
	assert_int_equal(rank_of(&job, 3)->caused_ns, 40 * MS);
	assert_false(rank_of(&job, 3)->has_clock);
	end_job(&job);
}

static void what_does_not_end_together_is_left_out(void **state)
{
	const struct group group = {"0", "[0, 1]", 2, TRACE_NO_NUMBER};
	struct job job;

	(void)state;
	begin_job(&job, 2);
	for (uint32_t i = 0; i < 2; i++) {
		for (int64_t j = 0; j < 10; j++)
			add_in_group(job.traces[i], "_allgather_base", &group,
				(j + 1) * 10 * MS - MS, (j + 1) * 10 * MS);
		add_in_group(job.traces[i], "broadcast", &group, 200 * MS + i * 5 * MS,
			202 * MS + i * 5 * MS);
		add_in_group(
			job.traces[i], "reduce_scatter", &group, 300 * MS, 301 * MS + i * 5 * MS);
	}
	add_kernel(job.traces[1], "ncclDevKernel_AllGather_RING_LL()", 400 * MS, 401 * MS);
	analyse(&job);
	assert_int_equal(job.found.matched, 10);
	assert_int_equal(job.found.one_sided, 2);
	assert_int_equal(job.found.left_out.count, 1);
	assert_string_equal(job.found.left_out.items[0].name, "broadcast");
	assert_int_equal(job.found.left_out.items[0].parts, 2);
	assert_int_equal(job.found.left_out.items[0].time_ns, 4 * MS);
	assert_int_equal(job.found.apart, 1);
	assert_int_equal(job.found.unmatched, 1);
	assert_int_equal(collectives_waited_ns(&job.found), 0);
	end_job(&job);
}

static void ranks_that_are_not_here_are_counted(void **state)
{
	const struct group group = {"0", "[0, 1, 2, 3]", 4, 1};
	struct job job;

	(void)state;
	begin_job(&job, 2);
	for (uint32_t i = 0; i < 2; i++)
		add_in_group(job.traces[i], "allreduce", &group, MS, 2 * MS);
	analyse(&job);
	assert_int_equal(job.found.matched, 1);
	assert_int_equal(job.found.absent, 1);
	end_job(&job);
}

/* Files may say anything: no sum overflows, which the sanitizers see. */
static void times_may_be_anything(void **state)
{
	const int64_t times_ns[] = {INT64_C(1) << 62, -(INT64_C(1) << 61), 0, 5};
	struct job job;

	(void)state;
	begin_job(&job, 3);
	for (uint32_t i = 0; i < 3; i++) {
		job.traces[i]->base_ns = i == 1 ? INT64_MAX / 2 : 0;
		for (size_t j = 0; j < 40; j++) {
			int64_t start_ns = times_ns[(j + i) % 4] + (int64_t)j;
			struct trace_work *work = add_kernel(job.traces[i], ALL_REDUCE, start_ns,
				start_ns + (INT64_C(1) << (j % 60)));

			(void)work;
		}
	}
	analyse(&job);
	assert_true(job.found.matched + job.found.apart + job.found.unmatched > 0);
	end_job(&job);
}

/* ---- how fast ---- */

static void bandwidths_are_nccls(void **state)
{
	struct collective_kind kind = {.name = "all_reduce",
		.ranks = 8,
		.count = 2,
		.bytes = 1000000,
		.transfer_ns = 2 * 1000000};

	(void)state;
	assert_true(fabs(collective_algorithm_bandwidth(&kind) - 1e9) < 1);
	assert_true(fabs(collective_bus_bandwidth(&kind) - 1.75e9) < 1);
	kind.name = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL";
	assert_true(fabs(collective_bus_bandwidth(&kind) - 0.875e9) < 1);
	kind.name = MODEL_ALL_TO_ALL;
	assert_true(fabs(collective_bus_bandwidth(&kind) - 0.875e9) < 1);
	assert_false(collective_is_one_sided(MODEL_ALL_TO_ALL));
	assert_true(collective_is_one_sided(MODEL_SEND_RECV));
	kind.name = "barrier";
	assert_true(isnan(collective_bus_bandwidth(&kind)));
	kind.name = "_allgather_base";
	kind.bytes = TRACE_NO_NUMBER;
	assert_true(isnan(collective_bus_bandwidth(&kind)));
	assert_int_equal(collective_size_of_part("all_gather", 100, 8), 800);
	assert_int_equal(collective_size_of_part("all_reduce", 100, 8), 100);
	assert_int_equal(collective_element_bytes("BFloat16"), 2);
}

static void algorithms_are_in_names(void **state)
{
	char algorithm[16], protocol[16];

	(void)state;
	collective_algorithm(ALL_REDUCE, algorithm, protocol, sizeof(algorithm));
	assert_string_equal(algorithm, "RING");
	assert_string_equal(protocol, "LL");
	collective_algorithm("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(ncclWork*)", algorithm,
		protocol, sizeof(algorithm));
	assert_string_equal(algorithm, "TREE");
	assert_string_equal(protocol, "LL128");
	collective_algorithm(
		"ncclDevKernel_Generic(ncclDevKernelArgs)", algorithm, protocol, sizeof(algorithm));
	assert_string_equal(algorithm, "");
	assert_false(collective_is_call("allreduce_bench"));
	assert_true(collective_is_call("gloo:all_reduce") && collective_is_call("MPI_Allreduce"));
}

/* A compute kernel of rank 0 hides half of its all-reduces; of rank 1 nothing does. */
static void what_hides_collectives_is_named(void **state)
{
	struct job job;

	(void)state;
	begin_job(&job, 2);
	for (uint32_t i = 0; i < 2; i++) {
		for (int64_t j = 0; j < 10; j++) {
			add_kernel(job.traces[i], ALL_REDUCE, j * 10 * MS, j * 10 * MS + 2 * MS);
			if (i == 0)
				example_launch(job.traces[i], "gemm", STREAM + 1,
					j * 10 * MS - 5 * US, US, j * 10 * MS + MS, MS, 1000 + j);
		}
	}
	analyse(&job);
	assert_int_equal(job.found.kinds.count, 1);
	assert_int_equal(job.found.kinds.items[0].parts_ns, 40 * MS);
	assert_int_equal(job.found.kinds.items[0].exposed_ns, 30 * MS);
	assert_string_equal(job.found.kinds.items[0].hidden_by, "gemm");
	assert_string_equal(job.found.kinds.items[0].algorithm, "RING");
	end_job(&job);
}

/* ---- simulation ---- */

#define RANKS      64
#define GROUP_SIZE 8
#define PHASES     24
#define WORLD_EACH 4 /* phases: an all-reduce of all ranks */

struct simulation {
	uint64_t random;
	uint32_t slow;
	int64_t delay_ns;        /* of the slow rank, in each phase */
	int64_t transfer_ns;     /* in this phase */
	int64_t time_ns[RANKS];  /* true */
	int64_t error_ns[RANKS]; /* of clocks */
	double drift[RANKS];     /* likewise */
	int64_t waited_ns;       /* of all, in truth */
	struct job *job;         /* NULL: the same job without the delay */
};

/* splitmix64 */
static uint64_t next_random(struct simulation *simulation)
{
	uint64_t value = simulation->random += 0x9e3779b97f4a7c15;

	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
	value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
	return value ^ (value >> 31);
}

static int64_t between(struct simulation *simulation, int64_t least, int64_t most)
{
	return least + (int64_t)(next_random(simulation) % (uint64_t)(most - least + 1));
}

static int64_t shown_ns(const struct simulation *simulation, uint32_t rank, int64_t time_ns)
{
	return time_ns + simulation->error_ns[rank] +
	       (int64_t)((double)time_ns * simulation->drift[rank]);
}

/* All begin when they come, and end together but for 5 µs. */
static void meet(struct simulation *simulation, uint32_t first, uint32_t count, int64_t sequence)
{
	struct group group = {count == RANKS ? "world" : "tp", "", count, sequence};
	int64_t last_ns = 0;
	char ranks[32];

	snprintf(ranks, sizeof(ranks), "[%u, %u]", first, first + count - 1);
	group.ranks = ranks;
	for (uint32_t i = first; i < first + count; i++)
		last_ns = MAX(last_ns, simulation->time_ns[i]);
	for (uint32_t i = first; i < first + count; i++) {
		int64_t end_ns = last_ns + simulation->transfer_ns + between(simulation, 0, 5 * US);

		simulation->waited_ns += last_ns - simulation->time_ns[i];
		if (simulation->job)
			add_in_group(simulation->job->traces[i], "allreduce", &group,
				shown_ns(simulation, i, simulation->time_ns[i]),
				shown_ns(simulation, i, end_ns));
		simulation->time_ns[i] = end_ns;
	}
}

static void simulate(struct simulation *simulation)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		simulation->error_ns[i] = between(simulation, -5 * MS, 5 * MS);
		simulation->drift[i] = (double)between(simulation, -20, 20) * 1e-6;
	}
	for (int64_t phase = 0; phase < PHASES; phase++) {
		for (uint32_t i = 0; i < RANKS; i++) {
			simulation->time_ns[i] += 10 * MS + between(simulation, 0, 20 * US);
			if (i == simulation->slow)
				simulation->time_ns[i] += simulation->delay_ns;
		}
		simulation->transfer_ns = between(simulation, 300 * US, 2 * MS);
		for (uint32_t i = 0; i < RANKS; i += GROUP_SIZE)
			meet(simulation, i, GROUP_SIZE, phase);
		if (phase % WORLD_EACH == WORLD_EACH - 1)
			meet(simulation, 0, RANKS, phase);
	}
}

/*
 * The cost of the slow rank is what the job waits less without its delay. Groups of eight ranks
 * pass it on to the others, whom they meet in each fourth phase.
 */
static void check_seed(uint64_t seed, double *worst)
{
	struct simulation slow = {.random = seed}, even;
	struct job job;
	double cost, error;

	slow.slow = (uint32_t)between(&slow, 0, RANKS - 1);
	slow.delay_ns = between(&slow, MS, 5 * MS);
	even = slow;
	even.delay_ns = 0;
	begin_job(&job, RANKS);
	slow.job = &job;
	simulate(&slow);
	simulate(&even);
	analyse(&job);
	assert_int_equal(job.found.matched, PHASES * RANKS / GROUP_SIZE + PHASES / WORLD_EACH);
	assert_int_equal(job.found.ranks.items[0].rank, slow.slow);
	cost = (double)(slow.waited_ns - even.waited_ns);
	error = ((double)job.found.ranks.items[0].caused_ns - cost) / cost;
	*worst = MAX(*worst, error < 0 ? -error : error);
	assert_true(*worst <= 0.05);
	for (uint32_t i = 0; i < RANKS; i++) {
		const struct collective_rank *rank = rank_of(&job, i);
		int64_t truth_ns = slow.error_ns[i] - slow.error_ns[0];

		assert_true(rank->has_clock);
		/* In the middle of the job; clocks drift apart by 40 ppm at most. */
		assert_true(labs(rank->clock_error_ns - truth_ns) < 20 * US);
	}
	end_job(&job);
}

static uint64_t seeds = 40;

static void the_slow_rank_of_64_is_found(void **state)
{
	double worst = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++)
		check_seed(seed, &worst);
	printf("%llu jobs of %d ranks: the right rank in all, its cost within %.2f %%\n",
		(unsigned long long)seeds, RANKS, worst * 100);
}

/* The argument is how many jobs are simulated. */
int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_collectives_count),
		cmocka_unit_test(clocks_need_not_agree),
		cmocka_unit_test(delays_are_passed_on),
		cmocka_unit_test(sequence_numbers_count),
		cmocka_unit_test(ranks_that_never_meet_are_split),
		cmocka_unit_test(what_does_not_end_together_is_left_out),
		cmocka_unit_test(ranks_that_are_not_here_are_counted),
		cmocka_unit_test(times_may_be_anything),
		cmocka_unit_test(bandwidths_are_nccls),
		cmocka_unit_test(algorithms_are_in_names),
		cmocka_unit_test(what_hides_collectives_is_named),
		cmocka_unit_test(the_slow_rank_of_64_is_found),
	};

	if (count > 1)
		seeds = strtoull(arguments[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
