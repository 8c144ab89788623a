/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of sonde's own API, for C programs and Python: ranges, marks, counters and steps, on
 * what the NVTX door has.
 */
#include "wire/api.h"

#include "inject/nvtx/nvtx.h"
#include "inject/runtime.h"
#include "inject/step.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED wire_api_function sonde_api;

_Static_assert(WIRE_API_OPEN == WIRE_GATE_OPEN, "programs look at the state themselves");

static bool open_session(const char *path)
{
	if (!path)
		return nvtx_open();
	if (!nvtx_open_folder(path))
		return false;
	runtime_join_session();
	return true;
}

static void *text(const char *bytes, size_t length)
{
	bool is_cut = length > WIRE_RANGE_TEXT_BYTES;

	return nvtx_text_of(bytes, is_cut ? WIRE_RANGE_TEXT_BYTES : length, is_cut);
}

static void *domain_of(void *name)
{
	return name ? nvtx_domain_of(name) : NULL;
}

/* ---- ranges and marks ---- */

static void begin(struct nvtx_event *event, nvtx_handle domain, struct nvtx_text *name)
{
	event->domain = domain ? domain : nvtx_own_domain();
	event->name = name;
	event->category = 0;
	event->id = 0;
	event->field_count = 0;
}

static void begin_with(struct nvtx_event *event, nvtx_handle domain, struct nvtx_text *name,
	const struct wire_api_field *fields, uint32_t count)
{
	begin(event, domain, name);
	for (uint32_t i = 0; i < count && i < WIRE_RANGE_MAX_FIELDS; i++) {
		event->fields[event->field_count++] = (struct wire_range_field){
			.name = nvtx_text_id(fields[i].name),
			.type = fields[i].type,
			.value = fields[i].type == WIRE_RANGE_TEXT ? nvtx_text_id(fields[i].text)
								   : fields[i].unsigned_value,
		};
	}
}

static void push(void *domain, void *name, const struct wire_api_field *fields, uint32_t count)
{
	struct nvtx_event event;

	if (!count) {
		nvtx_push_text(domain, name);
		return;
	}
	if (!nvtx_enter())
		return;
	begin_with(&event, domain, name, fields, count);
	nvtx_push(&event);
	nvtx_leave();
}

static void mark(void *domain, void *name, const struct wire_api_field *fields, uint32_t count)
{
	struct nvtx_event event;

	if (!nvtx_enter())
		return;
	begin_with(&event, domain, name, fields, count);
	nvtx_mark(&event);
	nvtx_leave();
}

static uint64_t start(void *domain, void *name, const struct wire_api_field *fields, uint32_t count)
{
	struct nvtx_event event;
	uint64_t range;

	if (!nvtx_enter())
		return 0;
	begin_with(&event, domain, name, fields, count);
	range = nvtx_start(&event);
	nvtx_leave();
	return range;
}

static void end(void *domain, uint64_t range)
{
	struct nvtx_event event;

	if (!range || !nvtx_enter())
		return;
	begin(&event, domain, NULL);
	event.id = range;
	nvtx_end(&event);
	nvtx_leave();
}

/* ---- counters, steps, windows ---- */

static void counter(void *name, double value)
{
	if (!nvtx_enter())
		return;
	nvtx_counter(name, value);
	nvtx_leave();
}

/* A window that warms up is not there yet; a session without windows is one. */
static uint32_t window(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);
	uint32_t number = atomic_load_explicit(&gate->window, memory_order_relaxed);

	if (!inject_is_open())
		return 0;
	if (!number)
		return 1;
	return atomic_load_explicit(&gate->begin_ns, memory_order_relaxed) ? number : 0;
}

const struct wire_api *sonde_api(uint32_t version)
{
	static const struct wire_api calls = {
		.version = WIRE_API_VERSION,
		.bytes = sizeof(calls),
		.state = &inject_state,
		.open_session = open_session,
		.text = text,
		.domain = domain_of,
		.push_name = nvtx_push_name,
		.push = push,
		.pop = nvtx_pop_last,
		.mark = mark,
		.start = start,
		.end = end,
		.counter = counter,
		.step = inject_step,
		.window = window,
		.steps_of = inject_steps_of,
	};

	return version <= WIRE_API_VERSION ? &calls : NULL;
}
