/* SPDX-License-Identifier: Apache-2.0 */
/* A recording from start to end: who is sampled, by which sampler, into which capture. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/output_place.h"
#include "capture/capture.h"
#include "capture/reader/reader.h"
#include "collect/hooks/hook_table.h"
#include "collect/windows/spec.h"
#include "wire/ring.h"

struct session;
struct source;

enum session_mode {
	SESSION_MODE_AUTO, /* BPF when it can run here, else without privileges */
	SESSION_MODE_BPF,
	SESSION_MODE_USER,
};

enum session_wait {
	SESSION_WAIT_OFF,
	SESSION_WAIT_SAMPLE,
	SESSION_WAIT_EXACT,
};

/* How the stacks of launches of device work are taken. */
enum session_launch_stacks {
	SESSION_LAUNCH_STACKS_AUTO, /* by BPF when it can run here, else by the programs */
	SESSION_LAUNCH_STACKS_BPF,
	SESSION_LAUNCH_STACKS_INPROCESS,
	SESSION_LAUNCH_STACKS_OFF,
};

/* What of the targets is recorded. */
enum session_scope {
	SESSION_SCOPE_ALL,
	SESSION_SCOPE_CPU,    /* no device work: nothing is loaded into them */
	SESSION_SCOPE_GPU,    /* device work with the stacks of launches: no samples, no waits */
	SESSION_SCOPE_LAUNCH, /* launches and their stacks; devices are not asked for times */
};

struct session_options {
	/*
	 * The capture's path; unused with live.visitor. With how.keeps_others another path may
	 * become of it: see session_output().
	 */
	const char *output;
	uint64_t period_ns;
	uint64_t duration_ns; /* 0: until the targets end, or a signal */
	uint64_t flush_ns;    /* how often the capture is written; 0: once a second at least */
	char *const *command; /* NULL-ended argv; NULL: none */
	const uint32_t *pids; /* to attach to */
	uint32_t pid_count;
	bool whole_machine;
	enum session_mode mode;
	enum session_wait wait; /* of waiting threads, where it can be done */
	uint64_t wait_min_ns;   /* with SESSION_WAIT_EXACT: shorter ones have no stack */
	enum session_scope scope;
	enum session_launch_stacks launch_stacks;
	bool launch_memo_off;              /* the stack of every launch is taken */
	enum wire_call_mode call_mode;     /* which calls of CUDA are recorded */
	bool samples_pcs;                  /* instructions of CUDA's kernels */
	uint32_t pm_interval_us;           /* of counters of devices; 0: they are not sampled */
	bool unified_memory;               /* faults and migrations of CUDA's are recorded */
	bool launch_times;                 /* when launches were queued and submitted */
	bool device_graphs;                /* those that devices launch; with WIRE_GRAPH_WHOLE */
	enum wire_graph_mode graph_mode;   /* how launches of graphs are timed */
	enum wire_tracer_mode tracer_mode; /* who traces beside the program's own profiler */
	bool opens_risky_doors;            /* of drivers that may end a program: see device.c */
	const char *hooks; /* groups of Python hooks, a list; see python_hooks.h. NULL: none */
	/*
	 * Power and energy: "auto", or a list of sources as in energy_sampler_options; "off" or
	 * NULL: none.
	 */
	const char *energy;
	const char *energy_model;    /* a file that estimates what is not measured; NULL: none */
	const char *require_energy;  /* parts that must be measured: "cpu,gpu"; NULL */
	uint64_t energy_baseline_ns; /* the machine is measured at rest so long before; 0 */
	struct window_spec window;   /* trigger NONE: all is recorded */
	const char *session_file;    /* where the session folder's path is written; NULL: nowhere */
	bool uncompressed, stack_sample, device_slices; /* see capture_writer_options */
	struct output_how how;                          /* who may read the capture */
	bool split; /* each window to a capture of its own, in place of the one of all */
	/*
	 * A recording that is looked at and not kept: the visitor gets everything in place of a
	 * file. `tick` is called each time round the loop, 10 times a second or more often, and at
	 * once when input_fd can be read; it returns false to end the recording. It gets the
	 * session for session_forget_callstacks().
	 */
	struct {
		const struct capture_visitor *visitor; /* NULL: a capture is written */
		void *visitor_context;
		bool (*tick)(void *context, struct session *session);
		void *tick_context;
		int input_fd; /* -1: none */
		/* The visitor keeps it: all is recorded, and finished, as in a file. */
		bool is_kept;
	} live;
	const struct source *const *sources; /* a table as in sources/source.h; NULL: all */
	/* Called once when sampling has begun, with the capture's path; may be NULL. */
	void (*on_started)(void *context, const char *output);
	/* Called with a sentence where the capture is not at the path that was asked for, or NULL.
	 */
	void (*on_other_output)(void *context, const char *sentence);
	/* Called while finishing takes long: what is being waited for, and how much of it is left.
	 */
	void (*on_finishing)(void *context, const char *what, uint64_t left);
	/* Called with a sentence on what is waited for, or refused, while recording; may be NULL.
	 */
	void (*on_message)(void *context, const char *sentence);
	void *context;
};

struct session_result {
	char *output; /* the capture's path, where it is not the one that was asked for; or NULL */
	struct capture_stats stats; /* pointers live until session_result_done() */
	struct errmsg notes[32];
	const char *note_pointers[32];
	struct capture_loss *losses;
	struct errmsg mode_reason; /* "" for BPF */
	struct errmsg energy;      /* what each rail took, for a person; "" */
	bool waits_are_exact;
	struct hook_table hooks; /* of the Python processes */
	/* The command's exit status, or 126, 127 when it could not be run; -1: no command. */
	int command_status;
	uint64_t duration_ns;
	uint32_t window_count, part_count; /* part: captures that the windows are in; 0: all is in
					      the output */
	uint64_t windows_ns;               /* all of them together */
};

/*
 * Records. Returns 0 when the capture is whole. On an error the sentence says what happened; the
 * capture then holds what came before, and a running command was waited for, not stopped.
 */
int session_run(const struct session_options *options, struct session_result *ret_result,
	struct errmsg *err);
void session_result_done(struct session_result *result);

/* Where the capture is, or is to be. */
static inline const char *session_output(
	const struct session_options *options, const struct session_result *result)
{
	return result->output ? result->output : options->output;
}

/* See capture_writer_forget_callstacks(). */
void session_forget_callstacks(struct session *session);
/* See capture_writer_renew_callstacks(). */
void session_renew_callstacks(struct session *session);
/* Samples and waits before this moment were handed over, but for what was lost. */
uint64_t session_settled_ns(const struct session *session);
