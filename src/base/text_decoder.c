/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_decoder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define CHUNK_BYTES ((size_t)256 * 1024)
#define CHUNKS      4 /* decoded ahead of the reader at most */
#define INPUT_BYTES ((size_t)64 * 1024)

enum text_form { TEXT_PLAIN, TEXT_GZIP, TEXT_ZSTD };

struct chunk {
	char *bytes;
	size_t length;
};

/*
 * Chunks go round: the thread fills number `filled`, the reader empties number `emptied`. The
 * thread's own are below; what both look at is under the lock.
 */
struct text_decoder {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct chunk chunks[CHUNKS];
	unsigned filled, emptied;
	bool ended, stop;
	bool is_readers; /* a plain file, which its reader goes on with by itself */
	int error;
	enum text_damage damage;
	uint64_t position;
	size_t trailing;
	size_t taken; /* of the reader's chunk */

	int fd;
	unsigned char *input;
	size_t input_at, input_end;
	bool input_ended;
	uint64_t input_bytes;
	bool inside;         /* a gzip member or zstd frame has begun and not ended */
	unsigned char first; /* byte of each member or frame */
	z_stream gzip;
	ZSTD_DStream *zstd;
	enum text_form form;
};

static const unsigned char gzip_magic[] = {0x1f, 0x8b};
static const unsigned char zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

static bool begins_with(
	const unsigned char *bytes, size_t length, const unsigned char *magic, size_t magic_length)
{
	return length >= magic_length && memcmp(bytes, magic, magic_length) == 0;
}

static enum text_form find_form(const unsigned char *bytes, size_t length)
{
	if (begins_with(bytes, length, gzip_magic, sizeof(gzip_magic)))
		return TEXT_GZIP;
	return begins_with(bytes, length, zstd_magic, sizeof(zstd_magic)) ? TEXT_ZSTD : TEXT_PLAIN;
}

bool text_decoder_knows(const unsigned char *bytes, size_t length)
{
	return find_form(bytes, length) != TEXT_PLAIN;
}

/* Bytes of the file; 0 at its end, or a negative errno. */
static ssize_t read_file(struct text_decoder *decoder, void *room, size_t length)
{
	ssize_t got;

	do
		got = read(decoder->fd, room, length);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	decoder->input_bytes += (uint64_t)got;
	return got;
}

/* More bytes of the file where all were decoded. Returns 0 or a negative errno. */
static int refill(struct text_decoder *decoder)
{
	ssize_t got;

	if (decoder->input_at < decoder->input_end || decoder->input_ended)
		return 0;
	got = read_file(decoder, decoder->input, INPUT_BYTES);
	if (got < 0)
		return (int)got;
	decoder->input_ended = got == 0;
	decoder->input_at = 0;
	decoder->input_end = (size_t)got;
	return 0;
}

/* Bytes behind the last member that are no member are left out, as gzip does, and counted. */
static bool goes_on(const struct text_decoder *decoder)
{
	return decoder->inside || (decoder->input_at < decoder->input_end &&
					  decoder->input[decoder->input_at] == decoder->first);
}

/* What became of the bytes between two calls of a decoder. */
enum decoded { DECODED_SOME, DECODED_END, DECODED_BAD };

static enum decoded decode_gzip(struct text_decoder *decoder, char *room, size_t *length)
{
	z_stream *gzip = &decoder->gzip;
	int status;

	gzip->next_in = decoder->input + decoder->input_at;
	gzip->avail_in = (uInt)(decoder->input_end - decoder->input_at);
	gzip->next_out = (Bytef *)room;
	gzip->avail_out = (uInt)*length;
	status = inflate(gzip, Z_NO_FLUSH);
	decoder->input_at = decoder->input_end - gzip->avail_in;
	*length -= gzip->avail_out;
	if (status == Z_STREAM_END)
		inflateReset(gzip);
	else if (status != Z_OK && status != Z_BUF_ERROR)
		return DECODED_BAD;
	return status == Z_STREAM_END ? DECODED_END : DECODED_SOME;
}

static enum decoded decode_zstd(struct text_decoder *decoder, char *room, size_t *length)
{
	ZSTD_inBuffer in = {
		decoder->input + decoder->input_at, decoder->input_end - decoder->input_at, 0};
	ZSTD_outBuffer out = {room, *length, 0};
	size_t left = ZSTD_decompressStream(decoder->zstd, &out, &in);

	decoder->input_at += in.pos;
	*length = out.pos;
	if (ZSTD_isError(left))
		return DECODED_BAD;
	return left == 0 ? DECODED_END : DECODED_SOME;
}

