/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/device_json.h"

#include <errno.h>

#include "analyses/device/advice.h"
#include "report/tables_json.h"
#include "report/trace/trace.h"

static void write_overlap(struct json_writer *json, const struct device_overlap_device *device)
{
	json_member_u64(json, "span_ns", device->span_ns);
	json_member_u64(json, "idle_ns", device->by_set[0]);
	json_member_u64(json, "compute_ns", device_overlap_total_ns(device, DEVICE_COMPUTE));
	json_member_u64(json, "copy_ns", device_overlap_total_ns(device, DEVICE_COPY));
	json_member_u64(
		json, "communication_ns", device_overlap_total_ns(device, DEVICE_COMMUNICATION));
	json_member_u64(json, "compute_only_ns", device->by_set[DEVICE_COMPUTE]);
	json_member_u64(json, "copy_only_ns", device->by_set[DEVICE_COPY]);
	json_member_u64(json, "communication_only_ns", device->by_set[DEVICE_COMMUNICATION]);
	json_member_u64(
		json, "copy_beside_compute_ns", device_overlap_hidden_ns(device, DEVICE_COPY));
	json_member_u64(json, "communication_beside_compute_ns",
		device_overlap_hidden_ns(device, DEVICE_COMMUNICATION));
	json_key(json, "communication_kernels");
	json_communication(json, device->communication_works);
}

/* Null times where there is nothing that they could be of. */
static void write_distribution(
	struct json_writer *json, const char *key, const struct device_distribution *times)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "count", times->count);
	json_member_known(json, "median_ns", times->count, times->median_ns);
	json_member_known(json, "p90_ns", times->count, times->p90_ns);
	json_member_known(json, "p99_ns", times->count, times->p99_ns);
	json_end_object(json);
}

static void write_launches(struct json_writer *json, const struct device_launches_device *device)
{
	bool is_known = device->span_ns && device->launches;

	json_member_u64(json, "launches", device->launches);
	json_member_u64(json, "work_without_call", device->not_counted);
	json_member_u64(json, "kernel_launches", device->kernel_launches);
	json_member_u64(json, "kernels_shorter_than_call", device->short_kernels);
	write_distribution(json, "call", &device->call);
	write_distribution(json, "latency", &device->latency);
	json_key(json, "queue_depth");
	json_begin_object(json);
	json_member_u64(json, "span_ns", device->span_ns);
	json_key(json, "mean");
	if (is_known)
		json_double(json, device_launches_mean_depth(device), 6);
	else
		json_null(json);
	json_member_known(json, "maximum", is_known, device->depth_max);
	json_member_known(json, "empty_ns", is_known, device->empty_ns);
	json_end_object(json);
}

int report_json_device_flow(
	struct json_writer *json, const struct model *model, const struct trace_report *timeline)
{
	_cleanup_device_launches_ struct device_launches launches = {0};
	_cleanup_device_overlap_ struct device_overlap overlap = {0};
	bool knows_idle = timeline && !model->is_narrowed;
	const struct trace_idle *idle =
		knows_idle ? trace_results_idle(timeline->results, 0) : NULL;
	int r = knows_idle && !idle ? -ENOMEM : device_overlap_init(&overlap, model);

	r = r ?: device_launches_init(&launches, model);
	if (r < 0)
		return r;
	json_key(json, "flow");
	json_begin_array(json);
	/* All have their devices in the order of their first work: the same. */
	array_foreach (&launches.devices, device) {
		size_t index = (size_t)(device - launches.devices.items);
		const struct device_overlap_device *beside = &overlap.devices.items[index];

		json_begin_object(json);
		json_member_text(json, "device", device->name);
		write_overlap(json, beside);
		write_launches(json, device);
		json_member_text(json, "advice",
			idle ? device_advice_name(device_advice(beside, device,
				       trace_idle_of_device(idle, timeline->views, device->name)))
			     : NULL);
		json_end_object(json);
	}
	json_end_array(json);
	return 0;
}
