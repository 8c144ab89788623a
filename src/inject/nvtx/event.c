/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of ranges into the thread's ring: a record when one begins and one when it ends, so that a
 * program that is killed leaves those that were open, too.
 */
#include <string.h>

#include "inject/clock.h"
#include "inject/nvtx/nvtx.h"

#define MAX_DOMAINS 1024
/* Of `domains`: that of sonde's own API. */
#define OWN_DOMAIN 1
/* Of the first domains the levels are counted; NVTX has a value for "not tracked". */
#define COUNTED_DOMAINS 64
#define RECENT_NAMES    32
/* Of the gate's openings. */
#define NO_OPENING UINT32_MAX
#define PAGE_BYTES 4096
/* Ahead of the records: the ring is larger than the nearer caches. */
#define PREFETCH_BYTES 256

/* The handle of a domain is its place in here; the first one is the default domain. */
static _Atomic(struct nvtx_text *) domains[MAX_DOMAINS];
static _Atomic uint64_t last_range;

/* What a thread has beside its ring. */
struct nvtx_thread {
	struct wire_ring *ring;
	unsigned char *data;
	uint32_t tid, image;
	/* Up to this head of the ring nothing has to be looked at, neither its end nor its reader.
	 */
	uint64_t room_until;
	struct inject_clock clock;
	_Atomic bool is_inside; /* a signal handler may come in between */
	uint16_t depths[COUNTED_DOMAINS];
	bool has_uncounted;        /* ranges of other domains were pushed */
	_Atomic uint32_t openings; /* the gate's, which these were counted in */
	struct {
		const char *address;
		struct nvtx_text *text;
	} recent[RECENT_NAMES];
};

static struct nvtx_thread threads[WIRE_RING_COUNT]; /* one for each ring */
/* The fast kind of thread variables, of which a library may have a few bytes. */
static __thread struct nvtx_thread *self __attribute__((tls_model("initial-exec")));

static void end_thread(void);

/* NULL: the thread has no ring. */
static struct nvtx_thread *make_self(void)
{
	unsigned char *data;
	uint32_t index;
	struct wire_ring *ring = inject_ring(&data, &index);

	if (!ring)
		return NULL;
	atomic_store_explicit(&inject_on_thread_end, end_thread, memory_order_relaxed);
	memset(&threads[index], 0, sizeof(threads[index]));
	threads[index].ring = ring;
	threads[index].data = data;
	threads[index].tid = inject_tid();
	atomic_store_explicit(&threads[index].openings, NO_OPENING, memory_order_relaxed);
	self = &threads[index];
	return self;
}

/* Which ranges ended while the gate was closed nobody knows: they are counted anew. */
static __attribute__((noinline)) void begin_opening(struct nvtx_thread *thread, uint32_t openings)
{
	memset(thread->depths, 0, sizeof(thread->depths));
	thread->has_uncounted = false;
	thread->image = inject_image();
	thread->room_until = 0;
	atomic_store_explicit(&thread->openings, openings, memory_order_relaxed);
}

void nvtx_threads_forget(void)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		atomic_store_explicit(&threads[i].openings, NO_OPENING, memory_order_relaxed);
}

/* NULL: nothing is recorded. */
static __attribute__((always_inline)) inline struct nvtx_thread *enter(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);
	uint32_t openings = atomic_load_explicit(&gate->openings, memory_order_relaxed);
	struct nvtx_thread *thread = self ? self : make_self();

	if (!thread)
		return NULL;
	if (atomic_load_explicit(&thread->is_inside, memory_order_relaxed)) {
		inject_count_no_range();
		return NULL;
	}
	atomic_store_explicit(&thread->is_inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(
		    atomic_load_explicit(&thread->openings, memory_order_relaxed) != openings, 0))
		begin_opening(thread, openings);
	return thread;
}

static inline void leave(struct nvtx_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->is_inside, false, memory_order_relaxed);
}

bool nvtx_enter_open(void)
{
	return enter();
}

void nvtx_leave(void)
{
	leave(self);
}

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

/*
 * Is what stands there still this text? Short ones are compared by words; what they read behind the
 * name's end lies on its page, and is masked.
 */
