/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text lines become entries; entries become disjoint ranges sorted by address, so that a lookup is
 * one binary search. The file belongs to another user's program: its path, owner, size and bytes
 * are checked.
 */
#include "symbols/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/strbuf.h"

/* What the largest programs known write is a tenth of it; another user's may be any size. */
#define FILE_SIZE_MAX ((size_t)128 << 20)
#define ENTRIES_MAX   (4u << 20)
/* Ranges read since are put in order with the others when there are as many, or so many. */
#define PENDING_MIN      65536
#define LINE_LENGTH_MAX  (64 << 10)
#define READ_CHUNK_BYTES (256 << 10)

struct map_range {
	uint64_t start, end;
	uint32_t name;  /* offset in names */
	uint32_t order; /* later is larger */
};

struct map_ranges { /* as ARRAY_OF() */
	struct map_range *items;
	size_t count, capacity;
};

struct perf_map {
	struct process_view view; /* where the path leads; its descriptors are the caller's */
	char *path;
	int fd;
	uint64_t device, inode;
	size_t consumed;           /* bytes of the file */
	struct map_ranges ranges;  /* disjoint, sorted by start */
	struct map_ranges pending; /* read since, in file order */
	struct strbuf names, partial_line;
	uint32_t order;
	bool in_long_line;
};

/* ---- Lines ---- */

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* A number in hexadecimal with or without 0x, then one space or tab. Moves the cursor behind them.
 */
static bool parse_hex_field(const char **cursor, const char *end, uint64_t *ret_value)
{
	const char *at = *cursor;
	uint64_t value = 0;
	int digits = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (; at < end && hex_digit(*at) >= 0 && digits < 17; at++, digits++)
		value = value << 4 | (uint64_t)hex_digit(*at);
	if (digits == 0 || digits > 16 || at == end || (*at != ' ' && *at != '\t'))
		return false;
	*cursor = at + 1;
	*ret_value = value;
	return true;
}

static int add_line(struct perf_map *map, const char *line, size_t length)
{
	const char *at = line, *end = line + length;
	struct map_range range = {.order = map->order};
	uint64_t size;

	if (end > at && end[-1] == '\r')
		end--;
	if (!parse_hex_field(&at, end, &range.start) || !parse_hex_field(&at, end, &size) ||
		at == end || memchr(at, '\0', (size_t)(end - at)) || size == 0 ||
		__builtin_add_overflow(range.start, size, &range.end))
		return 0;
	if (map->order >= ENTRIES_MAX || map->names.length > FILE_SIZE_MAX)
		return -EFBIG;
	range.name = (uint32_t)map->names.length;
	strbuf_add_bytes(&map->names, at, (size_t)(end - at));
	strbuf_add_char(&map->names, '\0');
	if (strbuf_status(&map->names) < 0)
		return -ENOMEM;
	map->order++;
	return array_append(&map->pending, range);
}

/* The end of a line that began in an earlier chunk, or a whole line. */
static int end_line(struct perf_map *map, const char *text, size_t length)
{
	bool too_long = map->in_long_line || map->partial_line.length + length > LINE_LENGTH_MAX;
	int result;

	map->in_long_line = false;
	if (too_long || map->partial_line.length == 0) {
		strbuf_clear(&map->partial_line);
		return too_long ? 0 : add_line(map, text, length);
	}
	strbuf_add_bytes(&map->partial_line, text, length);
	if (strbuf_status(&map->partial_line) < 0)
		return -ENOMEM;
	result = add_line(map, map->partial_line.data, map->partial_line.length);
	strbuf_clear(&map->partial_line);
	return result;
}

static int keep_partial_line(struct perf_map *map, const char *text, size_t length)
{
	if (map->in_long_line || map->partial_line.length + length > LINE_LENGTH_MAX) {
		map->in_long_line = true;
		strbuf_clear(&map->partial_line);
		return 0;
	}
	strbuf_add_bytes(&map->partial_line, text, length);
	return strbuf_status(&map->partial_line);
}

static int split_lines(struct perf_map *map, const char *text, size_t length)
{
	while (length) {
		const char *newline = memchr(text, '\n', length);
		size_t line_length = newline ? (size_t)(newline - text) : length;
		int result;

		if (!newline)
			return keep_partial_line(map, text, length);
		result = end_line(map, text, line_length);
		if (result < 0)
			return result;
		text += line_length + 1;
		length -= line_length + 1;
	}
	return 0;
}

/* ---- Overlaps: a sweep over sorted starts, open ranges in a heap with the latest on top ---- */

