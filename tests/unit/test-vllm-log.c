/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of vLLM logs as releases 0.6 to 0.20 write them, and their years. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "importers/vllm_log/time.h"

static struct vllm_log_line parsed(const char *text)
{
	struct vllm_log_line line;

	assert_true(vllm_log_parse(text, strlen(text), &line));
	return line;
}

static void assert_request(const struct vllm_log_line *line, const char *wanted)
{
	assert_int_equal(line->request.length, strlen(wanted));
	assert_memory_equal(line->request.bytes, wanted, strlen(wanted));
}

static void test_an_iteration(void **state _unused_)
{
	struct vllm_log_line line = parsed(
		"(EngineCore_DP0 pid=4200) INFO 11-21 13:24:53 [core.py:381] Iteration(7): 1 "
		"context requests, 512 context tokens, 3 generation requests, 4 generation tokens, "
		"iteration elapsed time: 45.25 ms");

	assert_int_equal(line.kind, VLLM_LOG_ITERATION);
	assert_int_equal(line.pid, 4200);
	assert_memory_equal(line.process.bytes, "EngineCore_DP0", line.process.length);
	assert_int_equal(line.iteration.number, 7);
	assert_int_equal(line.iteration.context_requests, 1);
	assert_int_equal(line.iteration.context_tokens, 512);
	assert_int_equal(line.iteration.generation_requests, 3);
	assert_int_equal(line.iteration.generation_tokens, 4);
	assert_int_equal(line.iteration.elapsed_ns, 45250000);
	assert_int_equal(line.time.month, 11);
	assert_int_equal(line.time.second, 53);
	assert_false(line.time.has_fraction);
}

