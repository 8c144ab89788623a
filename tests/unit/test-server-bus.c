/* SPDX-License-Identifier: Apache-2.0 */
/* Live messages: what a client gets that is slow, stalled, or comes back. Time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "server/bus.h"

#define SECOND NS_PER_S

static const struct bus_limits limits = {.kept_bytes = 20000,
	.kept_messages = 50,
	.budget_bytes = 2000,
	.patience_ns = 5 * SECOND,
	.history_bytes = 1000,
	.history_ns = 60 * SECOND};

static struct bus *bus;
static unsigned woken;
static uint64_t now;

/* What a frame had besides the envelope that was looked at: of one client at a time. */
static struct {
	struct strbuf text;
	size_t at;
	size_t bytes; /* of all frames */
	const struct bus_client *client;
	struct bus_frame frame;
} received;

static void wake(void *context)
{
	(*(unsigned *)context)++;
}

static int setup(void **state)
{
	now = 1;
	woken = 0;
	return bus_open(&bus, &limits, "epoch", now);
}

static int teardown(void **state)
{
	bus = bus_close(bus);
	strbuf_done(&received.text);
	received.at = 0;
	return 0;
}

static struct bus_client *add(const char *epoch, uint64_t seq)
{
	struct bus_client *client;

	assert_int_equal(bus_add(bus, &client, "{\"a\":1}", epoch, seq, wake, &woken, now), 0);
	return client;
}

static void publish(const char *type, enum api_class class, size_t bytes)
{
	char data[3000];

	snprintf(data, sizeof(data), "\"%0*d\"", (int)bytes, 0);
	assert_int_equal(bus_publish(bus, type, class, data, strlen(data), now), 0);
}

static void publish_about(const char *key, const char *type, enum api_class class)
{
	assert_int_equal(bus_publish_keyed(bus, type, class, key, "\"x\"", 3, now), 0);
}

/* How often the key's history has this type. */
static unsigned count_in_history(const char *key, const char *type)
{
	_cleanup_strbuf_ struct strbuf history = {0};
	char member[64];
	unsigned count = 0;

	bus_write_history(bus, key, &history, now);
	snprintf(member, sizeof(member), "\"type\":\"%s\"", type);
	for (const char *at = strbuf_cstr(&history); (at = strstr(at, member)); at++)
		count++;
	return count;
}

static uint64_t number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

/* The next frame's type, seq and, of a gap, its bounds. */
struct seen {
	char type[32], text[300];
	uint64_t seq, from, to, count;
	unsigned code;
};

/* To the next envelope of the frame, or of the next frame. */
static bool receive(struct bus_client *client)
{
	assert_true(received.at == received.text.length || received.client == client);
	if (received.at < received.text.length)
		return true;
	strbuf_clear(&received.text);
	received.at = 0;
	received.client = client;
	if (!bus_next(client, &received.text, &received.frame, now))
		return false;
	received.bytes += received.text.length;
	return true;
}

static bool next(struct bus_client *client, struct seen *seen)
{
	static const char begin[] = "{\"v\":1,";
	const struct bus_frame *frame = &received.frame;
	const char *at, *end;

	*seen = (struct seen){0};
	if (!receive(client))
		return false;
	at = strstr(strbuf_cstr(&received.text) + received.at, begin);
	assert_non_null(at);
	end = strstr(at + 1, begin);
	received.at = end ? (size_t)(end - received.text.data) : received.text.length;
	snprintf(seen->text, sizeof(seen->text), "%.*s", end ? (int)(end - at) : 299, at);
	assert_int_equal(sscanf(strstr(seen->text, "\"type\":\"") + 8, "%31[a-z_]", seen->type), 1);
	seen->seq = number_of(seen->text, "\"seq\":");
	seen->from = number_of(seen->text, "\"from\":");
	seen->to = number_of(seen->text, "\"to\":");
	seen->count = number_of(seen->text, "\"count\":");
	seen->code = frame->is_last ? frame->close_code : 0;
	return true;
}

static void expect(struct bus_client *client, const char *type, uint64_t seq)
{
	struct seen seen;

	assert_true(next(client, &seen));
	assert_string_equal(seen.type, type);
	assert_int_equal(seen.seq, seq);
}

