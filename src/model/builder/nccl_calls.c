/* SPDX-License-Identifier: Apache-2.0 */
#include "model/builder/nccl_calls.h"

#include <stdlib.h>
#include <string.h>

#define DOMAIN "NCCL"

/* Names of the payload's entries. Broadcasts and sends had "Bytes" before 2.25. */
#define BYTES        "Message size [bytes]"
#define OLD_BYTES    "Bytes"
#define COMMUNICATOR "NCCL communicator ID"
#define RANKS        "No. of ranks"
#define DEVICES      "No. of devices"
#define PEER         "Peer rank"

enum kind {
	KIND_OTHER,
	KIND_COLLECTIVE,     /* that all ranks of its communicator call */
	KIND_POINT_TO_POINT, /* that need not be called by all */
	KIND_MAKE,           /* makes a communicator */
	KIND_GROUP_START,
	KIND_GROUP_END,
	KIND_GROUP_SIMULATE, /* ends a group, and launches nothing */
};

static enum kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{"ncclAllGather", KIND_COLLECTIVE},
		{"ncclAllReduce", KIND_COLLECTIVE},
		{"ncclAlltoAll", KIND_COLLECTIVE},
		{"ncclBroadcast", KIND_COLLECTIVE},
		{"ncclGather", KIND_COLLECTIVE},
		{"ncclReduce", KIND_COLLECTIVE},
		{"ncclReduceScatter", KIND_COLLECTIVE},
		{"ncclScatter", KIND_COLLECTIVE},
		{"ncclSend", KIND_POINT_TO_POINT},
		{"ncclRecv", KIND_POINT_TO_POINT},
		{"ncclPutSignal", KIND_POINT_TO_POINT},
		{"ncclSignal", KIND_POINT_TO_POINT},
		{"ncclWaitSignal", KIND_POINT_TO_POINT},
		{"ncclCommInitAll", KIND_MAKE},
		{"ncclCommInitRank", KIND_MAKE},
		{"ncclCommInitRankConfig", KIND_MAKE},
		{"ncclCommInitRankScalable", KIND_MAKE},
		{"ncclCommSplit", KIND_MAKE},
		{"ncclCommShrink", KIND_MAKE},
		{"ncclCommGrow", KIND_MAKE},
		{"ncclGroupStart", KIND_GROUP_START},
		{"ncclGroupEnd", KIND_GROUP_END},
		{"ncclGroupSimulateEnd", KIND_GROUP_SIMULATE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	}
	return KIND_OTHER;
}

static bool is_call(const struct nccl_call *call)
{
	return call->kind == KIND_COLLECTIVE || call->kind == KIND_POINT_TO_POINT;
}

/* ---- what ranges say ---- */

static bool read_number(const struct model_builder *builder, const struct nccl_call *call,
	const char *name, uint64_t *ret_value)
{
	const struct model_range *range = &builder->ranges.items[call->range].range;

	for (uint32_t i = 0; i < range->field_count; i++) {
		const struct model_range_field *field =
			&builder->model->range_fields.items[range->first_field + i];

		if ((field->type != WIRE_RANGE_U64 && field->type != WIRE_RANGE_I64) ||
			strcmp(field->name, name) != 0)
			continue;
		*ret_value = field->value;
		return true;
	}
	return false;
}

static int add_range(struct nccl_calls *calls, const struct model_builder *builder, size_t index)
{
	const struct raw_range *raw = &builder->ranges.items[index];
	struct nccl_call call = {
		.start_ns = raw->range.start_ns,
		.end_ns = raw->range.end_ns,
		.name = raw->range.name,
		.pid = raw->pid,
		.tid = raw->tid,
		.range = (uint32_t)index,
		.kind = (uint8_t)kind_of(raw->range.name),
		.peer = UINT32_MAX,
	};
	uint64_t peer;
	int r;

	if (call.kind == KIND_OTHER)
		return 0;
	if (read_number(builder, &call, PEER, &peer) && peer < UINT32_MAX)
		call.peer = (uint32_t)peer;
	read_number(builder, &call, COMMUNICATOR, &call.communicator);
	call.has_bytes = read_number(builder, &call, BYTES, &call.bytes) ||
			 read_number(builder, &call, OLD_BYTES, &call.bytes);
	r = is_call(&call) ? map_u64_set(&calls->processes, call.pid, 1) : 0;
	return r ?: array_append(&calls->calls, call);
}

