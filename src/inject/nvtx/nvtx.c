/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX door: each module of the program that contains NVTX loads the library that
 * $NVTX_INJECTION64_PATH names and has us fill its table of functions. What they return is what
 * NVTX's headers promise; after a fork, and with the gate closed, they do nothing.
 */
#include <pthread.h>
#include <string.h>

#include "inject/clock.h"
#include "inject/nvtx/nvtx.h"
#include "inject/step.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int InitializeInjectionNvtx2(nvtx_get_export *get);

static bool has_texts;
static pthread_once_t open_once = PTHREAD_ONCE_INIT;

/* ---- what events carry ---- */

static void take_payload(struct nvtx_event *event, const struct nvtx_attributes *from)
{
	struct wire_range_field field = {.type = WIRE_RANGE_U64, .value = from->payload.u64};
	double real = from->payload.f64;

	switch (from->payload_type) {
	case NVTX_PAYLOAD_U64:
		break;
	case NVTX_PAYLOAD_I64:
		field.type = WIRE_RANGE_I64;
		break;
	case NVTX_PAYLOAD_FLOAT:
		real = (double)from->payload.f32;
		__attribute__((fallthrough));
	case NVTX_PAYLOAD_DOUBLE:
		field.type = WIRE_RANGE_DOUBLE;
		memcpy(&field.value, &real, sizeof(real));
		break;
	case NVTX_PAYLOAD_U32:
		field.value = from->payload.u32;
		break;
	case NVTX_PAYLOAD_I32:
		field.type = WIRE_RANGE_I64;
		field.value = (uint64_t)(int64_t)from->payload.i32;
		break;
	default:
		return;
	}
	event->fields[event->field_count++] = field;
}

static struct nvtx_text *message_of(const struct nvtx_attributes *from)
{
	switch (from->message_type) {
	case NVTX_MESSAGE_ASCII:
		return from->message.ascii ? nvtx_text_recent(from->message.ascii) : NULL;
	case NVTX_MESSAGE_WIDE:
		return nvtx_text_wide(from->message.wide);
	case NVTX_MESSAGE_REGISTERED:
		return nvtx_text_registered(from->message.registered);
	default:
		return NULL;
	}
}

/* Programs of other versions may have a shorter struct. */
static void take_attributes(struct nvtx_event *event, const struct nvtx_attributes *from)
{
	if (!from || from->size < sizeof(*from))
		return;
	event->name = message_of(from);
	event->category = from->category;
	if (from->payload_type == NVTX_PAYLOAD_EXTENDED && from->count > 0)
		nvtx_payload_read(event,
			(const struct nvtx_payload_data *)(uintptr_t)from->payload.u64,
			(size_t)from->count);
	else if (from->payload_type)
		take_payload(event, from);
}

static void begin(struct nvtx_event *event, nvtx_handle domain, struct nvtx_text *name)
{
	event->domain = domain;
	event->name = name;
	event->category = 0;
	event->id = 0;
	event->field_count = 0;
}

static void begin_with(
	struct nvtx_event *event, nvtx_handle domain, const struct nvtx_attributes *attributes)
{
	begin(event, domain, NULL);
	take_attributes(event, attributes);
}

/* ---- ranges of a thread ---- */

static int domain_push_ex(nvtx_handle domain, const struct nvtx_attributes *attributes)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin_with(&event, domain, attributes);
	level = nvtx_push(&event);
	nvtx_leave();
	return level;
}

static int push_ex(const struct nvtx_attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

static int push_a(const char *message)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin(&event, NULL, message ? nvtx_text_recent(message) : NULL);
	level = nvtx_push(&event);
	nvtx_leave();
	return level;
}

static int push_w(const wchar_t *message)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin(&event, NULL, nvtx_text_wide(message));
	level = nvtx_push(&event);
	nvtx_leave();
	return level;
}

static int domain_pop(nvtx_handle domain)
{
	struct nvtx_event event;
	int level;

	if (!nvtx_enter())
		return NVTX_UNTRACKED;
	begin(&event, domain, NULL);
	level = nvtx_pop(&event);
	nvtx_leave();
	return level;
}

static int pop(void)
{
	return domain_pop(NULL);
}

/* ---- ranges of the process ---- */

static uint64_t domain_start_ex(nvtx_handle domain, const struct nvtx_attributes *attributes)
{
	struct nvtx_event event;
	uint64_t range;

	if (!nvtx_enter())
		return 0;
	begin_with(&event, domain, attributes);
	range = nvtx_start(&event);
	nvtx_leave();
	return range;
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
	return domain_start_ex(NULL, attributes);
}

