/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a recording's records come from. The session holds an array of sources (source_set.h) and
 * runs all of them by this interface; what one has beside its records, for the others and for the
 * collector, it offers as a capability.
 *
 * Call order, on one thread:
 *   probe → open → capabilities → follow* → start → (resume | descriptors, timeout_ms | drain |
 *   pause)* → stop → finish → drain → account, notes → close
 * set_active comes from other threads, too. account may come at any time after open. Each member
 * but open and close may be NULL: it has no meaning for the source.
 *
 * To add a source:
 *   1. src/wire/NAME.h: its record, with _Static_asserts of its size, and a type for it in a range
 *      that is free (wire/record.h). What goes to sink->record has `__u64 time_ns`
 *      (CLOCK_MONOTONIC) right behind struct wire_record: the pipeline puts it in order by that.
 *      Where a record that exists fits, use that.
 *   2. src/sources/NAME/NAME_source.c with `const struct source NAME_source` at its bottom; its
 *      meson.build, a line in src/sources/meson.build. BPF programs go to src/bpf/.
 *   3. Its declaration below, and a line in the table in sources.c, behind the sources whose
 *      capabilities it uses.
 *   4. A new kind of record: cases in is_whole() and handle_record() of
 *      src/collect/pipeline/pipeline.c, a packet in schema/, the capture's writer and reader.
 *      A new kind of figure: a member of struct source_account, and its place in the capture's
 *      statistics (src/collect/session/account.c). Losses and notes need neither.
 *   5. Tests as those of tests/unit/test-sources.c, and a fuzz target where records come from
 *      somebody else; src/cli/doctor/ says whether it works here; docs/record.md.
 * docs/adding-a-source.md walks through it; tests/unit/toy-source.c is one.
 *
 * What the user asked for is struct session_options (collect/session/session.h), which
 * src/cli/record/ fills in; settings_of() in collect/session/open.c makes struct source_settings of
 * it. A new option is a member of both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "sources/cpu/bpf_sampler.h"
#include "sources/energy/sampler.h"
#include "sources/process/sideband.h"
#include "sources/target/target_rings.h"
#include "sources/unwinder.h"
#include "wire/record.h"

/* When a source is opened. */
enum source_moment {
	/* What the command finds in its environment, and what may refuse the recording. */
	SOURCE_BEFORE_COMMAND,
	/* The command is there, and waits: settings.pid is known. */
	SOURCE_WITH_COMMAND,
	/* A program is about to launch device work, and waits: it is started at once. */
	SOURCE_AT_LAUNCH,
};

/* What is to be recorded; the same for all sources. Pointers live as long as the session. */
struct source_settings {
	/* Threads. */
	bool samples;       /* are they sampled, running and waiting? */
	bool whole_machine; /* every process, else those that are followed and their descendants */
	uint32_t pid;       /* the first process that is followed; 0: none */
	uint64_t period_ns; /* between two samples of one busy CPU */
	bool may_use_bpf;   /* else sampling needs no privileges */
	bool must_use_bpf;  /* it fails where that cannot be had */
	bool waits;         /* waiting threads, too, where it can be done */
	bool exact_waits;   /* and each wait from its begin to its end */
	uint64_t wait_period_ns; /* between two looks at a thread that waits */
	uint64_t wait_min_ns;    /* with exact_waits: shorter ones have no stack */
	/* Device work. */
	const struct target_gate_options *gate; /* NULL: there is no session folder */
	const char *library;                    /* libsonde-inject.so; NULL: it is not there */
	/* Energy: see session_options. */
	const char *energy, *energy_model, *require_energy;
	uint64_t energy_baseline_ns;
	int interrupt_fd; /* readable: what takes long in open() is to be given up */
};

/* Whom a drain hands records to. They are good during the call; errors are the sink's to keep. */
struct source_sink {
	void *context;
	/* Of the kernel, or of whoever takes stacks: samples, waits, stacks of launches. */
	void (*record)(void *context, const struct wire_record *record);
	/* What happened to processes. */
	void (*event)(void *context, const struct sideband_event *event);
	/* Of a program that is recorded: hostile, but whole by its length. */
	void (*target_record)(void *context, uint32_t pid, const struct wire_record *record);
	/* All that waited in the rings of programs was handed over. */
	void (*target_read)(void *context);
	const struct energy_sink *energy; /* its errors end the drain */
};

/*
 * What a source has beside its records. Each fills its own members, and finds there what those
 * filled that were opened before it.
 */