/* What was read of the file to tell its form, then the rest. */
static int fill_plain(struct text_decoder *decoder, struct chunk *chunk)
{
	chunk->length = decoder->input_end - decoder->input_at;
	memcpy(chunk->bytes, decoder->input + decoder->input_at, chunk->length);
	decoder->input_at = decoder->input_end;
	while (chunk->length < CHUNK_BYTES) {
		ssize_t got = read_file(
			decoder, chunk->bytes + chunk->length, CHUNK_BYTES - chunk->length);

		if (got <= 0)
			return (int)got;
		chunk->length += (size_t)got;
	}
	return 0;
}

/*
 * Decodes into the chunk until it is full; one that has room left is the last. Returns 0 or a
 * negative errno.
 */
static int fill_chunk(struct text_decoder *decoder, struct chunk *chunk, enum text_damage *damage)
{
	if (decoder->form == TEXT_PLAIN)
		return fill_plain(decoder, chunk);
	chunk->length = 0;
	while (chunk->length < CHUNK_BYTES) {
		size_t length = CHUNK_BYTES - chunk->length;
		char *room = chunk->bytes + chunk->length;
		enum decoded decoded;
		int r = refill(decoder);

		if (r < 0)
			return r;
		if (!goes_on(decoder)) {
			decoder->trailing = decoder->input_end - decoder->input_at;
			return 0;
		}
		decoded = decoder->form == TEXT_ZSTD ? decode_zstd(decoder, room, &length)
						     : decode_gzip(decoder, room, &length);
		decoder->inside = decoded == DECODED_SOME;
		chunk->length += length;
		if (decoded == DECODED_BAD)
			*damage = TEXT_DAMAGED;
		else if (decoder->inside && !length && decoder->input_ended)
			*damage = TEXT_CUT;
		if (*damage != TEXT_WHOLE)
			return 0;
	}
	return 0;
}

static void *run(void *argument)
{
	struct text_decoder *decoder = argument;
	bool go_on = true;

	while (go_on) {
		enum text_damage damage = TEXT_WHOLE;
		struct chunk *chunk;
		int error;

		pthread_mutex_lock(&decoder->lock);
		while (decoder->filled - decoder->emptied == CHUNKS && !decoder->stop)
			pthread_cond_wait(&decoder->changed, &decoder->lock);
		go_on = !decoder->stop;
		chunk = &decoder->chunks[decoder->filled % CHUNKS];
		pthread_mutex_unlock(&decoder->lock);
		if (!go_on)
			break;
		error = fill_chunk(decoder, chunk, &damage);
		pthread_mutex_lock(&decoder->lock);
		go_on = error == 0 && chunk->length == CHUNK_BYTES;
		decoder->filled++;
		decoder->ended = !go_on;
		decoder->error = error;
		decoder->damage = damage;
		decoder->position = decoder->input_bytes;
		pthread_cond_signal(&decoder->changed);
		pthread_mutex_unlock(&decoder->lock);
	}
	return NULL;
}

static int open_decoder(struct text_decoder *decoder)
{
	switch (decoder->form) {
	case TEXT_GZIP:
		decoder->first = gzip_magic[0];
		return inflateInit2(&decoder->gzip, MAX_WBITS + 16) == Z_OK ? 0 : -ENOMEM;
	case TEXT_ZSTD:
		decoder->first = zstd_magic[0];
		decoder->zstd = ZSTD_createDStream();
		return decoder->zstd ? 0 : -ENOMEM;
	default:
		return 0;
	}
}

static int allocate(struct text_decoder *decoder, const unsigned char *head, size_t head_length)
{
	decoder->input = malloc(INPUT_BYTES);
	if (!decoder->input)
		return -ENOMEM;
	memcpy(decoder->input, head, head_length);
	decoder->input_end = decoder->input_bytes = head_length;
	for (unsigned i = 0; i < CHUNKS; i++) {
		char *bytes = malloc(TEXT_BEFORE + CHUNK_BYTES);

		if (!bytes)
			return -ENOMEM;
		decoder->chunks[i].bytes = bytes + TEXT_BEFORE;
	}
	decoder->form = find_form(head, head_length);
	return open_decoder(decoder);
}

static void release(struct text_decoder *decoder)
{
	for (unsigned i = 0; i < CHUNKS; i++) {
		if (decoder->chunks[i].bytes)
			free(decoder->chunks[i].bytes - TEXT_BEFORE);
	}
	if (decoder->form == TEXT_GZIP)
		inflateEnd(&decoder->gzip);
	ZSTD_freeDStream(decoder->zstd);
	free(decoder->input);
	pthread_cond_destroy(&decoder->changed);
	pthread_mutex_destroy(&decoder->lock);
	free(decoder);
}

