/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What producers emit: one header per record, fixed width, no implicit padding. Compiled into the
 * BPF programs and into user space. Readers check `length_bytes` before every field; a record type
 * grows by a larger length only.
 *
 * Types that are taken:
 *    1 to  4   wire/sample.h, wire/python.h
 *   32         padding of rings
 *   33 to 37   wire/device.h, and 48 to 61, 63
 *   64 to 75   wire/range.h
 *   80, 81     wire/launch.h
 *   96         wire/step.h
 */
#pragma once

#include <linux/types.h>

enum wire_record_type {
	WIRE_RECORD_SAMPLE = 1,      /* struct wire_sample */
	WIRE_RECORD_PYTHON_CODE = 2, /* struct wire_python_code */
	WIRE_RECORD_WAKE = 3,        /* struct wire_wake */
	WIRE_RECORD_WAIT_COUNT = 4,  /* struct wire_wait_count */
	/* In the rings of wire/ring.h. */
	WIRE_RECORD_PADDING = 32,         /* up to the end of the ring */
	WIRE_RECORD_DEVICE_LAUNCH = 33,   /* struct wire_device_launch */
	WIRE_RECORD_DEVICE_ACTIVITY = 34, /* struct wire_device_activity */
	WIRE_RECORD_DEVICE_NAME = 35,     /* struct wire_device_definition, like these: */
	WIRE_RECORD_DEVICE_DEVICE = 36,
	WIRE_RECORD_DEVICE_QUEUE = 37,
};

struct wire_record {
	__u16 type; /* enum wire_record_type */
	__u16 reserved;
	__u32 length_bytes; /* of the whole record, this header included */
};

_Static_assert(sizeof(struct wire_record) == 8, "wire_record is part of the wire format");
