/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: from the records of processes to the capture, out of it, and what the analysis says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyses/inference/inference.h"
#include "analyses/program/counter_use.h"
#include "analyses/program/range_use.h"
#include "analyses/selection.h"
#include "collect/pipeline/ranges.h"
#include "model/builder/builder.h"
#include "model/weigh.h"

#define PID   77
#define TID   78
#define IMAGE 5

/* Ids of texts. */
enum { DOMAIN = 1, OUTER, INNER, FIELD, CATEGORY };

struct fixture {
	char path[64];
	struct capture_writer *writer;
	struct range_collector *collector;
	struct model *model;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int fd;

	snprintf(fixture->path, sizeof(fixture->path), "/tmp/sonde-ranges-XXXXXX");
	fd = mkstemp(fixture->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(capture_writer_open(&fixture->writer, fixture->path, NULL, NULL), 0);
	assert_int_equal(range_collector_new(&fixture->collector, fixture->writer), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	range_collector_free(fixture->collector);
	capture_writer_free(fixture->writer);
	model_free(fixture->model);
	unlink(fixture->path);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, const void *record)
{
	assert_int_equal(range_collector_add(fixture->collector, PID, record), 0);
}

static void write_all(struct fixture *fixture, bool everything)
{
	assert_int_equal(range_collector_write(fixture->collector, everything), 0);
}

/* A text in pieces of at most `piece` bytes. */
static void define_pieces(struct fixture *fixture, uint32_t id, const char *text, size_t piece)
{
	struct {
		struct wire_range_text head;
		char bytes[WIRE_RANGE_PIECE_BYTES];
	} record;
	size_t total = strlen(text), at = 0;

	do {
		size_t bytes = total - at < piece ? total - at : piece;

		memset(&record, 0, sizeof(record));
		record.head.record.type = WIRE_RECORD_RANGE_TEXT;
		record.head.record.length_bytes =
			(uint32_t)(sizeof(record.head) + (bytes + 7) / 8 * 8);
		record.head.image = IMAGE;
		record.head.id = id;
		record.head.at = (uint16_t)at;
		record.head.bytes = (uint16_t)bytes;
		record.head.total = (uint16_t)total;
		memcpy(record.bytes, text + at, bytes);
		add(fixture, &record);
		at += bytes;
	} while (at < total);
}

static void define(struct fixture *fixture, uint32_t id, const char *text)
{
	define_pieces(fixture, id, text, WIRE_RANGE_PIECE_BYTES);
}

static void define_all(struct fixture *fixture)
{
	define(fixture, DOMAIN, "a domain");
	define(fixture, OUTER, "outer");
	define(fixture, INNER, "inner");
	define(fixture, FIELD, "bytes");
	define(fixture, CATEGORY, "a category");
}

static struct wire_range_event event(uint16_t type, uint64_t time_ns, uint32_t name, uint16_t depth)
{
	return (struct wire_range_event){
		.record = {.type = type, .length_bytes = sizeof(struct wire_range_event)},
		.time_ns = time_ns,
		.tid = TID,
		.name = name,
		.image = IMAGE,
		.depth = depth,
	};
}

static void push(struct fixture *fixture, uint64_t time_ns, uint32_t name, uint16_t depth)
{
	struct wire_range_event record = event(WIRE_RECORD_RANGE_PUSH, time_ns, name, depth);

	add(fixture, &record);
}

static void pop(struct fixture *fixture, uint64_t time_ns, uint16_t depth)
{
	struct wire_range_event record = event(WIRE_RECORD_RANGE_POP, time_ns, 0, depth);

	add(fixture, &record);
}

static void of_process(struct fixture *fixture, uint16_t type, uint64_t time_ns, uint64_t id)
{
	struct wire_range_event record = event(type, time_ns, OUTER, 0);

	record.id = id;
	record.tid = TID + (type == WIRE_RECORD_RANGE_END);
	add(fixture, &record);
}

/* Closes the capture and reads it; the account is that of the collector. */
static struct capture_range_stats finish(struct fixture *fixture)
{
	struct capture_range_stats stats;
	struct errmsg err;

	write_all(fixture, true);
	range_collector_account(fixture->collector, &stats);
	assert_int_equal(capture_writer_close(fixture->writer, &err), 0);
	fixture->writer = NULL;
	assert_int_equal(model_load(&fixture->model, fixture->path, NULL, NULL, &err), 0);
	return stats;
}

static const struct model_range *range_at(const struct fixture *fixture, size_t at)
{
	assert_true(at < fixture->model->ranges.count);
	return &fixture->model->ranges.items[at];
}

static void assert_range(const struct fixture *fixture, size_t at, const char *name,
	uint64_t start_ns, uint64_t end_ns, uint32_t depth)
{
	const struct model_range *range = range_at(fixture, at);

	assert_string_equal(range->name, name);
	assert_int_equal(range->start_ns, start_ns);
	assert_int_equal(range->end_ns, end_ns);
	assert_int_equal(range->depth, depth);
}

/* ---- the collector, and the capture ---- */

static void test_nested(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;

	define_all(fixture);
	push(fixture, 1000, OUTER, 0);
	push(fixture, 2000, INNER, 1);
	pop(fixture, 3000, 1);
	pop(fixture, 4000, 0);
	stats = finish(fixture);
	assert_int_equal(fixture->model->ranges.count, 2);
	assert_range(fixture, 0, "outer", 1000, 4000, 0);
	assert_range(fixture, 1, "inner", 2000, 3000, 1);
	assert_string_equal(range_at(fixture, 0)->domain, "NVTX");
	assert_int_equal(fixture->model->threads.items[range_at(fixture, 0)->thread].tid, TID);
	assert_int_equal(stats.ranges, 2);
	assert_int_equal(stats.open_at_end + stats.ends_lost + stats.unbalanced_ends, 0);
}

/* A name may be in a ring that is read later; the event waits one call, and no longer. */
static void test_names_come_late(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;
	char longest[1001];

	memset(longest, 'y', sizeof(longest) - 1);
	longest[1000] = '\0';
	push(fixture, 1000, OUTER, 0);
	pop(fixture, 2000, 0);
	write_all(fixture, false);
	range_collector_account(fixture->collector, &stats);
	assert_int_equal(stats.events, 0);
	define_pieces(fixture, OUTER, longest, 300);
	push(fixture, 3000, INNER, 0);
	pop(fixture, 4000, 0);
	write_all(fixture, false);
	range_collector_account(fixture->collector, &stats);
	assert_int_equal(stats.events, 2);
	write_all(fixture, false);
	stats = finish(fixture);
	assert_int_equal(stats.events, 4);
	assert_int_equal(stats.names_lost, 1);
	assert_range(fixture, 0, longest, 1000, 2000, 0);
	assert_range(fixture, 1, "[name lost]", 3000, 4000, 0);
}

/* Rings are read one after the other: what ends may come before what begins. */
static void test_ends_before_begins(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;

	define_all(fixture);
	of_process(fixture, WIRE_RECORD_RANGE_END, 5000, 9);
	write_all(fixture, false);
	of_process(fixture, WIRE_RECORD_RANGE_START, 1000, 9);
	of_process(fixture, WIRE_RECORD_RANGE_START, 2000, 10);
	write_all(fixture, false);
	of_process(fixture, WIRE_RECORD_RANGE_END, 3000, 10);
	of_process(fixture, WIRE_RECORD_RANGE_END, 6000, 11);
	stats = finish(fixture);
	assert_int_equal(stats.unbalanced_ends, 1);
	assert_int_equal(fixture->model->ranges.count, 2);
	assert_range(fixture, 0, "outer", 1000, 5000, 0);
	assert_range(fixture, 1, "outer", 2000, 3000, 0);
	assert_int_equal(range_at(fixture, 0)->thread, MODEL_NONE);
}

/* What the ring had no room for: the depths tell what has ended, and all nests. */
static void test_lost_records(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;

	define_all(fixture);
	push(fixture, 1000, OUTER, 0);
	push(fixture, 2000, INNER, 1); /* its pop was lost */
	push(fixture, 3000, INNER, 1);
	pop(fixture, 4000, 1);
	pop(fixture, 5000, 2); /* its push was lost */
	push(fixture, 6000, INNER, 1);
	pop(fixture, 7000, 0); /* the pop of depth 1 was lost */
	pop(fixture, 8000, WIRE_RANGE_NO_RANGE);
	stats = finish(fixture);
	assert_range(fixture, 0, "outer", 1000, 7000, 0);
	assert_range(fixture, 1, "inner", 2000, 3000, 1);
	assert_range(fixture, 2, "inner", 3000, 4000, 1);
	assert_range(fixture, 3, "inner", 6000, 7000, 1);
	assert_int_equal(stats.ends_lost, 2);
	assert_int_equal(stats.unbalanced_ends, 2);
	assert_int_equal(stats.open_at_end, 0);
}

static void test_depths_that_are_not_known(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;

	define_all(fixture);
	push(fixture, 1000, OUTER, WIRE_RANGE_NO_DEPTH);
	push(fixture, 2000, INNER, WIRE_RANGE_NO_DEPTH);
	pop(fixture, 3000, WIRE_RANGE_NO_DEPTH);
	pop(fixture, 4000, WIRE_RANGE_NO_DEPTH);
	pop(fixture, 5000, WIRE_RANGE_NO_DEPTH);
	stats = finish(fixture);
	assert_range(fixture, 0, "outer", 1000, 4000, 0);
	assert_range(fixture, 1, "inner", 2000, 3000, 1);
	assert_int_equal(stats.unbalanced_ends, 1);
}

/* Domains overlap as they like; a thread's end, and another program, end what is open. */
static void test_domains_and_ends(void **state)
{
	struct fixture *fixture = *state;
	struct wire_range_event record;
	struct capture_range_stats stats;

	define_all(fixture);
	record = event(WIRE_RECORD_RANGE_PUSH, 1000, OUTER, 0);
	record.domain = DOMAIN;
	add(fixture, &record);
	push(fixture, 2000, INNER, 0);
	record = event(WIRE_RECORD_RANGE_POP, 3000, 0, 0);
	record.domain = DOMAIN;
	add(fixture, &record);
	record = event(WIRE_RECORD_RANGE_THREAD_END, 4000, 0, WIRE_RANGE_NO_DEPTH);
	add(fixture, &record);
	push(fixture, 5000, OUTER, 0);
	of_process(fixture, WIRE_RECORD_RANGE_START, 5500, 1);
	record = event(WIRE_RECORD_RANGE_MARK, 6000, 0, 0);
	record.image = IMAGE + 1;
	add(fixture, &record);
	of_process(fixture, WIRE_RECORD_RANGE_START, 7000, 2);
	stats = finish(fixture);
	assert_range(fixture, 0, "outer", 1000, 3000, 0);
	assert_string_equal(range_at(fixture, 0)->domain, "a domain");
	assert_range(fixture, 1, "inner", 2000, 4000, 0);
	assert_range(fixture, 2, "outer", 5000, 6000, 0);
	assert_range(fixture, 3, "outer", 5500, 6000, 0);
	assert_true(range_at(fixture, 4)->is_mark);
	assert_true(range_at(fixture, 5)->is_open);
	assert_int_equal(stats.open_at_thread_end, 1);
	assert_int_equal(stats.open_at_end, 3);
}

static void test_payloads(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct wire_range_fields head;
		struct wire_range_field fields[3];
	} payload = {
		.head = {.record = {.type = WIRE_RECORD_RANGE_FIELDS,
				 .length_bytes = sizeof(payload)},
			.time_ns = 1000,
			.tid = TID,
			.image = IMAGE,
			.count = 3},
		.fields = {{FIELD, WIRE_RANGE_I64, (uint64_t)-5}, {OUTER, WIRE_RANGE_TEXT, INNER},
			{0, WIRE_RANGE_DOUBLE, 0x4004000000000000}}, /* 2.5 */
	};
	struct wire_range_name category = {
		.record = {.type = WIRE_RECORD_RANGE_CATEGORY, .length_bytes = sizeof(category)},
		.image = IMAGE,
		.name = CATEGORY,
		.id = 3,
	};
	struct wire_range_event record = event(WIRE_RECORD_RANGE_MARK, 1000, OUTER, 0);
	const struct model_range_field *fields;

	define_all(fixture);
	add(fixture, &category);
	add(fixture, &payload);
	record.category = 3;
	add(fixture, &record);
	add(fixture, &payload);
	record.time_ns = 2000; /* not this event's */
	record.category = 4;
	add(fixture, &record);
	finish(fixture);
	assert_int_equal(range_at(fixture, 0)->field_count, 3);
	assert_string_equal(range_at(fixture, 0)->category, "a category");
	fields = &fixture->model->range_fields.items[range_at(fixture, 0)->first_field];
	assert_string_equal(fields[0].name, "bytes");
	assert_int_equal((int64_t)fields[0].value, -5);
	assert_string_equal(fields[1].text, "inner");
	assert_string_equal(fields[2].name, "payload");
	assert_int_equal(fields[2].type, WIRE_RANGE_DOUBLE);
	assert_int_equal(fields[2].value, 0x4004000000000000);
	assert_int_equal(range_at(fixture, 1)->field_count, 0);
	assert_string_equal(range_at(fixture, 1)->category, "category 4");
}

/* A drain ends between the fields and their event, and others come first in the next one. */
static void test_payloads_of_events_that_come_later(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct wire_range_fields head;
		struct wire_range_field fields[2];
	} payload = {
		.head = {.record = {.type = WIRE_RECORD_RANGE_FIELDS,
				 .length_bytes = sizeof(payload)},
			.time_ns = 1000,
			.tid = TID,
			.image = IMAGE,
			.count = 2},
		.fields = {{FIELD, WIRE_RANGE_U64, 5}, {INNER, WIRE_RANGE_U64, 6}},
	};
	struct wire_range_event record = event(WIRE_RECORD_RANGE_MARK, 1000, OUTER, 0);
	const struct model_range_field *fields;

