/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the devices of a view counted (PM sampling), as samples by time, and their sums up to any
 * moment. A sample holds from its time until the next one of its device; where that is further than
 * twice the median of these distances, and of the last one, as long as the median. A device with
 * one sample has none: how long it holds is not known.
 */
#pragma once

#include "analyses/trace_view.h"

struct gpu_sample {
	int64_t start_ns, end_ns;   /* end >= start; at most the next one's start */
	int64_t before_ns;          /* how long those of its device before it hold */
	double values[WIRE_PM_MAX]; /* NaN: not counted */
};

/* Those of one device, by start. */
struct gpu_samples_place {
	size_t first, count;
};

/* A process that sampled a device. */
struct gpu_sampler {
	int64_t pid;
	uint32_t device; /* index in view.devices */
};

struct gpu_samples {
	ARRAY_OF(struct gpu_sample) items;
	ARRAY_OF(struct gpu_samples_place) devices; /* by index in view.devices; none: no samples */
	ARRAY_OF(struct gpu_sampler) samplers;      /* each once, by pid and device */
	uint64_t count;                             /* of all devices, without the single ones */
	uint64_t unplaced; /* values of devices that are not known, or did no work */
};

/* Values are those of the recording that the view is of, else its trace's. Returns 0 or -ENOMEM. */
int gpu_samples_init(struct gpu_samples *samples, const struct trace_view *view);
void gpu_samples_done(struct gpu_samples *samples);
#define _cleanup_gpu_samples_ _cleanup_(gpu_samples_done)

/* Up to a moment, from the first sample of a device on. */
struct gpu_sums {
	double sums[WIRE_PM_MAX];        /* of values, by ns */
	int64_t weights_ns[WIRE_PM_MAX]; /* in which there was a value */
	int64_t covered_ns;              /* in which there was a sample */
	size_t first, past; /* samples: the first that has not ended, and behind the last begun */
};

/* Goes over the samples of a device as time goes on. */
struct gpu_cursor {
	const struct gpu_sample *items;
	size_t count, at;
	double sums[WIRE_PM_MAX]; /* of those before `at` */
	int64_t weights_ns[WIRE_PM_MAX];
	int64_t total_ns; /* that all hold */
};

void gpu_cursor_init(struct gpu_cursor *cursor, const struct gpu_samples *samples, uint32_t device);
/* Times must not go back. */
void gpu_cursor_move(struct gpu_cursor *cursor, int64_t time_ns);
/* Since the device's first sample, at the time that it was moved to: how long there were some. */
int64_t gpu_cursor_covered_ns(const struct gpu_cursor *cursor, int64_t time_ns);
struct gpu_sums gpu_cursor_sums(const struct gpu_cursor *cursor, int64_t time_ns);
/* How long the samples before this one hold; of the number of them, all. */
int64_t gpu_cursor_before_ns(const struct gpu_cursor *cursor, size_t sample);