struct source_capabilities {
	/* How stacks of threads are taken: the capture's unwind_mode, and why it is not "bpf". */
	const char *unwind_mode;             /* NULL: no source takes any */
	const char *unwind_mode_reason;      /* "": it is */
	struct source_unwinder unwinder;     /* who unwinds in the kernel */
	const struct bpf_sampler_parts *bpf; /* maps to share with other BPF programs; NULL: none */
	/* How waiting threads are recorded: the capture's wait_mode. */
	const char *wait_mode; /* NULL: they are not */
	uint64_t wait_period_ns, wait_min_ns;
	bool launch_stacks;         /* the kernel takes stacks at the marker of launches */
	struct target_rings *rings; /* the session's folder with its gate; NULL: there is none */
	struct errmsg why_no_rings; /* "": none was asked for */
	bool processor_energy;      /* is measured: samples share it, by what CPUs count */
};

/* Where `bpf` is NULL: a sentence. */
static inline const char *source_why_no_bpf(const struct source_capabilities *offered)
{
	const char *reason = offered->unwind_mode_reason;

	return reason && *reason ? reason : "sonde doctor says why there is none";
}

struct source_runs {
	uint64_t count, time_ns; /* of BPF programs; 0: not measured */
};

struct source_loss {
	const char *where; /* as in struct capture_loss */
	uint32_t cpu;
	uint64_t count;
};

/* What all sources together took, lost and cost: each adds its part. */
struct source_account {
	ARRAY_OF(struct source_loss) losses;
	uint64_t samples_lost; /* of them: samples of threads */
	struct source_runs sampling, waiting, launching;
	uint64_t launch_stacks_lost;
	struct target_rings_account rings;
	struct errmsg energy; /* after finish: what each rail took, for a person; "" */
};

/* Adds a loss, unless it is 0; without memory it is left out. */
static inline void source_account_lost(
	struct source_account *account, const char *where, uint32_t cpu, uint64_t count)
{
	if (count)
		array_append(&account->losses,
			(struct source_loss){.where = where, .cpu = cpu, .count = count});
}

static inline void source_account_done(struct source_account *account)
{
	array_done(&account->losses);
}

typedef void source_note_function(void *context, const char *sentence);

struct source {
	const char *name;
	enum source_moment moment;
	bool is_optional; /* where it cannot be opened or started, a note says why */
	/*
	 * Before anything is opened. 0: it can run here and now; 1: nobody asks for it; else a
	 * negative errno with a sentence on what would make it run.
	 */
	int (*probe)(const struct source_settings *settings, struct errmsg *reason);
	/* Returns 0 or a negative errno with a sentence. Nothing is recorded before start(). */
	int (*open)(void **ret_state, const struct source_settings *settings,
		const struct source_capabilities *offered, struct errmsg *err);
	void (*capabilities)(void *state, struct source_capabilities *offered);
	/* This process, with all children that it makes from now on. -ESRCH: it has ended. */
	int (*follow)(void *state, uint32_t pid, struct errmsg *err);
	/*
	 * Attaches to what it records. The recording begins when all sources have done so, which
	 * takes long on a busy machine: what spans time counts from resume() on.
	 */
	int (*start)(void *state, struct errmsg *err);
	/* Takes no records, or takes them again as after start(): fast, from any thread. */
	int (*set_active)(void *state, bool active);
	/* The recording, or a window of it, ended: what began in it is handed over. */
	void (*pause)(void *state);
	/* The recording, or a window of it, began then: nothing from before it is counted. Also
	 * without a pause before. */
	int (*resume)(void *state, uint64_t from_ns);
	/* Stores up to `capacity` descriptors that become readable when there is work for drain();
	 * returns their number. */
	size_t (*descriptors)(void *state, int *ret_fds, size_t capacity);
	/* So long may the loop sleep before a drain; -1: as long as it likes. */
	int (*timeout_ms)(void *state);
	/* Hands over all that waits, and never blocks. Returns 0 or a negative errno. */
	int (*drain)(void *state, const struct source_sink *sink);
	/* Nothing more is recorded. */
	void (*stop)(void *state);
	/* The recording ended at this moment: what others hold back until then, in bounded time. */
	int (*finish)(void *state, uint64_t end_ns, const struct source_sink *sink);
	void (*account)(void *state, struct source_account *account);
	/* One sentence a call on what is missing or partial, why, and what would help. */
	void (*notes)(void *state, source_note_function *add, void *context);
	void (*close)(void *state);
};

extern const struct source cpu_source, process_source, wait_source, launch_source, target_source,
	energy_source, stopped_source;

/* Behind those whose capabilities they use: they are opened and started in this order, and drained
 * and stopped the other way round. Ends with NULL. */
extern const struct source *const source_table[];
/* In place of it: one look at the threads of one process, which ptrace stops. Needs no BPF. Its
 * note begins with STOPPED_NOTE. */
extern const struct source *const stopped_source_table[];
#define STOPPED_NOTE "the process was stopped"