	define_all(fixture);
	add(fixture, &payload);
	write_all(fixture, false);
	payload.head.tid = record.tid = TID + 1;
	payload.fields[0].value = 7;
	payload.head.time_ns = record.time_ns = 1001;
	add(fixture, &payload);
	write_all(fixture, false);
	add(fixture, &record);
	write_all(fixture, false);
	record.tid = TID;
	record.time_ns = 1000;
	add(fixture, &record);
	finish(fixture);
	for (size_t i = 0; i < 2; i++) {
		const struct model_range *range = range_at(fixture, i);

		assert_int_equal(range->field_count, 2);
		fields = &fixture->model->range_fields.items[range->first_field];
		assert_int_equal(fields[0].value, range->start_ns == 1000 ? 5 : 7);
		assert_int_equal(fields[1].value, 6);
	}
}

static void test_malformed_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct wire_range_event short_event = event(WIRE_RECORD_RANGE_PUSH, 1000, 0, 0);
	struct wire_range_event late = event(WIRE_RECORD_RANGE_PUSH, UINT64_MAX, 0, 0);
	struct wire_range_text text = {
		.record = {.type = WIRE_RECORD_RANGE_TEXT, .length_bytes = sizeof(text)},
		.id = 1,
		.bytes = 8,
		.total = 8,
	};
	struct wire_range_text middle = {
		.record = {.type = WIRE_RECORD_RANGE_TEXT, .length_bytes = sizeof(middle)},
		.id = 1,
		.at = 8,
		.total = 16,
	};
	struct wire_range_fields fields = {
		.record = {.type = WIRE_RECORD_RANGE_FIELDS, .length_bytes = sizeof(fields)},
		.count = 1,
	};
	struct capture_range_stats stats;

	short_event.record.length_bytes = 16;
	add(fixture, &short_event);
	add(fixture, &late);
	add(fixture, &text);
	add(fixture, &middle);
	add(fixture, &fields);
	stats = finish(fixture);
	assert_int_equal(stats.records_damaged, 5);
	assert_int_equal(fixture->model->ranges.count, 0);
}

