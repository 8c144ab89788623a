/* SPDX-License-Identifier: Apache-2.0 */
#include "report/cpu/avoidable_rules.h"

#include <math.h>

#include "model/format.h"
#include "report/view.h"

/* ---- what more must hold ---- */

/* No more than this of the recording's time may threads have used on average. */
#define ONE_THREAD 1.25

/* One thread does it, nearly alone, and no other wants its CPU. */
static bool others_are_idle(const struct avoidable_finding *finding)
{
	double duration = (double)model_duration_ns(finding->model);
	double waits = (double)finding->uses->items[AVOIDABLE_CPU_WAIT].time_ns;

	return finding->use->threads == 1 &&
	       (double)finding->uses->running_ns < ONE_THREAD * duration &&
	       waits < (double)finding->time_ns / 2;
}

static uint64_t saved_by_all_cpus(const struct avoidable_finding *finding)
{
	uint32_t cpus = finding->model->session.cpu_count; /* 0: other profilers do not say */

	return finding->time_ns - finding->time_ns / MAX(cpus, 1U);
}

/* Who is kept from CPUs by a quota, waits for them, too: fewer threads would not help. */
static bool has_no_quota(const struct avoidable_finding *finding)
{
	return finding->uses->items[AVOIDABLE_QUOTA].time_ns < finding->time_ns / 4;
}

/* ---- sentences that say more ---- */

/* Threads that could run: of this program more than there are CPUs, or are others in the way? */
static void say_cpu_wait(const struct avoidable_finding *finding, struct strbuf *text)
{
	double wanted = (double)(finding->uses->running_ns + finding->time_ns);
	double duration = (double)model_duration_ns(finding->model);
	unsigned cpus = finding->model->session.cpu_count;

	format_duration(text, finding->time_ns);
	strbuf_addf(text,
		" of threads' time is waiting for a CPU, %.0f %% of the time in which "
		"they could run. ",
		100 * finding->share);
	if (wanted > duration * cpus)
		strbuf_addf(text,
			"On average %.1f threads could run, and there %s %u CPU%s: use fewer "
			"threads or processes (OMP_NUM_THREADS, torch.set_num_threads, "
			"num_workers; threads times processes count).",
			wanted / duration, cpus == 1 ? "is" : "are", cpus, cpus == 1 ? "" : "s");
	else
		strbuf_add(text,
			"Other programs had the CPUs, or the threads may not use all of them "
			"(affinity).");
}

static void say_one_thread(const struct avoidable_finding *finding, struct strbuf *text)
{
	strbuf_addf(text, "%.0f %% of the CPU time (", 100 * finding->share);
	format_duration(text, finding->time_ns);
	strbuf_addf(text,
		") is in a library that can use all %u CPUs, and only one thread is in it",
		finding->model->session.cpu_count);
}

static void say_quota(const struct avoidable_finding *finding, struct strbuf *text)
{
	strbuf_addf(text, "The cgroup may use %.3g CPU%s, and was stopped for ",
		finding->uses->quota_cpus, finding->uses->quota_cpus == 1 ? "" : "s");
	format_duration(text, finding->time_ns);
	strbuf_addf(text, " because it had used them up, %.0f %% of the time in which it could run",
		100 * finding->share);
}

static void say_heat(const struct avoidable_finding *finding, struct strbuf *text)
{
	strbuf_add(text, "Cores were slowed down for ");
	format_duration(text, finding->time_ns);
	strbuf_add(text, ", added, because they were hot");
}

static void say_gil(const struct avoidable_finding *finding, struct strbuf *text)
{
	const struct avoidable_uses *uses = finding->uses;
	const struct model_thread *thread;

	strbuf_addf(text, "%.0f %% of the time in which threads could run (", 100 * finding->share);
	format_duration(text, finding->time_ns);
	strbuf_add(text, ") is waiting for Python's interpreter lock");
	if (uses->gil_holder == MODEL_NONE)
		return;
	thread = &finding->model->threads.items[uses->gil_holder];
	strbuf_addf(text, ", %.0f %% of it while thread %u (%s) held it",
		100 * (double)uses->gil_holder_ns / (double)finding->time_ns, thread->tid,
		thread->name);
}

/* Where no thread runs meanwhile, it is not a lock that is held for long by who computes. */
#define LOCK_RUNNER 0.6

static bool has_lock_runner(const struct avoidable_finding *finding)
{
	const struct avoidable_uses *uses = finding->uses;

	return uses->lock_runner != MODEL_NONE &&
	       (double)uses->lock_runner_ns >= LOCK_RUNNER * (double)finding->time_ns;
}

