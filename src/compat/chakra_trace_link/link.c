/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What chakra_trace_link 1.0.0 makes of two traces, with its faults (docs/chakra.md): it knows
 * operators by record-function id alone, and not their names; gives all operators of a thread's
 * group the dependency of the first; knows neither fills nor graphs; and takes for the operator of
 * a launch one that began before it, whether or not it goes on.
 */
#include "compat/chakra_trace_link/chakra_trace_link.h"

#include <strings.h>

#include "compat/chakra_trace_link/internal.h"

static uint64_t thread_key(const struct trace *device, const struct trace_event *event)
{
	const struct trace_track *track = &device->tracks.items[event->track];

	return track->tid == TRACE_NO_NUMBER ? ~(uint64_t)track->tid_text : (uint64_t)track->tid;
}

static bool is_operator(const struct trace *device, const struct trace_event *event)
{
	return (event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION) &&
	       !strstr(trace_text(device, event->name), "ProfilerStep");
}

static int compare_operators(const void *a, const void *b)
{
	const struct compat_operator *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

static int number_threads(struct compat *compat)
{
	uint64_t thread;
	int r = 0;

	array_foreach (&compat->operators, op) {
		uint64_t key = thread_key(compat->link->device, link_event(compat->link, op->row));

		if (!map_u64_get(&compat->threads, key, &thread)) {
			thread = compat->thread_count++;
			r = map_u64_set(&compat->threads, key, thread);
			if (r < 0)
				return r;
		}
		op->thread = (uint32_t)thread;
	}
	return 0;
}

static int collect_operators(struct compat *compat)
{
	const struct trace *device = compat->link->device;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < device->events.count; row++) {
		const struct trace_event *event = link_event(compat->link, row);
		const struct trace_op *details = trace_op(device, event);
		struct compat_operator found = {
			.start_ns = event->start_ns,
			.end_ns = trace_end_ns(event),
			.rf_id = details ? details->rf_id : TRACE_NO_ID,
			.external_id = event->external_id,
			.row = row,
			.host = MODEL_NONE,
			.dep = MODEL_NONE,
		};

		if (is_operator(device, event))
			r = array_append(&compat->operators, found);
	}
	if (compat->operators.count)
		qsort(compat->operators.items, compat->operators.count,
			sizeof(struct compat_operator), compare_operators);
	return r ?: number_threads(compat);
}

/* Of several operators with one id the last counts. */
static int index_rf_ids(struct compat *compat)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < compat->operators.count; i++) {
		uint64_t rf_id = compat->operators.items[i].rf_id;

		if (rf_id != TRACE_NO_ID)
			r = map_u64_set(&compat->by_rf_id, rf_id, i);
	}
	return r;
}

