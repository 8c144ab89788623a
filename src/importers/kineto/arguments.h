/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "args" of one event. Members that have a field in the trace are found by name and converted
 * when the event's kind is known; the others are kept as text, or passed over.
 */
#pragma once

#include "base/array.h"
#include "base/json_reader.h"
#include "model/trace.h"

/* Kineto's names, in the order of the fields that they fill. */
#define KINETO_ARGUMENTS(X)                                                                        \
	X(EXTERNAL_ID, "External id")                                                              \
	X(CORRELATION, "correlation")                                                              \
	X(XLA_CORRELATION, "correlation_id")                                                       \
	X(RECORD_FUNCTION_ID, "Record function id")                                                \
	X(SEQUENCE_NUMBER, "Sequence number")                                                      \
	X(FORWARD_THREAD, "Fwd thread id")                                                         \
	X(EV_IDX, "Ev Idx")                                                                        \
	X(PYTHON_ID, "Python id")                                                                  \
	X(PYTHON_PARENT_ID, "Python parent id")                                                    \
	X(PYTHON_MODULE_ID, "Python module id")                                                    \
	X(INPUT_DIMS, "Input Dims")                                                                \
	X(INPUT_TYPES, "Input type")                                                               \
	X(INPUT_STRIDES, "Input Strides")                                                          \
	X(CONCRETE_INPUTS, "Concrete Inputs")                                                      \
	X(CALL_STACK, "Call stack")                                                                \
	X(MODULE_HIERARCHY, "Module Hierarchy")                                                    \
	X(DEVICE, "device")                                                                        \
	X(CONTEXT, "context")                                                                      \
	X(STREAM, "stream")                                                                        \
	X(BYTES, "bytes")                                                                          \
	X(BANDWIDTH, "memory bandwidth (GB/s)")                                                    \
	X(GRID, "grid")                                                                            \
	X(BLOCK, "block")                                                                          \
	X(REGISTERS, "registers per thread")                                                       \
	X(SHARED_MEMORY, "shared memory")                                                          \
	X(KERNEL, "kernel")                                                                        \
	X(GRAPH, "graph id")                                                                       \
	X(GRAPH_NODE, "graph node id")                                                             \
	X(QUEUED, "queued")                                                                        \
	X(SYNC_KIND, "cuda_sync_kind")                                                             \
	X(WAIT_STREAM, "wait_on_stream")                                                           \
	X(WAIT_EVENT, "wait_on_cuda_event_id")                                                     \
	X(WAIT_CORRELATION, "wait_on_cuda_event_record_corr_id")                                   \
	X(COLLECTIVE_NAME, "Collective name")                                                      \
	X(COLLECTIVE_DTYPE, "dtype")                                                               \
	X(IN_ELEMENTS, "In msg nelems")                                                            \
	X(OUT_ELEMENTS, "Out msg nelems")                                                          \
	X(GROUP_SIZE, "Group size")                                                                \
	X(GROUP_NAME, "Process Group Name")                                                        \
	X(GROUP_DESCRIPTION, "Process Group Description")                                          \
	X(GROUP_RANKS, "Process Group Ranks")                                                      \
	X(IN_SPLIT, "In split size")                                                               \
	X(OUT_SPLIT, "Out split size")                                                             \
	X(SOURCE_RANK, "Src Rank")                                                                 \
	X(DESTINATION_RANK, "Dst Rank")                                                            \
	X(COLLECTIVE_SEQUENCE, "Seq")                                                              \
	X(COMMUNICATOR, "Comms Id")                                                                \
	X(MEMORY_ADDRESS, "Addr")                                                                  \
	X(MEMORY_BYTES, "Bytes")                                                                   \
	X(TOTAL_ALLOCATED, "Total Allocated")                                                      \
	X(TOTAL_RESERVED, "Total Reserved")                                                        \
	X(DEVICE_TYPE, "Device Type")                                                              \
	X(DEVICE_ID, "Device Id")                                                                  \
	X(MEMORY_STACK, TRACE_STACK)                                                               \
	X(RANGE_DOMAIN, TRACE_RANGE_DOMAIN)                                                        \
	X(RANGE_END, TRACE_END)                                                                    \
	X(OWNER, TRACE_OWNER)                                                                      \
	X(NAME, "name")                                                                            \
	X(LABELS, "labels")                                                                        \
	X(SORT_INDEX, "sort_index")