static void say_lock(const struct avoidable_finding *finding, struct strbuf *text)
{
	const struct avoidable_uses *uses = finding->uses;
	const struct model_thread *thread = &finding->model->threads.items[uses->lock_runner];
	double ran = (double)uses->lock_runner_ns / (double)finding->time_ns;

	strbuf_addf(text, "%.0f %% of the time in which threads could run (", 100 * finding->share);
	format_duration(text, finding->time_ns);
	strbuf_addf(text,
		") is waiting for a lock, %.0f %% of it while thread %u (%s) ran or had no CPU",
		fmin(100 * ran, 100), thread->tid, thread->name);
}

/* Who waits ran, too, while others waited: they take turns. A lock that is a signal, which idle
 * workers wait for, has no such turns. */
static bool has_turns(const struct avoidable_finding *finding)
{
	return finding->use->threads >= 2 &&
	       (double)finding->uses->python_lock_ran_ns >= LOCK_RUNNER * (double)finding->time_ns;
}

static void say_python_lock(const struct avoidable_finding *finding, struct strbuf *text)
{
	strbuf_addf(text, "%.0f %% of the time in which threads could run (", 100 * finding->share);
	format_duration(text, finding->time_ns);
	strbuf_addf(text,
		") is waiting for a threading.Lock, of %u threads that wait for one another",
		finding->use->threads);
}

/* ---- the rules ---- */

#define PAGE "docs/record.md#what-to-change"

