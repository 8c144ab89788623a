/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde's C API: a program says what it does, and a recording has it. For C99 and C++; link with
 * -lsonde (pkg-config sonde).
 *
 * Programs that are not recorded, and those whose window is closed, pay for a look at a word. Any
 * thread may call any of these at any time; none fails, waits, or changes errno. Texts are UTF-8,
 * of at most 1,024 bytes, and are copied. A child that forks is not recorded until it executes.
 */
#ifndef SONDE_SONDE_H
#define SONDE_SONDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is anything recorded at this moment? For what is costly to say. */
int sonde_is_open(void);
/* The number of the window that is open, from 1; 0: none is. */
unsigned sonde_window(void);

/*
 * A range of the calling thread's work; they nest. The report adds up those of one name: give what
 * differs in each call as a counter, or not at all.
 */
void sonde_range_push(const char *name);
void sonde_range_pop(void);

/* A moment. */
void sonde_mark(const char *name);

/* What a counter of the process is from this moment on. */
void sonde_counter(const char *name, double value);

/*
 * Ends a step of the program, and begins the next: a batch, a forward pass. Returns how many the
 * process has made; 0 where nothing records. Steps open and close windows (sonde record --window
 * steps:…), and so count while the window is closed.
 */
uint64_t sonde_step(const char *name);

/*
 * A token that a model has made; what is not known is NULL. With the phase "queued" it is none: the
 * request arrives, from which the time to its first token counts; nor with "prefill": the work on
 * the request begins, from which it counts where no arrival is marked; nor with "done": it ended.
 * Where several tokens come at once, `index` is that of the last one.
 */
struct sonde_token {
	size_t size;         /* of this struct: SONDE_TOKEN_INIT */
	uint64_t index;      /* of the token in its request, from 0 */
	const char *request; /* whose it is */
	const char *text;
	const char *phase; /* such as "decode" */
};

#define SONDE_TOKEN_INIT                                                                           \
	{                                                                                          \
		sizeof(struct sonde_token), 0, NULL, NULL, NULL                                    \
	}

void sonde_token(const struct sonde_token *token);

/*
 * Joins the recording whose session folder this is, when it began after the program. Returns 1, or
 * 0: there is none of this user, or the program is in another one.
 */
int sonde_open_session(const char *path);

/* ---- the look at the word, in place ---- */

/* Not for use. Where the address of the state of this process's gate lies. */
extern const unsigned *const *sonde_state_internal;

static inline int sonde_is_open_inline(void)
{
	const unsigned *const *place = __atomic_load_n(&sonde_state_internal, __ATOMIC_RELAXED);
	const unsigned *state = __atomic_load_n(place, __ATOMIC_RELAXED);

	return __atomic_load_n(state, __ATOMIC_RELAXED) == 1U;
}

#define sonde_range_push(name)                                                                     \
	((void)(__builtin_expect(sonde_is_open_inline(), 0) ? (sonde_range_push)(name) : (void)0))
#define sonde_range_pop()                                                                          \
	((void)(__builtin_expect(sonde_is_open_inline(), 0) ? (sonde_range_pop)() : (void)0))
#define sonde_mark(name)                                                                           \
	((void)(__builtin_expect(sonde_is_open_inline(), 0) ? (sonde_mark)(name) : (void)0))
#define sonde_counter(name, value)                                                                 \
	((void)(__builtin_expect(sonde_is_open_inline(), 0) ? (sonde_counter)(name, value)         \
							    : (void)0))

/* Not for use. Where this thread counts its steps of one name alone; a name is a literal here. */
struct sonde_steps {
	const char *name;
	const unsigned *state;
	uint64_t *owned;
	const uint64_t *shared, *next_edge;
};

extern __thread struct sonde_steps sonde_steps_internal __attribute__((tls_model("initial-exec")));

static inline uint64_t sonde_step_inline(const char *name)
{
	const unsigned *const *place = __atomic_load_n(&sonde_state_internal, __ATOMIC_RELAXED);
	const unsigned *state = __atomic_load_n(place, __ATOMIC_RELAXED);
	struct sonde_steps *steps = &sonde_steps_internal;

	if (steps->name == name && steps->state == state &&
		__atomic_load_n(state, __ATOMIC_RELAXED) != 1U) {
		uint64_t owned = __atomic_load_n(steps->owned, __ATOMIC_RELAXED) + 1;
		uint64_t count = owned + __atomic_load_n(steps->shared, __ATOMIC_RELAXED);

		if (count < __atomic_load_n(steps->next_edge, __ATOMIC_RELAXED)) {
			__atomic_store_n(steps->owned, owned, __ATOMIC_RELAXED);
			return count;
		}
	}
	return sonde_step(name);
}

#define sonde_step(name) (__builtin_constant_p(name) ? sonde_step_inline(name) : (sonde_step)(name))

#ifdef __cplusplus
}

/* A range as long as the object lives. */
struct sonde_range {
	explicit sonde_range(const char *name)
	{
		sonde_range_push(name);
	}
	~sonde_range()
	{
		sonde_range_pop();
	}
	sonde_range(const sonde_range &) = delete;
	sonde_range &operator=(const sonde_range &) = delete;
};
#endif

#endif
