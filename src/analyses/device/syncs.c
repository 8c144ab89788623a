/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/syncs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In Kineto's words, ours for JSON, and for a table. */
static const char *const kinds[DEVICE_SYNC_KIND_MAX][3] = {
	[DEVICE_SYNC_STREAM_WAIT] = {"Stream Wait Event", "stream_wait_event",
		"Stream waits for event"},
	[DEVICE_SYNC_EVENT] = {"Event Sync", "event", "Host waits for event"},
	[DEVICE_SYNC_STREAM] = {"Stream Sync", "stream", "Host waits for stream"},
	[DEVICE_SYNC_DEVICE] = {"Context Sync", "device", "Host waits for device"},
	[DEVICE_SYNC_HOST_FUNCTION] = {TRACE_HOST_FUNCTION, "host_function",
		"Stream waits for function"},
	[DEVICE_SYNC_COPY] = {"", "copy", "Host waits for copy"},
	[DEVICE_SYNC_CALL] = {"", "call", "Host waits in call"},
};

const char *device_sync_kind_name(enum device_sync_kind kind)
{
	return kinds[kind][1];
}

const char *device_sync_kind_title(enum device_sync_kind kind)
{
	return kinds[kind][2];
}

/* Work by the queue that it was put on, then by its launch. */
struct queued {
	uint32_t queue; /* a stream, or after those a device */
	uint32_t work;
	uint32_t latest; /* of those up to this one, the work that ends last */
	int64_t launch_ns;
};

struct queue_key {
	int64_t device, stream; /* TRACE_NO_NUMBER: the device as a whole */
};

struct finding {
	struct device_syncs *syncs;
	const struct trace_view *view;
	ARRAY_OF(struct queued) queued;
	struct intern queues; /* struct queue_key → index in queue_numbers */
	ARRAY_OF(uint32_t) queue_numbers;
	int64_t *before_ns; /* by work: when the work before it on its stream ended */
};

static const struct trace_view_work *work_of(const struct finding *finding, uint32_t work)
{
	return &finding->view->works.items[work];
}

static int64_t start_of(const struct finding *finding, uint32_t row)
{
	return trace_view_start_ns(finding->view, &finding->view->trace->events.items[row]);
}

/* ---- queues ---- */

static int name_queue(struct finding *finding, struct queue_key key, size_t queue)
{
	uint32_t id;
	int r = intern_add(&finding->queues, &key, sizeof(key), &id);

	/* The first of equal ones is meant. */
	return r > 0 ? array_append(&finding->queue_numbers, (uint32_t)queue) : r;
}

static int name_queues(struct finding *finding)
{
	const struct trace_view *view = finding->view;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->streams.count; i++) {
		const struct trace_view_stream *stream = &view->streams.items[i];
		int64_t device = view->devices.items[stream->device].number;

		if (stream->number != TRACE_NO_NUMBER)
			r = name_queue(finding, (struct queue_key){device, stream->number}, i);
	}
	for (size_t i = 0; r == 0 && i < view->devices.count; i++)
		r = name_queue(finding,
			(struct queue_key){view->devices.items[i].number, TRACE_NO_NUMBER},
			view->streams.count + i);
	return r;
}

/* MODEL_NONE: no work was put there. */
static uint32_t find_queue(const struct finding *finding, int64_t device, int64_t stream)
{
	struct queue_key key = {device, stream};
	uint32_t id;

	if (!intern_find(&finding->queues, &key, sizeof(key), &id))
		return MODEL_NONE;
	assert(id < finding->queue_numbers.count);
	return finding->queue_numbers.items[id];
}

static int compare_queued(const void *left, const void *right)
{
	const struct queued *a = left, *b = right;

	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->launch_ns != b->launch_ns)
		return a->launch_ns < b->launch_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int add_queued(struct finding *finding, uint32_t work)
{
	const struct trace_view *view = finding->view;
	const struct trace_view_work *item = work_of(finding, work);
	int64_t launch_ns =
		item->launch == MODEL_NONE ? item->start_ns : start_of(finding, item->launch);
	uint32_t device = (uint32_t)view->streams.count + view->streams.items[item->stream].device;
	int r = array_append(
		&finding->queued, (struct queued){item->stream, work, work, launch_ns});

	return r ?: array_append(&finding->queued, (struct queued){device, work, work, launch_ns});
}