/* From which shares on: what a user would look for, far above what healthy programs have. */
const struct avoidable_rule avoidable_rules[AVOIDABLE_MAX] = {
	[AVOIDABLE_REFERENCE_BLAS] = {.id = "reference_blas",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.1,
		.min_ns = 300 * NS_PER_MS,
		.has_leaf = true,
		.has_line = true,
		.what = "is in the reference BLAS",
		.help = "It is written to be read, not to be fast: install an optimised one "
			"(Debian's libopenblas0-pthread), or NumPy and PyTorch from PyPI, which "
			"bring their own.",
		.docs = PAGE},
	[AVOIDABLE_SPINNING] = {.id = "spinning_threads",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.15,
		.min_ns = 300 * NS_PER_MS,
		.has_leaf = true,
		.has_line = true,
		.what = "is spent by threads that spin until others arrive",
		.help = "There is too little work for so many threads, or it is uneven: use fewer "
			"(OMP_NUM_THREADS, torch.set_num_threads), or give each call more to do. "
			"OMP_WAIT_POLICY=passive leaves the CPUs to others meanwhile.",
		.docs = PAGE},
	[AVOIDABLE_PAGE_FAULTS] = {.id = "page_faults",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.2,
		.min_ns = 300 * NS_PER_MS,
		.has_line = true,
		.what = "is page faults: memory that the kernel hands out",
		.help = "Use buffers again in place of new ones; for malloc, "
			"MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ keep freed memory in "
			"the process.",
		.docs = PAGE},
	[AVOIDABLE_ALLOCATION] = {.id = "allocation",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.2,
		.min_ns = 300 * NS_PER_MS,
		.has_line = true,
		.what = "is malloc and free",
		.help = "Allocate outside of the loop, or try another allocator (jemalloc or "
			"tcmalloc, with LD_PRELOAD).",
		.docs = PAGE},
	[AVOIDABLE_IMPORTS] = {.id = "imports",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.3,
		.min_ns = NS_PER_S,
		.has_line = true,
		.what = "is the import of Python modules",
		.help = "Import what is rarely needed where it is needed; python -X importtime "
			"says what each module takes.",
		.docs = PAGE},
	[AVOIDABLE_INTERPRETER] = {.id = "python_loop",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.3,
		.min_ns = 500 * NS_PER_MS,
		.is_of_line = true,
		.has_line = true,
		.what = "is Python itself, on one line",
		.help = "Have NumPy or PyTorch do the loop for whole arrays, or compile it (Numba, "
			"Cython).",
		.docs = "docs/python.md"},
	[AVOIDABLE_LOADING] = {.id = "loading_in_the_main_thread",
		.base = AVOIDABLE_OF_DURATION,
		.min_share = 0.2,
		.min_ns = NS_PER_S,
		.has_line = true,
		.what = "is loading of data in the thread that uses it",
		.help = "DataLoader(num_workers=N) loads in other processes meanwhile.",
		.docs = PAGE},
	[AVOIDABLE_ONE_THREAD] = {.id = "one_thread",
		.needs = AVOIDABLE_NEEDS_CPUS,
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.5,
		.min_ns = NS_PER_S,
		.holds = others_are_idle,
		.saves_ns = saved_by_all_cpus,
		.has_leaf = true,
		.has_line = true,
		.say = say_one_thread,
		.help = "Let it use more: look for OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, "
			"MKL_NUM_THREADS and torch.set_num_threads, and at the affinity that the "
			"program began with (taskset, the job's scheduler).",
		.docs = PAGE},
	[AVOIDABLE_DEBUG_BUILD] = {.id = "debug_build",
		.base = AVOIDABLE_OF_CPU_TIME,
		.min_share = 0.1,
		.min_ns = 300 * NS_PER_MS,
		.has_leaf = true,
		.has_line = true,
		.what = "is what only a debug build has: checks, and small functions that are not "
			"inlined",
		.help = "Build with -O2 (CMAKE_BUILD_TYPE=Release) and without sanitizers; run "
			"Python without -X dev and PYTHONMALLOC=debug.",
		.docs = PAGE},
	[AVOIDABLE_CPU_WAIT] = {.id = "threads_wait_for_cpus",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_WANTED,
		.min_share = 0.3,
		.min_ns = NS_PER_S,
		.holds = has_no_quota,
		.say = say_cpu_wait,
		.docs = PAGE},
	[AVOIDABLE_GIL_WAIT] = {.id = "interpreter_lock",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_WANTED,
		.min_share = 0.25,
		.min_ns = NS_PER_S,
		.has_line = true,
		.say = say_gil,
		.help = "Only one thread runs Python at a time: use processes, or native code that "
			"releases the lock. --by gil says which lines held it.",
		.docs = "docs/python.md"},
	[AVOIDABLE_DATA_WAIT] = {.id = "data_loader_too_slow",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_DURATION,
		.min_share = 0.2,
		.min_ns = NS_PER_S,
		.has_line = true,
		.what = "is waiting for the processes that load data",
		.help = "Give DataLoader more of them (num_workers), let them load further ahead "
			"(prefetch_factor), or make loading cheaper.",
		.docs = PAGE},
	[AVOIDABLE_LOCK_WAIT] = {.id = "lock_wait",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_WANTED,
		.min_share = 0.25,
		.min_ns = NS_PER_S,
		.holds = has_lock_runner,
		.has_line = true,
		.say = say_lock,
		.help = "Compute before taking the lock, hold it for what is shared alone, or have "
			"several (one for each part of the data).",
		.docs = PAGE},
	[AVOIDABLE_PYTHON_LOCK_WAIT] = {.id = "python_lock_wait",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_WANTED,
		.min_share = 0.25,
		.min_ns = NS_PER_S,
		.holds = has_turns,
		.has_line = true,
		.say = say_python_lock,
		.help = "Compute before taking the lock, hold it for what is shared alone, or have "
			"several (one for each part of the data).",
		.docs = PAGE},
	[AVOIDABLE_LOOP_WAIT] = {.id = "blocked_event_loop",
		.needs = AVOIDABLE_NEEDS_WAITING,
		.base = AVOIDABLE_OF_DURATION,
		.min_share = 0.2,
		.min_ns = NS_PER_S,
		.has_line = true,
		.what = "is waiting in a callback of asyncio's event loop, which runs nothing else "
			"meanwhile",
		.help = "Await it (asyncio.sleep, an asynchronous client), or do it in a thread "
			"(asyncio.to_thread).",
		.docs = PAGE},
	[AVOIDABLE_QUOTA] = {.id = "cpu_quota",
		.base = AVOIDABLE_OF_WANTED,
		.min_share = 0.1,
		.min_ns = 300 * NS_PER_MS,
		.say = say_quota,
		.help = "Give it more (limits.cpu in Kubernetes, --cpus of docker, CPUQuota= of "
			"systemd), or use as many threads as the quota has CPUs.",
		.docs = PAGE},
	[AVOIDABLE_HEAT] = {.id = "hot_cpus",
		.base = AVOIDABLE_OF_DURATION,
		.min_share = 0.1,
		.min_ns = NS_PER_S,
		.say = say_heat,
		.help = "Cool them better, or give them less to do: other programs count, too.",
		.docs = PAGE},
};

/* ---- of all rules ---- */