/* Most pushes and pops have a record of their own; they nest with the others. */
static void test_short_records(void **state)
{
	struct fixture *fixture = *state;
	struct wire_range_short level = {
		.record = {.type = WIRE_RECORD_RANGE_SHORT_PUSH, .length_bytes = sizeof(level)},
		.tid = TID,
		.image = IMAGE,
		.name = OUTER,
		.domain = DOMAIN,
		.time_ns = 1000,
	};
	struct wire_range_event inner = event(WIRE_RECORD_RANGE_PUSH, 2000, INNER, 1);
	struct capture_range_stats stats;

	define_all(fixture);
	inner.domain = DOMAIN;
	add(fixture, &level);
	add(fixture, &inner);
	level.record.type = WIRE_RECORD_RANGE_SHORT_POP;
	for (uint16_t depth = 2; depth-- > 0;) {
		level.record.reserved = depth;
		level.time_ns = 4000U - depth * 1000U;
		add(fixture, &level);
	}
	level.record.length_bytes = 24;
	add(fixture, &level);
	stats = finish(fixture);
	assert_int_equal(stats.records_damaged, 1);
	assert_int_equal(stats.ends_lost + stats.unbalanced_ends, 0);
	assert_range(fixture, 0, "outer", 1000, 4000, 0);
	assert_range(fixture, 1, "inner", 2000, 3000, 1);
	assert_string_equal(range_at(fixture, 0)->domain, "a domain");
}

