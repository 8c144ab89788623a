/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline-tiles SLICES TILES: makes rows of eight threads, eight levels deep, and of eight streams
 * with launches, then a timeline of them, and asks for so many tiles while panning and zooming at
 * random. Prints JSON: seconds for the index, its bytes, and milliseconds for each tile as
 * percentiles. A tile here is one track, all of its lanes; a view is all tracks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/map.h"
#include "model/trace.h"
#include "query/timeline/timeline.h"

#define THREADS 8
#define DEPTH   8
#define COLUMNS 1920

static uint64_t seed = 1;

static uint64_t next_random(uint64_t below)
{
	seed = hash_u64(seed + 1);
	return seed % below;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size = 0, resident = 0;

	if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "timeline-tiles: %s\n", strerror(-r));
	exit(1);
}

/* ---- rows ---- */

static uint32_t name_of(struct trace *trace, const char *what)
{
	char text[64];
	uint32_t id;

	snprintf(text, sizeof(text), "%s_%llu", what, (unsigned long long)next_random(500));
	check(intern_add(&trace->strings, text, strlen(text), &id));
	return id;
}

static void add_row(struct trace *trace, uint32_t track, uint32_t name, uint8_t category,
	int64_t start_ns, int64_t duration_ns, uint64_t correlation)
{
	check(array_append(&trace->events, (struct trace_event){
						   .start_ns = start_ns,
						   .duration_ns = duration_ns,
						   .correlation = correlation,
						   .external_id = TRACE_NO_ID,
						   .name = name,
						   .track = track,
						   .detail = MODEL_NONE,
						   .file_index = (uint32_t)trace->events.count,
						   .category = category,
					   }));
}

static void add_tracks(struct trace *trace)
{
	for (uint32_t i = 0; i < 2 * THREADS; i++)
		check(array_append(&trace->tracks, (struct trace_track){
							   .pid = i < THREADS ? 1 : 0,
							   .tid = i,
							   .process_sort = TRACE_NO_NUMBER,
							   .thread_sort = TRACE_NO_NUMBER,
							   .is_device = i >= THREADS,
						   }));
}

/* A stack of operators that get shorter, the innermost of which launches a kernel. Every so often a
 * burst comes, of a hundred times the density. */
static void add_stack(struct trace *trace, uint32_t thread, int64_t *now_ns, uint64_t correlation)
{
	int64_t unit_ns = next_random(1000) < 10 ? 20 : 2000;
	int64_t start_ns = *now_ns, duration_ns = unit_ns * (2 * DEPTH + 2);

	for (int depth = 0; depth < DEPTH; depth++) {
		add_row(trace, thread, name_of(trace, "aten::op"),
			depth == DEPTH - 1 ? TRACE_RUNTIME : TRACE_CPU_OP, start_ns, duration_ns,
			depth == DEPTH - 1 ? correlation : 0);
		start_ns += unit_ns;
		duration_ns -= 2 * unit_ns;
	}
	add_row(trace, THREADS + thread, name_of(trace, "kernel"), TRACE_KERNEL, start_ns + unit_ns,
		duration_ns, correlation);
	*now_ns += unit_ns * (2 * DEPTH + 3) + (int64_t)next_random(3) * unit_ns;
}

static struct trace *make_trace(uint64_t slices)
{
	struct trace *trace = trace_new("made-up");
	int64_t now_ns[THREADS] = {0};

	check(trace ? 0 : -ENOMEM);
	add_tracks(trace);
	for (uint64_t i = 1; trace->events.count < slices; i++)
		add_stack(trace, (uint32_t)(i % THREADS), &now_ns[i % THREADS], i);
	check(trace_finish(trace));
	return trace;
}

/* ---- tiles ---- */

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* What the timeline says of itself: how long it is, and the numbers of its tracks with lanes. */
struct tracks {
	int64_t duration_ns;
	ARRAY_OF(uint32_t) ids;
};

static void check_json(enum json_status status)
{
	check(status == JSON_OK ? 0 : -EBADMSG);
}

static uint64_t read_number(struct json_reader *reader)
{
	struct json_text text;
	uint64_t number;

	check_json(json_reader_value(reader, &text));
	check(json_text_u64(&text, &number));
	return number;
}

static void pass_over(struct json_reader *reader)
{
	struct json_text text;

	check_json(json_reader_value(reader, &text));
}

