/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/avoidable.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "base/map.h"
#include "model/shown.h"

#define ALLOCATION_DEPTH 8 /* frames of an allocator below the call */
#define LOCKING_DEPTH    4 /* frames of the C library below a lock's call */
#define MAX_LOOKED       (1ULL << 26)
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
	uint64_t time_ns, leaf_ns;
};

/* A function in which a line spent time. */
struct charged_leaf {
	uint32_t line; /* index */
	uint32_t frame;
	uint64_t time_ns;
};

struct counting {
	const struct model *model;
	struct avoidable_uses *uses;
	struct stack_kind *stacks; /* by stack, then one for samples without */
	uint16_t *traits;          /* by function: bits of enum trait; 0: not looked at yet */
	uint32_t *threads;         /* by thread: the costs that it has */
	uint64_t *held_ns;         /* by thread: others waited for it to release Python's lock */
	uint64_t *ran_ns; /* by thread: others waited for a lock of the C library meanwhile */
	uint64_t *python_lock_ran_ns; /* by thread: the same of a threading.Lock */
	uint64_t looked;              /* samples, for that: no file takes for ever */
	struct intern keys, leaf_keys;
	ARRAY_OF(struct charged_line) lines;
	ARRAY_OF(struct charged_leaf) leaves;
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

/* Not where a condition is waited for, as pools do. */
static const struct pattern locking[] = {
	{"libc.so*", "*pthread_mutex_lock*"},
	{"libc.so*", "*pthread_rwlock_[rw][dr]lock*"},
	{"libc.so*", "__lll_lock_wait*"},
	{"libpthread*", "*pthread_mutex_lock*"},
	{"libpthread*", "*pthread_rwlock_[rw][dr]lock*"},
	{"libpthread*", "__lll_lock_wait*"},
	{"ld-musl*", "pthread_mutex_lock"},
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

/* What its name and file say of a function. */
enum trait {
	TRAIT_LOOKED_AT,
	TRAIT_PAGE_FAULT, /* of the kernel's */
	TRAIT_SPINNING,
	TRAIT_PARALLEL,
	TRAIT_DEBUG_BUILD,
	TRAIT_ALLOCATION,
	TRAIT_LOCKING,
	TRAIT_REFERENCE_BLAS,
	TRAIT_IMPORT,    /* Python's own, of a module */
	TRAIT_NEXT_DATA, /* of PyTorch's loader */
	TRAIT_MULTIPROCESS,
	TRAIT_CALLBACK, /* that an event loop of asyncio calls */
	TRAIT_NOTEBOOK, /* runs a cell; that is a callback, too, and may take its time */
};

static unsigned python_traits(const struct model_function *function)
{
	unsigned traits = 0;

	if (model_is_import(function))
		traits |= 1U << TRAIT_IMPORT;
	if (is_in_file(function, "asyncio/events.py") && fnmatch("*_run", function->name, 0) == 0)
		traits |= 1U << TRAIT_CALLBACK;
	if (is_in_file(function, "IPython/core/interactiveshell.py"))
		traits |= 1U << TRAIT_NOTEBOOK;
	if (!is_in_file(function, "torch/utils/data/dataloader.py"))
		return traits;
	/* Of CPython 3.8 to 3.10 names are without the class: only this one has these methods. */
	if (fnmatch("*_get_data", function->name, 0) == 0 ||
		strstr(function->name, "_MultiProcessing"))
		traits |= 1U << TRAIT_MULTIPROCESS;
	if (fnmatch("*_next_data", function->name, 0) == 0)
		traits |= 1U << TRAIT_NEXT_DATA;
	return traits;
}

static unsigned find_traits(const struct model *model, uint32_t index)
{
	const struct model_function *function = &model->functions.items[index];
	unsigned traits = 1U << TRAIT_LOOKED_AT;

	if (function->kind == CAPTURE_FRAME_INTERPRETED)
		traits |= python_traits(function);
	if (function->kind == CAPTURE_FRAME_KERNEL && MATCHES(model, index, page_faults))
		traits |= 1U << TRAIT_PAGE_FAULT;
	if (MATCHES(model, index, spinning))
		traits |= 1U << TRAIT_SPINNING;
	if (MATCHES(model, index, parallel))
		traits |= 1U << TRAIT_PARALLEL;
	if (MATCHES(model, index, debug_build))
		traits |= 1U << TRAIT_DEBUG_BUILD;
	if (MATCHES(model, index, allocation))
		traits |= 1U << TRAIT_ALLOCATION;
	if (MATCHES(model, index, locking))
		traits |= 1U << TRAIT_LOCKING;
	if (is_reference_blas(model, index))
		traits |= 1U << TRAIT_REFERENCE_BLAS;
	return traits;
}

/* Patterns are compared once with each function, not with each frame of each stack. */
static bool has_trait(const struct counting *counting, uint32_t function, enum trait trait)
{
	uint16_t *traits = &counting->traits[function];

	if (!*traits)
		*traits = (uint16_t)find_traits(counting->model, function);
	return *traits >> trait & 1;
}

/*
 * What a frame says that has it anywhere below it. The top level of a Python file says nothing: a
 * notebook's cell has one, too, a script that comes with a package, and a process of
 * multiprocessing.
 */
static void look_at_frame(struct stack_kind *kind, const struct counting *counting, uint32_t index,
	bool *is_multiprocess)
{
	if (has_trait(counting, index, TRAIT_PAGE_FAULT))
		kind->running |= 1U << AVOIDABLE_PAGE_FAULTS;
	if (has_trait(counting, index, TRAIT_IMPORT))
		kind->running |= 1U << AVOIDABLE_IMPORTS;
	*is_multiprocess |= has_trait(counting, index, TRAIT_MULTIPROCESS);
	if (has_trait(counting, index, TRAIT_NEXT_DATA))
		kind->running |= 1U << AVOIDABLE_LOADING;
	if (has_trait(counting, index, TRAIT_CALLBACK))
		kind->waiting |= 1U << AVOIDABLE_LOOP_WAIT;
	if (has_trait(counting, index, TRAIT_NOTEBOOK))
		kind->waiting &= ~(1U << AVOIDABLE_LOOP_WAIT);
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
	struct stack_kind *kind, const struct counting *counting, const struct model_stack *stack)
{
	const struct model *model = counting->model;
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
	if (has_trait(counting, function, TRAIT_REFERENCE_BLAS))
		kind->running |= 1U << AVOIDABLE_REFERENCE_BLAS;
	if (has_trait(counting, function, TRAIT_SPINNING))
		kind->running |= 1U << AVOIDABLE_SPINNING;
	else if (has_trait(counting, function, TRAIT_PARALLEL))
		kind->running |= 1U << AVOIDABLE_ONE_THREAD;
	if (!model->frames.items[kind->leaf].inlined &&
		has_trait(counting, function, TRAIT_DEBUG_BUILD))
		kind->running |= 1U << AVOIDABLE_DEBUG_BUILD;
	for (int64_t at = leaf; at >= 0 && at > leaf - ALLOCATION_DEPTH; at--) {
		uint32_t around = model->frames.items[frames[at]].function;

		if (has_trait(counting, around, TRAIT_ALLOCATION))
			kind->running |= 1U << AVOIDABLE_ALLOCATION;
		if (at > leaf - LOCKING_DEPTH && has_trait(counting, around, TRAIT_LOCKING))
			kind->waiting |= 1U << AVOIDABLE_LOCK_WAIT;
	}
	if (model->functions.items[function].kind == CAPTURE_FRAME_INTERPRETED &&
		model->functions.items[function].class == MODEL_CLASS_USER &&
		!(kind->running & 1U << AVOIDABLE_IMPORTS))
		kind->running |= 1U << AVOIDABLE_INTERPRETER;
}

/* Does the user's own code take a threading.Lock there? */
static bool takes_lock(const struct model *model, const struct model_stack *stack)
{
	for (uint32_t i = stack->whole_count; stack->takes_lock && i-- > 0;) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		const struct model_function *function =
			&model->functions.items[model->frames.items[frame].function];

		if (function->kind == CAPTURE_FRAME_INTERPRETED)
			return function->class == MODEL_CLASS_USER;
	}
	return false;
}

static struct stack_kind kind_of(const struct counting *counting, uint32_t index)
{
	const struct model *model = counting->model;
	const struct model_stack *stack = &model->stacks.items[index];
	struct stack_kind kind = {
		.frame = charge_frame(model, index), .leaf = MODEL_NONE, .is_known = true};
	bool is_multiprocess = false; /* of PyTorch's loaders the one with processes */