static void add_counter(struct fixture *fixture, uint64_t time_ns, uint32_t name, double value)
{
	struct wire_counter counter = {
		.record = {.type = WIRE_RECORD_COUNTER, .length_bytes = sizeof(counter)},
		.time_ns = time_ns,
		.tid = TID,
		.image = IMAGE,
		.name = name,
	};

	memcpy(&counter.value, &value, sizeof(value));
	add(fixture, &counter);
}

/* Into the capture and out of it; one without a name, or cut short, is damage. */
static void test_counters(void **state)
{
	struct fixture *fixture = *state;
	struct wire_counter cut = {
		.record = {.type = WIRE_RECORD_COUNTER, .length_bytes = 32}, .name = OUTER};
	_cleanup_counter_use_ struct counter_use use = {0};
	struct capture_range_stats stats;

	add_counter(fixture, 3000, OUTER, 8.5);
	add_counter(fixture, 1000, OUTER, -1.5);
	add_counter(fixture, 2000, INNER, (double)NAN);
	add_counter(fixture, 2500, OUTER, (double)INFINITY);
	add_counter(fixture, 2000, 0, 1);
	add(fixture, &cut);
	define_all(fixture); /* later than what they are the names of */
	stats = finish(fixture);
	assert_int_equal(stats.records_damaged, 2);
	assert_int_equal(stats.names_lost, 0);
	assert_int_equal(fixture->model->counters.count, 4);
	assert_int_equal(fixture->model->ranges.count, 0);
	assert_int_equal(counter_use_init(&use, fixture->model, NULL, 0), 0);
	assert_int_equal(use.rows.count, 2);
	assert_string_equal(use.rows.items[0].name, "inner");
	assert_int_equal(use.rows.items[0].not_numbers, 1);
	assert_string_equal(use.rows.items[1].name, "outer");
	assert_int_equal(use.rows.items[1].count, 3);
	assert_int_equal(use.rows.items[1].not_numbers, 1);
	assert_true(use.rows.items[1].minimum == -1.5 && use.rows.items[1].maximum == 8.5);
	assert_true(use.rows.items[1].mean == 3.5 && use.rows.items[1].last == 8.5);
}

