/* SPDX-License-Identifier: Apache-2.0 */
/* Live figures: what is counted, and that it does not matter in which pieces a capture comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "capture/writer/writer.h"
#include "live/follower.h"

#define START  (1000 * NS_PER_S)
#define MS(ms) (START + (uint64_t)(ms)*NS_PER_MS)

/* ---- what a writer says, straight to the figures ---- */

static struct live_figures *figures;
static struct capture_writer *writer;
static struct strbuf seen; /* lines: the type, the data */

static int see(void *context, enum live_message message, const struct live_data *data)
{
	strbuf_addf(context, "%s ", live_message_types[message]);
	strbuf_add_bytes(context, data->json, data->length);
	strbuf_add_char(context, '\n');
	return 0;
}

static int setup(void **state)
{
	const struct capture_session session = {.sonde_version = "1",
		.host = "here",
		.start_time_ns = START,
		.start_realtime_ns = 5 * NS_PER_S,
		.period_ns = 10 * NS_PER_MS,
		.wait_mode = "sample"};

	strbuf_clear(&seen);
	return live_figures_new(&figures, "abc", "run.pftrace", 1) ||
	       capture_writer_open_live(&writer, &live_visitor, figures, NULL) ||
	       capture_writer_session(writer, &session);
}

static int teardown(void **state)
{
	writer = capture_writer_free(writer);
	figures = live_figures_free(figures);
	strbuf_done(&seen);
	return 0;
}

static void emit_all(void)
{
	assert_int_equal(live_emit(figures, LIVE_OFTEN | LIVE_SELDOM, see, &seen), 0);
}

/* The data of a message that was seen last. */
static const char *last(const char *type)
{
	static char line[1 << 16];
	const char *found = NULL, *at = strbuf_cstr(&seen);
	char begin[64];

	snprintf(begin, sizeof(begin), "%s {", type);
	for (; (at = strstr(at, begin)); at++)
		found = at;
	snprintf(line, sizeof(line), "%.*s", found ? (int)strcspn(found, "\n") : 0,
		found ? found : "");
	assert_true(line[0]);
	return line;
}

static void expect(const char *type, const char *part)
{
	if (!strstr(last(type), part))
		fail_msg("%s has no %s", last(type), part);
}

static void mark(uint64_t ms, const char *request, uint64_t index, const char *phase)
{
	const struct capture_range_field fields[] = {
		{.name = "index", .type = WIRE_RANGE_U64, .value = index, .text = ""},
		{.name = "request", .type = WIRE_RANGE_TEXT, .text = request},
		{.name = "phase", .type = WIRE_RANGE_TEXT, .text = phase},
	};
	const struct capture_range_event event = {.time_ns = MS(ms),
		.pid = 7,
		.tid = 8,
		.kind = CAPTURE_RANGE_MARK,
		.domain = "sonde.token",
		.name = "",
		.category = "",
		.fields = fields,
		.field_count = ARRAY_SIZE(fields)};

	assert_int_equal(capture_writer_range(writer, &event), 0);
}

static void range(
	uint64_t ms, const char *domain, const char *name, const char *role, uint64_t layer)
{
	const struct capture_range_field fields[] = {
		{.name = "role", .type = WIRE_RANGE_TEXT, .text = role},
		{.name = "layer", .type = WIRE_RANGE_U64, .value = layer, .text = ""},
	};
	const struct capture_range_event event = {.time_ns = MS(ms),
		.pid = 7,
		.tid = 8,
		.kind = *name ? CAPTURE_RANGE_BEGIN : CAPTURE_RANGE_END,
		.domain = domain,
		.name = name,
		.category = "",
		.fields = fields,
		.field_count = *role ? layer < 100 ? 2 : 1 : 0};

	assert_int_equal(capture_writer_range(writer, &event), 0);
}

static void test_session(void **state)
{
	emit_all();
	expect("live_session", "{\"capture\":\"abc\",\"generation\":1,\"name\":\"run.pftrace\","
			       "\"command\":[],\"host\":\"here\",\"started_unix_ms\":5000,"
			       "\"period_ns\":10000000,\"whole_machine\":false,"
			       "\"wait_mode\":\"sample\"");
	strbuf_clear(&seen);
	emit_all();
	assert_null(strstr(strbuf_cstr(&seen), "live_session"));
	live_repeat_session(figures);
	emit_all();
	last("live_session");
}