static inline __attribute__((no_sanitize_address)) bool is_still(
	const char *text, const struct nvtx_text *known)
{
	size_t bytes = (size_t)known->length + 1; /* its end, too */
	const word *words = (const word *)text, *own = (const word *)known->bytes;

	if (bytes > 2 * sizeof(word) || known->is_cut ||
		((uintptr_t)text & (PAGE_BYTES - 1)) > PAGE_BYTES - 2 * sizeof(word))
		return strncmp(text, known->bytes, known->length) == 0 &&
		       (known->is_cut || !text[known->length]);
	if (bytes <= sizeof(word))
		return !((words[0] ^ own[0]) << 8 * (sizeof(word) - bytes));
	return words[0] == own[0] && !((words[1] ^ own[1]) << 8 * (2 * sizeof(word) - bytes));
}

static inline struct nvtx_text *recent_text(struct nvtx_thread *thread, const char *text)
{
	uintptr_t address = (uintptr_t)text;
	uintptr_t at = (address ^ address >> 5) % RECENT_NAMES;
	struct nvtx_text *known = thread->recent[at].text;

	if (thread->recent[at].address == text && known && is_still(text, known))
		return known;
	known = nvtx_text_ascii(text);
	thread->recent[at].address = text;
	thread->recent[at].text = known;
	return known;
}

struct nvtx_text *nvtx_text_recent(const char *text)
{
	return recent_text(self, text);
}

/* ---- domains ---- */

void nvtx_name_own_domain(struct nvtx_text *name)
{
	atomic_store_explicit(&domains[OWN_DOMAIN], name, memory_order_relaxed);
}

nvtx_handle nvtx_own_domain(void)
{
	return (nvtx_handle)&domains[OWN_DOMAIN];
}

nvtx_handle nvtx_domain_of(struct nvtx_text *name)
{
	for (size_t i = OWN_DOMAIN; name && i < MAX_DOMAINS; i++) {
		struct nvtx_text *nobody = NULL;

		if (atomic_compare_exchange_strong(&domains[i], &nobody, name) || nobody == name)
			return (nvtx_handle)&domains[i];
	}
	return NULL;
}

static size_t index_of(nvtx_handle domain)
{
	uintptr_t offset = (uintptr_t)domain - (uintptr_t)domains;

	return offset < sizeof(domains) ? offset / sizeof(*domains) : 0;
}

/* NULL of the default domain, and of what is no domain of ours. */
static struct nvtx_text *nvtx_domain_name(nvtx_handle domain)
{
	return atomic_load_explicit(&domains[index_of(domain)], memory_order_relaxed);
}

/* ---- records ---- */

static uint64_t now(void)
{
	return inject_clock_now(&self->clock);
}

static void write_fields(const struct nvtx_event *event, uint64_t time_ns)
{
	struct {
		struct wire_range_fields head;
		struct wire_range_field fields[WIRE_RANGE_MAX_FIELDS];
	} out;
	size_t bytes = event->field_count * sizeof(*out.fields);

	out.head = (struct wire_range_fields){
		.record = {.type = WIRE_RECORD_RANGE_FIELDS,
			.length_bytes = (uint32_t)(sizeof(out.head) + bytes)},
		.time_ns = time_ns,
		.tid = self->tid,
		.image = inject_image(),
		.count = event->field_count,
	};
	memcpy(out.fields, event->fields, bytes);
	inject_write(&out.head.record);
}

/* By the ring itself; says how far the next ones need not ask. NULL: it is full. */
static __attribute__((noinline)) void *reserve_slowly(
	struct nvtx_thread *thread, uint32_t bytes, __u64 *ret_head)
{
	void *out = wire_ring_reserve(thread->ring, thread->data, bytes, ret_head);
	uint64_t at, usable, until;

	thread->room_until = 0;
	if (!out) {
		inject_ring_is_full();
		return NULL;
	}
	at = *ret_head & (WIRE_RING_BYTES - 1);
	usable = wire_ring_usable(thread->ring);
	/* A record that pads what is left has its place, too. */
	if (at + sizeof(struct wire_record) > usable)
		return out;
	until = *ret_head - at + usable - sizeof(struct wire_record);
	thread->room_until =
		atomic_load_explicit(&thread->ring->tail, memory_order_acquire) + WIRE_RING_BYTES;
	if (until < thread->room_until)
		thread->room_until = until;
	return out;
}

/* Records are filled where they lie: a copy of what was just written would wait for the writes. */
static inline void *reserve(struct nvtx_thread *thread, uint32_t bytes, __u64 *ret_head)
{
	__u64 head = atomic_load_explicit(&thread->ring->head, memory_order_relaxed);

	if (head + bytes > thread->room_until)
		return reserve_slowly(thread, bytes, ret_head);
	*ret_head = head + bytes;
	return thread->data + (head & (WIRE_RING_BYTES - 1));
}

