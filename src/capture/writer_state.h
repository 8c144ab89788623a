/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer of a capture remembers between packets, shared by the writer's files. */
#pragma once

#include "base/map.h"
#include "capture/interning.h"
#include "capture/output.h"
#include "capture/symbol_batch.h"
#include "capture/writer.h"

struct capture_writer {
	struct output output;
	struct interning interning;
	struct map_u64 queues; /* pid << 32 | queue → iid of its device << 32 | iid of its name */
	struct symbol_batch symbols;
	const struct capture_visitor *visitor; /* in place of a file; NULL: there is a file */
	void *visitor_context;
	bool stack_sample;
	bool started; /* the packets that open the sequence are written */
	uint32_t sequence_id;
	uint64_t period_ns;
	uint64_t last_time_ns;     /* of the sequence's incremental clock */
	struct map_u64 tracks;     /* of ranges, windows and steps: their uuids, once described */
	uint32_t open_window;      /* its number; 0: none */
	struct map_u64 open_steps; /* tracks of the processes that are in a step */
};

/* The message that the next packet goes to. */
struct strbuf *writer_begin_packet(struct capture_writer *writer);
int writer_end_packet(struct capture_writer *writer);
/* A packet of its own time: the sequence's clock is left alone. */
struct strbuf *writer_begin_timed_packet(struct capture_writer *writer, uint64_t time_ns);
int writer_end_timed_packet(struct capture_writer *writer);

/* Writes the packets that open a sequence, when no session did. */
int writer_start(struct capture_writer *writer);

/* Tracks are told apart by numbers that must differ between captures that are merged later. */
uint64_t writer_track_uuid(const struct capture_writer *writer, uint32_t id, bool is_thread);