static void test_tokens(void **state)
{
	mark(100, "a", 0, "queued");
	mark(110, "a", 0, "prefill");
	mark(200, "a", 0, "decode");
	emit_all();
	expect("live_summary", "\"tokens\":1,");
	expect("live_summary", "\"requests_running\":1,\"requests_done\":0");
	expect("live_tokens", "{\"pid\":7,\"request\":\"a\",\"index\":0,\"t_ms\":200,"
			      "\"gap_ms\":null,\"phase\":\"decode\"}");
	expect("live_tokens", "{\"pid\":7,\"request\":\"a\",\"t_ms\":100,\"event\":\"queued\"}");
	expect("live_phases", "{\"id\":1,\"kind\":\"phase\",\"name\":\"prefill\",\"pid\":7,"
			      "\"t_ms\":110,\"end_ms\":200},{\"id\":2,\"kind\":\"phase\","
			      "\"name\":\"decode\",\"pid\":7,\"t_ms\":200,\"end_ms\":null}");
	/* A chunk of three, then the end. */
	mark(250, "a", 3, "decode");
	mark(260, "a", 0, "done");
	emit_all();
	expect("live_summary", "\"tokens\":4,");
	expect("live_summary", "\"requests_running\":0,\"requests_done\":1");
	expect("live_tokens", "\"t_ms\":250,\"gap_ms\":50,");
	expect("live_phases", "{\"id\":2,\"kind\":\"phase\",\"name\":\"decode\",\"pid\":7,"
			      "\"t_ms\":200,\"end_ms\":250}");
	/* The next request of this name; its indices fall, so that each mark is one. */
	mark(300, "a", 0, "prefill");
	mark(310, "a", 5, "decode");
	mark(320, "a", 9, "decode");
	mark(330, "a", 9, "decode");
	emit_all();
	expect("live_summary", "\"tokens\":7,");
	expect("live_tokens", "\"t_ms\":310,\"gap_ms\":null");
}

static void test_tokens_without_a_request(void **state)
{
	mark(100, "", 0, "decode");
	mark(110, "", 1, "decode");
	emit_all();
	expect("live_summary", "\"tokens\":2,");
	expect("live_summary", "\"requests_running\":0,");
	expect("live_tokens", "\"request\":null,\"index\":1,\"t_ms\":110,\"gap_ms\":null");
	assert_null(strstr(strbuf_cstr(&seen), "live_phases"));
}

static void test_layers_have_the_time_of_their_own(void **state)
{
	range(0, "sonde.model", "step", "step", 100);
	range(10, "sonde.model", "layer 0", "layer", 0);
	range(20, "sonde.model", "layer 0 self_attn", "self_attn", 0);
	range(25, "sonde.model", "layer 0 q", "q", 0);
	emit_all();
	expect("live_current", "\"name\":\"layer 0 q\",\"depth\":4,\"since_ms\":25");
	range(35, "sonde.model", "", "", 0);
	range(40, "sonde.model", "", "", 0);
	range(50, "sonde.model", "", "", 0);
	range(53, "sonde.model", "", "", 0);
	emit_all();
	expect("live_layers", "{\"pid\":7,\"layer\":null,\"component\":\"other\",\"calls\":1,"
			      "\"own_ms\":13,\"recent_ms\":13}");
	expect("live_layers", "\"layer\":0,\"component\":\"other\",\"calls\":1,\"own_ms\":20,");
	expect("live_layers", "\"layer\":0,\"component\":\"attn_core\",\"calls\":1,\"own_ms\":10,");
	expect("live_layers", "\"layer\":0,\"component\":\"q\",\"calls\":1,\"own_ms\":10,");
	expect("live_current", "\"rows\":[]");
}