static void add_token(struct fixture *fixture, uint64_t time_ns, uint32_t request, uint32_t phase)
{
	struct {
		struct wire_range_fields head;
		struct wire_range_field fields[2];
	} out = {
		.head = {.record = {.type = WIRE_RECORD_RANGE_FIELDS, .length_bytes = sizeof(out)},
			.time_ns = time_ns,
			.tid = TID,
			.image = IMAGE,
			.count = 2},
		.fields = {{.name = 100, .type = WIRE_RANGE_U64, .value = request},
			{.name = 101, .type = WIRE_RANGE_TEXT, .value = phase}},
	};
	struct wire_range_event mark = event(WIRE_RECORD_RANGE_MARK, time_ns, 102, 0);

	mark.domain = 103;
	add(fixture, &out);
	add(fixture, &mark);
}

static void test_tokens(void **state)
{
	const char *const texts[] = {
		"request", "phase", "token", "sonde.token", "prefill", "decode"};
	enum { PREFILL = 104, DECODE };
	struct fixture *fixture = *state;
	_cleanup_inference_ struct inference use = {0};
	const struct inference_request *seen, *not_seen;
	uint64_t first_ns;

	for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++)
		define(fixture, 100 + i, texts[i]);
	add_token(fixture, 1000, 7, PREFILL);
	add_token(fixture, 1500, 8, DECODE); /* its begin was not seen */
	for (uint64_t i = 0; i < 20; i++)
		add_token(fixture, 3000 + i * 100 + (i == 19 ? 500 : 0), 7, DECODE);
	finish(fixture);
	assert_int_equal(inference_init(&use, fixture->model), 0);
	assert_int_equal(use.requests.count, 2);
	assert_int_equal(use.tokens, 21);
	seen = &use.requests.items[0];
	assert_string_equal(seen->id, "7");
	assert_int_equal(seen->tokens, 20);
	assert_true(inference_duration(seen, INFERENCE_TTFT, &first_ns));
	assert_int_equal(first_ns, 2000);
	assert_int_equal(seen->gap_count, 19);
	assert_true(use.itl.p50 == 100 && use.itl.p95 == 600);
	assert_true(fabs(use.itl.mean - (18 * 100 + 600) / 19.0) < 1e-9);
	not_seen = &use.requests.items[1];
	assert_false(inference_duration(not_seen, INFERENCE_TTFT, &first_ns));
	assert_int_equal(not_seen->gap_count, 0);
}