static uint64_t start_a(const char *message)
{
	struct nvtx_event event;
	uint64_t range;

	if (!nvtx_enter())
		return 0;
	begin(&event, NULL, message ? nvtx_text_recent(message) : NULL);
	range = nvtx_start(&event);
	nvtx_leave();
	return range;
}

static uint64_t start_w(const wchar_t *message)
{
	struct nvtx_event event;
	uint64_t range;

	if (!nvtx_enter())
		return 0;
	begin(&event, NULL, nvtx_text_wide(message));
	range = nvtx_start(&event);
	nvtx_leave();
	return range;
}

static void domain_end(nvtx_handle domain, uint64_t range)
{
	struct nvtx_event event;

	if (!range || !nvtx_enter())
		return;
	begin(&event, domain, NULL);
	event.id = range;
	nvtx_end(&event);
	nvtx_leave();
}

static void end(uint64_t range)
{
	domain_end(NULL, range);
}

/* ---- marks ---- */

/* Where --step-on names one, it ends a step, and then with a closed gate, too. */
static bool may_be_step(void)
{
	const struct wire_gate *gate = inject_session_gate();

	return gate && gate->step_pattern[0];
}

static void step_by(const struct nvtx_attributes *from)
{
	const struct nvtx_text *text = NULL;

	if (from->size < sizeof(*from))
		return;
	if (from->message_type == NVTX_MESSAGE_ASCII)
		inject_step_if_chosen(from->message.ascii);
	else if (from->message_type == NVTX_MESSAGE_WIDE)
		text = nvtx_text_wide(from->message.wide);
	else if (from->message_type == NVTX_MESSAGE_REGISTERED)
		text = nvtx_text_registered(from->message.registered);
	if (text)
		inject_step_if_chosen(text->bytes);
}

static void domain_mark_ex(nvtx_handle domain, const struct nvtx_attributes *attributes)
{
	struct nvtx_event event;

	if (may_be_step() && attributes)
		step_by(attributes);
	if (!nvtx_enter())
		return;
	begin_with(&event, domain, attributes);
	nvtx_mark(&event);
	nvtx_leave();
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
	domain_mark_ex(NULL, attributes);
}

static void mark_a(const char *message)
{
	struct nvtx_event event;

	if (may_be_step())
		inject_step_if_chosen(message);
	if (!nvtx_enter())
		return;
	begin(&event, NULL, message ? nvtx_text_recent(message) : NULL);
	nvtx_mark(&event);
	nvtx_leave();
}

static void mark_w(const wchar_t *message)
{
	const struct nvtx_text *text = may_be_step() ? nvtx_text_wide(message) : NULL;
	struct nvtx_event event;

	if (text)
		inject_step_if_chosen(text->bytes);
	if (!nvtx_enter())
		return;
	begin(&event, NULL, nvtx_text_wide(message));
	nvtx_mark(&event);
	nvtx_leave();
}

/* ---- names ---- */

static void define(uint16_t type, nvtx_handle domain, uint32_t id, struct nvtx_text *name)
{
	if (!name || !nvtx_enter())
		return;
	nvtx_define(type, domain, id, name);
	nvtx_leave();
}

static void domain_name_category_a(nvtx_handle domain, uint32_t category, const char *name)
{
	define(WIRE_RECORD_RANGE_CATEGORY, domain, category, nvtx_text_ascii(name));
}

static void domain_name_category_w(nvtx_handle domain, uint32_t category, const wchar_t *name)
{
	define(WIRE_RECORD_RANGE_CATEGORY, domain, category, nvtx_text_wide(name));
}

static void name_category_a(uint32_t category, const char *name)
{
	domain_name_category_a(NULL, category, name);
}

static void name_category_w(uint32_t category, const wchar_t *name)
{
	domain_name_category_w(NULL, category, name);
}

static void name_thread_a(uint32_t tid, const char *name)
{
	define(WIRE_RECORD_RANGE_THREAD, NULL, tid, nvtx_text_ascii(name));
}

static void name_thread_w(uint32_t tid, const wchar_t *name)
{
	define(WIRE_RECORD_RANGE_THREAD, NULL, tid, nvtx_text_wide(name));
}

/* Handles stay good when a domain is destroyed, and where nothing is recorded. */
static nvtx_handle domain_create_a(const char *name)
{
	return nvtx_domain_of(nvtx_text_ascii(name));
}