static void expect_nothing(struct bus_client *client)
{
	struct seen seen;

	assert_false(next(client, &seen));
}

static void test_hello_snapshot_then_live(void **state)
{
	struct bus_client *client;
	struct seen seen;

	publish("power", API_CLASS_LATEST_WINS, 10);
	publish("power", API_CLASS_LATEST_WINS, 10);
	publish("token", API_CLASS_MUST_KEEP, 10);
	client = add(NULL, 0);
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "hello");
	assert_non_null(strstr(seen.text, "\"v\":1,\"epoch\":\"epoch\",\"seq\":0"));
	assert_non_null(strstr(seen.text, "\"data\":{\"a\":1}}"));
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "snapshot");
	assert_non_null(strstr(seen.text, "\"types\":1,\"newest_seq\":3"));
	expect(client, "power", 2);
	expect_nothing(client);
	publish("token", API_CLASS_MUST_KEEP, 10);
	expect(client, "token", 4);
	bus_remove(client);
}

static void test_woken_once_until_it_has_all(void **state)
{
	struct bus_client *client = add(NULL, 0);
	struct seen seen;

	assert_int_equal(woken, 1);
	publish("a", API_CLASS_MUST_KEEP, 10);
	assert_int_equal(woken, 1);
	while (next(client, &seen))
		;
	publish("a", API_CLASS_MUST_KEEP, 10);
	publish("a", API_CLASS_MUST_KEEP, 10);
	assert_int_equal(woken, 2);
	bus_remove(client);
}

static void test_who_comes_back_gets_what_it_missed(void **state)
{
	struct bus_client *client;

	for (int i = 0; i < 10; i++)
		publish("a", API_CLASS_DROP_FIRST, 10);
	client = add("epoch", 7);
	expect(client, "hello", 0);
	expect(client, "a", 8);
	expect(client, "a", 9);
	expect(client, "a", 10);
	expect_nothing(client);
	bus_remove(client);
	client = add("epoch", 10);
	expect(client, "hello", 0);
	expect_nothing(client);
	bus_remove(client);
}

static void check_gap(
	const char *epoch, uint64_t seq, uint64_t from, uint64_t to, const char *reason)
{
	struct bus_client *client = add(epoch, seq);
	struct seen seen;

	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "gap");
	assert_int_equal(seen.from, from);
	assert_int_equal(seen.to, to);
	assert_int_equal(seen.count, to - from + 1);
	assert_non_null(strstr(seen.text, reason));
	bus_remove(client);
}

static void test_what_is_no_longer_kept_is_a_gap(void **state)
{
	uint64_t oldest, newest;

	for (int i = 0; i < 100; i++)
		publish("a", API_CLASS_MUST_KEEP, 10);
	bus_range(bus, &oldest, &newest);
	assert_int_equal(newest, 100);
	assert_int_equal(oldest, 51);
	check_gap("epoch", 20, 21, 100, "too-old");
	check_gap("another", 20, 1, 100, "new-epoch");
	/* It was never ours to give. */
	check_gap("epoch", 200, 1, 100, "new-epoch");
}

/* Of what a stalled client gets: numbers once each, the others in gaps. */
static void check_complete(struct bus_client *client, uint64_t newest, unsigned *ret_messages)
{
	bool seen_seq[1000] = {false}, in_gap[1000] = {false};
	uint64_t lost = 0, missing = 0;
	struct seen seen;

	*ret_messages = 0;
	while (next(client, &seen)) {
		if (strcmp(seen.type, "gap") == 0) {
			lost += seen.count;
			for (uint64_t i = seen.from; i <= seen.to; i++)
				in_gap[i] = true;
		}
		if (!seen.seq)
			continue;
		assert_false(seen_seq[seen.seq]);
		seen_seq[seen.seq] = true;
		++*ret_messages;
	}
	for (uint64_t i = 1; i <= newest; i++) {
		assert_true(seen_seq[i] || in_gap[i]);
		missing += !seen_seq[i];
	}
	assert_int_equal(missing, lost);
}

