/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/avoidable.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "base/map.h"

#define ALLOCATION_DEPTH 8   /* frames of an allocator below the call */
#define MAX_SECONDS      1e9 /* of a counter: a file may say anything */

/* Where one stack belongs: bits of enum avoidable, of samples that run and of those that wait. */
struct stack_kind {
	uint32_t running, waiting;
	uint32_t frame, leaf; /* as in struct avoidable_use */
	bool is_known;
};

struct charged_line {
	enum avoidable cost;
	uint32_t frame, leaf;
	uint64_t time_ns;
};

struct counting {
	const struct model *model;
	struct avoidable_uses *uses;
	struct stack_kind *stacks; /* by stack, then one for samples without */
	uint32_t *threads;         /* by thread: the costs that it has */
	uint64_t *held_ns;         /* by thread: others waited for it to release Python's lock */
	struct intern keys;
	ARRAY_OF(struct charged_line) lines;
};

/* ---- functions ---- */

struct pattern {
	const char *module, *function; /* of fnmatch() */
};

/* The runtimes of OpenMP do nothing else for long. Distributions strip their symbols. */
static const struct pattern spinning[] = {
	{"libgomp*", "*"},
	{"libomp*", "*"},
	{"libiomp5*", "*"},
	{"*blas*", "blas_thread_server"},
};

static const struct pattern allocation[] = {
	{"libc.so*", "malloc"},
	{"libc.so*", "free"},
	{"libc.so*", "cfree*"},
	{"libc.so*", "calloc"},
	{"libc.so*", "realloc"},
	{"libc.so*", "_int_*"},
	{"libc.so*", "malloc_consolidate"},
	{"libc.so*", "unlink_chunk*"},
	{"libc.so*", "sysmalloc*"},
	{"libc.so*", "systrim*"},
	{"libc.so*", "*__libc_malloc*"},
	{"libc.so*", "*__libc_free*"},
};

static const struct pattern page_faults[] = {
	{"*", "asm_exc_page_fault"},
	{"*", "exc_page_fault"},
	{"*", "do_user_addr_fault"},
	{"*", "handle_mm_fault"},
};

/* Libraries that share each call among threads, and do so for all but the smallest. */
static const struct pattern parallel[] = {
	{"*openblas*", "*"},
	{"libmkl_*", "*"},
	{"libblis*", "*"},
	{"libtorch_cpu*", "*gemm*"},
	{"libtorch_cpu*", "mkl_blas_*"},
};

/* Sanitizers, Python's and glibc's checks of memory, and C++ without optimisation: what a release
 * build has inline. */
static const struct pattern debug_build[] = {
	{"lib?san.so*", "*"},
	{"libubsan.so*", "*"},
	{"*", "__asan_*"},
	{"*", "__tsan_*"},
	{"*", "__msan_*"},
	{"*", "__ubsan_*"},
	{"libc_malloc_debug*", "*"},
	{"*", "_PyMem_Debug*"},
	{"*", "_Py*_CheckConsistency"},
	{"*", "std::*::operator[[][]]*"},
	{"*", "std::vector<*>::size() const"},
	{"*", "std::vector<*>::begin()*"},
	{"*", "std::vector<*>::end()*"},
	{"*", "*std::move<*"},
	{"*", "*std::forward<*"},
	{"*", "__gnu_cxx::__normal_iterator<*"},
	{"*", "*std::__addressof<*"},
	{"*", "*std::__get_helper<*"},
};

static bool matches(
	const struct model *model, uint32_t function, const struct pattern *patterns, size_t count)
{
	const char *name = model_function_name(model, function);
	const char *module = model_function_module(model, function);

	for (size_t i = 0; i < count; i++) {
		if (fnmatch(patterns[i].function, name, 0) == 0 &&
			fnmatch(patterns[i].module, module, 0) == 0)
			return true;
	}
	return false;
}
#define MATCHES(model, function, patterns) matches(model, function, patterns, ARRAY_SIZE(patterns))

/*
 * Netlib's BLAS and LAPACK, as distributions install them. OpenBLAS and its like are installed
 * under the same file name in a folder of their own, such as openblas-pthread/libblas.so.3.
 */
static bool is_reference_blas(const struct model *model, uint32_t function)
{
	uint32_t module = model->functions.items[function].module;
	const char *path;

	if (module == MODEL_NONE || module >= model->modules.count)
		return false;
	path = model->modules.items[module].path;
	if (fnmatch("libblas.so*", model->modules.items[module].name, 0) != 0 &&
		fnmatch("liblapack.so*", model->modules.items[module].name, 0) != 0)
		return false;
	return !strstr(path, "openblas") && !strstr(path, "blis") && !strstr(path, "atlas") &&
	       !strstr(path, "mkl");
}

static bool is_in_file(const struct model_function *function, const char *end)
{
	size_t length = strlen(function->source_file), wanted = strlen(end);

	return length >= wanted && strcmp(function->source_file + length - wanted, end) == 0;
}

