/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that has one capture open, forked by worker.c. It loads the capture once, and forks
 * for each question, since an answer uses the model up: the children share its memory. What is
 * wrong with a capture, or with a question, ends one of these processes and no other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From the server, each one packet; of RESIDENT_ASK the answer's pipe comes with it. */
enum resident_request_kind {
	RESIDENT_ASK,
	RESIDENT_CANCEL,
};

struct resident_request {
	uint32_t kind, id;
	char question[]; /* of RESIDENT_ASK: the rest of the packet */
};

/* To the server, each one packet. */
enum resident_report_kind {
	RESIDENT_PROGRESS,
	RESIDENT_READY,
	RESIDENT_FAILED,
};

struct resident_report {
	uint32_t kind;
	int32_t error; /* of RESIDENT_FAILED, with its sentence */
	uint64_t done, total;
	char sentence[1024];
};

/* An answer: this, then `length` bytes, in the pipe. With an error it is a sentence. */
struct resident_answer {
	int32_t error;
	uint32_t reserved;
	uint64_t length;
};

struct resident_setup {
	const char *const *paths; /* of one capture */
	size_t path_count;
	bool is_listed;        /* no link is followed */
	int parent;            /* pid of the server */
	int socket;            /* SOCK_SEQPACKET */
	uint64_t memory_bytes; /* of each process; 0: no limit */
	uint64_t answer_bytes; /* of one answer */
	uint64_t version;      /* of the capture */
};

/* In the forked child. */
_Noreturn void resident_run(const struct resident_setup *setup);
