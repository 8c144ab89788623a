/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a simulator can run a Chakra trace: what astra-sim's feeder (v3) and its workload layer
 * ask of a file, before which they stop or wait for ever. docs/chakra.md lists it.
 */
#pragma once

#include "chakra/et/table.h"

enum et_fault_kind {
	ET_FAULT_NO_NODES,
	ET_FAULT_DAMAGED, /* the file: nothing behind it is read */
	ET_FAULT_EMPTY,   /* a message of no bytes: readers in Python stop there */
	ET_FAULT_REPEATED_ID,
	ET_FAULT_MISSING_DEP, /* the feeder stops */
	ET_FAULT_CYCLE,       /* the simulator waits for ever */
	ET_FAULT_TYPE,
	ET_FAULT_ATTRIBUTE,  /* one that the node's type needs is not there */
	ET_FAULT_COLLECTIVE, /* of a kind that is not simulated */
	ET_FAULT_GROUP,    /* a process group whose name is no number, or that ranks disagree on */
	ET_FAULT_METADATA, /* a process group node that cannot be read */
	ET_FAULT_UTF8,     /* text that protobuf refuses */
	/* Not needed by all simulations. */
	ET_NOTE_NO_TIMES,
	ET_NOTE_NO_ARITHMETIC, /* device nodes without num_ops and tensor_size */
	ET_NOTE_RANKS,         /* ranks of a group that have no file */
	ET_FAULT_KIND_MAX,
};

/* "missing dependency" … */
const char *et_fault_kind_to_string(enum et_fault_kind kind);
static inline bool et_fault_is_error(enum et_fault_kind kind)
{
	return kind < ET_NOTE_NO_TIMES;
}

#define ET_MAX_FAULTS 1000 /* that are kept with their sentence; all are counted */

struct et_fault {
	enum et_fault_kind kind;
	char *text; /* with the node's id and place */
};

struct et_check {
	struct et_table *table;
	ARRAY_OF(struct et_fault) faults;
	uint64_t counts[ET_FAULT_KIND_MAX];
	uint64_t deps;
	uint64_t timed, without_arithmetic; /* nodes */
	int error;                          /* -ENOMEM while checking */
};

/* Returns 0, also for faulty files, or a negative errno with a sentence. */
int et_check(struct et_check **ret_check, const char *path, struct errmsg *err);
/* Of traces of one run: do they agree on their process groups? Faults go to the later trace. */
int et_check_groups(struct et_check **checks, size_t count, struct errmsg *err);
bool et_check_is_fine(const struct et_check *check);
struct et_check *et_check_free(struct et_check *check);

/* Counts the fault, and keeps its sentence. For the files of this part. */
void et_check_add(struct et_check *check, enum et_fault_kind kind, const char *format, ...)
	_printf_(3, 4);