static void test_a_stalled_client_keeps_what_must_be_kept(void **state)
{
	struct bus_client *client = add(NULL, 0);
	unsigned messages;

	for (int i = 0; i < 300; i++) {
		publish("stats", API_CLASS_DROP_FIRST, 20);
		publish("power", API_CLASS_LATEST_WINS, 20);
		publish("token", API_CLASS_MUST_KEEP, 20);
	}
	received.bytes = 0;
	check_complete(client, 900, &messages);
	assert_true(messages > 0 && messages < 900);
	/* All that waited, with the hello, the snapshot and the gap. */
	assert_true(received.bytes <= limits.budget_bytes + limits.kept_bytes + 1000);
	bus_remove(client);
}

static void test_all_that_must_be_kept_comes(void **state)
{
	struct bus_client *client = add(NULL, 0);
	unsigned messages;

	/* Over the budget, below what is kept for those that come back. */
	for (int i = 0; i < 20; i++) {
		publish("stats", API_CLASS_DROP_FIRST, 200);
		publish("token", API_CLASS_MUST_KEEP, 200);
	}
	check_complete(client, 40, &messages);
	assert_true(messages >= 20 && messages < 30);
	bus_remove(client);
}

static void test_a_client_that_stays_over_its_budget_is_closed(void **state)
{
	struct bus_client *client = add(NULL, 0);
	struct seen seen;

	for (int i = 0; i < 60; i++) {
		now += SECOND / 5;
		publish("token", API_CLASS_MUST_KEEP, 200);
	}
	assert_true(bus_is_ending(client));
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "gap");
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "bye");
	assert_int_equal(seen.code, 1013);
	expect_nothing(client);
	bus_remove(client);
}

static void test_a_client_that_catches_up_stays(void **state)
{
	struct bus_client *client = add(NULL, 0);
	struct seen seen;

	for (int i = 0; i < 100; i++) {
		now += SECOND;
		for (int j = 0; j < 15; j++)
			publish("token", API_CLASS_MUST_KEEP, 200);
		while (next(client, &seen))
			assert_int_equal(seen.code, 0);
	}
	assert_false(bus_is_ending(client));
	bus_remove(client);
}

static void test_bye(void **state)
{
	struct bus_client *client = add(NULL, 0);
	struct seen seen;

	bus_say_bye(bus, now);
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	assert_true(next(client, &seen));
	assert_string_equal(seen.type, "bye");
	assert_int_equal(seen.code, 1001);
	bus_remove(client);
}

/* The bytes of the next frame. */
static struct bus_frame next_frame(struct bus_client *client, struct strbuf *text)
{
	struct bus_frame frame;

	strbuf_clear(text);
	assert_true(bus_next(client, text, &frame, now));
	return frame;
}

static void publish_columns(const char *columns)
{
	const struct bus_data data = {.json = "{\"n\":1}",
		.length = strlen("{\"n\":1}"),
		.kind = 7,
		.columns = columns,
		.columns_length = strlen(columns)};

	assert_int_equal(
		bus_publish_columns(bus, "power", API_CLASS_DROP_FIRST, "key", &data, now), 0);
}

static void test_binary_frames(void **state)
{
	static const unsigned char expected[] = {1, 7, 80, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0xf8, 0x3f, 'e', 'p', 'o', 'c', 'h', 0};
	struct bus_client *client = add(NULL, 0), *other = add(NULL, 0), *late;
	_cleanup_strbuf_ struct strbuf text = {0}, history = {0};

	bus_take_binary(client);
	assert_false(next_frame(client, &text).is_binary);
	assert_false(next_frame(client, &text).is_binary);
	now += 1500 * NS_PER_US;
	publish_columns("columns!");
	assert_true(next_frame(client, &text).is_binary);
	assert_int_equal(text.length, 80 + 8);
	assert_memory_equal(text.data, expected, sizeof(expected));
	assert_string_equal(text.data + 56, "key");
	assert_memory_equal(text.data + 80, "columns!", 8);
	/* One that takes text gets the same number and time. */
	expect(other, "hello", 0);
	expect(other, "snapshot", 0);
	assert_false(next_frame(other, &text).is_binary);
	assert_non_null(strstr(strbuf_cstr(&text), "\"seq\":1,\"t_ms\":1.5,\"type\":\"power\""));
	assert_non_null(strstr(strbuf_cstr(&text), "\"data\":{\"n\":1}}"));
	bus_write_history(bus, "key", &history, now);
	assert_non_null(strstr(strbuf_cstr(&history), strbuf_cstr(&text)));
	/* What is sent again is sent as its client takes it. */
	late = add("epoch", 0);
	bus_take_binary(late);
	assert_false(next_frame(late, &text).is_binary);
	assert_true(next_frame(late, &text).is_binary);
	bus_remove(late);
	bus_remove(other);
	bus_remove(client);
}

