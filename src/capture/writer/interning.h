/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's memory of what the capture already holds: strings, mappings, frames, callstacks and
 * sample contexts. What is new is appended to `pending` as fields of an InternedData message, which
 * the writer puts into the next packet.
 */
#pragma once

#include "base/map.h"
#include "base/strbuf.h"
#include "capture/capture.h"

struct interning {
	struct intern function_names, source_paths, mapping_paths, build_ids;
	struct intern mappings, frames, callstacks;
	struct intern tasks, executions; /* StackSample contexts */
	struct intern specifications;    /* names of device work, queues and devices */
	struct intern contexts;          /* pids with device work */
	struct intern event_categories, event_names, annotation_names; /* of TrackEvents */
	bool has_placeholder;
	struct strbuf pending;
	struct known_name {
		const char *name; /* where it was read; NULL: unused */
		uint32_t id;      /* in specifications */
	} known_names[64];
};

void interning_done(struct interning *interning);

/* As capture_writer_mapping(), _frame(), _callstack(). */
int interning_mapping(
	struct interning *interning, const struct capture_mapping *mapping, capture_id *ret_id);
int interning_frame(
	struct interning *interning, const struct capture_frame *frame, capture_id *ret_id);
int interning_callstack(struct interning *interning, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, capture_id *ret_id);

/* The iids of a StackSample's task and execution contexts. */
int interning_task(struct interning *interning, uint32_t pid, uint32_t tid, uint64_t *ret_iid);
int interning_execution(
	struct interning *interning, uint32_t cpu, enum capture_cpu_mode mode, uint64_t *ret_iid);

/*
 * Makes the process's graphics context known, whose iid is the pid: so stages of joined captures
 * find their process, too.
 */
int interning_context(struct interning *interning, uint32_t pid, bool is_cuda);

/* The iid of a name in gpu_specifications. */
int interning_specification(struct interning *interning, const char *name, uint64_t *ret_iid);

/* The iid of a category, name or annotation's name of a TrackEvent. */
int interning_event_category(struct interning *interning, const char *name, uint64_t *ret_iid);
int interning_event_name(struct interning *interning, const char *name, uint64_t *ret_iid);
int interning_annotation_name(struct interning *interning, const char *name, uint64_t *ret_iid);

/*
 * How mappings are named in Perfetto: "/" and the path's components joined by "/". True when `path`
 * has that form by itself, that is, when it begins with a slash.
 */
static inline bool is_plain_path(const char *path)
{
	return path[0] == '/';
}
/* The frame's address in its mapping. */
uint64_t interning_frame_place(
	const struct interning *interning, capture_id frame, capture_id *ret_mapping);
/* The mapping's path and build id, as they were given; NULL and 0 for mapping 0. */
const char *interning_mapping_path(const struct interning *interning, capture_id mapping,
	const uint8_t **ret_build_id, size_t *ret_build_id_length);