/* More levels than are kept: counted, and what is kept ends as it should. */
static void test_too_deep(void **state)
{
	struct fixture *fixture = *state;
	struct capture_range_stats stats;

	define_all(fixture);
	for (uint16_t i = 0; i < 600; i++)
		push(fixture, 1000 + i, INNER, i);
	for (uint16_t i = 600; i-- > 0;)
		pop(fixture, 3000 - i, i);
	stats = finish(fixture);
	assert_int_equal(stats.too_many, 600 - 512);
	assert_int_equal(stats.unbalanced_ends + stats.ends_lost + stats.open_at_end, 0);
	assert_int_equal(fixture->model->ranges.count, 512);
	assert_range(fixture, 0, "inner", 1000, 3000, 0);
}

/* ---- the analysis ---- */

static void add_range(struct model_builder *builder, uint64_t track, uint32_t tid,
	uint64_t start_ns, uint64_t end_ns, const char *name)
{
	struct capture_range_event event = {
		.time_ns = start_ns,
		.track = track,
		.pid = PID,
		.tid = tid,
		.lane = !tid,
		.kind = CAPTURE_RANGE_BEGIN,
		.domain = "NVTX",
		.name = name,
		.category = "",
	};

	assert_int_equal(model_builder_visitor.range(builder, &event), 0);
	event.time_ns = end_ns;
	event.kind = CAPTURE_RANGE_END;
	assert_int_equal(model_builder_visitor.range(builder, &event), 0);
}

static void add_sample(struct model_builder *builder, uint64_t time_ns, uint32_t tid)
{
	const struct capture_sample sample = {.time_ns = time_ns, .pid = PID, .tid = tid};

	assert_int_equal(model_builder_visitor.sample(builder, &sample), 0);
}

static void add_work(struct model_builder *builder, uint64_t launch_ns, uint64_t start_ns,
	uint64_t end_ns, uint32_t tid)
{
	const struct capture_device_work work = {
		.launch_ns = launch_ns,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.pid = PID,
		.tid = tid,
		.correlation = launch_ns,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "kernel",
		.device = "device",
	};

	assert_int_equal(model_builder_visitor.device_work(builder, &work), 0);
}

static const struct range_row *row_of(const struct range_use *use, const char *name)
{
	array_foreach (&use->rows, row) {
		if (strcmp(row->name, name) == 0)
			return row;
	}
	fail_msg("there is no row %s", name);
	return NULL;
}