static void test_times(void **state _unused_)
{
	static const struct {
		const char *text;
		int year;
		uint32_t nanosecond;
	} cases[] = {
		{"INFO 11-21 13:24:53 [a.py:1] x", 0, 0},
		{"INFO 11-21 13:24:53.250 [a.py:1] x", 0, 250000000},
		{"INFO 2025-11-21 13:24:53,250 [a.py:1] x", 2025, 250000000},
		{"INFO 2025-11-21T13:24:53.000001 a.py:1] x", 2025, 1000},
		{"\033[36m(W pid=3)\033[0;0m INFO 11-21 13:24:53 [a.py:1] x", 0, 0},
		{"2025-11-21 13:24:53,1 x\r", 2025, 100000000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vllm_log_line line = parsed(cases[i].text);

		assert_int_equal(line.time.year, cases[i].year);
		assert_int_equal(line.time.nanosecond, cases[i].nanosecond);
		assert_int_equal(line.time.has_fraction, cases[i].nanosecond != 0);
		assert_int_equal(line.time.day, 21);
	}
}

static void test_lines_without_a_time(void **state _unused_)
{
	static const char *const lines[] = {"", "INFO",
		"Traceback (most recent call last):", "INFO 13-21 13:24:53 [a.py:1] x",
		"INFO 11-21 24:24:53 [a.py:1] x", "(x pid=)", "\033["};
	struct vllm_log_line line;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_false(vllm_log_parse(lines[i], strlen(lines[i]), &line));
}

static void test_requests(void **state _unused_)
{
	static const struct {
		const char *text;
		enum vllm_log_kind kind;
		const char *request;
	} cases[] = {
		{"INFO 11-21 13:24:53 [logger.py:41] Received request cmpl-1: prompt: 'a', params",
			VLLM_LOG_RECEIVED, "cmpl-1"},
		{"INFO 11-21 13:24:53 logger.py:37] Received request cmpl-1: prompt: 'a'",
			VLLM_LOG_RECEIVED, "cmpl-1"},
		{"INFO 11-21 13:24:53 [async_llm.py:283] Added request cmpl-1.", VLLM_LOG_ADDED,
			"cmpl-1"},
		{"INFO 11-21 13:24:53 async_llm_engine.py:174] Finished request cmpl-1.",
			VLLM_LOG_FINISHED, "cmpl-1"},
		{"INFO 11-21 13:24:53 [x.py:1] Aborted request(s) a,b.", VLLM_LOG_ABORTED, "a,b"},
		{"INFO 11-21 13:24:53 [x.py:1] Request a aborted.", VLLM_LOG_ABORTED, "a"},
		{"INFO 11-21 13:24:53 [x.py:1] Request a failed (engine dead).", VLLM_LOG_FAILED,
			"a"},
		{"INFO 11-21 13:24:53 [x.py:1] Generated response a: output: 'x', finish_reason: "
		 "stop",
			VLLM_LOG_FINISHED, "a"},
		{"INFO 11-21 13:24:53 [x.py:1] Generated response a (streaming complete): output",
			VLLM_LOG_FINISHED, "a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vllm_log_line line = parsed(cases[i].text);

		assert_int_equal(line.kind, cases[i].kind);
		assert_request(&line, cases[i].request);
	}
}

/* ProfileMate 14: the end of a request is what the log says, never a guess. */
static void test_what_says_nothing(void **state _unused_)
{
	static const char *const lines[] = {
		"INFO 11-21 13:24:53 [x.py:1] Generated response a (streaming delta): output: 'x'",
		"INFO 11-21 13:24:53 [x.py:1] Request a details: prompt: 'x'",
		"INFO 11-21 13:24:53 [x.py:1] prompt: 'Finished request a.'",
		"INFO 11-21 13:24:53 [x.py:1] Received request ",
		"INFO 11-21 13:24:53 [x.py:1] Iteration(x): 1 context requests",
		"INFO 11-21 13:24:53 [x.py:1] Iteration(1): 1 context requests, 2 context tokens",
		"INFO 11-21 13:24:53 [x.py:1] Running: 3 reqs",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(parsed(lines[i]).kind, VLLM_LOG_OTHER);
}

static void test_metrics(void **state _unused_)
{
	struct vllm_log_line line = parsed(
		"INFO 11-21 13:24:53 [loggers.py:123] Engine 000: Avg prompt throughput: 12.5 "
		"tokens/s, Avg generation throughput: 3.0 tokens/s, Running: 2 reqs, Waiting: 1 "
		"reqs, Preemptions: 4, GPU KV cache usage: 3.1%, Prefix cache hit rate: 0.0%");

	assert_int_equal(line.kind, VLLM_LOG_METRICS);
	assert_true(line.metrics.prompt_tokens_per_s == 12.5);
	assert_true(line.metrics.generation_tokens_per_s == 3);
	assert_true(line.metrics.running_requests == 2);
	assert_true(line.metrics.waiting_requests == 1);
	assert_true(line.metrics.preemptions == 4);
	assert_float_equal(line.metrics.kv_cache_percent, 3.1, 1e-9);
	line = parsed("INFO 11-21 13:24:53 metrics.py:449] Avg prompt throughput: 1.0 tokens/s, "
		      "Running: 2 reqs, Pending: 5 reqs.");
	assert_true(line.metrics.waiting_requests == 5);
	assert_true(isnan(line.metrics.kv_cache_percent));
}

static uint64_t seconds_of(const char *text, int64_t modified_s)
{
	struct vllm_log_line line = parsed(text);
	struct vllm_log_clock clock;

	vllm_log_clock_begin(&clock, &line.time, 0, modified_s);
	return vllm_log_clock_ns(&clock, &line.time) / NS_PER_S;
}

/* ProfileMate 14: the year is that of the file, not of the program's author. */
static void test_years(void **state _unused_)
{
	const int64_t november_2026 = 1795267493; /* 2026-11-21 13:24:53 */

	assert_int_equal(seconds_of("INFO 11-21 13:24:53 x", november_2026), november_2026);
	assert_int_equal(seconds_of("INFO 11-21 13:24:53 x", november_2026 + 40), november_2026);
	/* In December, seen in January: the year before. */
	assert_int_equal(
		seconds_of("INFO 12-31 23:59:59 x", 1798761600 + 5), 1798761599); /* 2027-01-01 */
	assert_int_equal(seconds_of("INFO 02-29 00:00:00 x", november_2026), 1709164800); /* 2024 */
	assert_int_equal(seconds_of("INFO 2020-01-01 00:00:00 x", november_2026), 1577836800);
}

static void test_a_log_over_new_year(void **state _unused_)
{
	struct vllm_log_line before = parsed("INFO 12-31 23:59:59 x");
	struct vllm_log_line after = parsed("INFO 01-01 00:00:01 x");
	struct vllm_log_clock clock;

	vllm_log_clock_begin(&clock, &after.time, 1, 1798761605);
	assert_int_equal(vllm_log_clock_ns(&clock, &before.time), 1798761599 * NS_PER_S);
	assert_int_equal(vllm_log_clock_ns(&clock, &after.time), 1798761601 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_iteration),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_lines_without_a_time),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_what_says_nothing),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_years),
		cmocka_unit_test(test_a_log_over_new_year),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