static void test_phases_of_ranges(void **state)
{
	const struct capture_step steps[] = {
		{.time_ns = MS(200), .pid = 7, .tid = 8, .number = 4, .name = ""},
		{.time_ns = MS(300), .pid = 7, .tid = 8, .number = 5, .name = ""}};
	struct capture_window window = {
		.number = 1, .begin_ns = MS(150), .first_step = 1, .label = "first"};

	range(100, "transformers", "prefill", "", 0);
	emit_all();
	expect("live_phases", "\"name\":\"prefill\",\"pid\":7,\"t_ms\":100,\"end_ms\":null");
	range(140, "transformers", "", "", 0);
	assert_int_equal(capture_writer_window(writer, &window), 0);
	assert_int_equal(capture_writer_step(writer, &steps[0]), 0);
	assert_int_equal(capture_writer_step(writer, &steps[1]), 0);
	emit_all();
	expect("live_phases", "\"name\":\"prefill\",\"pid\":7,\"t_ms\":100,\"end_ms\":140");
	expect("live_phases", "\"kind\":\"window\",\"name\":\"first 1\",\"pid\":null,\"t_ms\":150,"
			      "\"end_ms\":null");
	expect("live_phases", "\"kind\":\"step\",\"name\":\"step 4\",\"pid\":7,\"t_ms\":200,"
			      "\"end_ms\":300");
	window.end_ns = MS(350);
	assert_int_equal(capture_writer_window(writer, &window), 0);
	emit_all();
	expect("live_phases", "\"name\":\"first 1\",\"pid\":null,\"t_ms\":150,\"end_ms\":350");
	expect("live_phases", "\"name\":\"step 5\",\"pid\":7,\"t_ms\":300,\"end_ms\":350");
}

static void interval(uint64_t from_ms, uint64_t to_ms, uint64_t nj, unsigned gap)
{
	const struct wire_energy_interval energy = {.start_ns = MS(from_ms),
		.end_ns = MS(to_ms),
		.domain = 1,
		.gap = gap,
		.energy_nj = nj,
		.busy_ns = UINT64_MAX};

	assert_int_equal(capture_writer_energy_interval(writer, &energy), 0);
}

static void add_rail(void)
{
	const struct wire_energy_domain domain = {.id = 1,
		.part = WIRE_ENERGY_CPU,
		.quality = WIRE_ENERGY_COUNTER,
		.name = "package-0",
		.source = "perf",
		.device = "",
		.period_ns = NS_PER_MS,
		.cpus = ""};

	assert_int_equal(capture_writer_energy_domain(writer, &domain), 0);
}

static void test_power(void **state)
{
	add_rail();
	interval(0, 100, 2000000000, WIRE_ENERGY_NO_GAP);
	interval(100, 200, 0, WIRE_ENERGY_READ_FAILED);
	interval(200, 300, 1000000000, WIRE_ENERGY_NO_GAP);
	emit_all();
	expect("live_session", "{\"rail\":1,\"parent\":null,\"name\":\"package-0\","
			       "\"source\":\"perf\",\"device\":null,\"part\":\"cpu\","
			       "\"quality\":\"counter\",\"is_replayed\":false,\"period_ms\":1");
	expect("live_power", "{\"rail\":1,\"t_ms\":[100,200,300],\"w\":[20,null,10]}");
	expect("live_summary", "\"rails\":[{\"rail\":1,\"joules\":3}]");
	strbuf_clear(&seen);
	emit_all();
	assert_null(strstr(strbuf_cstr(&seen), "live_power"));
}

/* Many points at once: few are left, with the peak and the least among them. */
static void test_merged_power_keeps_extremes(void **state)
{
	unsigned points = 0;

	add_rail();
	for (uint64_t i = 0; i < 5000; i++)
		interval(i, i + 1,
			i == 1777   ? 900000000
			: i == 3111 ? 0
				    : 50000000,
			WIRE_ENERGY_NO_GAP);
	emit_all();
	expect("live_power", ",900,");
	expect("live_power", ",0,");
	for (const char *at = strstr(last("live_power"), "\"w\":["); (at = strchr(at, ',')); at++)
		points++;
	assert_in_range(points, 200, 1200);
	expect("live_summary", "\"joules\":250.8");
}

static void work(const char *name, uint64_t from_ms, uint64_t to_ms)
{
	const struct capture_device_work device_work = {.start_ns = MS(from_ms),
		.end_ns = MS(to_ms),
		.pid = 7,
		.kind = WIRE_DEVICE_KERNEL,
		.name = name,
		.device = "gpu",
		.correlation = from_ms + 1};

	assert_int_equal(capture_writer_device_work(writer, &device_work), 0);
}

static void see_until(uint64_t ms)
{
	const struct capture_stats stats = {.end_time_ns = MS(ms), .exit_status = -1};

	assert_int_equal(capture_writer_stats(writer, &stats), 0);
}