/* To be written: the collector's core has it, from when it read the ring. */
static inline void prefetch(const char *at)
{
	arch_prefetch_to_write(at);
}

static inline void commit(struct nvtx_thread *thread, const void *out, __u64 head)
{
	wire_ring_commit(thread->ring, head);
	prefetch((const char *)out + PREFETCH_BYTES);
}

static void write_event(
	uint16_t type, const struct nvtx_event *event, uint16_t depth, uint64_t time_ns)
{
	struct nvtx_thread *thread = self;
	uint32_t name = nvtx_text_id(event->name);
	uint32_t domain = nvtx_text_id(nvtx_domain_name(event->domain));
	struct wire_range_event *out;
	__u64 head;

	/* A range lasts from the end of its begin to the begin of its end. */
	if (!time_ns)
		time_ns = now();
	if (event->field_count)
		write_fields(event, time_ns);
	out = reserve(thread, sizeof(*out), &head);
	if (!out)
		return;
	*out = (struct wire_range_event){
		.record = {.type = type, .length_bytes = sizeof(*out)},
		.time_ns = time_ns,
		.tid = thread->tid,
		.name = name,
		.domain = domain,
		.category = event->category,
		.image = thread->image,
		.depth = depth,
		.id = event->id,
	};
	commit(thread, out, head);
}

static inline void write_short(struct nvtx_thread *thread, uint16_t type, uint16_t depth,
	uint32_t name, uint32_t domain, uint64_t time_ns)
{
	struct wire_range_short *out;
	__u64 head;

	out = reserve(thread, sizeof(*out), &head);
	if (!out)
		return;
	out->record.type = type;
	out->record.reserved = depth;
	out->record.length_bytes = sizeof(*out);
	out->time_ns = time_ns;
	out->tid = thread->tid;
	out->image = thread->image;
	out->name = name;
	out->domain = domain;
	commit(thread, out, head);
}

/* A push or a pop. */
static void write_level(
	uint16_t type, const struct nvtx_event *event, uint16_t depth, uint64_t time_ns)
{
	uint32_t name, domain;

	if (event->category) {
		write_event(type == WIRE_RECORD_RANGE_SHORT_PUSH ? WIRE_RECORD_RANGE_PUSH
								 : WIRE_RECORD_RANGE_POP,
			event, depth, time_ns);
		return;
	}
	name = nvtx_text_id(event->name);
	domain = nvtx_text_id(nvtx_domain_name(event->domain));
	if (!time_ns)
		time_ns = now();
	if (event->field_count)
		write_fields(event, time_ns);
	write_short(self, type, depth, name, domain, time_ns);
}

static bool has_open(const struct nvtx_thread *thread)
{
	for (size_t i = 0; i < COUNTED_DOMAINS; i++) {
		if (thread->depths[i])
			return true;
	}
	return thread->has_uncounted;
}

/* The thread's place is the next one's that takes its ring. */
static void end_thread(void)
{
	const struct nvtx_event event = {.domain = NULL};

	if (self && has_open(self) && nvtx_enter()) {
		write_event(WIRE_RECORD_RANGE_THREAD_END, &event, WIRE_RANGE_NO_DEPTH, 0);
		nvtx_leave();
	}
	self = NULL;
}

int nvtx_push(const struct nvtx_event *event)
{
	size_t domain = index_of(event->domain);
	uint16_t depth;

	if (domain >= COUNTED_DOMAINS) {
		self->has_uncounted = true;
		write_level(WIRE_RECORD_RANGE_SHORT_PUSH, event, WIRE_RANGE_NO_DEPTH, 0);
		return NVTX_UNTRACKED;
	}
	depth = self->depths[domain];
	if (depth == WIRE_RANGE_MAX_DEPTH) {
		inject_count_no_range();
		return NVTX_ERROR;
	}
	self->depths[domain] = (uint16_t)(depth + 1);
	write_level(WIRE_RECORD_RANGE_SHORT_PUSH, event, depth, 0);
	return depth;
}

int nvtx_pop(const struct nvtx_event *event)
{
	uint64_t now_ns = now();
	size_t domain = index_of(event->domain);
	uint16_t depth;

	if (domain >= COUNTED_DOMAINS) {
		write_level(WIRE_RECORD_RANGE_SHORT_POP, event, WIRE_RANGE_NO_DEPTH, now_ns);
		return NVTX_UNTRACKED;
	}
	depth = self->depths[domain];
	if (!depth) {
		write_level(WIRE_RECORD_RANGE_SHORT_POP, event, WIRE_RANGE_NO_RANGE, now_ns);
		return NVTX_ERROR;
	}
	self->depths[domain] = --depth;
	write_level(WIRE_RECORD_RANGE_SHORT_POP, event, depth, now_ns);
	return depth;
}

