/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a continuous recording knows of itself and its machine, as text for Prometheus: base units,
 * counters end in _total. Counters count from the recording's begin.
 */
#pragma once

#include "base/strbuf.h"
#include "capture/series/series.h"
#include "push/sender.h"
#include "push/window_folder.h"

struct prometheus_receiver {
	const char *name;
	const struct sender_counts *counts;
};

struct prometheus_figures {
	const struct capture_series_figures *series;
	const struct capture_series_account *account;
	uint64_t open_bytes;
	const struct window_folder_account *folder;
	const struct prometheus_receiver *receivers;
	size_t receiver_count;
};

/* Appends all of it. */
void prometheus_write(const struct prometheus_figures *figures, struct strbuf *out);