static void test_devices(void **state)
{
	work("gemm", 100, 200);
	work("softmax", 400, 500);
	work("gemm", 150, 450); /* overlaps both, and comes late */
	see_until(1000);
	emit_all();
	expect("live_summary", "\"kernels\":3,\"gpu_busy\":[{\"device\":\"gpu\",\"share\":0.4}]");
	expect("live_kernels", "\"rows\":[{\"name\":\"gemm\",\"module\":\"gpu\",\"count\":2,"
			       "\"self_ms\":400,\"recent_ms\":400},{\"name\":\"softmax\"");
	/* Later it is only since the start. */
	see_until(20000);
	emit_all();
	expect("live_kernels", "\"count\":2,\"self_ms\":400,\"recent_ms\":0}");
	expect("live_summary", "\"share\":0}");
}

static void test_many_works_at_a_time(void **state)
{
	for (uint64_t i = 0; i < 40000; i++)
		work("k", 100 + 2 * (i % 4000), 101 + 2 * (i % 4000));
	see_until(8200);
	emit_all();
	expect("live_kernels", "\"count\":40000,\"self_ms\":40000,");
	expect("live_summary", "\"share\":0.4878}"); /* 4000 of 8200 ms */
}

static capture_id frame(const char *path, const char *name, enum capture_frame_kind kind)
{
	const struct capture_mapping mapping = {.path = path};
	struct capture_frame frame = {.function = name, .rel_pc = strlen(name), .kind = kind};
	capture_id id;

	assert_int_equal(capture_writer_mapping(writer, &mapping, &frame.mapping), 0);
	assert_int_equal(capture_writer_frame(writer, &frame, &id), 0);
	return id;
}

static void sample(uint64_t ms, const capture_id *frames, size_t count)
{
	struct capture_sample one = {
		.time_ns = MS(ms), .pid = 7, .tid = 8, .mode = CAPTURE_MODE_USER};

	assert_int_equal(capture_writer_callstack(writer, frames, count, 0, 0, &one.callstack), 0);
	assert_int_equal(capture_writer_sample(writer, &one), 0);
}

static void test_functions_as_the_report_shows_them(void **state)
{
	const capture_id frames[] = {
		frame("/usr/lib/libc.so.6", "start", CAPTURE_FRAME_NATIVE),
		frame("/home/me/train.py", "train", CAPTURE_FRAME_INTERPRETED),
		frame("/usr/bin/python3.11", "_PyEval_EvalFrameDefault", CAPTURE_FRAME_NATIVE),
		frame("/usr/lib/libm.so.6", "exp", CAPTURE_FRAME_NATIVE),
	};
	const struct capture_symbol_line line = {.function = "inlined"};
	struct capture_sample waits = {.time_ns = MS(50),
		.pid = 7,
		.tid = 9,
		.mode = CAPTURE_MODE_USER,
		.wait = WIRE_WAIT_OTHER,
		.duration_ns = 25 * NS_PER_MS};

	sample(10, frames, 3); /* the interpreter is the program's */
	sample(20, frames, 4);
	sample(30, frames, 3);
	sample(40, frames, 1);
	assert_int_equal(capture_writer_sample(writer, &waits), 0);
	see_until(1000);
	emit_all();
	expect("live_functions", "\"rows\":[{\"name\":\"train\",\"module\":\"train.py\","
				 "\"self_ms\":20,\"recent_ms\":20},{\"name\":\"exp\"");
	expect("live_functions", "{\"name\":\"start\",\"module\":\"libc.so.6\",\"self_ms\":10,");
	expect("live_summary", "\"samples\":4,\"samples_per_s\":4,\"cpu_busy\":0.04,"
			       "\"waiting\":0.025,");
	expect("live_summary", "\"threads\":2,");
	/* Lines come late, and hold for what was counted before. */
	assert_int_equal(capture_writer_symbols(writer, 3, strlen("exp"), &line, 1), 0);
	assert_int_equal(capture_writer_symbols(writer, 4, strlen("exp"), &line, 1), 0);
	see_until(1001);
	emit_all();
	expect("live_functions", "{\"name\":\"inlined\",");
}

static void test_losses_and_end(void **state)
{
	const struct capture_loss losses[] = {{"sample_ring", 0, 3}, {"sample_ring", 1, 4}};
	const struct capture_stats stats = {.end_time_ns = MS(5),
		.samples_lost = 7,
		.losses = losses,
		.loss_count = ARRAY_SIZE(losses),
		.exit_status = 3,
		.complete = true};
	_cleanup_strbuf_ struct strbuf ended = {0};

	assert_false(live_has_ended(figures));
	assert_int_equal(capture_writer_stats(writer, &stats), 0);
	assert_true(live_has_ended(figures));
	emit_all();
	expect("live_summary",
		"\"samples_lost\":7,\"losses\":[{\"where\":\"sample_ring\",\"count\":7}]");
	live_write_ended(figures, "end", NULL, &ended);
	assert_string_equal(strbuf_cstr(&ended),
		"{\"capture\":\"abc\",\"t_ms\":5,\"reason\":\"end\",\"message\":null,"
		"\"exit_status\":3}");
}

