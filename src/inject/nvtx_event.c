/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of ranges into the thread's ring: a record when one begins and one when it ends, so that a
 * program that is killed leaves those that were open, too.
 */
#include <string.h>

#include "inject/nvtx.h"

#define MAX_DOMAINS 1024
/* Of the first domains the levels are counted; NVTX has a value for "not tracked". */
#define COUNTED_DOMAINS 64
#define RECENT_NAMES    32

/* The handle of a domain is its place in here; the first one is the default domain. */
static _Atomic(struct nvtx_text *) domains[MAX_DOMAINS];
static _Atomic uint64_t last_range;

/* What a thread has beside its ring. */
struct nvtx_thread {
	struct wire_ring *ring;
	unsigned char *data;
	uint32_t tid, image;
	_Atomic bool is_inside; /* a signal handler may come in between */
	uint16_t depths[COUNTED_DOMAINS];
	uint32_t open; /* ranges, of all domains */
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
	threads[index].image = inject_image();
	self = &threads[index];
	return self;
}

bool nvtx_enter_open(void)
{
	struct nvtx_thread *thread = self ? self : make_self();

	if (!thread)
		return false;
	if (atomic_load_explicit(&thread->is_inside, memory_order_relaxed)) {
		inject_count_no_range();
		return false;
	}
	atomic_store_explicit(&thread->is_inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

void nvtx_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->is_inside, false, memory_order_relaxed);
}

struct nvtx_text *nvtx_text_recent(const char *text)
{
	uintptr_t address = (uintptr_t)text;
	uintptr_t at = (address ^ address >> 5) % RECENT_NAMES;
	struct nvtx_text *known = self->recent[at].text;

	if (self->recent[at].address == text && known &&
		strncmp(text, known->bytes, known->length) == 0 &&
		(known->is_cut || !text[known->length]))
		return known;
	known = nvtx_text_ascii(text);
	self->recent[at].address = text;
	self->recent[at].text = known;
	return known;
}

/* ---- domains ---- */

nvtx_handle nvtx_domain_of(struct nvtx_text *name)
{
	for (size_t i = 1; name && i < MAX_DOMAINS; i++) {
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

struct nvtx_text *nvtx_domain_name(nvtx_handle domain)
{
	return atomic_load_explicit(&domains[index_of(domain)], memory_order_relaxed);
}

/* ---- records ---- */

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

/* Filled where it lies: a copy of what was just written would wait for the writes. */
static void write_event(
	uint16_t type, const struct nvtx_event *event, uint16_t depth, uint64_t time_ns)
{
	struct nvtx_thread *thread = self;
	uint32_t name = nvtx_text_id(event->name);
	uint32_t domain = nvtx_text_id(nvtx_domain_name(event->domain));
	struct wire_range_event *out;
	uint64_t now_ns;
	__u64 head;

	/* A range lasts from the end of its begin to the begin of its end. */
	now_ns = time_ns ? time_ns : inject_now_ns();
	if (event->field_count)
		write_fields(event, now_ns);
	out = wire_ring_reserve(thread->ring, thread->data, sizeof(*out), &head);
	if (!out) {
		inject_ring_is_full();
		return;
	}
	out->record.type = type;
	out->record.reserved = 0;
	out->record.length_bytes = sizeof(*out);
	out->time_ns = now_ns;
	out->tid = thread->tid;
	out->name = name;
	out->domain = domain;
	out->category = event->category;
	out->image = thread->image;
	out->depth = depth;
	out->reserved = 0;
	out->id = event->id;
	wire_ring_commit(thread->ring, head);
	__builtin_prefetch(out + 2, 1);
}

/* The thread's place is the next one's that takes its ring. */
static void end_thread(void)
{
	const struct nvtx_event event = {.domain = NULL};

	if (self && self->open && nvtx_enter()) {
		write_event(WIRE_RECORD_RANGE_THREAD_END, &event, WIRE_RANGE_NO_DEPTH, 0);
		nvtx_leave();
	}
	self = NULL;
}

int nvtx_push(struct nvtx_event *event)
{
	size_t domain = index_of(event->domain);
	uint16_t depth;

	self->open++;
	if (domain >= COUNTED_DOMAINS) {
		write_event(WIRE_RECORD_RANGE_PUSH, event, WIRE_RANGE_NO_DEPTH, 0);
		return NVTX_UNTRACKED;
	}
	depth = self->depths[domain];
	if (depth == WIRE_RANGE_MAX_DEPTH) {
		self->open--;
		inject_count_no_range();
		return NVTX_ERROR;
	}
	self->depths[domain] = (uint16_t)(depth + 1);
	write_event(WIRE_RECORD_RANGE_PUSH, event, depth, 0);
	return depth;
}

int nvtx_pop(struct nvtx_event *event)
{
	uint64_t now_ns = inject_now_ns();
	size_t domain = index_of(event->domain);
	uint16_t depth;

	self->open -= self->open > 0;
	if (domain >= COUNTED_DOMAINS) {
		write_event(WIRE_RECORD_RANGE_POP, event, WIRE_RANGE_NO_DEPTH, now_ns);
		return NVTX_UNTRACKED;
	}
	depth = self->depths[domain];
	if (!depth) {
		write_event(WIRE_RECORD_RANGE_POP, event, WIRE_RANGE_NO_RANGE, now_ns);
		return NVTX_ERROR;
	}
	self->depths[domain] = --depth;
	write_event(WIRE_RECORD_RANGE_POP, event, depth, now_ns);
	return depth;
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
	write_event(WIRE_RECORD_RANGE_END, event, 0, inject_now_ns());
}

void nvtx_counter(struct nvtx_text *name, double value)
{
	struct wire_counter out = {
		.record = {.type = WIRE_RECORD_COUNTER, .length_bytes = sizeof(out)},
		.tid = self->tid,
		.image = self->image,
		.name = nvtx_text_id(name),
		.time_ns = inject_now_ns(),
	};

	memcpy(&out.value, &value, sizeof(value));
	inject_write(&out.record);
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
