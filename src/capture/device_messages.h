/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on devices that are numbers and at most one text: written and read by one table. */
#pragma once

#include "capture/capture.h"
#include "capture/protobuf.h"

/* Those fields of sonde.DeviceWork that only work has whose launch comes apart: wire/device.h. */
void put_device_work_fields(struct strbuf *message, const struct capture_device_work *work);
void take_device_work_field(const struct pb_field *field, struct capture_device_work *work);

/* The event as a field of a packet. */
void put_device_event(struct strbuf *packet, const struct capture_device_event *event);
/* The field of a packet that holds events of a kind. */
uint32_t device_event_packet_field(enum capture_device_event_kind kind);
/* CAPTURE_DEVICE_EVENT_MAX: it is of none. */
enum capture_device_event_kind device_event_kind_of(uint32_t packet_field);
/*
 * Takes the fields of an event's message; its kind is set. `ret_text` gets where its text lies.
 * Returns 0 or -EBADMSG.
 */
int take_device_event(
	struct pb_bytes message, struct capture_device_event *event, struct pb_bytes *ret_text);