	if (stack->imports)
		kind.running |= 1U << AVOIDABLE_IMPORTS;
	for (uint32_t i = 0; i < stack->whole_count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];

		look_at_frame(
			&kind, counting, model->frames.items[frame].function, &is_multiprocess);
	}
	look_at_data(&kind, is_multiprocess);
	look_at_leaf(&kind, counting, stack);
	if (takes_lock(model, stack))
		kind.waiting |= 1U << AVOIDABLE_PYTHON_LOCK_WAIT;
	return kind;
}

/* ---- samples ---- */

static int charge_leaf(struct counting *counting, uint32_t line, uint32_t frame, uint64_t time_ns)
{
	const struct model *model = counting->model;
	uint32_t key[2] = {line, frame}, id;
	int r;

	if (frame != MODEL_NONE)
		key[1] = model->frames.items[frame].function;
	r = intern_add(&counting->leaf_keys, key, sizeof(key), &id);
	if (r > 0)
		r = array_append(&counting->leaves, (struct charged_leaf){line, frame, 0});
	if (r < 0)
		return r;
	counting->leaves.items[id].time_ns += time_ns;
	return 0;
}

static int charge(struct counting *counting, enum avoidable cost, const struct stack_kind *kind,
	uint64_t time_ns)
{
	struct charge_key key = charge_key(counting->model, kind->frame, cost);
	uint32_t id;
	int r = intern_add(&counting->keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&counting->lines,
			(struct charged_line){cost, kind->frame, MODEL_NONE, 0, 0});
	if (r < 0)
		return r;
	counting->lines.items[id].time_ns += time_ns;
	counting->uses->items[cost].time_ns += time_ns;
	return charge_leaf(counting, id, kind->leaf, time_ns);
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
	case WIRE_WAIT_LOCK:
		return kind->waiting;
	default:
		return kind->waiting &
		       ~(1U << AVOIDABLE_LOCK_WAIT | 1U << AVOIDABLE_PYTHON_LOCK_WAIT);
	}
}

