/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose importer makes events of a capture of them: TRACE_FILE_LOG. */
#pragma once

#include "importers/importer.h"
#include "model/model.h"

/*
 * Has the file read, and what is in it written, with an account of it: what was imported is a whole
 * recording. Returns 0 or a negative errno with a sentence, -ENODATA when nothing was understood.
 */
int load_log(const char *path, const struct importer *importer, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err);
/* The same as a model, without a capture. */
struct window_choice;
int load_log_model(struct model **ret_model, const char *path, const struct importer *importer,
	const struct window_choice *choice, struct errmsg *err);