static void test_columns_that_fit_no_budget(void **state)
{
	char columns[2000];
	struct bus_client *client = add(NULL, 0);
	_cleanup_strbuf_ struct strbuf text = {0};

	memset(columns, 'x', sizeof(columns) - 1);
	columns[sizeof(columns) - 1] = '\0';
	bus_take_binary(client);
	next_frame(client, &text);
	next_frame(client, &text);
	publish_columns(columns);
	assert_false(next_frame(client, &text).is_binary);
	assert_non_null(strstr(strbuf_cstr(&text), "\"data\":{\"n\":1}"));
	bus_remove(client);
}

static void test_messages_that_wait_are_joined(void **state)
{
	struct bus_client *client = add(NULL, 0);
	_cleanup_strbuf_ struct strbuf text = {0};

	bus_take_binary(client);
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	publish("a", API_CLASS_MUST_KEEP, 10);
	next_frame(client, &text);
	assert_int_equal(text.data[0], '{');
	publish("a", API_CLASS_MUST_KEEP, 10);
	publish("b", API_CLASS_MUST_KEEP, 10);
	publish_columns("x");
	publish("c", API_CLASS_MUST_KEEP, 10);
	next_frame(client, &text);
	assert_memory_equal(text.data, "[{\"v\":1,", 8);
	assert_non_null(strstr(text.data, "},{\"v\":1,"));
	assert_string_equal(text.data + text.length - 2, "}]");
	/* Binary ones are frames of their own. */
	assert_true(next_frame(client, &text).is_binary);
	assert_false(next_frame(client, &text).is_binary);
	assert_int_equal(text.data[0], '{');
	expect_nothing(client);
	bus_remove(client);
}

static void test_frames_that_are_full(void **state)
{
	static char data[BUS_FRAME_BYTES];
	struct bus_limits large = limits;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct bus_client *client;
	struct bus_frame frame;
	unsigned frames = 0;

	bus_close(bus);
	large.budget_bytes = 10 * BUS_FRAME_BYTES;
	assert_int_equal(bus_open(&bus, &large, "epoch", now), 0);
	client = add(NULL, 0);
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	memset(data, '1', sizeof(data));
	for (int i = 0; i < 10; i++)
		bus_publish(bus, "a", API_CLASS_MUST_KEEP, data, sizeof(data) / 3, now);
	/* One that is larger is still sent, by itself. */
	bus_publish(bus, "a", API_CLASS_MUST_KEEP, data, sizeof(data), now);
	while (bus_next(client, &text, &frame, now)) {
		assert_true(text.length <= BUS_FRAME_BYTES || text.data[0] == '{');
		strbuf_clear(&text);
		frames++;
	}
	assert_int_equal(frames, 6);
	bus_remove(client);
}

static void test_what_is_too_large(void **state)
{
	char data[3000] = "\"";
	char type[BUS_TYPE_BYTES + 1];

	memset(data + 1, 'a', sizeof(data) - 2);
	assert_int_equal(
		bus_publish(bus, "a", API_CLASS_MUST_KEEP, data, sizeof(data), now), -E2BIG);
	memset(type, 'a', sizeof(type));
	type[sizeof(type) - 1] = '\0';
	assert_int_equal(bus_publish(bus, type, API_CLASS_MUST_KEEP, "1", 1, now), -E2BIG);
}