/* What is known of a stack from its outer frames. */
struct look {
	bool has_module;      /* the top level of a Python file; a second one is an import's */
	bool is_multiprocess; /* of PyTorch's loaders the one with processes */
};

/* What a frame says that has it anywhere below it. */
static void look_at_frame(
	struct stack_kind *kind, const struct model *model, uint32_t index, struct look *look)
{
	const struct model_function *function = &model->functions.items[index];

	if (function->kind == CAPTURE_FRAME_KERNEL && MATCHES(model, index, page_faults))
		kind->running |= 1U << AVOIDABLE_PAGE_FAULTS;
	if (function->kind != CAPTURE_FRAME_INTERPRETED)
		return;
	if (strcmp(function->name, "<module>") == 0) {
		if (look->has_module || function->class != MODEL_CLASS_USER)
			kind->running |= 1U << AVOIDABLE_IMPORTS;
		look->has_module = true;
	}
	if (!is_in_file(function, "torch/utils/data/dataloader.py"))
		return;
	/* Of CPython 3.8 to 3.10 names are without the class: only this one has these methods. */
	look->is_multiprocess |= fnmatch("*_get_data", function->name, 0) == 0 ||
				 strstr(function->name, "_MultiProcessing") != NULL;
	if (fnmatch("*_next_data", function->name, 0) == 0)
		kind->running |= 1U << AVOIDABLE_LOADING;
}

static void look_at_data(struct stack_kind *kind, bool is_multiprocess)
{
	uint32_t loading = 1U << AVOIDABLE_LOADING;

	if (!(kind->running & loading))
		return;
	if (is_multiprocess) {
		kind->running &= ~loading;
		kind->waiting |= 1U << AVOIDABLE_DATA_WAIT;
	} else {
		kind->waiting |= loading;
	}
}

/* What the innermost frames say. */
static void look_at_leaf(
	struct stack_kind *kind, const struct model *model, const struct model_stack *stack)
{
	const uint32_t *frames = model->stack_frames.items + stack->first;
	int64_t leaf = (int64_t)stack->whole_count - 1;
	uint32_t function;

	while (leaf >= 0 &&
		model->functions.items[model->frames.items[frames[leaf]].function].kind ==
			CAPTURE_FRAME_KERNEL)
		leaf--;
	if (leaf < 0)
		return;
	kind->leaf = frames[leaf];
	function = model->frames.items[frames[leaf]].function;
	if (is_reference_blas(model, function))
		kind->running |= 1U << AVOIDABLE_REFERENCE_BLAS;
	if (MATCHES(model, function, spinning))
		kind->running |= 1U << AVOIDABLE_SPINNING;
	else if (MATCHES(model, function, parallel))
		kind->running |= 1U << AVOIDABLE_ONE_THREAD;
	if (!model->frames.items[kind->leaf].inlined && MATCHES(model, function, debug_build))
		kind->running |= 1U << AVOIDABLE_DEBUG_BUILD;
	for (int64_t at = leaf; at >= 0 && at > leaf - ALLOCATION_DEPTH; at--) {
		if (MATCHES(model, model->frames.items[frames[at]].function, allocation))
			kind->running |= 1U << AVOIDABLE_ALLOCATION;
	}
	if (model->functions.items[function].kind == CAPTURE_FRAME_INTERPRETED &&
		model->functions.items[function].class == MODEL_CLASS_USER &&
		!(kind->running & 1U << AVOIDABLE_IMPORTS))
		kind->running |= 1U << AVOIDABLE_INTERPRETER;
}

static struct stack_kind kind_of(const struct model *model, uint32_t index)
{
	const struct model_stack *stack = &model->stacks.items[index];
	struct stack_kind kind = {
		.frame = charge_frame(model, index), .leaf = MODEL_NONE, .is_known = true};
	struct look look = {0};

	for (uint32_t i = 0; i < stack->whole_count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];

		look_at_frame(&kind, model, model->frames.items[frame].function, &look);
	}
	look_at_data(&kind, look.is_multiprocess);
	look_at_leaf(&kind, model, stack);
	return kind;
}

/* ---- samples ---- */

