/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/wait/exact_waits.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/exact.skel.h"
#include "bpf/exact_shared.h"
#include "bpf/open_waits.skel.h"
#include "sources/wait/share.h"

struct exact_waits {
	struct exact_bpf *measuring;
	struct open_waits_bpf *ending;
	bool is_attached; /* waits are followed */
	bool is_counting;
};

bool exact_waits_see_the_end(void)
{
	/* For tests: what older kernels do, on any. */
	if (getenv("SONDE_WAIT_AT_SWITCH"))
		return false;
	return libbpf_find_vmlinux_btf_id("sched_exit_tp", BPF_TRACE_RAW_TP) > 0;
}

#define SET_KNOBS(skeleton, parts, minimum_ns)                                                     \
	do {                                                                                       \
		(skeleton)->rodata->whole_machine = (parts)->whole_machine;                        \
		(skeleton)->rodata->pid_namespace_level = (parts)->pid_namespace_level;            \
		(skeleton)->rodata->pid_namespace_inode = (parts)->pid_namespace_inode;            \
		(skeleton)->rodata->wakeup_bytes = (parts)->wakeup_bytes;                          \
		(skeleton)->rodata->wait_min_ns = (minimum_ns);                                    \
	} while (0)

static int load_measuring(
	struct exact_waits *source, const struct bpf_sampler_parts *parts, uint64_t minimum_ns)
{
	struct exact_bpf *skeleton = source->measuring = exact_bpf__open();
	int result;

	if (!skeleton)
		return -errno;
	SET_KNOBS(skeleton, parts, minimum_ns);
	skeleton->rodata->walk_at_switch = !exact_waits_see_the_end();
	if (skeleton->rodata->walk_at_switch)
		bpf_program__set_autoload(skeleton->progs.on_return, false);
	bpf_map__set_max_entries(skeleton->maps.scratches, (uint32_t)libbpf_num_possible_cpus());
	result = share_sampler_maps(skeleton->obj, parts);
	return result < 0 ? result : exact_bpf__load(skeleton);
}

static int load_ending(
	struct exact_waits *source, const struct bpf_sampler_parts *parts, uint64_t minimum_ns)
{
	struct open_waits_bpf *skeleton = source->ending = open_waits_bpf__open();
	int result;

	if (!skeleton)
		return -errno;
	SET_KNOBS(skeleton, parts, minimum_ns);
	result = share_sampler_maps(skeleton->obj, parts);
	if (result == 0)
		result = bpf_map__reuse_fd(
			skeleton->maps.threads, bpf_map__fd(source->measuring->maps.threads));
	return result < 0 ? result : open_waits_bpf__load(skeleton);
}

int exact_waits_open(struct exact_waits **ret_source, const struct bpf_sampler_parts *parts,
	uint64_t minimum_ns, struct errmsg *err)
{
	struct exact_waits *source = calloc(1, sizeof(*source));
	int result;

	if (!source)
		return -ENOMEM;
	result = load_measuring(source, parts, minimum_ns);
	if (result == 0)
		result = load_ending(source, parts, minimum_ns);
	if (result < 0) {
		exact_waits_free(source);
		return errmsg_set(err, -ENOTSUP,
			"waits cannot be measured exactly: the kernel refused the program (%s); it "
			"needs Linux 5.18",
			strerror(-result));
	}
	*ret_source = source;
	return 0;
}

struct exact_waits *exact_waits_free(struct exact_waits *source)
{
	if (!source)
		return NULL;
	open_waits_bpf__destroy(source->ending);
	exact_bpf__destroy(source->measuring);
	free(source);
	return NULL;
}

/* Reading the iterator runs its program over all tasks. */
static int look_at_all(struct exact_waits *source)
{
	struct bpf_link *link =
		bpf_program__attach_iter(source->ending->progs.look_at_open_wait, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1, result = 0;
	char nothing[16];
	ssize_t got;

	if (fd >= 0) {
		do
			got = read(fd, nothing, sizeof(nothing));
		while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
		result = got < 0 ? -errno : 0;
		close(fd);
	} else {
		result = -errno;
	}
	bpf_link__destroy(link);
	return result;
}

static void set_start(struct exact_waits *source, uint64_t start_ns)
{
	source->ending->bss->start_ns = start_ns;
	source->measuring->bss->start_ns = start_ns;
	source->is_counting = start_ns != EXACT_NOT_BEGUN;
}

/*
 * From now on all programs are there: whoever comes back to a CPU, and was not seen leaving one,
 * left it before. Waits count from `start_ns`.
 */
static int attach(struct exact_waits *source, uint64_t start_ns, struct errmsg *err)
{
	int result = exact_bpf__attach(source->measuring);

	if (result < 0)
		return errmsg_set(err, result, "cannot attach to the scheduler's tracepoints: %s",
			strerror(-result));
	source->measuring->bss->epoch = ++source->ending->bss->epoch;
	source->ending->bss->end_ns = source->measuring->bss->end_ns = 0;
	set_start(source, start_ns);
	source->is_attached = true;
	if (!source->measuring->rodata->walk_at_switch)
		return 0;
	source->ending->bss->is_first = 1;
	result = look_at_all(source);
	source->ending->bss->is_first = 0;
	if (result < 0)
		return errmsg_set(
			err, result, "cannot sample waiting threads: %s", strerror(-result));
	return 0;
}

int exact_waits_start(struct exact_waits *source, struct errmsg *err)
{
	return attach(source, EXACT_NOT_BEGUN, err);
}

int exact_waits_resume(struct exact_waits *source, uint64_t from_ns)
{
	struct errmsg err;

	if (source->is_counting)
		exact_waits_stop(source);
	if (!source->is_attached)
		return attach(source, from_ns, &err);
	set_start(source, from_ns);
	return 0;
}

void exact_waits_stop(struct exact_waits *source)
{
	uint64_t now_ns = monotonic_now_ns();
	bool was_counting = source->is_counting;

	if (!source->is_attached)
		return;
	source->is_attached = source->is_counting = false;
	source->measuring->bss->end_ns = now_ns;
	exact_bpf__detach(source->measuring);
	source->ending->bss->end_ns = now_ns;
	if (was_counting)
		look_at_all(source);
}

void exact_waits_account(const struct exact_waits *source, struct exact_waits_account *ret_account)
{
	const struct exact_bpf *measuring = source->measuring;
	const struct bpf_program *programs[] = {
		measuring->progs.on_switch, measuring->progs.on_wakeup,
		measuring->progs.on_thread_exit, source->ending->progs.look_at_open_wait,
		measuring->progs.on_return, /* the last: it may not be there */
	};
	size_t count = ARRAY_SIZE(programs) - measuring->rodata->walk_at_switch;
	struct program_runs runs = {0};

	for (size_t i = 0; i < count; i++)
		program_runs_add(&runs, programs[i]);
	*ret_account = (struct exact_waits_account){
		.run_count = runs.count,
		.run_time_ns = runs.time_ns,
		.unmeasured = measuring->bss->unmeasured + runs.missed + measuring->bss->unseen,
		.crowded = measuring->bss->crowded,
		.lost = measuring->bss->lost + source->ending->bss->lost,
		.lost_ns = measuring->bss->lost_ns + source->ending->bss->lost_ns,
	};
}
