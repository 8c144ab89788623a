/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of a recording with windows: one JSON document beside the capture, for programs that
 * collect those of many ranks and hosts. It lists windows, processes with their ranks, and steps.
 * Each write replaces the whole file at once; one that fails leaves the last good one there. The
 * document is described in docs/windows.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/output_place.h"
#include "capture/capture.h"

/* What comes after the capture's path. */
#define MANIFEST_SUFFIX ".windows.json"

struct manifest;

/* `how`: who may read it. `session`: whose version, host and start it has; its texts are copied.
 * `session_folder`: where `sonde ctl` finds the recording; NULL: nowhere. Returns 0 or -ENOMEM. */
int manifest_new(struct manifest **ret_manifest, const char *capture_path,
	const struct output_how *how, const struct capture_session *session,
	const char *session_folder);
/* Both have this capture's name from now on. Returns 0 or -ENOMEM. */
int manifest_rename(struct manifest *manifest, const char *capture_path);
struct manifest *manifest_free(struct manifest *manifest);

/*
 * A process is recorded, or runs another program now: its rank is read from its environment, as
 * torchrun, Open MPI, MPICH and Slurm say it. `joined_late`: a window had been opened before.
 * Returns 0 or -ENOMEM.
 */
int manifest_process(struct manifest *manifest, uint32_t pid, bool joined_late);
/* The process made a step of this name. Returns 0 or -ENOMEM. */
int manifest_step(struct manifest *manifest, uint32_t pid, const char *name);
/* A window was opened or closed: of one number the last counts. Returns 0 or -ENOMEM. */
int manifest_window(struct manifest *manifest, const struct capture_window *window);
/* The capture was split: each window is in the file that capture_split_path() names. */
void manifest_split(struct manifest *manifest);

/*
 * Writes the document. `is_last`: the recording has ended; before, with very many windows, not
 * every call writes. Returns 0, or a negative errno with a sentence, which a caller notes: the
 * recording does not need the manifest.
 */
int manifest_write(struct manifest *manifest, bool is_last, struct errmsg *err);