static int charge(struct counting *counting, enum avoidable cost, const struct stack_kind *kind,
	uint64_t time_ns)
{
	struct charge_key key = charge_key(counting->model, kind->frame, cost);
	uint32_t id;
	int r = intern_add(&counting->keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(
			&counting->lines, (struct charged_line){cost, kind->frame, kind->leaf, 0});
	if (r < 0)
		return r;
	counting->lines.items[id].time_ns += time_ns;
	counting->uses->items[cost].time_ns += time_ns;
	return 0;
}

static uint32_t costs_of(const struct model_sample *sample, const struct stack_kind *kind)
{
	switch (sample->wait) {
	case WIRE_WAIT_NONE:
		return kind->running;
	case WIRE_WAIT_CPU:
		return 1U << AVOIDABLE_CPU_WAIT;
	case WIRE_WAIT_GIL:
		return 1U << AVOIDABLE_GIL_WAIT;
	default:
		return kind->waiting;
	}
}

static int count_sample(struct counting *counting, const struct model_sample *sample)
{
	const struct model *model = counting->model;
	size_t index = sample->stack == MODEL_NONE ? model->stacks.count : sample->stack;
	struct stack_kind *kind = &counting->stacks[index];
	uint64_t time_ns = model_sample_time_ns(model, sample);
	uint32_t costs;

	if (!kind->is_known)
		*kind = sample->stack == MODEL_NONE
				? (struct stack_kind){0, 0, MODEL_NONE, MODEL_NONE, true}
				: kind_of(model, sample->stack);
	if (sample->wait == WIRE_WAIT_NONE) {
		counting->uses->running_ns += time_ns;
		counting->uses->samples++;
	}
	if (sample->wait == WIRE_WAIT_GIL && sample->gil_holder != MODEL_NONE)
		counting->held_ns[sample->gil_holder] += time_ns;
	costs = costs_of(sample, kind);
	counting->threads[sample->thread] |= costs;
	for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++) {
		int r = costs & 1U << cost ? charge(counting, cost, kind, time_ns) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_own(const struct model *model, uint32_t frame)
{
	return frame != MODEL_NONE &&
	       model->functions.items[model->frames.items[frame].function].class ==
		       MODEL_CLASS_USER;
}

/* The heaviest line of the user's own code; where there is none, the heaviest of all. */
static void find_heaviest(struct counting *counting)
{
	array_foreach (&counting->lines, line) {
		struct avoidable_use *use = &counting->uses->items[line->cost];
		bool is_ours = is_own(counting->model, line->frame);
		bool had_ours = is_own(counting->model, use->frame);

		if (line->frame == MODEL_NONE || had_ours > is_ours ||
			(had_ours == is_ours && line->time_ns <= use->frame_ns))
			continue;
		use->frame = line->frame;
		use->leaf = line->leaf;
		use->frame_ns = line->time_ns;
	}
	for (uint32_t i = 0; i < counting->model->threads.count; i++) {
		if (counting->held_ns[i] > counting->uses->gil_holder_ns) {
			counting->uses->gil_holder = i;
			counting->uses->gil_holder_ns = counting->held_ns[i];
		}
		for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++)
			counting->uses->items[cost].threads += counting->threads[i] >> cost & 1;
	}
}

/* Of what only grows the last value, of the process with most. */
static void count_limits(struct avoidable_uses *uses, const struct model *model)
{
	static const struct {
		const char *name;
		enum avoidable cost;
	} counters[] = {
		{CAPTURE_COUNTER_THROTTLED, AVOIDABLE_QUOTA},
		{CAPTURE_COUNTER_HEAT, AVOIDABLE_HEAT},
	};

	array_foreach (&model->counters, counter) {
		if (strcmp(counter->name, CAPTURE_COUNTER_QUOTA) == 0 && counter->value > 0)
			uses->quota_cpus = counter->value;
		for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
			uint64_t *time_ns = &uses->items[counters[i].cost].time_ns;

			if (strcmp(counter->name, counters[i].name) == 0 && counter->value > 0 &&
				counter->value < MAX_SECONDS)
				*time_ns = MAX(*time_ns, (uint64_t)(counter->value * NS_PER_S));
		}
	}
}

static int count(struct counting *counting, const bool *selected)
{
	const struct model *model = counting->model;
	int r = 0;

	counting->stacks = calloc(model->stacks.count + 1, sizeof(*counting->stacks));
	counting->threads = calloc(model->threads.count + 1, sizeof(*counting->threads));
	counting->held_ns = calloc(model->threads.count + 1, sizeof(*counting->held_ns));
	if (!counting->stacks || !counting->threads || !counting->held_ns)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected[i])
			r = count_sample(counting, &model->samples.items[i]);
	}
	if (r == 0)
		find_heaviest(counting);
	count_limits(counting->uses, model);
	return r;
}

int avoidable_uses_init(struct avoidable_uses *uses, const struct model *model,
	const struct selection *selection, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	struct counting counting = {.model = model, .uses = uses};
	struct selection all = *selection;
	int r;

	*uses = (struct avoidable_uses){.gil_holder = MODEL_NONE};
	for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++)
		uses->items[cost].frame = uses->items[cost].leaf = MODEL_NONE;
	all.weight = MODEL_WEIGHT_WALL;
	r = selection_apply(&all, model, &selected, err);
	r = r ?: count(&counting, selected.samples);
	free(counting.stacks);
	free(counting.threads);
	free(counting.held_ns);
	intern_done(&counting.keys);
	array_done(&counting.lines);
	return r;
}
