/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/wait/sampled_waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/wait.skel.h"
#include "bpf/wait_shared.h"
#include "sources/wait/share.h"

/* Unwinding may take this share of one core; a stack costs about so much. */
#define BUDGET_PERCENT 1
#define STACK_COST_NS  20000

struct sampled_waits {
	struct wait_bpf *skeleton;
	struct bpf_link *iterator;
	uint64_t period_ns, last_due;
	uint64_t stacks_per_look;
	int timer_fd;
};

static int load(
	struct sampled_waits *source, const struct bpf_sampler_parts *parts, struct errmsg *err)
{
	struct wait_bpf *skeleton = wait_bpf__open();
	int result;

	source->skeleton = skeleton;
	if (!skeleton)
		return errmsg_set(
			err, -errno, "cannot open the waiting programs: %s", strerror(errno));
	skeleton->rodata->whole_machine = parts->whole_machine;
	skeleton->rodata->pid_namespace_level = parts->pid_namespace_level;
	skeleton->rodata->pid_namespace_inode = parts->pid_namespace_inode;
	skeleton->rodata->wakeup_bytes = parts->wakeup_bytes;
	result = share_sampler_maps(skeleton->obj, parts);
	if (result == 0)
		result = wait_bpf__load(skeleton);
	if (result < 0)
		return errmsg_set(err, -ENOTSUP,
			"waiting threads are not recorded: the kernel refused the program (%s); it "
			"needs Linux 5.18",
			strerror(-result));
	return 0;
}

int sampled_waits_open(struct sampled_waits **ret_source, const struct bpf_sampler_parts *parts,
	uint64_t period_ns, struct errmsg *err)
{
	struct sampled_waits *source = calloc(1, sizeof(*source));
	int result;

	if (!source)
		return -ENOMEM;
	source->timer_fd = -1;
	source->period_ns = period_ns;
	source->stacks_per_look = period_ns * BUDGET_PERCENT / 100 / STACK_COST_NS + 1;
	result = load(source, parts, err);
	if (result == 0) {
		source->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (source->timer_fd < 0)
			result =
				errmsg_set(err, -errno, "cannot make a timer: %s", strerror(errno));
	}
	if (result < 0) {
		sampled_waits_free(source);
		return result;
	}
	*ret_source = source;
	return 0;
}

struct sampled_waits *sampled_waits_free(struct sampled_waits *source)
{
	if (!source)
		return NULL;
	bpf_link__destroy(source->iterator);
	wait_bpf__destroy(source->skeleton);
	closep(&source->timer_fd);
	free(source);
	return NULL;
}

static bool is_counting(const struct sampled_waits *source)
{
	return source->skeleton->data->count_from_ns != WAIT_NOT_COUNTED;
}

/* How long it is between two looks; 0: none is due. */
static int set_timer(struct sampled_waits *source, uint64_t period_ns)
{
	struct itimerspec period = {.it_interval = {.tv_sec = (time_t)(period_ns / NS_PER_S),
					    .tv_nsec = (long)(period_ns % NS_PER_S)}};

	period.it_value = period.it_interval;
	return timerfd_settime(source->timer_fd, 0, &period, NULL) < 0 ? -errno : 0;
}

/*
 * The chance that a due stack is taken, by how many were due at the last look: what is not taken
 * keeps its time for a later look.
 */
static void set_chance(struct sampled_waits *source)
{
	uint64_t due = source->skeleton->bss->wait_counts[WAIT_COUNT_CHANGED];
	uint64_t last = due - source->last_due;

	source->last_due = due;
	source->skeleton->bss->stacks_left = 2 * source->stacks_per_look;
	source->skeleton->data->chance = last <= source->stacks_per_look
						 ? 1ULL << 32
						 : (source->stacks_per_look << 32) / last;
}

static int look(struct sampled_waits *source)
{
	_cleanup_close_ int fd = -1;
	char nothing[16];
	ssize_t got;

	set_chance(source);
	fd = bpf_iter_create(bpf_link__fd(source->iterator));
	if (fd < 0)
		return -errno;
	/* The program writes nothing here: reading runs it over all tasks. */
	do
		got = read(fd, nothing, sizeof(nothing));
	while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
	return got < 0 ? -errno : 0;
}

int sampled_waits_start(struct sampled_waits *source, struct errmsg *err)
{
	int result = wait_bpf__attach(source->skeleton);

	if (result < 0)
		return errmsg_set(
			err, result, "cannot attach the waiting programs: %s", strerror(-result));
	source->iterator = bpf_program__attach_iter(source->skeleton->progs.look_at_task, NULL);
	if (!source->iterator)
		return errmsg_set(
			err, -errno, "cannot attach the task iterator: %s", strerror(errno));
	/* Of what has run when the recording begins; nothing is counted yet. */
	result = look(source);
	return result < 0 ? errmsg_set(err, result, "cannot look at waiting threads: %s",
				    strerror(-result))
			  : 0;
}

int sampled_waits_descriptor(const struct sampled_waits *source)
{
	return source->timer_fd;
}

int sampled_waits_run(struct sampled_waits *source)
{
	uint64_t periods;

	if (!source->iterator || /* stopped */
		read(source->timer_fd, &periods, sizeof(periods)) != sizeof(periods))
		return 0;
	return look(source);
}

void sampled_waits_pause(struct sampled_waits *source)
{
	if (!source->iterator || !is_counting(source))
		return;
	set_timer(source, 0);
	source->skeleton->bss->is_last = 1;
	look(source);
	source->skeleton->bss->is_last = 0;
	source->skeleton->data->count_from_ns = WAIT_NOT_COUNTED;
}

/* The first look says from which run times on is counted. */
int sampled_waits_resume(struct sampled_waits *source, uint64_t from_ns)
{
	int result;

	if (!source->iterator)
		return 0;
	sampled_waits_pause(source);
	source->skeleton->data->count_from_ns = from_ns;
	result = look(source);
	return result < 0 ? result : set_timer(source, source->period_ns);
}

void sampled_waits_stop(struct sampled_waits *source)
{
	if (!source->iterator)
		return;
	sampled_waits_pause(source);
	bpf_link__destroy(source->iterator);
	source->iterator = NULL;
	wait_bpf__detach(source->skeleton);
}

void sampled_waits_account(
	const struct sampled_waits *source, struct sampled_waits_account *ret_account)
{
	const uint64_t *counts = (const uint64_t *)source->skeleton->bss->wait_counts;
	struct program_runs runs = {0};

	*ret_account = (struct sampled_waits_account){
		.looked = counts[WAIT_COUNT_LOOKED],
		.unchanged = counts[WAIT_COUNT_UNCHANGED],
		.due = counts[WAIT_COUNT_CHANGED],
		.taken = counts[WAIT_COUNT_TAKEN],
		.raced = counts[WAIT_COUNT_RACED],
	};
	program_runs_add(&runs, source->skeleton->progs.look_at_task);
	ret_account->run_count = runs.count;
	ret_account->run_time_ns = runs.time_ns;
}