static int add_ranges(struct nccl_calls *calls, const struct model_builder *builder)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < builder->ranges.count; i++) {
		const struct raw_range *raw = &builder->ranges.items[i];

		if (raw->tid && !raw->range.is_mark && !raw->range.is_open &&
			strcmp(raw->range.domain, DOMAIN) == 0)
			r = add_range(calls, builder, i);
	}
	return r;
}

/* ---- communicators ---- */

struct communicator_key {
	uint64_t id;
	uint32_t pid, unused;
};

/* NULL: the call does not say which, or nothing is known of it. */
static struct nccl_communicator *find_communicator(
	const struct nccl_calls *calls, const struct nccl_call *call)
{
	const struct communicator_key key = {.id = call->communicator, .pid = call->pid};
	uint32_t id;

	if (!call->communicator || !intern_find(&calls->communicator_keys, &key, sizeof(key), &id))
		return NULL;
	return &calls->communicators.items[id];
}

static int add_communicator(
	struct nccl_calls *calls, const struct model_builder *builder, const struct nccl_call *call)
{
	const struct communicator_key key = {.id = call->communicator, .pid = call->pid};
	struct nccl_communicator *communicator;
	uint64_t ranks = 0, devices = 0;
	uint32_t id;
	int r = intern_add(&calls->communicator_keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&calls->communicators, (struct nccl_communicator){0});
	if (r < 0)
		return r;
	communicator = &calls->communicators.items[id];
	/* All ranks of this one are here. */
	if (read_number(builder, call, DEVICES, &devices))
		ranks = devices;
	else
		read_number(builder, call, RANKS, &ranks);
	communicator->made += devices > 1 ? 2 : 1;
	if (ranks <= INT32_MAX)
		communicator->ranks = (uint32_t)ranks;
	return 0;
}

static int add_communicators(struct nccl_calls *calls, const struct model_builder *builder)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < calls->calls.count; i++) {
		const struct nccl_call *call = &calls->calls.items[i];

		if (call->kind == KIND_MAKE && call->communicator)
			r = add_communicator(calls, builder, call);
	}
	return r;
}

/* Ranks of a communicator call the same in the same order. Numbers are known where all calls since
 * it was made are here, of one of its ranks. */
static void number_calls(struct nccl_calls *calls, const struct model_builder *builder)
{
	const struct capture_stats *stats = &builder->model->stats.values;

	if (builder->model->whole_window_count || stats->device.records_lost ||
		stats->ranges.names_lost || stats->ranges.ends_lost || stats->ranges.too_many ||
		stats->ranges.records_damaged || stats->ranges.calls_dropped)
		return;
	array_foreach (&calls->calls, call) {
		struct nccl_communicator *communicator =
			call->kind == KIND_COLLECTIVE ? find_communicator(calls, call) : NULL;

		if (communicator && communicator->made == 1)
			call->sequence = ++communicator->calls;
	}
}

/* ---- what is launched together ---- */

static int compare_times(const void *left, const void *right)
{
	const struct nccl_call *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->range < b->range ? -1 : a->range > b->range;
}

static int compare_calls(const void *left, const void *right)
{
	const struct nccl_call *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return compare_times(left, right);
}

static void sort_calls(
	struct nccl_calls *calls, int (*compare)(const void *left, const void *right))
{
	if (calls->calls.count)
		qsort(calls->calls.items, calls->calls.count, sizeof(*calls->calls.items), compare);
}

/* Of a thread: where in its groups it is. */
struct walk {
	uint32_t pid, tid;
	uint32_t depth;
	uint32_t first;      /* of the batch that is open */
	uint64_t covered_ns; /* the end of the latest call */
};

/* What the batch has is launched in this range. */
static int launch(struct nccl_calls *calls, struct walk *walk, const struct nccl_call *within)
{
	const struct nccl_launch launched = {
		.start_ns = within->start_ns,
		.end_ns = within->end_ns,
		.pid = within->pid,
		.tid = within->tid,
		.first = walk->first,
		.count = (uint32_t)calls->batch.count - walk->first,
	};

	walk->first = (uint32_t)calls->batch.count;
	return launched.count ? array_append(&calls->launches, launched) : 0;
}