static void test_the_latest_of_each_key(void **state)
{
	struct bus_client *client;

	publish_about("one", "summary", API_CLASS_LATEST_WINS);
	publish_about("two", "summary", API_CLASS_LATEST_WINS);
	publish_about("one", "summary", API_CLASS_LATEST_WINS);
	client = add(NULL, 0);
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	expect(client, "summary", 3);
	expect(client, "summary", 2);
	expect_nothing(client);
	bus_remove(client);
	bus_forget(bus, "one");
	client = add(NULL, 0);
	expect(client, "hello", 0);
	expect(client, "snapshot", 0);
	expect(client, "summary", 2);
	expect_nothing(client);
	bus_remove(client);
}

static void test_a_stalled_client_has_the_latest_of_each_key(void **state)
{
	struct bus_client *client = add(NULL, 0);
	struct seen seen;
	unsigned ones = 0, twos = 0;

	publish_about("two", "summary", API_CLASS_LATEST_WINS);
	for (int i = 0; i < 100; i++)
		publish_about("one", "summary", API_CLASS_LATEST_WINS);
	while (next(client, &seen)) {
		ones += seen.seq == 101;
		twos += seen.seq == 1;
	}
	assert_int_equal(ones, 1);
	assert_int_equal(twos, 1);
	bus_remove(client);
}

static void test_the_history_of_a_key(void **state)
{
	publish_about("one", "power", API_CLASS_DROP_FIRST);
	publish_about("one", "token", API_CLASS_MUST_KEEP);
	publish_about("one", "summary", API_CLASS_LATEST_WINS);
	publish_about("two", "token", API_CLASS_MUST_KEEP);
	publish("token", API_CLASS_MUST_KEEP, 10);
	assert_int_equal(count_in_history("one", "power"), 1);
	assert_int_equal(count_in_history("one", "token"), 1);
	assert_int_equal(count_in_history("one", "summary"), 0);
	assert_int_equal(count_in_history("", "token"), 0);
	now += 50 * SECOND;
	publish_about("one", "power", API_CLASS_DROP_FIRST);
	now += 11 * SECOND;
	assert_int_equal(count_in_history("one", "power"), 1);
	assert_int_equal(count_in_history("one", "token"), 0);
	for (int i = 0; i < 100; i++)
		publish_about("one", "power", API_CLASS_DROP_FIRST);
	assert_in_range(count_in_history("one", "power"), 5, 15);
	bus_forget(bus, "one");
	assert_int_equal(count_in_history("one", "power"), 0);
	assert_int_equal(count_in_history("two", "token"), 0);
}

/* Captures come and go: what is forgotten makes place. */
static void test_topics_without_end(void **state)
{
	char key[16];

	for (int i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		publish_about(key, "summary", API_CLASS_LATEST_WINS);
		bus_forget(bus, key);
	}
	for (int i = 0; i < 512; i++) {
		snprintf(key, sizeof(key), "%d", i);
		publish_about(key, "summary", API_CLASS_LATEST_WINS);
	}
	assert_int_equal(
		bus_publish_keyed(bus, "summary", API_CLASS_LATEST_WINS, "more", "1", 1, now),
		-E2BIG);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hello_snapshot_then_live),
		TEST(test_woken_once_until_it_has_all),
		TEST(test_who_comes_back_gets_what_it_missed),
		TEST(test_what_is_no_longer_kept_is_a_gap),
		TEST(test_a_stalled_client_keeps_what_must_be_kept),
		TEST(test_all_that_must_be_kept_comes),
		TEST(test_a_client_that_stays_over_its_budget_is_closed),
		TEST(test_a_client_that_catches_up_stays),
		TEST(test_bye),
		TEST(test_binary_frames),
		TEST(test_columns_that_fit_no_budget),
		TEST(test_messages_that_wait_are_joined),
		TEST(test_frames_that_are_full),
		TEST(test_what_is_too_large),
		TEST(test_the_latest_of_each_key),
		TEST(test_a_stalled_client_has_the_latest_of_each_key),
		TEST(test_the_history_of_a_key),
		TEST(test_topics_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