/* Signals are for the program's other threads. */
static int start_thread(struct text_decoder *decoder)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&decoder->thread, NULL, run, decoder);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int text_decoder_start(
	struct text_decoder **ret_decoder, int fd, const unsigned char *head, size_t head_length)
{
	struct text_decoder *decoder = calloc(1, sizeof(*decoder));
	int r;

	if (!decoder)
		return -ENOMEM;
	decoder->fd = fd;
	pthread_mutex_init(&decoder->lock, NULL);
	pthread_cond_init(&decoder->changed, NULL);
	r = allocate(decoder, head, head_length);
	if (r == 0)
		r = start_thread(decoder);
	if (r < 0) {
		release(decoder);
		return r;
	}
	*ret_decoder = decoder;
	return 0;
}

static void end_thread(struct text_decoder *decoder)
{
	pthread_mutex_lock(&decoder->lock);
	decoder->stop = true;
	pthread_cond_signal(&decoder->changed);
	pthread_mutex_unlock(&decoder->lock);
	pthread_join(decoder->thread, NULL);
}

struct text_decoder *text_decoder_stop(struct text_decoder *decoder)
{
	if (!decoder)
		return NULL;
	if (!decoder->is_readers)
		end_thread(decoder);
	release(decoder);
	return NULL;
}

/* Waits for a chunk that has bytes left; NULL when the text has ended. */
static struct chunk *wait_for_chunk(struct text_decoder *decoder)
{
	struct chunk *chunk = &decoder->chunks[decoder->emptied % CHUNKS];

	pthread_mutex_lock(&decoder->lock);
	while (decoder->filled == decoder->emptied && !decoder->ended && !decoder->is_readers)
		pthread_cond_wait(&decoder->changed, &decoder->lock);
	if (decoder->filled == decoder->emptied)
		chunk = NULL;
	pthread_mutex_unlock(&decoder->lock);
	return chunk;
}

/* That of which there is more to read, after those of which all was given back. */
static struct chunk *next_chunk(struct text_decoder *decoder)
{
	struct chunk *chunk;

	while ((chunk = wait_for_chunk(decoder)) && decoder->taken == chunk->length) {
		decoder->taken = 0;
		pthread_mutex_lock(&decoder->lock);
		decoder->emptied++;
		pthread_cond_signal(&decoder->changed);
		pthread_mutex_unlock(&decoder->lock);
	}
	return chunk;
}

ssize_t text_decoder_take(struct text_decoder *decoder, char **ret_bytes)
{
	const struct chunk *chunk = next_chunk(decoder);
	size_t given;

	if (!chunk)
		return decoder->error;
	given = chunk->length - decoder->taken;
	*ret_bytes = chunk->bytes + decoder->taken;
	decoder->taken = chunk->length;
	return (ssize_t)given;
}

ssize_t text_decoder_read(struct text_decoder *decoder, char *room, size_t length)
{
	const struct chunk *chunk = next_chunk(decoder);
	size_t given;

	if (!chunk)
		return decoder->error;
	given = MIN(length, chunk->length - decoder->taken);
	memcpy(room, chunk->bytes + decoder->taken, given);
	decoder->taken += given;
	return (ssize_t)given;
}

/* What the thread has read of the plain file is given out first. */
static void take_over(struct text_decoder *decoder)
{
	end_thread(decoder);
	decoder->is_readers = true;
}

static ssize_t read_on(struct text_decoder *decoder, char *room, size_t length)
{
	ssize_t got = read_file(decoder, room, length);

	decoder->position = decoder->input_bytes;
	return got;
}

ssize_t text_decoder_read_rest(struct text_decoder *decoder, char *room, size_t length)
{
	ssize_t got;

	if (decoder->form == TEXT_PLAIN && !decoder->is_readers)
		take_over(decoder);
	got = text_decoder_read(decoder, room, length);
	return got == 0 && decoder->is_readers && !decoder->ended ? read_on(decoder, room, length)
								  : got;
}

/* The thread has ended when the reader saw the end. */
enum text_damage text_decoder_damage(const struct text_decoder *decoder)
{
	return decoder->damage;
}

size_t text_decoder_trailing(const struct text_decoder *decoder)
{
	return decoder->trailing;
}

uint64_t text_decoder_position(struct text_decoder *decoder)
{
	uint64_t position;

	pthread_mutex_lock(&decoder->lock);
	position = decoder->position;
	pthread_mutex_unlock(&decoder->lock);
	return position;
}