static int end_group(struct nccl_calls *calls, struct walk *walk, const struct nccl_call *end)
{
	if (!walk->depth || --walk->depth)
		return 0;
	if (end->kind == KIND_GROUP_END)
		return launch(calls, walk, end);
	calls->batch.count = walk->first;
	return 0;
}

/* Before 2.22 sends lay in a group of their own, within the call. */
static int walk_range(struct nccl_calls *calls, struct walk *walk, uint32_t index)
{
	const struct nccl_call *call = &calls->calls.items[index];
	int r;

	if (call->pid != walk->pid || call->tid != walk->tid) {
		calls->batch.count = walk->first;
		*walk = (struct walk){.pid = call->pid, .tid = call->tid, .first = walk->first};
	}
	if (call->start_ns < walk->covered_ns)
		return 0;
	if (call->kind == KIND_GROUP_START)
		walk->depth++;
	if (call->kind == KIND_GROUP_END || call->kind == KIND_GROUP_SIMULATE)
		return end_group(calls, walk, call);
	if (!is_call(call))
		return 0;
	walk->covered_ns = call->end_ns;
	r = array_append(&calls->batch, index);
	return r < 0 || walk->depth ? r : launch(calls, walk, call);
}

int nccl_calls_init(struct nccl_calls *calls, const struct model_builder *builder)
{
	struct walk walk = {0};
	int r;

	*calls = (struct nccl_calls){0};
	r = add_ranges(calls, builder);
	r = r ?: add_communicators(calls, builder);
	if (r < 0)
		return r;
	sort_calls(calls, compare_times);
	number_calls(calls, builder);
	sort_calls(calls, compare_calls);
	for (uint32_t i = 0; r == 0 && i < calls->calls.count; i++)
		r = walk_range(calls, &walk, i);
	return r;
}

void nccl_calls_done(struct nccl_calls *calls)
{
	array_done(&calls->calls);
	array_done(&calls->batch);
	array_done(&calls->launches);
	array_done(&calls->communicators);
	intern_done(&calls->communicator_keys);
	map_u64_done(&calls->processes);
	array_done(&calls->peers);
}

/* ---- questions ---- */

bool nccl_calls_has_process(const struct nccl_calls *calls, uint32_t pid)
{
	return map_u64_get(&calls->processes, pid, NULL);
}

/* Does it begin after this moment of this thread? */
static bool is_later(const struct nccl_launch *one, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	if (one->pid != pid)
		return one->pid > pid;
	if (one->tid != tid)
		return one->tid > tid;
	return one->start_ns > time_ns;
}

bool nccl_calls_find(const struct nccl_calls *calls, uint32_t pid, uint32_t tid, uint64_t time_ns,
	uint32_t *ret_launch)
{
	const struct nccl_launch *launches = calls->launches.items;
	size_t low = 0, high = calls->launches.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_later(&launches[middle], pid, tid, time_ns))
			high = middle;
		else
			low = middle + 1;
	}
	if (!low || launches[low - 1].pid != pid || launches[low - 1].tid != tid ||
		launches[low - 1].end_ns < time_ns)
		return false;
	*ret_launch = (uint32_t)low - 1;
	return true;
}

static const struct nccl_call *call_of(
	const struct nccl_calls *calls, const struct nccl_launch *launched, uint32_t index)
{
	return &calls->calls.items[calls->batch.items[launched->first + index]];
}

/* What all its calls have in common. */
struct common {
	bool name, communicator, bytes, has_bytes;
	uint64_t all_bytes; /* UINT64_MAX: too much */
};

static struct common find_common(const struct nccl_calls *calls, const struct nccl_launch *launched)
{
	const struct nccl_call *first = call_of(calls, launched, 0);
	struct common common = {true, true, true, true, 0};

	for (uint32_t i = 0; i < launched->count; i++) {
		const struct nccl_call *call = call_of(calls, launched, i);

		common.name &= strcmp(call->name, first->name) == 0;
		common.communicator &= call->communicator == first->communicator;
		common.bytes &= call->bytes == first->bytes;
		common.has_bytes &= call->has_bytes;
		if (__builtin_add_overflow(common.all_bytes, call->bytes, &common.all_bytes))
			common.all_bytes = UINT64_MAX;
	}
	return common;
}

/* Bits, for nccl_calls.peers. */
enum direction { SENDS = 1, RECEIVES = 2, BOTH = 3 };