static bool is_known_launch(const char *name)
{
	static const char *const names[] = {"cuLaunchKernel", "cuLaunchKernelEx",
		"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpy", "cudaMemcpyAsync",
		"cudaMemcpyFromSymbol", "cudaMemcpyToSymbol", "cudaLaunchCooperativeKernel",
		"hipLaunchKernel", "hipExtLaunchKernel", "hipExtModuleLaunchKernel",
		"hipModuleLaunchKernel", "hipMemcpyWithStream", "hipMemcpyAsync"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

static int index_launches(struct compat *compat, struct errmsg *err)
{
	const struct trace *device = compat->link->device;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < device->events.count; row++) {
		const struct trace_event *event = link_event(compat->link, row);

		if (!link_is_call(event) || !event->correlation ||
			!is_known_launch(trace_text(device, event->name)))
			continue;
		if (map_u64_get(&compat->launches, event->correlation, NULL))
			return errmsg_set(err, -EINVAL,
				"two launches in %s have the correlation %llu, where "
				"chakra_trace_link stops: leave out --compat",
				device->path, (unsigned long long)event->correlation);
		r = map_u64_set(&compat->launches, event->correlation, row);
	}
	return r;
}

/* Device work, and the operator that it is given to. */
struct launched {
	int64_t launch_ns;
	uint32_t row, thread, parent;
};

struct launched_list {
	ARRAY_OF(struct launched) items;
};

static int compare_launched(const void *a, const void *b)
{
	const struct launched *left = a, *right = b;

	if (left->launch_ns != right->launch_ns)
		return left->launch_ns < right->launch_ns ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

static int collect_launched(const struct compat *compat, struct launched_list *list)
{
	const struct trace *device = compat->link->device;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < device->events.count; row++) {
		const struct trace_event *event = link_event(compat->link, row);
		uint64_t launch, thread;

		compat->link->result->device_rows += trace_is_work(event);
		if (event->category != TRACE_KERNEL && event->category != TRACE_MEMCPY)
			continue;
		if (!map_u64_get(&compat->launches, event->correlation, &launch)) {
			compat->link->result->without_launch++;
			continue;
		}
		event = link_event(compat->link, (uint32_t)launch);
		if (!map_u64_get(&compat->threads, thread_key(device, event), &thread)) {
			compat->link->result->without_operator++;
			continue;
		}
		r = array_append(&list->items,
			(struct launched){event->start_ns, row, (uint32_t)thread, MODEL_NONE});
	}
	if (list->items.count)
		qsort(list->items.items, list->items.count, sizeof(struct launched),
			compare_launched);
	return r;
}

/* The operators that began so far: the last of each thread, and of each thread and External id. */
struct latest {
	struct map_u64 of_thread, of_id;
};

static uint64_t id_key(uint32_t thread, uint64_t external_id)
{
	return (uint64_t)thread << 44 ^ external_id;
}

static int latest_add(struct latest *latest, const struct compat_operator *op, uint32_t index)
{
	int r = map_u64_set(&latest->of_thread, op->thread, index);

	if (r < 0)
		return r;
	return map_u64_set(&latest->of_id, id_key(op->thread, op->external_id), index);
}

static uint32_t latest_find(const struct latest *latest, uint32_t thread, uint64_t external_id)
{
	uint64_t index;

	if (map_u64_get(&latest->of_id, id_key(thread, external_id), &index) ||
		map_u64_get(&latest->of_thread, thread, &index))
		return (uint32_t)index;
	return MODEL_NONE;
}

static bool is_coalesced(const struct compat *compat, const struct compat_operator *op)
{
	const struct trace_event *event = link_event(compat->link, op->row);

	return strcmp(trace_text(compat->link->device, event->name), "nccl:coalesced") == 0;
}

/* NCCL's kernels are not given to operators named nccl:coalesced. */
static int find_parents(const struct compat *compat, struct launched_list *list)
{
	struct latest all = {0}, not_coalesced = {0};
	const struct trace *device = compat->link->device;
	uint32_t next = 0;
	int r = 0;

	array_foreach (&list->items, launched) {
		const struct trace_event *event = link_event(compat->link, launched->row);
		bool is_nccl = strcasestr(trace_text(device, event->name), "nccl");

		for (; r == 0 && next < compat->operators.count &&
			compat->operators.items[next].start_ns < launched->launch_ns;
			next++) {
			const struct compat_operator *op = &compat->operators.items[next];

			r = latest_add(&all, op, next);
			if (r == 0 && !is_coalesced(compat, op))
				r = latest_add(&not_coalesced, op, next);
		}
		launched->parent = latest_find(
			is_nccl ? &not_coalesced : &all, launched->thread, event->external_id);
		compat->link->result->without_operator += launched->parent == MODEL_NONE;
	}
	map_u64_done(&all.of_thread);
	map_u64_done(&all.of_id);
	map_u64_done(&not_coalesced.of_thread);
	map_u64_done(&not_coalesced.of_id);
	return r;
}

static int compare_by_id(const void *a, const void *b)
{
	const struct compat_work *left = a, *right = b;

	if (left->external_id != right->external_id)
		return left->external_id < right->external_id ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

/* Work by the External id of its operator. */
static int group_work(struct compat *compat)
{
	struct launched_list list = {0};
	int r = collect_launched(compat, &list);

	r = r ?: find_parents(compat, &list);
	array_foreach (&list.items, launched) {
		if (r == 0 && launched->parent != MODEL_NONE)
			r = array_append(&compat->works,
				(struct compat_work){
					compat->operators.items[launched->parent].external_id,
					launched->row});
	}
	if (compat->works.count)
		qsort(compat->works.items, compat->works.count, sizeof(struct compat_work),
			compare_by_id);
	array_done(&list.items);
	return r;
}

/* All work with the operator's External id, which others may have, too. */
static int add_works(struct compat *compat, uint32_t host, uint64_t external_id)
{
	struct link *link = compat->link;
	size_t low = 0, high = compat->works.count;
	int r = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compat->works.items[middle].external_id < external_id)
			low = middle + 1;
		else
			high = middle;
	}
	for (; r == 0 && low < compat->works.count &&
		compat->works.items[low].external_id == external_id;
		low++) {
		const struct trace_event *event = link_event(link, compat->works.items[low].row);

		r = array_append(&link->works, (struct link_work){
						       .row = compat->works.items[low].row,
						       .launch = MODEL_NONE,
						       .host = host,
						       .before = MODEL_NONE,
						       .start_ns = event->start_ns,
						       .end_ns = trace_end_ns(event),
					       });
	}
	return r;
}

/* Which nodes hang, over their parents, on node 1: 1 yes, 2 no. */
static void find_reachable(const struct execution_trace *host, uint8_t *reachable, uint32_t *path)
{
	for (uint32_t i = 0; i < host->nodes.count; i++) {
		uint32_t at = i, length = 0;
		uint64_t parent = i;
		uint8_t answer = 0;

		while (!answer) {
			const struct execution_node *node = &host->nodes.items[at];

			if (reachable[at])
				answer = reachable[at];
			else if (node->id == 1)
				answer = 1;
			else if (!id_map_get(&host->index, node->parent, &parent) || parent == at ||
				 length == host->nodes.count)
				answer = 2;
			if (length < host->nodes.count)
				path[length++] = at;
			at = answer ? at : (uint32_t)parent;
		}
		while (length)
			reachable[path[--length]] = answer;
	}
}