const char *avoidable_base_name(enum avoidable_base base)
{
	static const char *const names[] = {
		[AVOIDABLE_OF_CPU_TIME] = "cpu_time",
		[AVOIDABLE_OF_WANTED] = "wanted_time",
		[AVOIDABLE_OF_DURATION] = "duration",
	};

	return names[base];
}

static uint64_t whole_of(const struct avoidable_finding *finding)
{
	switch (finding->rule->base) {
	case AVOIDABLE_OF_CPU_TIME:
		return finding->uses->running_ns;
	case AVOIDABLE_OF_WANTED:
		return finding->uses->running_ns + finding->use->time_ns;
	case AVOIDABLE_OF_DURATION: /* of each thread that has it: ranks have one each */
		return model_duration_ns(finding->model) * MAX(finding->use->threads, 1U);
	}
	return 0;
}

struct avoidable_finding avoidable_find(
	const struct model *model, const struct avoidable_uses *uses, enum avoidable cost)
{
	struct avoidable_finding found = {.rule = &avoidable_rules[cost],
		.model = model,
		.uses = uses,
		.use = &uses->items[cost]};
	uint64_t whole = whole_of(&found);

	found.time_ns = found.rule->is_of_line ? found.use->frame_ns : found.use->time_ns;
	found.share = whole ? (double)found.time_ns / (double)whole : NAN;
	return found;
}

static bool has_needs(const struct avoidable_finding *finding)
{
	unsigned needs = finding->rule->needs;

	if ((needs & AVOIDABLE_NEEDS_CPUS) && finding->model->session.cpu_count < 2)
		return false;
	return !(needs & AVOIDABLE_NEEDS_WAITING) || report_has_waiting(finding->model);
}

bool avoidable_is_large(const struct avoidable_finding *finding)
{
	return finding->time_ns >= finding->rule->min_ns &&
	       finding->share >= finding->rule->min_share && has_needs(finding) &&
	       (!finding->rule->holds || finding->rule->holds(finding));
}

uint64_t avoidable_saves_ns(const struct avoidable_finding *finding)
{
	return finding->rule->saves_ns ? finding->rule->saves_ns(finding) : finding->time_ns;
}

static void add_leaf(const struct avoidable_finding *finding, struct strbuf *text)
{
	const struct model *model = finding->model;
	uint32_t function;

	if (!finding->rule->has_leaf || finding->use->leaf == MODEL_NONE)
		return;
	function = model->frames.items[finding->use->leaf].function;
	if (model->functions.items[function].unnamed)
		strbuf_addf(text, " (in %s)", model_function_module(model, function));
	else
		strbuf_addf(text, " (%s of %s)", model_function_name(model, function),
			model_function_module(model, function));
}

static void add_line(const struct avoidable_finding *finding, struct strbuf *text)
{
	const struct model *model = finding->model;
	uint32_t index = finding->use->frame;
	const struct model_frame *frame;

	if (!finding->rule->has_line || index == MODEL_NONE ||
		model->functions.items[model->frames.items[index].function].class !=
			MODEL_CLASS_USER)
		return;
	frame = &model->frames.items[index];
	if (finding->rule->is_of_line)
		strbuf_add(text, ": ");
	else if (finding->use->frame_ns > finding->time_ns / 2)
		strbuf_add(text, ", most of it under ");
	else
		strbuf_add(text, ", for example under ");
	if (frame->line)
		strbuf_addf(text, "%s:%u", frame->source_file, frame->line);
	else
		strbuf_add(text, model_function_name(model, frame->function));
}

void avoidable_say(const struct avoidable_finding *finding, struct strbuf *text)
{
	static const char *const bases[] = {
		[AVOIDABLE_OF_CPU_TIME] = "CPU time",
		[AVOIDABLE_OF_WANTED] = "time in which threads could run",
		[AVOIDABLE_OF_DURATION] = "recording",
	};
	const struct avoidable_rule *rule = finding->rule;

	if (rule->say) {
		rule->say(finding, text);
	} else {
		strbuf_addf(text, "%.0f %% of the %s (", 100 * finding->share, bases[rule->base]);
		format_duration(text, finding->time_ns);
		if (rule->base == AVOIDABLE_OF_DURATION && finding->use->threads > 1)
			strbuf_addf(text, " of %u threads together", finding->use->threads);
		strbuf_addf(text, ") %s", rule->what);
	}
	add_leaf(finding, text);
	add_line(finding, text);
	if (rule->help)
		strbuf_addf(text, ". %s", rule->help);
}