/* ---- the quick way, for what has nothing but a name ---- */

static __attribute__((noinline)) void push_slowly(nvtx_handle domain, struct nvtx_text *name)
{
	const struct nvtx_event event = {.domain = domain, .name = name};

	nvtx_push(&event);
}

static __attribute__((noinline)) void pop_slowly(nvtx_handle domain)
{
	const struct nvtx_event event = {.domain = domain};

	nvtx_pop(&event);
}

/* Where a domain's levels are counted, and its name. NULL is sonde's own. */
static inline size_t find_domain(nvtx_handle domain, struct nvtx_text **ret_name)
{
	size_t index = domain ? index_of(domain) : OWN_DOMAIN;

	*ret_name = atomic_load_explicit(&domains[index], memory_order_relaxed);
	return index;
}

static __attribute__((always_inline)) inline void push_quickly(
	struct nvtx_thread *thread, nvtx_handle domain, struct nvtx_text *name)
{
	struct nvtx_text *domain_name;
	size_t index = find_domain(domain, &domain_name);
	uint32_t name_id = nvtx_text_id(name), domain_id = nvtx_text_id(domain_name);
	uint16_t depth;

	if (index >= COUNTED_DOMAINS || thread->depths[index] == WIRE_RANGE_MAX_DEPTH) {
		push_slowly(&domains[index], name);
		return;
	}
	depth = thread->depths[index]++;
	write_short(thread, WIRE_RECORD_RANGE_SHORT_PUSH, depth, name_id, domain_id,
		inject_clock_now(&thread->clock));
}

void nvtx_push_name(const char *name)
{
	struct nvtx_thread *thread = inject_is_open() ? enter() : NULL;

	if (!thread)
		return;
	push_quickly(thread, NULL, name ? recent_text(thread, name) : NULL);
	leave(thread);
}

void nvtx_push_text(nvtx_handle domain, struct nvtx_text *name)
{
	struct nvtx_thread *thread = inject_is_open() ? enter() : NULL;

	if (!thread)
		return;
	push_quickly(thread, domain, name);
	leave(thread);
}

void nvtx_pop_last(nvtx_handle domain)
{
	struct nvtx_thread *thread = inject_is_open() ? enter() : NULL;
	struct nvtx_text *domain_name;
	uint64_t now_ns;
	size_t index;

	if (!thread)
		return;
	now_ns = inject_clock_now(&thread->clock);
	index = find_domain(domain, &domain_name);
	if (index < COUNTED_DOMAINS && thread->depths[index]) {
		write_short(thread, WIRE_RECORD_RANGE_SHORT_POP, --thread->depths[index], 0,
			nvtx_text_id(domain_name), now_ns);
	} else {
		pop_slowly(&domains[index]);
	}
	leave(thread);
}

void nvtx_mark(struct nvtx_event *event)
{
	write_event(WIRE_RECORD_RANGE_MARK, event, 0, 0);
}

uint64_t nvtx_start(struct nvtx_event *event)
{
	event->id = atomic_fetch_add_explicit(&last_range, 1, memory_order_relaxed) + 1;
	write_event(WIRE_RECORD_RANGE_START, event, 0, 0);
	return event->id;
}

void nvtx_end(struct nvtx_event *event)
{
	write_event(WIRE_RECORD_RANGE_END, event, 0, now());
}

void nvtx_counter(struct nvtx_text *name, double value)
{
	struct nvtx_thread *thread = self;
	uint32_t name_id = nvtx_text_id(name);
	struct wire_counter *out;
	__u64 head;

	out = reserve(thread, sizeof(*out), &head);
	if (!out)
		return;
	out->record =
		(struct wire_record){.type = WIRE_RECORD_COUNTER, .length_bytes = sizeof(*out)};
	out->time_ns = now();
	out->tid = thread->tid;
	out->image = thread->image;
	out->name = name_id;
	out->reserved = 0;
	memcpy(&out->value, &value, sizeof(value));
	commit(thread, out, head);
}

void nvtx_define(uint16_t type, nvtx_handle domain, uint32_t id, struct nvtx_text *name)
{
	const struct wire_range_name out = {
		.record = {.type = type, .length_bytes = sizeof(out)},
		.image = inject_image(),
		.name = nvtx_text_id(name),
		.domain = nvtx_text_id(nvtx_domain_name(domain)),
		.id = id,
	};

	inject_write(&out.record);
}
