/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libsonde and the Python extension call in libsonde-inject.so, which they find by
 * $SONDE_LIBRARY: one function gives a table of calls. Program and library may be of different
 * releases: the table grows at its end only, and who calls looks at `bytes` first.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#define WIRE_API_VERSION 1
/* In the session's folder: a link to the library. */
#define WIRE_API_LIBRARY "library"
/* wire_api_function */
#define WIRE_API_SYMBOL "sonde_api"
/* The state of a gate that is open. */
#define WIRE_API_OPEN 1U

/* A field of a range or mark; what is beyond the first 16 is left out. */
struct wire_api_field {
	void *name;    /* a text */
	uint32_t type; /* enum wire_range_value */
	uint32_t reserved;
	union {
		uint64_t unsigned_value;
		int64_t signed_value;
		double real;
		void *text;
	};
};

/*
 * Where a thread counts its steps of a name alone. It may do so itself as long as the gate is
 * closed, its state lies where it did, and owned + shared stays below the next edge.
 */
struct wire_api_steps {
	_Atomic __u64 *owned;
	const _Atomic __u64 *shared, *next_edge;
};

/*
 * None of these waits, fails or changes errno. Texts and domains stay good for the process's life;
 * a NULL domain is sonde's own. Only with the gate open, but for open_session(), step() and
 * window().
 */
struct wire_api {
	uint32_t version, bytes;
	/* The state of this process's gate, which is another one after a fork and open_session().
	 */
	_Atomic(const _Atomic uint32_t *) *state;
	/* The session in this folder, or with NULL in $SONDE_SESSION; false: there is none. */
	bool (*open_session)(const char *path);
	void *(*text)(const char *bytes, size_t length);
	void *(*domain)(void *text);
	/* The name may be elsewhere at the next call, or another one at this address. */
	void (*push_name)(const char *name);
	void (*push)(void *domain, void *name, const struct wire_api_field *fields, uint32_t count);
	void (*pop)(void *domain);
	void (*mark)(void *domain, void *name, const struct wire_api_field *fields, uint32_t count);
	/* Ranges that may end on another thread, by their number; 0: not recorded. */
	uint64_t (*start)(
		void *domain, void *name, const struct wire_api_field *fields, uint32_t count);
	void (*end)(void *domain, uint64_t range);
	void (*counter)(void *name, double value);
	/* How many steps the process has made. */
	uint64_t (*step)(const char *name);
	/* The number of the window that is open; 0: none is. */
	uint32_t (*window)(void);
	/* Right after step(); false: other threads make these steps, too. */
	bool (*steps_of)(const char *name, struct wire_api_steps *ret_steps);
};

/* NULL: the library is older than that version. */
typedef const struct wire_api *wire_api_function(uint32_t version);
