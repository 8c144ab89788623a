/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a series share: series.c opens and closes windows, events.c writes what happens
 * to its window, facts.c keeps what all windows need, stacks.c callstacks, ranges.c ranges that are
 * open, account.c what was lost in which window. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "capture/series/series.h"
#include "capture/split/tables.h"

/* A window that is written. */
struct series_part {
	uint64_t number; /* from 1 */
	uint64_t begin_ns, end_ns, begin_realtime_ns;
	char *path;
	struct capture_writer *writer; /* NULL: it could not be made, or written */
	struct split_ids ids;
	struct map_u64 processes, threads; /* that it has */
	uint64_t samples, wait_samples, dropped;
	bool is_settled;                 /* the account's counts are final */
	struct capture_stats begin, end; /* of the recording; `end` while it goes on: so far */
	ARRAY_OF(struct capture_loss) begin_losses, end_losses;
	struct errmsg error;
};

struct series_process {
	struct capture_process process;
	char *texts; /* that it points to */
	const char **cmdline;
};

struct series_thread {
	uint32_t pid, tid;
	char name[64];
};

/* Callstacks that were used since stacks were renewed, or since the time before. */
struct series_stacks {
	struct map_u64 index; /* id → in `stacks` */
	ARRAY_OF(struct split_callstack) stacks;
	ARRAY_OF(capture_id) frames;
};

/* Of a launch that others may refer to. */
struct series_launch {
	uint32_t tid;
	capture_id callstack;
	uint64_t time_ns;
};

struct series_launches {
	struct map_u64 index;
	ARRAY_OF(struct series_launch) launches;
};

/* What a process reports once about its devices and graphs. */
struct series_definition {
	struct capture_device_event event; /* kind MAX: it is a launch, with its stack */
	struct capture_launch launch;
	struct capture_launch_stack stack; /* correlation 0: none */
};

/* The domains, lanes and threads whose ranges nest, while any is open. */
struct series_track;

struct capture_series {
	struct capture_series_options options;
	struct capture_series_account account;
	struct split_tables tables; /* not its callstacks */
	struct series_stacks stacks, older_stacks;
	struct series_launches launches, older_launches;
	struct capture_session session; /* texts: those of `tables` */
	const char **command;
	ARRAY_OF(struct series_part *) parts; /* open ones, in order */
	uint64_t last_number;
	struct map_u64 process_index, thread_index;
	ARRAY_OF(struct series_process) processes;
	ARRAY_OF(struct series_thread) threads;
	ARRAY_OF(struct wire_energy_domain) domains;
	ARRAY_OF(struct wire_energy_absence) absences;
	ARRAY_OF(struct series_definition) definitions;
	struct map_u64 definition_launches; /* launch key → index of its definition + 1, or 0 */
	struct map_u64 tracks;              /* → struct series_track * */
	struct map_u64 nameless;            /* site → frame id */
	ARRAY_OF(struct capture_loss) losses;
	ARRAY_OF(struct capture_series_rail) rails; /* those of `domains` */
	ARRAY_OF(struct capture_series_device) devices;
	bool has_session, is_finished;
};

#define for_parts(series, part)                                                                    \
	for (size_t part##_at = 0; part##_at < (series)->parts.count; part##_at++)                 \
		for (struct series_part *part = (series)->parts.items[part##_at]; part; part = NULL)

static inline uint64_t series_launch_key(uint32_t pid, uint64_t correlation)
{
	return hash_u64(correlation ^ hash_u64(pid));
}

/* ---- series.c ---- */

/*
 * The window of this moment; NULL, and counted: it is closed, or the moment is to come. A part
 * without a writer takes nothing.
 */
struct series_part *series_part_at(struct capture_series *series, uint64_t time_ns);
/* Those that have begun by then are open, unless the moment is to come. Returns 0 or -ENOMEM. */
int series_open_until(struct capture_series *series, uint64_t time_ns);
/* As it is: the oldest that is open, when its window is closed. */
struct series_part *series_part_from(struct capture_series *series, uint64_t *time_ns);
/*
 * What a write to a part returned: from the first error on it is written no more, and the series
 * goes on. Returns 0, or -ENOMEM.
 */
int series_written(struct series_part *part, int result);
bool series_part_takes(struct series_part *part);

/* ---- facts.c ---- */

int series_keep_session(struct capture_series *series, const struct capture_session *session);
int series_keep_process(struct capture_series *series, const struct capture_process *process);
int series_keep_thread(struct capture_series *series, const struct capture_thread *thread);
int series_keep_domain(struct capture_series *series, const struct wire_energy_domain *domain);
int series_keep_absence(struct capture_series *series, const struct wire_energy_absence *absence);
int series_keep_definition(
	struct capture_series *series, const struct series_definition *definition);
/* The part gets to know who this is, with its ancestors. tid 0: the process only. */
int series_tell_thread(
	struct capture_series *series, struct series_part *part, uint32_t pid, uint32_t tid);
/* What every part begins with. */
int series_begin_part(struct capture_series *series, struct series_part *part);
/* Processes that have ended, and are in no open part. */
int series_forget_ended(struct capture_series *series);
void series_facts_done(struct capture_series *series);

/* ---- stacks.c ---- */

int series_add_callstack(struct capture_series *series, capture_id id, const capture_id *frames,
	size_t count, enum wire_stop stop, enum wire_python python);
/* The part's id of a callstack; 0 stays 0. */
int series_callstack(struct capture_series *series, struct series_part *part, capture_id callstack,
	bool is_sampled, capture_id *ret_id);
/* The launch has this stack, which others may refer to. */
int series_keep_launch(struct capture_series *series, const struct capture_launch_stack *stack);
/* NULL: it is not known. */
const struct series_launch *series_find_launch(
	struct capture_series *series, uint32_t pid, uint64_t correlation);
void series_stacks_done(struct capture_series *series);

/* ---- ranges.c ---- */

int series_range(struct capture_series *series, const struct capture_range_event *event);
/* All open ranges end with this part, which is closed next, and begin anew in the one after it. */
int series_cut_ranges(struct capture_series *series, struct series_part *part);
void series_ranges_done(struct capture_series *series);

/* ---- figures.c ---- */

int series_add_rail(struct capture_series *series, const struct wire_energy_domain *domain);
int series_count_energy(struct capture_series *series, const struct wire_energy_interval *interval);
int series_count_work(struct capture_series *series, const struct capture_device_work *work);
void series_count_mark(struct capture_series *series, const struct capture_range_event *event);

/* ---- account.c ---- */

/* The recording's counts so far: for the newest part, and for those before it that want them. */
int series_count(struct capture_series *series, const struct capture_stats *stats);
/* The next part begins: counts of the one before are final. */
int series_settle(struct capture_series *series, struct series_part *part);
int series_write_account(struct capture_series *series, struct series_part *part, bool is_complete);
