/* SPDX-License-Identifier: Apache-2.0 */
/* libsonde: the functions of sonde.h, as calls of libsonde-inject.so, which is loaded at the first.
 */
#include "sonde/sonde.h"

#include <string.h>

#include "api/load.h"
#include "wire/range.h"

#undef sonde_range_push
#undef sonde_range_pop
#undef sonde_mark
#undef sonde_counter
#undef sonde_step

/* Until the first call has looked for a session the gate seems open, which makes the call. */
static const unsigned not_known = WIRE_API_OPEN, closed;
static const unsigned *const not_known_state = &not_known, *const closed_state = &closed;
const unsigned *const *sonde_state_internal = &not_known_state;

__thread struct sonde_steps sonde_steps_internal;
static _Atomic(const struct wire_api *) known_calls;

static void use_calls(const struct wire_api *calls)
{
	const unsigned *const *state = &closed_state;

	atomic_store_explicit(&known_calls, calls, memory_order_release);
	if (calls)
		memcpy(&state, &calls->state, sizeof(state)); /* as C++ and C99 know it */
	__atomic_store_n(&sonde_state_internal, state, __ATOMIC_RELEASE);
}

/* NULL: there is no session. */
static const struct wire_api *session_calls(void)
{
	const struct wire_api *calls = atomic_load_explicit(&known_calls, memory_order_acquire);

	if (calls || __atomic_load_n(&sonde_state_internal, __ATOMIC_RELAXED) != &not_known_state)
		return calls;
	calls = api_calls();
	use_calls(calls);
	return calls;
}

/* NULL: the gate is closed. */
static const struct wire_api *open_calls(void)
{
	const struct wire_api *calls = session_calls();

	return calls && sonde_is_open_inline() ? calls : NULL;
}

int sonde_is_open(void)
{
	return open_calls() != NULL;
}

unsigned sonde_window(void)
{
	const struct wire_api *calls = open_calls();

	return calls ? calls->window() : 0;
}

void sonde_range_push(const char *name)
{
	const struct wire_api *calls = session_calls();

	if (calls) /* it looks at the gate itself */
		calls->push_name(name);
}

void sonde_range_pop(void)
{
	const struct wire_api *calls = session_calls();

	if (calls) /* it looks at the gate itself */
		calls->pop(NULL);
}

static void *text_of(const struct wire_api *calls, const char *text)
{
	return calls->text(text, strnlen(text, WIRE_RANGE_TEXT_BYTES + 1));
}

void sonde_mark(const char *name)
{
	const struct wire_api *calls = open_calls();

	if (calls)
		calls->mark(NULL, name ? text_of(calls, name) : NULL, NULL, 0);
}

void sonde_counter(const char *name, double value)
{
	const struct wire_api *calls = open_calls();

	if (calls && name)
		calls->counter(text_of(calls, name), value);
}

uint64_t sonde_step(const char *name)
{
	const struct wire_api *calls = session_calls();
	struct sonde_steps *steps = &sonde_steps_internal;
	struct wire_api_steps place;
	uint64_t count;

	if (!calls)
		return 0;
	count = calls->step(name);
	if (steps->name != name && name && calls->steps_of(name, &place)) {
		*steps = (struct sonde_steps){.name = name,
			.state = __atomic_load_n(sonde_state_internal, __ATOMIC_RELAXED)};
		memcpy(&steps->owned, &place.owned, sizeof(steps->owned)); /* as C99 knows it */
		memcpy(&steps->shared, &place.shared, sizeof(steps->shared));
		memcpy(&steps->next_edge, &place.next_edge, sizeof(steps->next_edge));
	}
	return count;
}

void sonde_token(const struct sonde_token *token)
{
	const struct wire_api *calls = token ? open_calls() : NULL;
	struct wire_api_field fields[4];
	uint32_t count = 0;

	if (!calls || token->size < sizeof(*token))
		return;
	const struct {
		const char *name, *text;
	} texts[] = {{"request", token->request}, {"text", token->text}, {"phase", token->phase}};

	fields[count++] = (struct wire_api_field){.name = text_of(calls, "index"),
		.type = WIRE_RANGE_U64,
		.unsigned_value = token->index};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i].text)
			fields[count++] =
				(struct wire_api_field){.name = text_of(calls, texts[i].name),
					.type = WIRE_RANGE_TEXT,
					.text = text_of(calls, texts[i].text)};
	}
	calls->mark(calls->domain(text_of(calls, "sonde.token")), text_of(calls, "token"), fields,
		count);
}

int sonde_open_session(const char *path)
{
	const struct wire_api *calls = path ? api_open_session(path) : NULL;

	if (calls)
		use_calls(calls);
	return calls != NULL;
}