enum kineto_argument {
#define X(id, name) KINETO_##id,
	KINETO_ARGUMENTS(X)
#undef X
		KINETO_ARGUMENT_MAX,
};

_Static_assert(KINETO_ARGUMENT_MAX <= 64, "one bit each");

#define KINETO_BIT(id) (1ULL << (id))

/* A member as the file has it. */
struct kineto_member {
	const char *begin;      /* of "key": value */
	struct json_text value; /* strings with their quotes */
	uint64_t number;
	bool has_number; /* the value is `number`; else it may be one by its text */
};

#define KINETO_NAME_SLOTS 256

/* What follows a member most often: the last two that did. */
struct kineto_guesses {
	struct json_guess first, second;
};

/* The id of the next member when it is one of these, with the reader at its value; else -1. */
static inline int kineto_guess_member(struct kineto_guesses *guesses, struct json_reader *reader,
	const struct json_guess **ret_guess)
{
	if (json_reader_guess(reader, &guesses->first)) {
		*ret_guess = &guesses->first;
		return guesses->first.id;
	}
	if (json_reader_guess(reader, &guesses->second)) {
		*ret_guess = &guesses->second;
		return guesses->second.id;
	}
	return -1;
}

/* The member that the reader has come to from `begin`. */
static inline void kineto_learn_member(struct kineto_guesses *guesses,
	const struct json_reader *reader, const char *begin, const struct json_text *key,
	unsigned id)
{
	guesses->second = guesses->first;
	json_reader_learn(reader, begin, key, (uint16_t)id, &guesses->first);
}

/*
 * To the next member's value; *id is that of the member before, then that of this one, by `find`
 * where it is not the one that was guessed. *ret_begin is where its key begins, at the quote.
 */
static inline enum json_status kineto_next_member(struct kineto_guesses *guesses,
	struct json_reader *reader, unsigned (*find)(const void *context, const struct json_text *),
	const void *context, unsigned *id, const char **ret_begin)
{
	const char *begin = reader->at;
	const struct json_guess *guess;
	enum json_status status;
	struct json_text key;
	uint64_t mended = reader->mended;

	guesses += *id;
	if (kineto_guess_member(guesses, reader, &guess) >= 0) {
		*id = guess->id;
		*ret_begin = begin + guess->key_offset;
		return JSON_OK;
	}
	status = json_reader_member(reader, &key);
	if (status != JSON_OK)
		return status;
	*id = find(context, &key);
	*ret_begin = key.bytes - 1;
	if (reader->mended == mended)
		kineto_learn_member(guesses, reader, begin, &key, *id);
	return JSON_OK;
}

struct kineto_arguments {
	uint64_t present; /* bits: was there, and was not taken yet */
	struct kineto_member members[KINETO_ARGUMENT_MAX];
	ARRAY_OF(struct kineto_member) others; /* without a field; only when they are kept */
	uint8_t slots[KINETO_NAME_SLOTS];      /* name → enum kineto_argument + 1; 0: none */
	struct kineto_guesses guesses[KINETO_ARGUMENT_MAX + 2]; /* by the member before */
};

void kineto_arguments_init(struct kineto_arguments *arguments);
void kineto_arguments_done(struct kineto_arguments *arguments);
void kineto_arguments_clear(struct kineto_arguments *arguments);

