/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where device work goes into the capture: what lies in no window is left out here. A part of
 * collect/device/device.h, which nothing else includes.
 */
#pragma once

#include "capture/writer/writer.h"
#include "collect/device/device.h"
#include "collect/windows/windows.h"

struct device_output {
	struct capture_writer *writer;
	struct windows *windows; /* NULL: all is recorded */
	struct device_account *account;
};

/* Each returns 0 or a negative errno. `untimed`: enum wire_device_untimed, in place of the
 * record's. */
int device_output_launch(const struct device_output *output, uint32_t pid,
	const struct wire_device_launch *launch, unsigned untimed);
/*
 * Work belongs to the window that it begins in, as its launch to the one that it lies in. Where
 * that is none the other is kept: a launch says that its work began after the window.
 */
int device_output_work(const struct device_output *output, const struct capture_device_work *work);
/* A counter of a process, at a moment. */
int device_output_counter(
	const struct device_output *output, const struct capture_counter *counter);
/* What graphs and devices are is kept whenever it was reported. */
int device_output_event(
	const struct device_output *output, const struct capture_device_event *event);
