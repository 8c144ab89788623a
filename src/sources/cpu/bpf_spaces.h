/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces as the BPF programs see them: numbered, shared by processes that forked and
 * changed nothing, kept in a hash as power-of-two blocks; and the Python interpreter in each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sources/process/address_space.h"
#include "unwind/python_layout.h"

struct bpf_spaces;

/* Maps of the loaded program (unwinder.bpf.h); the descriptors stay the caller's. */
struct bpf_spaces_maps {
	int mappings_fd, processes_fd, interpreters_fd;
};

/*
 * Without `whole_machine` only processes that bpf_spaces_follow() or a fork put into the processes
 * map get a space.
 */
int bpf_spaces_new(
	struct bpf_spaces **ret_spaces, const struct bpf_spaces_maps *maps, bool whole_machine);
/* Lets the program sample this process and its children. Returns 0 or a negative errno. */
int bpf_spaces_follow(struct bpf_spaces *spaces, uint32_t pid);
struct bpf_spaces *bpf_spaces_free(struct bpf_spaces *spaces);

/* As the functions of the same names in struct cpu_sampler. */
int bpf_spaces_map(struct bpf_spaces *spaces, uint32_t pid, const struct mapping *mapping,
	uint64_t bias, bool frame_pointer);
void bpf_spaces_unmap(struct bpf_spaces *spaces, uint32_t pid, const struct mapping *mapping);
void bpf_spaces_clear(struct bpf_spaces *spaces, uint32_t pid);
int bpf_spaces_set_python(
	struct bpf_spaces *spaces, uint32_t pid, const struct python_image_facts *facts);
int bpf_spaces_fork(struct bpf_spaces *spaces, uint32_t parent_pid, uint32_t child_pid);