static int add_all_queued(struct finding *finding)
{
	int r = 0;

	for (uint32_t work = 0; r == 0 && work < finding->view->works.count; work++)
		r = add_queued(finding, work);
	if (r < 0 || !finding->queued.count)
		return r;
	qsort(finding->queued.items, finding->queued.count, sizeof(struct queued), compare_queued);
	for (size_t i = 1; i < finding->queued.count; i++) {
		struct queued *queued = &finding->queued.items[i];
		const struct queued *before = queued - 1;

		if (before->queue == queued->queue &&
			work_of(finding, before->latest)->end_ns >
				work_of(finding, queued->work)->end_ns)
			queued->latest = before->latest;
	}
	return 0;
}

/* How many are of an earlier queue, or of this one and launched before the time. */
static size_t count_before(const struct finding *finding, uint32_t queue, int64_t time_ns)
{
	size_t first = 0, last = finding->queued.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const struct queued *item = &finding->queued.items[middle];

		if (item->queue < queue || (item->queue == queue && item->launch_ns < time_ns))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* Of the work put on the queue before the time, what ended last. */
static uint32_t latest_before(const struct finding *finding, uint32_t queue, int64_t time_ns)
{
	size_t count = count_before(finding, queue, time_ns);

	if (queue == MODEL_NONE || !count || finding->queued.items[count - 1].queue != queue)
		return MODEL_NONE;
	return finding->queued.items[count - 1].latest;
}

static uint32_t next_after(const struct finding *finding, uint32_t queue, int64_t time_ns)
{
	size_t index = count_before(finding, queue, time_ns);

	if (index == finding->queued.count || finding->queued.items[index].queue != queue)
		return MODEL_NONE;
	return finding->queued.items[index].work;
}

static int find_before(struct finding *finding)
{
	const struct trace_view *view = finding->view;
	_cleanup_free_ int64_t *last_ns = calloc(view->streams.count + 1, sizeof(*last_ns));

	finding->before_ns = calloc(view->works.count + 1, sizeof(*finding->before_ns));
	if (!last_ns || !finding->before_ns)
		return -ENOMEM;
	for (size_t i = 0; i < view->streams.count; i++)
		last_ns[i] = INT64_MIN;
	for (uint32_t i = 0; i < view->works.count; i++) {
		const struct trace_view_work *work = work_of(finding, i);

		finding->before_ns[i] = last_ns[work->stream];
		last_ns[work->stream] = MAX(last_ns[work->stream], work->end_ns);
	}
	return 0;
}

/* ---- what a wait is for, as a text ---- */

static void add_device(const struct finding *finding, int64_t number, struct strbuf *out)
{
	const struct trace_view *view = finding->view;

	for (uint32_t i = 0; i < view->devices.count; i++) {
		if (view->devices.items[i].number == number) {
			trace_view_device_name(view, i, out);
			return;
		}
	}
	if (number == TRACE_NO_NUMBER)
		strbuf_add(out, "a GPU");
	else
		strbuf_addf(out, "GPU %lld", (long long)number);
}

/* The event's stream, and of which device. Files have -1 where there is none. */
static void event_queue(const struct trace_work *wait, int64_t *device, int64_t *stream)
{
	*device = wait->far_device ? (int64_t)wait->far_device - 1 : wait->device;
	*stream = wait->far_device ? (int64_t)wait->far_stream - 1 : wait->wait_stream;
	if (*stream < 0)
		*stream = TRACE_NO_NUMBER;
}

static int find_target(struct finding *finding, const struct trace_work *wait,
	enum device_sync_kind kind, uint32_t *ret_target)
{
	bool is_event = kind <= DEVICE_SYNC_EVENT;
	int64_t device = wait->device, stream = wait->stream;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (is_event)
		event_queue(wait, &device, &stream);
	if (kind == DEVICE_SYNC_HOST_FUNCTION) {
		strbuf_add(&text, "function of the program");
	} else if (kind == DEVICE_SYNC_DEVICE) {
		add_device(finding, device, &text);
	} else {
		strbuf_add(&text, is_event ? "event" : "");
		if (stream != TRACE_NO_NUMBER)
			strbuf_addf(
				&text, "%sstream %lld", is_event ? " of " : "", (long long)stream);
		else if (!is_event)
			strbuf_add(&text, "a stream");
		if (stream != TRACE_NO_NUMBER && finding->view->devices.count > 1) {
			strbuf_add(&text, " of ");
			add_device(finding, device, &text);
		}
	}
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return MIN(
		intern_add(&finding->syncs->targets, strbuf_cstr(&text), text.length, ret_target),
		0);
}

/* ---- waits ---- */

/* What had to end for the event that a row waits for. */
static uint32_t work_before_event(const struct finding *finding, const struct trace_work *wait)
{
	int64_t device, stream;
	uint64_t record;

	event_queue(wait, &device, &stream);
	if (!wait->wait_correlation || stream == TRACE_NO_NUMBER ||
		!id_map_get(&finding->view->trace->launches, wait->wait_correlation, &record))
		return MODEL_NONE;
	return latest_before(
		finding, find_queue(finding, device, stream), start_of(finding, (uint32_t)record));
}

/* Its work had been launched, and the one before it had ended: from then on it waited. */
static void time_stream(const struct finding *finding, struct device_sync *sync)
{
	const struct trace_view_work *next;
	int64_t from_ns;

	if (sync->waited == MODEL_NONE)
		return;
	next = work_of(finding, sync->next);
	from_ns = finding->before_ns[sync->next];
	if (next->launch != MODEL_NONE)
		from_ns = MAX(from_ns, start_of(finding, next->launch));
	from_ns = MAX(from_ns, sync->start_ns);
	sync->start_ns = MIN(from_ns, next->start_ns);
	sync->end_ns = MIN(work_of(finding, sync->waited)->end_ns, next->start_ns);
	sync->end_ns = MAX(sync->end_ns, sync->start_ns);
	sync->is_known = true;
}

/* Keeps the one whose work ends last. */
static int keep_last(const struct finding *finding, struct map_u64 *map, uint32_t key)
{
	const struct device_syncs *syncs = finding->syncs;
	size_t index = syncs->items.count - 1;
	const struct device_sync *sync = &syncs->items.items[index];
	uint64_t known;

	if (key == MODEL_NONE)
		return 0;
	if (map_u64_get(map, key, &known)) {
		uint32_t other = syncs->items.items[known].waited;

		if (sync->waited == MODEL_NONE ||
			(other != MODEL_NONE && work_of(finding, other)->end_ns >=
							work_of(finding, sync->waited)->end_ns))
			return 0;
	}
	return map_u64_set(map, key, index);
}

static void find_waited(
	const struct finding *finding, const struct trace_work *wait, struct device_sync *sync)
{
	int64_t stream = sync->kind == DEVICE_SYNC_DEVICE ? TRACE_NO_NUMBER : wait->stream;
	uint32_t queue = find_queue(finding, wait->device, stream);

	if (sync->kind <= DEVICE_SYNC_EVENT)
		sync->waited = work_before_event(finding, wait);
	else
		sync->waited = latest_before(finding, queue, sync->start_ns);
	if (sync->kind != DEVICE_SYNC_STREAM_WAIT)
		return;
	if (queue != MODEL_NONE)
		sync->next = next_after(finding, queue, sync->start_ns);
	if (sync->next == MODEL_NONE)
		sync->is_known = stream >= 0; /* nothing had to wait */
	else
		time_stream(finding, sync);
}

static enum device_sync_kind kind_of(const char *name)
{
	for (int kind = 0; kind < DEVICE_SYNC_COPY; kind++) {
		if (strcmp(name, kinds[kind][0]) == 0)
			return (enum device_sync_kind)kind;
	}
	return DEVICE_SYNC_STREAM;
}

static int add_sync(struct finding *finding, uint32_t row)
{
	const struct trace *trace = finding->view->trace;
	const struct trace_event *event = &trace->events.items[row];
	const struct trace_work *wait = trace_work(trace, event);
	struct device_sync sync = {
		.row = row,
		.call = trace_launch(trace, event),
		.waited = MODEL_NONE,
		.next = MODEL_NONE,
		.kind = (uint8_t)kind_of(trace_text(trace, event->name)),
	};
	bool is_function = sync.kind == DEVICE_SYNC_HOST_FUNCTION;
	const struct trace_event *timed =
		sync.call == MODEL_NONE || is_function ? event : &trace->events.items[sync.call];
	int r;

	if (!wait)
		return 0;
	sync.start_ns = trace_view_start_ns(finding->view, timed);
	sync.end_ns = MAX(trace_view_end_ns(finding->view, timed), sync.start_ns);
	sync.is_known = sync.kind != DEVICE_SYNC_STREAM_WAIT;
	if (!sync.is_known)
		sync.end_ns = sync.start_ns;
	if (!is_function)
		find_waited(finding, wait, &sync);
	r = find_target(finding, wait, (enum device_sync_kind)sync.kind, &sync.target);
	r = r ?: array_append(&finding->syncs->items, sync);
	/* Nobody else waits for it. */
	if (is_function)
		return r;
	if (sync.kind == DEVICE_SYNC_STREAM_WAIT)
		return r ?: keep_last(finding, &finding->syncs->of_works, sync.next);
	return r ?: keep_last(finding, &finding->syncs->of_calls, sync.call);
}

static bool is_wait(const struct trace_view *view, const struct trace_event *event)
{
	return event->category == TRACE_SYNC && trace_view_has(view, event);
}

static bool has_waits(const struct trace_view *view)
{
	array_foreach (&view->trace->events, event) {
		if (is_wait(view, event))
			return true;
	}
	return false;
}

int device_syncs_init(struct device_syncs *syncs, const struct trace_view *view)
{
	struct finding finding = {.syncs = syncs, .view = view};
	int r;

	*syncs = (struct device_syncs){0};
	if (!has_waits(view))
		return 0;
	r = name_queues(&finding);
	r = r ?: add_all_queued(&finding);
	r = r ?: find_before(&finding);
	for (uint32_t i = 0; r == 0 && i < view->trace->events.count; i++) {
		if (is_wait(view, &view->trace->events.items[i]))
			r = add_sync(&finding, i);
	}
	intern_done(&finding.queues);
	array_done(&finding.queued);
	array_done(&finding.queue_numbers);
	free(finding.before_ns);
	if (r < 0)
		device_syncs_done(syncs);
	return r;
}

void device_syncs_done(struct device_syncs *syncs)
{
	array_done(&syncs->items);
	intern_done(&syncs->targets);
	map_u64_done(&syncs->of_calls);
	map_u64_done(&syncs->of_works);
}

static const struct device_sync *find(
	const struct device_syncs *syncs, const struct map_u64 *map, uint32_t key)
{
	uint64_t index;

	return map_u64_get(map, key, &index) ? &syncs->items.items[index] : NULL;
}

const struct device_sync *device_syncs_of_call(const struct device_syncs *syncs, uint32_t call)
{
	return find(syncs, &syncs->of_calls, call);
}

const struct device_sync *device_syncs_of_work(const struct device_syncs *syncs, uint32_t work)
{
	return find(syncs, &syncs->of_works, work);
}

const char *device_syncs_target(const struct device_syncs *syncs, const struct device_sync *sync)
{
	return intern_get(&syncs->targets, sync->target);
}