static void read_track(struct json_reader *reader, struct tracks *tracks)
{
	uint64_t id = 0, lanes = 0;
	enum json_status status;
	struct json_text key;

	check_json(json_reader_enter(reader, '{'));
	while ((status = json_reader_member(reader, &key)) == JSON_OK) {
		if (json_text_equals(&key, "id"))
			id = read_number(reader);
		else if (json_text_equals(&key, "lanes"))
			lanes = read_number(reader);
		else
			pass_over(reader);
	}
	check(status == JSON_DONE ? 0 : -EBADMSG);
	if (lanes)
		check(array_append(&tracks->ids, (uint32_t)id));
}

static void read_tracks(const struct timeline *timeline, struct tracks *tracks)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_reader reader = {.is_last = true};
	struct json_text key;

	check(timeline_tracks(timeline, 1, &text));
	reader.at = strbuf_cstr(&text);
	reader.end = reader.at + text.length;
	check_json(json_reader_enter(&reader, '{'));
	while (json_reader_member(&reader, &key) == JSON_OK) {
		if (json_text_equals(&key, "duration_ns")) {
			tracks->duration_ns = (int64_t)read_number(&reader);
		} else if (json_text_equals(&key, "tracks")) {
			check_json(json_reader_enter(&reader, '['));
			while (json_reader_item(&reader) == JSON_OK)
				read_track(&reader, tracks);
		} else {
			pass_over(&reader);
		}
	}
	check(tracks->ids.count && tracks->duration_ns > COLUMNS ? 0 : -ENODATA);
}

/* From everything to a millionth of it, every zoom as likely. */
static struct timeline_request next_request(const struct tracks *tracks)
{
	int64_t span_ns = MAX(tracks->duration_ns >> next_random(21), COLUMNS);
	int64_t from_ns = (int64_t)next_random((uint64_t)(tracks->duration_ns - span_ns + 1));

	return (struct timeline_request){
		.track = tracks->ids.items[next_random(tracks->ids.count)],
		.from_ns = from_ns,
		.to_ns = from_ns + span_ns,
		.columns = COLUMNS,
	};
}

static void ask(const struct timeline *timeline, size_t count, double *ret_ms, size_t *ret_largest)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct tracks tracks = {0};

	read_tracks(timeline, &tracks);
	for (size_t i = 0; i < count; i++) {
		const struct timeline_request request = next_request(&tracks);
		double begin_s = seconds();

		strbuf_clear(&out);
		check(timeline_tile(timeline, &request, &out, NULL));
		ret_ms[i] = (seconds() - begin_s) * 1e3;
		*ret_largest = MAX(*ret_largest, out.length);
	}
	array_done(&tracks.ids);
	qsort(ret_ms, count, sizeof(*ret_ms), compare_doubles);
}

int main(int argc, char **argv)
{
	uint64_t slices = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	size_t tiles = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, largest = 0, before;
	static const char *const path = "made-up";
	_cleanup_model_ struct model *model = model_new();
	_cleanup_timeline_ struct timeline *timeline = NULL;
	struct query query = {.paths = &path, .count = 1, .model = model};
	_cleanup_free_ double *ms = NULL;
	double begin_s;

	if (!model || !slices || !tiles) {
		fprintf(stderr, "usage: timeline-tiles SLICES TILES\n");
		return 2;
	}
	check(array_append(&model->traces, make_trace(slices)));
	before = resident_bytes();
	begin_s = seconds();
	check(timeline_new(&timeline, &query, NULL));
	printf("{\"slices\": %zu, \"tiles\": %zu, \"columns\": %d, \"index_s\": %.3f, ",
		model->traces.items[0]->events.count, tiles, COLUMNS, seconds() - begin_s);
	printf("\"index_bytes\": %zu, \"trace_bytes\": %zu, ", resident_bytes() - before, before);
	ms = calloc(tiles, sizeof(*ms));
	check(ms ? 0 : -ENOMEM);
	ask(timeline, tiles, ms, &largest);
	printf("\"tile_p50_ms\": %.3f, \"tile_p99_ms\": %.3f, \"tile_most_ms\": %.3f, "
	       "\"tile_most_bytes\": %zu}\n",
		ms[tiles / 2], ms[tiles * 99 / 100], ms[tiles - 1], largest);
	return 0;
}
