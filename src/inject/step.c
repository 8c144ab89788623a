/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/step.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <string.h>
#include <sys/stat.h>

#include "inject/inject.h"
#include "inject/nvtx/nvtx.h"

#define DEFAULT_NAME "step"
/* A name that lies in so many aligned words is compared without a call. */
#define QUICK_WORDS 2

typedef uint64_t __attribute__((may_alias)) word;

/*
 * Of this thread: the counter that it counted alone in last, and its name as the program gave it.
 * The fast kind of thread variables, of which a library may have a few bytes.
 */
struct step_thread {
	struct wire_step_counter *counter;
	const char *address;     /* NULL: none, or a longer one */
	word words[QUICK_WORDS]; /* what lay there: aligned ones, its first byte in the first */
	uint64_t word_count;
};

static __thread struct step_thread own __attribute__((tls_model("initial-exec")));
static pthread_once_t pattern_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static regex_t pattern;
static bool has_pattern;

/* ---- counting ---- */

static uint64_t count_owned(struct wire_step_counter *counter)
{
	uint64_t owned = atomic_load_explicit(&counter->owned, memory_order_relaxed) + 1;

	atomic_store_explicit(&counter->owned, owned, memory_order_relaxed);
	return owned + atomic_load_explicit(&counter->shared, memory_order_relaxed);
}

static uint64_t count_shared(struct wire_step_counter *counter)
{
	uint64_t shared = atomic_fetch_add_explicit(&counter->shared, 1, memory_order_relaxed) + 1;

	return shared + atomic_load_explicit(&counter->owned, memory_order_relaxed);
}

static uint64_t total(const struct wire_step_counter *counter)
{
	return atomic_load(&counter->owned) + atomic_load(&counter->shared);
}

/* ---- names ---- */

static const word *first_word(const char *name)
{
	return (const word *)((uintptr_t)name & ~(uintptr_t)(sizeof(word) - 1));
}

/*
 * Is it the name of the thread's own counter, at the place where it was before? Aligned words may
 * be read whatever surrounds the name; where that changed, the answer is no, and the text is
 * compared.
 */
static inline __attribute__((no_sanitize_address)) bool is_own(const char *name)
{
	const word *words = first_word(name);

	return own.address == name && words[0] == own.words[0] &&
	       (own.word_count == 1 || words[1] == own.words[1]);
}

static void compile_pattern(void)
{
	const char *text = inject_session_gate()->step_pattern;

	has_pattern = text[0] && regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB) == 0;
}

/* Windows count the steps that --step-on names, or else by those of the first name. */
static bool is_chosen(const char *name, bool is_first)
{
	pthread_once(&pattern_once, compile_pattern);
	return has_pattern ? regexec(&pattern, name, 0, NULL, 0) == 0 : is_first;
}

static __attribute__((no_sanitize_address)) void remember(
	struct wire_step_counter *counter, const char *name)
{
	const word *words = first_word(name);
	size_t count = (size_t)(first_word(name + strlen(name)) - words) + 1;

	own = (struct step_thread){.counter = counter};
	if (count > QUICK_WORDS)
		return; /* it is compared each time */
	own.address = name;
	own.word_count = count;
	for (size_t i = 0; i < count; i++)
		own.words[i] = words[i];
}

static bool has_name(const struct wire_step_counter *counter, const char *name)
{
	return strncmp(name, counter->name, sizeof(counter->name) - 1) == 0;
}

/* The thread that adds a name counts alone in its counter. */
static void add_name(struct wire_step_counter *counter, size_t index, const char *name)
{
	memcpy(counter->name, name, strnlen(name, sizeof(counter->name) - 1));
	counter->owner = inject_tid();
	atomic_store_explicit(&counter->state,
		is_chosen(name, index == 0) ? WIRE_STEP_CHOSEN : WIRE_STEP_NAMED,
		memory_order_release);
}

/* -1: it has none. */
static int find_counter(const struct wire_ring_file *file, const char *name)
{
	for (int i = 0; i < WIRE_STEP_NAMES; i++) {
		const struct wire_step_counter *counter = &file->steps[i];

		if (atomic_load_explicit(&counter->state, memory_order_acquire) == WIRE_STEP_FREE)
			return -1;
		if (has_name(counter, name))
			return i;
	}
	return -1;
}

/* The counter's index; -1: there are too many names. Names are few, and added once. */
static int find_name(struct wire_ring_file *file, const char *name)
{
	int index = find_counter(file, name);

	if (index >= 0)
		return index;
	pthread_mutex_lock(&adding);
	index = find_counter(file, name);
	for (int i = 0; index < 0 && i < WIRE_STEP_NAMES; i++) {
		struct wire_step_counter *counter = &file->steps[i];

		if (atomic_load_explicit(&counter->state, memory_order_relaxed) != WIRE_STEP_FREE)
			continue;
		add_name(counter, (size_t)i, name);
		index = i;
	}
	pthread_mutex_unlock(&adding);
	return index;
}

/* ---- windows ---- */

/* The collector watches the folder: this wakes it. */
static void poke_collector(void)
{
	int saved_errno = errno;

	utimensat(AT_FDCWD, inject_gate_path(), NULL, AT_SYMLINK_NOFOLLOW);
	errno = saved_errno;
}