/* Reads the object that the reader stands before. JSON_OK, JSON_MORE, JSON_BAD or -ENOMEM. */
int kineto_arguments_read(
	struct kineto_arguments *arguments, struct json_reader *reader, bool keep_others);

static inline bool kineto_has(const struct kineto_arguments *arguments, enum kineto_argument id)
{
	return arguments->present & KINETO_BIT(id);
}

/*
 * Take a number out: true when it was there and is one. What is not one stays, to be kept as text.
 * A number in quotes is a number.
 */
static inline bool kineto_take_i64(
	struct kineto_arguments *arguments, enum kineto_argument id, int64_t *ret_value);
static inline bool kineto_take_u64(
	struct kineto_arguments *arguments, enum kineto_argument id, uint64_t *ret_value);
/* Microseconds in the file. */
static inline bool kineto_take_ns(
	struct kineto_arguments *arguments, enum kineto_argument id, int64_t *ret_value);
/* Takes [x, y, z] out. */
static inline bool kineto_take_dimensions(
	struct kineto_arguments *arguments, enum kineto_argument id, uint32_t dimensions[3]);
/* The member's number, when it is one; the member stays, to be kept as text. */
bool kineto_double(const struct json_text *value, double *ret_value);
/* Takes any value out; NULL when it is not there. Valid until the next event. */
static inline const struct json_text *kineto_take(
	struct kineto_arguments *arguments, enum kineto_argument id);

/* All that was not taken, as members with commas between. */
void kineto_arguments_rest(const struct kineto_arguments *arguments, struct strbuf *out);

/* Most arguments are not there, or plain numbers; these are for the others. */
bool kineto_take_text_(struct kineto_arguments *arguments, enum kineto_argument id,
	unsigned decimals, int64_t *ret_value);
bool kineto_take_u64_text_(
	struct kineto_arguments *arguments, enum kineto_argument id, uint64_t *ret_value);
bool kineto_take_dimensions_(
	struct kineto_arguments *arguments, enum kineto_argument id, uint32_t dimensions[3]);

static inline bool kineto_take_u64(
	struct kineto_arguments *arguments, enum kineto_argument id, uint64_t *ret_value)
{
	if (!kineto_has(arguments, id))
		return false;
	if (!arguments->members[id].has_number)
		return kineto_take_u64_text_(arguments, id, ret_value);
	arguments->present &= ~KINETO_BIT(id);
	*ret_value = arguments->members[id].number;
	return true;
}

static inline bool kineto_take_i64(
	struct kineto_arguments *arguments, enum kineto_argument id, int64_t *ret_value)
{
	const struct kineto_member *member = &arguments->members[id];

	if (!kineto_has(arguments, id))
		return false;
	if (!member->has_number || member->number > INT64_MAX)
		return kineto_take_text_(arguments, id, 0, ret_value);
	arguments->present &= ~KINETO_BIT(id);
	*ret_value = (int64_t)member->number;
	return true;
}

static inline bool kineto_take_ns(
	struct kineto_arguments *arguments, enum kineto_argument id, int64_t *ret_value)
{
	const struct kineto_member *member = &arguments->members[id];

	if (!kineto_has(arguments, id))
		return false;
	if (!member->has_number || member->number > INT64_MAX / 1000)
		return kineto_take_text_(arguments, id, 3, ret_value);
	arguments->present &= ~KINETO_BIT(id);
	*ret_value = (int64_t)member->number * 1000;
	return true;
}

static inline bool kineto_take_dimensions(
	struct kineto_arguments *arguments, enum kineto_argument id, uint32_t dimensions[3])
{
	return kineto_has(arguments, id) && kineto_take_dimensions_(arguments, id, dimensions);
}

static inline const struct json_text *kineto_take(
	struct kineto_arguments *arguments, enum kineto_argument id)
{
	if (!kineto_has(arguments, id))
		return NULL;
	arguments->present &= ~KINETO_BIT(id);
	return &arguments->members[id].value;
}