/* ---- pieces ---- */

static const char *const golden[] = {"capture-1-deflated", "capture-1-plain",
	"capture-1-stack-sample", "capture-2-deflated", "capture-2-plain", "capture-2-stack-sample",
	"device-1-plain", "device-2-deflated", "device-2-plain", "energy-2-deflated",
	"energy-2-plain", "windows-2-deflated", "windows-2-plain"};

static void read_golden(const char *name, struct strbuf *ret_bytes)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.pftrace", getenv("SONDE_GOLDEN"), name);
	assert_int_equal(read_whole_file(path, 1 << 24, ret_bytes), 0);
	assert_true(ret_bytes->length > 100);
}

/* All messages after the bytes, given in pieces of these lengths. Returns what reading returned. */
static int figures_of(
	const struct strbuf *bytes, size_t (*piece)(size_t at), struct strbuf *ret_messages)
{
	struct live_figures *own;
	struct capture_stream *stream;
	struct errmsg err = {{0}};
	int r = 0;

	strbuf_clear(ret_messages);
	assert_int_equal(live_figures_new(&own, "abc", "x", 1), 0);
	assert_int_equal(capture_stream_open(&stream, "x", &live_visitor, own), 0);
	for (size_t at = 0, length; r == 0 && at < bytes->length; at += length) {
		length = MIN(piece(at), bytes->length - at);
		r = capture_stream_take(stream, bytes->data + at, length, &err);
	}
	assert_true(r == 0 || err.text[0]);
	assert_int_equal(live_emit(own, LIVE_OFTEN | LIVE_SELDOM, see, ret_messages), 0);
	capture_stream_close(stream);
	live_figures_free(own);
	return r;
}

static size_t all(size_t at)
{
	(void)at;
	return SIZE_MAX;
}

static size_t bytewise(size_t at)
{
	(void)at;
	return 1;
}

static size_t irregular(size_t at)
{
	return 1 + (at * 2654435761u >> 7) % 977;
}

static void test_any_pieces_are_the_same(void **state)
{
	_cleanup_strbuf_ struct strbuf whole = {0}, pieces = {0};

	for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
		_cleanup_strbuf_ struct strbuf bytes = {0};

		read_golden(golden[i], &bytes);
		assert_int_equal(figures_of(&bytes, all, &whole), 0);
		assert_non_null(strstr(strbuf_cstr(&whole), "live_summary"));
		assert_int_equal(figures_of(&bytes, bytewise, &pieces), 0);
		assert_string_equal(strbuf_cstr(&whole), strbuf_cstr(&pieces));
		assert_int_equal(figures_of(&bytes, irregular, &pieces), 0);
		assert_string_equal(strbuf_cstr(&whole), strbuf_cstr(&pieces));
	}
}

static void test_damage_has_a_sentence(void **state)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, messages = {0};

	read_golden("capture-2-plain", &bytes);
	memset(bytes.data + bytes.length / 2, 0xff, bytes.length / 2);
	assert_int_equal(figures_of(&bytes, all, &messages), -EBADMSG);
	assert_int_equal(figures_of(&bytes, irregular, &messages), -EBADMSG);
}

/* ---- the follower, in a process of its own ---- */

/* Of the golden capture: with a session, and a packet that is cut. */
#define PART 6001