static nvtx_handle domain_create_w(const wchar_t *name)
{
	return nvtx_domain_of(nvtx_text_wide(name));
}

static nvtx_handle register_string_a(nvtx_handle domain, const char *text)
{
	return nvtx_text_ascii(text);
}

static nvtx_handle register_string_w(nvtx_handle domain, const wchar_t *text)
{
	return nvtx_text_wide(text);
}

/* ---- the module's tables ---- */

#define SLOT(function) ((nvtx_function *)(function))

static nvtx_function *const core[NVTX_CORE_SLOTS] = {
	[NVTX_CORE_MARK_EX] = SLOT(mark_ex),
	[NVTX_CORE_MARK_A] = SLOT(mark_a),
	[NVTX_CORE_MARK_W] = SLOT(mark_w),
	[NVTX_CORE_START_EX] = SLOT(start_ex),
	[NVTX_CORE_START_A] = SLOT(start_a),
	[NVTX_CORE_START_W] = SLOT(start_w),
	[NVTX_CORE_END] = SLOT(end),
	[NVTX_CORE_PUSH_EX] = SLOT(push_ex),
	[NVTX_CORE_PUSH_A] = SLOT(push_a),
	[NVTX_CORE_PUSH_W] = SLOT(push_w),
	[NVTX_CORE_POP] = SLOT(pop),
	[NVTX_CORE_NAME_CATEGORY_A] = SLOT(name_category_a),
	[NVTX_CORE_NAME_CATEGORY_W] = SLOT(name_category_w),
	[NVTX_CORE_NAME_THREAD_A] = SLOT(name_thread_a),
	[NVTX_CORE_NAME_THREAD_W] = SLOT(name_thread_w),
};

static nvtx_function *const core2[NVTX_CORE2_SLOTS] = {
	[NVTX_CORE2_MARK_EX] = SLOT(domain_mark_ex),
	[NVTX_CORE2_START_EX] = SLOT(domain_start_ex),
	[NVTX_CORE2_END] = SLOT(domain_end),
	[NVTX_CORE2_PUSH_EX] = SLOT(domain_push_ex),
	[NVTX_CORE2_POP] = SLOT(domain_pop),
	[NVTX_CORE2_NAME_CATEGORY_A] = SLOT(domain_name_category_a),
	[NVTX_CORE2_NAME_CATEGORY_W] = SLOT(domain_name_category_w),
	[NVTX_CORE2_REGISTER_STRING_A] = SLOT(register_string_a),
	[NVTX_CORE2_REGISTER_STRING_W] = SLOT(register_string_w),
	[NVTX_CORE2_DOMAIN_CREATE_A] = SLOT(domain_create_a),
	[NVTX_CORE2_DOMAIN_CREATE_W] = SLOT(domain_create_w),
};

/* An older module's table may be shorter. */
static bool fill_table(const struct nvtx_callbacks *callbacks, int module,
	nvtx_function *const *ours, unsigned our_count)
{
	nvtx_function ***table = NULL;
	unsigned count = 0;

	if (!callbacks->get_table(module, &table, &count) || !table)
		return false;
	for (unsigned i = 0; i < our_count && i < count; i++) {
		if (ours[i] && table[i])
			*table[i] = ours[i];
	}
	return true;
}

static void forget_session(void)
{
	nvtx_texts_forget();
	nvtx_threads_forget();
}

static void open_texts(void)
{
	atomic_store_explicit(&inject_on_reopen, forget_session, memory_order_relaxed);
	inject_clock_open();
	has_texts = nvtx_texts_open();
	if (has_texts)
		nvtx_name_own_domain(nvtx_text_ascii("sonde"));
}

bool nvtx_open(void)
{
	if (!inject_open_at_once())
		return false;
	pthread_once(&open_once, open_texts);
	return has_texts;
}

bool nvtx_open_folder(const char *path)
{
	return inject_open_folder(path) && nvtx_open();
}

int InitializeInjectionNvtx2(nvtx_get_export *get)
{
	const struct nvtx_callbacks *callbacks = get ? get(NVTX_EXPORT_CALLBACKS) : NULL;

	if (!callbacks || callbacks->bytes < sizeof(*callbacks) || !nvtx_open())
		return 0;
	/* The second is not there in modules of NVTX 1. */
	fill_table(callbacks, NVTX_MODULE_CORE2, core2, NVTX_CORE2_SLOTS);
	return fill_table(callbacks, NVTX_MODULE_CORE, core, NVTX_CORE_SLOTS);
}
