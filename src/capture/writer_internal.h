/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the writer share: writer.c has the sequence, samples, processes and threads,
 * writer_device.c device work and its launches, writer_ranges.c ranges. Nothing else includes this.
 */
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
	uint64_t last_time_ns; /* of the sequence's incremental clock */
	struct map_u64 tracks; /* of ranges: their uuids, once described */
};

/* The packets that open the sequence, where they are not written yet. */
int writer_start(struct capture_writer *writer);
/* The message that the next packet goes to. */
struct strbuf *writer_begin_packet(struct capture_writer *writer);
int writer_end_packet(struct capture_writer *writer);
/* A packet of its own time: the sequence's clock is left alone. */
struct strbuf *writer_begin_timed_packet(struct capture_writer *writer, uint64_t time_ns);
int writer_end_timed_packet(struct capture_writer *writer);
/* Tracks are told apart by numbers that must differ between captures that are merged later. */
uint64_t writer_track(const struct capture_writer *writer, uint32_t id, bool is_thread);