static bool is_leader(struct wire_gate *gate)
{
	uint64_t self = inject_file()->start_time_ns, leader = WIRE_GATE_NOBODY;

	return atomic_compare_exchange_strong(&gate->leader, &leader, self) || leader == self;
}

/* A schedule without a collector would open windows that nobody reads. */
static bool is_collector_gone(struct wire_gate *gate, uint64_t now_ns)
{
	uint64_t heartbeat_ns = atomic_load_explicit(&gate->heartbeat_ns, memory_order_relaxed);

	if (now_ns < heartbeat_ns || now_ns - heartbeat_ns <= WIRE_HEARTBEAT_NS)
		return false;
	atomic_store_explicit(&gate->state, WIRE_GATE_CLOSED, memory_order_relaxed);
	return true;
}

/*
 * Makes the edges that are due. Of several threads one does; a step that is counted meanwhile is
 * looked at by it before it leaves. Returns when that was, or 0.
 */
static uint64_t lead(struct wire_gate *gate, const struct wire_step_counter *counter)
{
	uint64_t self = inject_file()->start_time_ns, made_ns = 0, count;
	bool is_made;

	do {
		uint64_t now_ns;

		if (!wire_gate_try_lock(gate, self))
			break;
		now_ns = inject_now_ns();
		count = total(counter);
		is_made = !is_collector_gone(gate, now_ns) &&
			  wire_gate_end_by_step(gate, count, now_ns);
		if (gate->schedule.kind != WIRE_SCHEDULE_NONE && !is_collector_gone(gate, now_ns))
			is_made = wire_gate_follow_schedule(gate, count, now_ns) || is_made;
		wire_gate_unlock(gate);
		if (is_made)
			made_ns = now_ns;
	} while (is_made && total(counter) != count);
	if (made_ns)
		poke_collector();
	return made_ns;
}

static void write_step(const struct wire_step_counter *counter, uint64_t count, uint64_t time_ns)
{
	const struct wire_step out = {
		.record = {.type = WIRE_RECORD_STEP, .length_bytes = sizeof(out)},
		.time_ns = time_ns ? time_ns : inject_now_ns(),
		.number = count,
		.tid = inject_tid(),
		.image = inject_image(),
		.counter = (uint32_t)(counter - inject_file()->steps),
	};

	if (!nvtx_enter())
		return;
	inject_write(&out.record);
	nvtx_leave();
}

/* The gate is open, or an edge may be due. */
static __attribute__((noinline)) uint64_t act(
	const struct wire_step_counter *counter, uint64_t count)
{
	struct wire_gate *gate = inject_session_gate();
	uint64_t edge_ns = 0;

	if (atomic_load_explicit(&counter->state, memory_order_relaxed) != WIRE_STEP_CHOSEN)
		return count;
	if ((atomic_load_explicit(&gate->next_edge, memory_order_relaxed) <= count ||
		    (gate->schedule.max_steps && inject_is_open())) &&
		is_leader(gate))
		edge_ns = lead(gate, counter);
	if (inject_is_open())
		write_step(counter, count, edge_ns);
	return count;
}

static bool needs_act(uint64_t count)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);

	return atomic_load_explicit(&gate->state, memory_order_relaxed) == WIRE_GATE_OPEN ||
	       count >= atomic_load_explicit(&gate->next_edge, memory_order_relaxed);
}

/* ---- a step ---- */

/* A forked child makes no steps: its parent goes on with these counters. */
static void forget_own(void)
{
	own = (struct step_thread){0};
	pthread_mutex_init(&adding, NULL);
}

/* By a thread that does not own the name's counter, at another address, or the first of its name.
 */
static __attribute__((noinline)) uint64_t step_slowly(const char *name)
{
	struct wire_ring_file *file = inject_open_at_once() ? inject_file() : NULL;
	struct wire_step_counter *counter;
	uint64_t count;
	int index;

	if (!file)
		return 0;
	atomic_store_explicit(&inject_on_fork, forget_own, memory_order_relaxed);
	index = find_name(file, name);
	if (index < 0) {
		atomic_fetch_add_explicit(&file->no_step, 1, memory_order_relaxed);
		return 0;
	}
	counter = &file->steps[index];
	if (counter->owner == inject_tid()) {
		remember(counter, name);
		count = count_owned(counter);
	} else {
		count = count_shared(counter);
	}
	return needs_act(count) ? act(counter, count) : count;
}

uint64_t inject_step(const char *name)
{
	uint64_t count;

	name = name ? name : DEFAULT_NAME;
	if (!is_own(name))
		return step_slowly(name);
	count = count_owned(own.counter);
	return needs_act(count) ? act(own.counter, count) : count;
}

bool inject_steps_of(const char *name, struct wire_api_steps *ret_steps)
{
	if (!is_own(name ? name : DEFAULT_NAME))
		return false;
	*ret_steps = (struct wire_api_steps){
		.owned = &own.counter->owned,
		.shared = &own.counter->shared,
		.next_edge = &inject_session_gate()->next_edge,
	};
	return true;
}

void inject_step_if_chosen(const char *name)
{
	if (!inject_open_at_once() || !inject_file() || !inject_session_gate()->step_pattern[0])
		return;
	if (name && is_chosen(name, false))
		inject_step(name);
}