static int compare_ranges(const void *left, const void *right)
{
	const struct map_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static void heap_push(struct map_range *heap, size_t *count, struct map_range range)
{
	size_t i = (*count)++;

	for (; i > 0 && heap[(i - 1) / 2].order < range.order; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = range;
}

static void heap_pop(struct map_range *heap, size_t *count)
{
	struct map_range moved = heap[--*count];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < *count; i = child) {
		if (child + 1 < *count && heap[child + 1].order > heap[child].order)
			child++;
		if (heap[child].order < moved.order)
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

/* The piece [from, to) of a range, joined to the piece before when both are of one entry. */
static int emit_piece(struct map_ranges *out, struct map_range range, uint64_t from, uint64_t to)
{
	if (out->count) {
		struct map_range *last = &out->items[out->count - 1];

		if (last->order == range.order && last->end == from) {
			last->end = to;
			return 0;
		}
	}
	range.start = from;
	range.end = to;
	return array_append(out, range);
}

/* Emits what the open ranges say about [from, until), closing those that end there. */
static int emit_open(struct map_ranges *out, struct map_range *heap, size_t *count, uint64_t from,
	uint64_t until)
{
	while (*count && from < until) {
		uint64_t to = MIN(heap[0].end, until);
		int result = from < to ? emit_piece(out, heap[0], from, to) : 0;

		if (result < 0)
			return result;
		if (heap[0].end <= until)
			heap_pop(heap, count);
		from = MAX(from, to);
	}
	return 0;
}

static int flatten(const struct map_ranges *sorted, struct map_ranges *out)
{
	_cleanup_free_ struct map_range *heap = NULL;
	size_t open = 0;
	int result = 0;

	heap = malloc(MAX(sorted->count, (size_t)1) * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	for (size_t i = 0; i < sorted->count && result == 0; i++) {
		bool last = i + 1 == sorted->count;
		struct map_range range = sorted->items[i];

		heap_push(heap, &open, range);
		result = emit_open(out, heap, &open, range.start,
			last ? UINT64_MAX : sorted->items[i + 1].start);
	}
	return result;
}

/* Both lists into one, sorted. */
static int join_sorted(
	const struct map_ranges *a, const struct map_ranges *b, struct map_ranges *out)
{
	int result = array_reserve(out, a->count + b->count);

	if (result == 0 && !out->items) /* both are empty */
		return 0;
	for (size_t i = 0, j = 0; result == 0 && (i < a->count || j < b->count);) {
		bool take_a = j == b->count ||
			      (i < a->count && compare_ranges(&a->items[i], &b->items[j]) < 0);

		out->items[out->count++] = take_a ? a->items[i++] : b->items[j++];
	}
	return result;
}

static int merge_pending(struct perf_map *map)
{
	struct map_ranges joined = {0}, merged = {0};
	int result;

	if (map->pending.count == 0)
		return 0;
	qsort(map->pending.items, map->pending.count, sizeof(*map->pending.items), compare_ranges);
	result = join_sorted(&map->ranges, &map->pending, &joined);
	if (result == 0)
		result = flatten(&joined, &merged);
	array_done(&joined);
	if (result < 0) {
		array_done(&merged);
		return result;
	}
	array_done(&map->ranges);
	map->ranges = merged;
	array_clear(&map->pending);
	return 0;
}

int perf_map_add_text(struct perf_map *map, const char *text, size_t length)
{
	int result = split_lines(map, text, length);
	int merged = merge_pending(map);

	return result < 0 ? result : merged;
}

bool perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name)
{
	size_t low = 0, high = map->ranges.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || map->ranges.items[low - 1].end <= address)
		return false;
	*ret_name = map->names.data + map->ranges.items[low - 1].name;
	return true;
}

/* ---- Files ---- */

struct perf_map *perf_map_new(void)
{
	struct perf_map *map = calloc(1, sizeof(*map));

	if (map)
		map->fd = -1;
	return map;
}

struct perf_map *perf_map_free(struct perf_map *map)
{
	if (!map)
		return NULL;
	closep(&map->fd);
	array_done(&map->ranges);
	array_done(&map->pending);
	strbuf_done(&map->names);
	strbuf_done(&map->partial_line);
	free(map->path);
	free(map);
	return NULL;
}

static void perf_map_freep(struct perf_map **map)
{
	perf_map_free(*map);
}

static void forget_contents(struct perf_map *map)
{
	array_clear(&map->ranges);
	array_clear(&map->pending);
	strbuf_clear(&map->names);
	strbuf_clear(&map->partial_line);
	map->in_long_line = false;
	map->consumed = map->order = 0;
}

/*
 * -EPERM for a file that the process's user does not own, or that has another name elsewhere:
 * another user may have planted it.
 */
static int open_checked(const struct process_view *view, const char *path, struct stat *ret_status)
{
	_cleanup_close_ int found =
		process_view_find(view, path, PROCESS_VIEW_NO_LINKS, ret_status);

	if (found < 0)
		return found;
	if (S_ISREG(ret_status->st_mode) &&
		(ret_status->st_uid != view->user || ret_status->st_nlink > 1))
		return -EPERM;
	return process_view_open_found(view, found);
}

/* Takes up the file that is at the path now, when it is another than before. */
static void follow_replacement(struct perf_map *map)
{
	struct stat status = {0};
	int fd = open_checked(&map->view, map->path, &status);

	if (fd < 0)
		return;
	if (map->fd >= 0 && status.st_dev == map->device && status.st_ino == map->inode) {
		close(fd);
		return;
	}
	closep(&map->fd);
	map->fd = fd;
	map->device = status.st_dev;
	map->inode = status.st_ino;
	forget_contents(map);
}

static int read_appended(struct perf_map *map, size_t end)
{
	_cleanup_free_ char *chunk = malloc(READ_CHUNK_BYTES);
	int result = 0;

	if (!chunk)
		return -ENOMEM;
	while (map->consumed < end && result == 0) {
		size_t wanted = MIN(end - map->consumed, (size_t)READ_CHUNK_BYTES);
		ssize_t got = pread(map->fd, chunk, wanted, (off_t)map->consumed);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		result = split_lines(map, chunk, (size_t)got);
		map->consumed += (size_t)got;
	}
	return result;
}

int perf_map_read(struct perf_map *map, size_t max_bytes)
{
	struct stat status;
	size_t end;
	int result, merged = 0;
	bool is_whole;

	if (!map->path)
		return 0;
	follow_replacement(map);
	if (fstat(map->fd, &status) < 0)
		return -errno;
	if ((size_t)status.st_size < map->consumed)
		forget_contents(map);
	end = MIN((size_t)status.st_size, FILE_SIZE_MAX);
	is_whole = end - map->consumed <= max_bytes;
	result = read_appended(map, is_whole ? end : map->consumed + max_bytes);
	if (is_whole || map->pending.count > MAX(map->ranges.count, (size_t)PENDING_MIN))
		merged = merge_pending(map);
	if (result < 0 || merged < 0)
		return result < 0 ? result : merged;
	if (!is_whole)
		return 1;
	return (size_t)status.st_size > FILE_SIZE_MAX ? -EFBIG : 0;
}

size_t perf_map_memory(const struct perf_map *map)
{
	return map->names.capacity + map->partial_line.capacity +
	       (map->ranges.capacity + map->pending.capacity) * sizeof(struct map_range);
}

static int explain_refusal(
	const struct process_view *view, const char *path, int error, struct errmsg *err)
{
	switch (error) {
	case -EPERM:
		return errmsg_set(err, error,
			"ignored %s: user %u, who runs the process, does not own it, or it has "
			"hard links; remove it if it is left over from another process",
			path, view->user);
	case -EACCES:
		return errmsg_set(err, error,
			"ignored %s: user %u, who runs the process, may not read it; let the "
			"runtime write a plain file there",
			path, view->user);
	case -ELOOP:
		return errmsg_set(err, error,
			"ignored %s: it is a symbolic link; replace it with a regular file", path);
	case -EINVAL:
		return errmsg_set(err, error,
			"ignored %s: it is not a regular file; let the runtime write a plain file "
			"there",
			path);
	default:
		return errmsg_set(err, error, "cannot open %s: %s", path, strerror(-error));
	}
}

int perf_map_open_path(struct perf_map **ret_map, const struct process_view *view, const char *path,
	struct errmsg *err)
{
	_cleanup_(perf_map_freep) struct perf_map *map = perf_map_new();
	struct stat status = {0};

	if (!map || !(map->path = strdup(path)))
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
	map->view = *view;
	map->fd = open_checked(view, path, &status);
	if (map->fd < 0)
		return explain_refusal(view, path, map->fd, err);
	map->device = status.st_dev;
	map->inode = status.st_ino;
	*ret_map = TAKE_PTR(map);
	return 0;
}

int perf_map_open(struct perf_map **ret_map, const struct process_view *view, uint32_t pid,
	struct errmsg *err)
{
	const struct process_view own = process_view_own();
	char path[64];
	int result;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", view->inner_pid);
	result = perf_map_open_path(ret_map, view, path, err);
	if (result != -ENOENT)
		return result;
	/* Put there for us, by an agent outside of the process's container. */
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	return perf_map_open_path(ret_map, &own, path, err);
}