static int compare_ids(const void *a, const void *b)
{
	const struct compat_host *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

/* Only operators that were matched before, by id, can be waited for. */
static int match_host(struct compat *compat, uint32_t index)
{
	struct link *link = compat->link;
	struct execution_node *node = &link->host->nodes.items[index];
	struct compat_operator *op;
	uint64_t found;

	if (node->rf_id == EXECUTION_NO_ID || !map_u64_get(&compat->by_rf_id, node->rf_id, &found))
		return 0;
	op = &compat->operators.items[found];
	op->host = index;
	link_match(link, index, op->row, EXECUTION_BY_RF_ID);
	node->start_ns = op->start_ns;
	node->inclusive_ns = op->end_ns - op->start_ns;
	node->exclusive_ns = op->exclusive_ns;
	if (op->dep != MODEL_NONE) {
		uint64_t rf_id = compat->operators.items[op->dep].rf_id, last;

		if (rf_id && rf_id != TRACE_NO_ID && map_u64_get(&compat->by_rf_id, rf_id, &last))
			compat->deps[index] = compat->operators.items[last].host;
	}
	return add_works(compat, index, op->external_id);
}

static int match_hosts(struct compat *compat)
{
	const struct execution_trace *host = compat->link->host;
	size_t count = host->nodes.count;
	_cleanup_free_ struct compat_host *hosts = malloc((count + 1) * sizeof(*hosts));
	_cleanup_free_ uint8_t *reachable = calloc(count + 1, 1);
	_cleanup_free_ uint32_t *path = malloc((count + 1) * sizeof(*path));
	int r = 0;

	compat->deps = malloc((count + 1) * sizeof(*compat->deps));
	if (!hosts || !reachable || !path || !compat->deps)
		return -ENOMEM;
	memset(compat->deps, 0xff, (count + 1) * sizeof(*compat->deps));
	find_reachable(host, reachable, path);
	for (uint32_t i = 0; i < count; i++)
		hosts[i] = (struct compat_host){host->nodes.items[i].id, i};
	qsort(hosts, count, sizeof(*hosts), compare_ids);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (reachable[hosts[i].index] == 1)
			r = match_host(compat, hosts[i].index);
	}
	return r;
}

static int compare_works(const void *a, const void *b)
{
	const struct link_work *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/* Device nodes have what their operator has. */
static void set_deps(struct compat *compat)
{
	struct link *link = compat->link;
	struct execution_node *nodes = link->host->nodes.items;

	for (size_t i = 0; i < link->host_count; i++) {
		if (compat->deps[i] == MODEL_NONE)
			continue;
		nodes[link->new_index[i]].inter_thread_dep = link->new_index[compat->deps[i]];
		link->result->inter_thread_deps++;
	}
	array_foreach (&link->works, work)
		nodes[work->node].inter_thread_dep =
			nodes[link->new_index[work->host]].inter_thread_dep;
}

/* Groups are known of kernels with the name that NCCL 2.18 gave them, whatever the trace says. */
static void drop_groups(struct link *link)
{
	array_foreach (&link->host->nodes, node) {
		if (node->work != MODEL_NONE &&
			!execution_text_contains(node->name, "ncclDevKernel"))
			link->host->works.items[node->work].group_name = (struct execution_text){0};
	}
}

static int link_with(struct compat *compat, struct errmsg *err)
{
	struct link *link = compat->link;
	int r = collect_operators(compat);

	r = r ?: index_rf_ids(compat);
	r = r ?: compat_exclusive_times(compat);
	r = r ?: compat_thread_deps(compat);
	r = r ?: index_launches(compat, err);
	r = r ?: group_work(compat);
	r = r ?: match_hosts(compat);
	if (r < 0)
		return r;
	if (!link->result->matched[EXECUTION_BY_RF_ID])
		return errmsg_set(err, -ENODATA,
			"no operator of %s is in %s by its Record function id, the only rule of "
			"chakra_trace_link: leave out --compat",
			link->host->path, link->device->path);
	if (link->works.count)
		qsort(link->works.items, link->works.count, sizeof(struct link_work),
			compare_works);
	link->result->linked = link->works.count;
	r = link_assemble(link);
	if (r < 0)
		return r;
	set_deps(compat);
	drop_groups(link);
	return 0;
}

int chakra_trace_link(struct link *link, struct errmsg *err)
{
	struct compat compat = {.link = link};
	int r;

	link->base_ns = 0;
	link->keeps_lost_ids = true;
	r = link_with(&compat, err);
	array_done(&compat.operators);
	array_done(&compat.works);
	map_u64_done(&compat.threads);
	map_u64_done(&compat.by_rf_id);
	map_u64_done(&compat.launches);
	free(compat.deps);
	return r;
}
