/* SPDX-License-Identifier: Apache-2.0 */
/* What the triggers and ends of windows are called. */
#include <stddef.h>

#include "capture/capture.h"

static const char *const trigger_names[CAPTURE_TRIGGER_MAX] = {
	[CAPTURE_TRIGGER_NONE] = "unknown",
	[CAPTURE_TRIGGER_MANUAL] = "manual",
	[CAPTURE_TRIGGER_FLAG] = "flag",
	[CAPTURE_TRIGGER_TIME] = "time",
	[CAPTURE_TRIGGER_SIGNAL] = "signal",
	[CAPTURE_TRIGGER_STEPS] = "steps",
	[CAPTURE_TRIGGER_CALLS] = "calls",
};

static const char *const reason_names[CAPTURE_REASON_MAX] = {
	[CAPTURE_REASON_NONE] = "open",
	[CAPTURE_REASON_TRIGGER] = "trigger",
	[CAPTURE_REASON_SCHEDULE] = "schedule",
	[CAPTURE_REASON_MAX_STEPS] = "max-steps",
	[CAPTURE_REASON_MAX_DURATION] = "max-duration",
	[CAPTURE_REASON_LEADER_ENDED] = "leader-ended",
	[CAPTURE_REASON_RECORDING_ENDED] = "recording-ended",
	[CAPTURE_REASON_COLLECTOR_GONE] = "collector-gone",
	[CAPTURE_REASON_IDLE] = "idle",
};

const char *capture_window_trigger_name(enum capture_window_trigger trigger)
{
	return (unsigned)trigger < CAPTURE_TRIGGER_MAX ? trigger_names[trigger] : NULL;
}

const char *capture_window_reason_name(enum capture_window_reason reason)
{
	return (unsigned)reason < CAPTURE_REASON_MAX ? reason_names[reason] : NULL;
}