static unsigned direction_of(const struct nccl_call *call)
{
	if (strcmp(call->name, "ncclSend") == 0)
		return SENDS;
	return strcmp(call->name, "ncclRecv") == 0 ? RECEIVES : 0;
}

/* Has it sends, receives, and nothing else? */
static bool is_exchange(const struct nccl_calls *calls, const struct nccl_launch *launched)
{
	unsigned directions = 0;

	for (uint32_t i = 0; i < launched->count; i++) {
		unsigned direction = direction_of(call_of(calls, launched, i));

		if (!direction)
			return false;
		directions |= direction;
	}
	return directions == BOTH;
}

static uint64_t bytes_of(const struct nccl_calls *calls, const struct nccl_launch *launched,
	enum direction direction)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < launched->count; i++) {
		const struct nccl_call *call = call_of(calls, launched, i);

		if (direction_of(call) == direction)
			bytes += call->bytes;
	}
	return bytes;
}

/* Is each rank sent to and received from once? Returns whether, or -ENOMEM. */
static int is_with_all(struct nccl_calls *calls, const struct nccl_launch *launched, uint32_t ranks)
{
	int r = 0;

	if (launched->count % 2 || launched->count / 2 != ranks)
		return 0;
	calls->peers.count = 0;
	for (uint32_t i = 0; r == 0 && i < ranks; i++)
		r = array_append(&calls->peers, 0);
	for (uint32_t i = 0; r == 0 && i < launched->count; i++) {
		const struct nccl_call *call = call_of(calls, launched, i);
		uint8_t direction = (uint8_t)direction_of(call);

		if (call->peer >= ranks || (calls->peers.items[call->peer] & direction))
			return 0;
		calls->peers.items[call->peer] |= direction;
	}
	return r < 0 ? r : 1;
}

/* Of sends and receives: their name, and what they move. */
static int describe_exchange(struct nccl_calls *calls, const struct nccl_launch *launched,
	struct model_collective *collective)
{
	int with_all = is_with_all(calls, launched, collective->ranks);

	collective->name = with_all > 0 ? MODEL_ALL_TO_ALL : MODEL_SEND_RECV;
	if (!collective->unknown) {
		collective->bytes = bytes_of(calls, launched, SENDS);
		collective->received = bytes_of(calls, launched, RECEIVES);
	}
	return MIN(with_all, 0);
}

/* One kernel runs all calls. Of several kernels each runs one where there are as many: then they
 * have to be of one size, since NCCL puts calls into an order of its own. */
int nccl_calls_describe(struct nccl_calls *calls, uint32_t launch, uint32_t kernels,
	struct model_collective *ret_collective)
{
	const struct nccl_launch *launched = &calls->launches.items[launch];
	const struct nccl_call *first = call_of(calls, launched, 0);
	const struct common common = find_common(calls, launched);
	const struct nccl_communicator *communicator =
		common.communicator ? find_communicator(calls, first) : NULL;
	bool exchange = is_exchange(calls, launched);
	bool is_clear = kernels == 1 ? common.name || exchange
				     : common.name && kernels == launched->count && common.bytes;
	uint64_t bytes = kernels == 1 ? common.all_bytes : first->bytes;
	struct model_collective found = {
		.name = common.name ? first->name : "",
		.communicator = common.communicator ? first->communicator : 0,
		.ranks = communicator ? communicator->ranks : 0,
	};

	if (is_clear && common.communicator)
		found.sequence = first->sequence;
	if (!common.has_bytes || bytes > INT64_MAX)
		found.unknown = MODEL_SIZE_NO_PAYLOAD;
	else if (!is_clear)
		found.unknown = MODEL_SIZE_SEVERAL;
	else if (!found.ranks && strcmp(found.name, "ncclAlltoAll") == 0)
		found.unknown = MODEL_SIZE_NO_RANKS;
	else
		found.bytes = bytes;
	*ret_collective = found;
	return exchange ? describe_exchange(calls, launched, ret_collective) : 0;
}

uint32_t nccl_calls_sequence(const struct nccl_calls *calls, uint32_t launch, uint32_t kernel)
{
	const struct nccl_launch *launched = &calls->launches.items[launch];

	return kernel < launched->count ? call_of(calls, launched, kernel)->sequence : 0;
}