/* What it writes about a file that `change` changes after a while; it must end by itself. */
static void follow(const char *path, void (*change)(const char *path), struct strbuf *ret_messages)
{
	int sockets[2], status;
	struct live_packet packet;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (pid == 0) {
		const struct live_setup setup = {.fd = open(path, O_RDONLY),
			.socket = sockets[1],
			.capture = "abc",
			.name = "x",
			.stalled_ns = 300 * NS_PER_MS,
			.gone_ns = 900 * NS_PER_MS};

		close(sockets[0]);
		live_follow(&setup);
		_exit(0);
	}
	close(sockets[1]);
	while (recv(sockets[0], &packet, sizeof(packet), MSG_WAITALL) == sizeof(packet)) {
		size_t length = packet.length + packet.columns_length;
		char *data = malloc(length);
		const struct live_data parts = {.json = data, .length = packet.length};

		assert_true(packet.message < LIVE_MESSAGE_MAX);
		assert_true(packet.length <= LIVE_MESSAGE_BYTES);
		assert_int_equal(recv(sockets[0], data, length, MSG_WAITALL), length);
		see(ret_messages, packet.message, &parts);
		free(data);
		if (change && packet.message == LIVE_SUMMARY) {
			change(path);
			change = NULL;
		}
	}
	close(sockets[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A file with the golden capture, or the first part of it. */
static void make_file(char path[64], size_t bytes_of_it)
{
	_cleanup_strbuf_ struct strbuf bytes = {0};
	int fd;

	snprintf(path, 64, "/tmp/sonde-test-live-XXXXXX");
	fd = mkstemp(path);
	read_golden("capture-2-plain", &bytes);
	assert_int_equal(write_all(fd, bytes.data, MIN(bytes.length, bytes_of_it)), 0);
	close(fd);
}

static void test_follower_reads_to_the_end(void **state)
{
	_cleanup_strbuf_ struct strbuf messages = {0};
	char path[64];

	make_file(path, SIZE_MAX);
	follow(path, NULL, &messages);
	unlink(path);
	assert_non_null(strstr(strbuf_cstr(&messages), "live_session {"));
	assert_non_null(strstr(strbuf_cstr(&messages), "\"reason\":\"end\",\"message\":null"));
}

static void complete(const char *path)
{
	_cleanup_strbuf_ struct strbuf bytes = {0};
	int fd = open(path, O_WRONLY);

	read_golden("capture-2-plain", &bytes);
	assert_int_equal(write_all(fd, bytes.data, bytes.length), 0);
	close(fd);
}

static void test_follower_of_a_file_that_grows(void **state)
{
	_cleanup_strbuf_ struct strbuf messages = {0};
	char path[64];

	make_file(path, PART);
	follow(path, complete, &messages);
	unlink(path);
	assert_non_null(strstr(strbuf_cstr(&messages), "\"reason\":\"end\""));
}

static void test_follower_of_a_file_that_stalls(void **state)
{
	_cleanup_strbuf_ struct strbuf messages = {0};
	char path[64];

	make_file(path, PART);
	follow(path, NULL, &messages);
	unlink(path);
	assert_non_null(strstr(strbuf_cstr(&messages), "\"reason\":\"stalled\""));
}

static void cut(const char *path)
{
	assert_int_equal(truncate(path, 100), 0);
}

static void test_follower_of_a_file_that_is_cut(void **state)
{
	_cleanup_strbuf_ struct strbuf messages = {0};
	char path[64];

	make_file(path, PART);
	follow(path, cut, &messages);
	unlink(path);
	assert_non_null(strstr(strbuf_cstr(&messages), "\"reason\":\"unreadable\""));
	assert_non_null(strstr(strbuf_cstr(&messages), "was cut"));
}

static void damage(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND);

	assert_int_equal(write_all(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0);
	close(fd);
}

static void test_follower_of_a_damaged_file(void **state)
{
	_cleanup_strbuf_ struct strbuf messages = {0};
	char path[64];

	make_file(path, SIZE_MAX);
	assert_int_equal(truncate(path, 0), 0);
	damage(path);
	follow(path, NULL, &messages);
	unlink(path);
	assert_non_null(strstr(strbuf_cstr(&messages), "\"reason\":\"unreadable\""));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_session),
		TEST(test_tokens),
		TEST(test_tokens_without_a_request),
		TEST(test_layers_have_the_time_of_their_own),
		TEST(test_phases_of_ranges),
		TEST(test_power),
		TEST(test_merged_power_keeps_extremes),
		TEST(test_devices),
		TEST(test_many_works_at_a_time),
		TEST(test_functions_as_the_report_shows_them),
		TEST(test_losses_and_end),
		cmocka_unit_test(test_any_pieces_are_the_same),
		cmocka_unit_test(test_damage_has_a_sentence),
		cmocka_unit_test(test_follower_reads_to_the_end),
		cmocka_unit_test(test_follower_of_a_file_that_grows),
		cmocka_unit_test(test_follower_of_a_file_that_stalls),
		cmocka_unit_test(test_follower_of_a_file_that_is_cut),
		cmocka_unit_test(test_follower_of_a_damaged_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