static bool is_busy(
	const struct counting *counting, const struct model_sample *sample, const uint64_t *ran_ns)
{
	/* Who holds Python's lock waits for the interpreter's, too. */
	return sample->wait == WIRE_WAIT_NONE || sample->wait == WIRE_WAIT_CPU ||
	       (sample->wait == WIRE_WAIT_GIL && ran_ns == counting->python_lock_ran_ns);
}

/* Which threads of its process ran while this one waited, or could have run if others had not had
 * the CPUs, and for how long. */
static void count_runners(
	struct counting *counting, const struct model_sample *wait, uint64_t *ran_ns)
{
	const struct model *model = counting->model;
	const struct model_sample *samples = model->samples.items;
	uint64_t begin_ns = wait->time_ns - MIN(wait->duration_ns, wait->time_ns);
	uint32_t process = model->threads.items[wait->thread].process;

	for (size_t i = (size_t)(wait - samples); i-- > 0 && samples[i].time_ns >= begin_ns;) {
		const struct model_sample *other = &samples[i];

		if (counting->looked++ >= MAX_LOOKED)
			return;
		if (is_busy(counting, other, ran_ns) && other->thread != wait->thread &&
			model->threads.items[other->thread].process == process)
			ran_ns[other->thread] +=
				MIN(model_sample_time_ns(model, other), other->time_ns - begin_ns);
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
				: kind_of(counting, sample->stack);
	if (sample->wait == WIRE_WAIT_NONE) {
		counting->uses->running_ns += time_ns;
		counting->uses->samples++;
	}
	if (sample->wait == WIRE_WAIT_GIL && sample->gil_holder != MODEL_NONE)
		counting->held_ns[sample->gil_holder] += time_ns;
	costs = costs_of(sample, kind);
	if (costs & 1U << AVOIDABLE_LOCK_WAIT)
		count_runners(counting, sample, counting->ran_ns);
	if (costs & 1U << AVOIDABLE_PYTHON_LOCK_WAIT)
		count_runners(counting, sample, counting->python_lock_ran_ns);
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
	array_foreach (&counting->leaves, leaf) {
		struct charged_line *line = &counting->lines.items[leaf->line];

		if (leaf->time_ns <= line->leaf_ns)
			continue;
		line->leaf = leaf->frame;
		line->leaf_ns = leaf->time_ns;
	}
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
		if (counting->ran_ns[i] > counting->uses->lock_runner_ns) {
			counting->uses->lock_runner = i;
			counting->uses->lock_runner_ns = counting->ran_ns[i];
		}
		if (counting->threads[i] >> AVOIDABLE_PYTHON_LOCK_WAIT & 1)
			counting->uses->python_lock_ran_ns += counting->python_lock_ran_ns[i];
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
	counting->ran_ns = calloc(model->threads.count + 1, sizeof(*counting->ran_ns));
	counting->python_lock_ran_ns =
		calloc(model->threads.count + 1, sizeof(*counting->python_lock_ran_ns));
	counting->traits = calloc(model->functions.count + 1, sizeof(*counting->traits));
	if (!counting->stacks || !counting->threads || !counting->held_ns || !counting->ran_ns ||
		!counting->python_lock_ran_ns || !counting->traits)
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

	*uses = (struct avoidable_uses){.gil_holder = MODEL_NONE, .lock_runner = MODEL_NONE};
	for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++)
		uses->items[cost].frame = uses->items[cost].leaf = MODEL_NONE;
	all.weight = MODEL_WEIGHT_WALL;
	r = selection_apply(&all, model, &selected, err);
	r = r ?: count(&counting, selected.samples);
	free(counting.stacks);
	free(counting.threads);
	free(counting.held_ns);
	free(counting.ran_ns);
	free(counting.python_lock_ran_ns);
	free(counting.traits);
	intern_done(&counting.keys);
	intern_done(&counting.leaf_keys);
	array_done(&counting.lines);
	array_done(&counting.leaves);
	return r;
}