/* Two threads and a range of the process; the device works on after the ranges have ended. */
static struct model *example(void)
{
	struct model_builder *builder;
	struct model *model;

	assert_int_equal(model_builder_new(&builder), 0);
	add_range(builder, 1, TID, 1000, 2000, "step");
	add_range(builder, 1, TID, 1100, 1200, "step"); /* in itself: samples count once */
	add_range(builder, 1, TID, 3000, 4000, "step");
	add_range(builder, 2, TID + 1, 1000, 4000, "other");
	add_range(builder, 3, 0, 900, 1500, "process");
	add_sample(builder, 1000, TID);
	add_sample(builder, 1150, TID);
	add_sample(builder, 2000, TID); /* not at its end */
	add_sample(builder, 3999, TID);
	add_sample(builder, 1150, TID + 1);
	add_sample(builder, 5000, TID + 1);
	add_work(builder, 1150, 5000, 6000, TID);
	add_work(builder, 1900, 5500, 7000, TID); /* overlaps the one before: on another queue */
	add_work(builder, 3500, 9000, 9100, TID);
	add_work(builder, 3600, 20000, 20100, TID + 1);
	add_work(builder, 8000, 30000, 30100, TID); /* in none */
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

static void test_what_happened_in_ranges(void **state)
{
	struct model *model = example();
	_cleanup_range_use_ struct range_use use = {0};
	const struct range_row *row;

	assert_int_equal(range_use_init(&use, model, NULL), 0);
	assert_int_equal(use.rows.count, 3);
	assert_int_equal(use.samples, 6);
	row = row_of(&use, "step");
	assert_int_equal(row->count, 3);
	assert_int_equal(row->total_ns, 2100);
	assert_int_equal(row->minimum_ns, 100);
	assert_int_equal(row->maximum_ns, 1000);
	assert_int_equal(row->samples, 3);
	assert_int_equal(row->works, 3);
	/* 5000 to 7000 and 9000 to 9100; the inner range has 5000 to 6000 once more. */
	assert_int_equal(row->device_span_ns, 2000 + 1000 + 100);
	assert_int_equal(row->device_busy_ns, 2000 + 100);
	row = row_of(&use, "other");
	assert_int_equal(row->samples, 1);
	assert_int_equal(row->works, 1);
	assert_int_equal(row->device_busy_ns, 100);
	row = row_of(&use, "process");
	assert_true(row->of_process);
	assert_int_equal(row->samples, 3);
	assert_int_equal(row->works, 1);
	model_free(model);
}

static void test_filter(void **state)
{
	struct selection selection = {.range = "^step$"};
	struct model *model = example();
	struct selected selected;
	struct errmsg err;

	assert_int_equal(selection_apply(&selection, model, &selected, &err), 0);
	assert_int_equal(selected.count, 3);
	selected_done(&selected);
	selection.range = "^process$";
	assert_int_equal(selection_apply(&selection, model, &selected, &err), 0);
	assert_int_equal(selected.count, 3);
	selected_done(&selected);
	selection.range = "no such range";
	assert_int_equal(selection_apply(&selection, model, &selected, &err), 0);
	assert_int_equal(selected.count, 0);
	selected_done(&selected);
	selection.range = "(";
	assert_int_equal(selection_apply(&selection, model, &selected, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--range"));
	model_free(model);
}

/* Device work belongs to the range that launched it, whenever it ran. */
static void test_filter_of_device_work(void **state)
{
	struct selection selection = {.range = "^other$", .weight = MODEL_WEIGHT_GPU};
	struct model *model = example();
	struct selected selected;
	struct errmsg err;

	assert_int_equal(model_weigh(model, MODEL_WEIGHT_GPU), 0);
	assert_int_equal(selection_apply(&selection, model, &selected, &err), 0);
	assert_int_equal(selected.count, 100);
	selected_done(&selected);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nested, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_come_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ends_before_begins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_depths_that_are_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_domains_and_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_payloads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_payloads_of_events_that_come_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tokens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_deep, set_up, tear_down),
		cmocka_unit_test(test_what_happened_in_ranges),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_of_device_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
