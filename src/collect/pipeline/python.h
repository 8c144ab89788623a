/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python interpreters among the recorded processes: found when their file is mapped, made known
 * to the sampler, validated once they live; their code objects, by what the sampler sent of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/writer/writer.h"
#include "collect/pipeline/files.h"
#include "sources/process/address_space.h"
#include "sources/unwinder.h"
#include "wire/launch.h"
#include "wire/sample.h"

struct python_registry;

struct python_account {
	uint64_t codes;        /* code objects named */
	uint64_t read_late;    /* of them: read from the process, not sent by the sampler */
	uint64_t frames_stale; /* whose code object was another one when it was to be read */
	uint64_t frames_unread;
	struct errmsg unknown; /* why an interpreter's frames are not shown; "": no such one */
};

/* The unwinder knows interpreters by this; a copy of it is kept. NULL: there is none. */
int python_registry_new(struct python_registry **ret_registry, struct file_store *files,
	const struct source_unwinder *unwinder, struct capture_writer *writer);
struct python_registry *python_registry_free(struct python_registry *registry);

/* As in struct address_space_listener; `path` is the mapped file's. Return 0 or -ENOMEM. */
int python_registry_mapping(struct python_registry *registry, const struct process *process,
	const struct mapping *mapping, const char *path);
int python_registry_fork(struct python_registry *registry, const struct process *parent,
	const struct process *child);
void python_registry_clear(struct python_registry *registry, uint32_t pid);
/* Looks at interpreters that were not running yet when last looked at; cheap when there are none.
 */
void python_registry_check(struct python_registry *registry);

/* A whole record (see python_code_is_whole()). Returns 0 or -ENOMEM. */
int python_registry_add_code(
	struct python_registry *registry, const struct wire_python_code *record);

/*
 * Why a sample of this process has no Python frames when its sampler says nothing:
 * WIRE_PYTHON_NONE when the process runs no interpreter, else WIRE_PYTHON_UNKNOWN, USER_MODE or
 * TOO_EARLY.
 */
enum wire_python python_registry_reason(const struct python_registry *registry, uint32_t pid);
/* What the process may know of its own interpreter, for its launches. */
enum wire_launch_python python_registry_target(
	const struct python_registry *registry, uint32_t pid, struct python_target *ret_target);
/*
 * Does the address lie in the evaluation function of this interpreter (wire_sample's
 * python_interpreter)? It may have ended.
 */
bool python_registry_is_eval(
	const struct python_registry *registry, uint32_t interpreter, uint64_t address);

/* The capture's frame of a Python frame. Returns 0 or -ENOMEM. */
int python_registry_frame(struct python_registry *registry, uint32_t pid, uint32_t interpreter,
	const struct wire_python_frame *frame, capture_id *ret_frame);

void python_registry_account(
	const struct python_registry *registry, struct python_account *ret_account);
