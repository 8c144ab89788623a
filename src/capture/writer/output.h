/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packets to the file: gathers packets, deflates them in chunks, and hands them to the kernel
 * at a flush, so that the file always ends where a packet ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/output_place.h"
#include "base/strbuf.h"

struct output {
	struct output_place place;
	char *path;
	struct strbuf packets; /* not deflated yet; whole but for the one being written */
	size_t packet_start, packet_content;
	struct strbuf ready; /* bytes for the file */
	struct libdeflate_compressor *compressor;
	uint64_t second_ns; /* when the second began that these bytes were deflated in, or not */
	size_t second_bytes;
	bool unhurried;      /* there is time to deflate everything */
	bool is_flooded;     /* the second before had far more than can be deflated */
	uint64_t file_bytes; /* in the file, up to the last good flush */
	int failure;         /* the first write error: nothing is written after it */
	struct errmsg failure_message;
};

int output_open(struct output *output, const char *path, bool compress,
	const struct output_how *how, struct errmsg *err);
/* The file takes its place. */
int output_name(struct output *output, struct errmsg *err);
/* Closes the descriptor; a close() that fails is a failed write. */
int output_close(struct output *output, struct errmsg *err);
void output_done(struct output *output);

/*
 * A packet is what is appended to output->packets between these two. The end deflates a full chunk;
 * where more comes than can be deflated in the time, some of it stays as it is.
 * When memory ran out within the packet it takes the packet back and returns -ENOMEM. After a write
 * error packets are dropped.
 */
void output_begin_packet(struct output *output);
int output_end_packet(struct output *output);

/* As capture_writer_flush(). */
int output_flush(struct output *output, struct errmsg *err);
