/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's interface to tools: our own declarations of the part that is used, version 3 of the
 * headers. tests/unit/check-nvtx-abi.py compares them with NVIDIA's.
 *
 * Each module of a program that contains NVTX has its own copy of the tables, and calls our entry
 * with the way to get at them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* What a push returns when the tool does not follow them, and what an error is. */
#define NVTX_UNTRACKED (-2)
#define NVTX_ERROR     (-1)

#define NVTX_EXPORT_CALLBACKS 1

enum nvtx_module {
	NVTX_MODULE_CORE = 1,
	NVTX_MODULE_CORE2 = 5,
};

enum nvtx_core_slot {
	NVTX_CORE_MARK_EX = 1,
	NVTX_CORE_MARK_A = 2,
	NVTX_CORE_MARK_W = 3,
	NVTX_CORE_START_EX = 4,
	NVTX_CORE_START_A = 5,
	NVTX_CORE_START_W = 6,
	NVTX_CORE_END = 7,
	NVTX_CORE_PUSH_EX = 8,
	NVTX_CORE_PUSH_A = 9,
	NVTX_CORE_PUSH_W = 10,
	NVTX_CORE_POP = 11,
	NVTX_CORE_NAME_CATEGORY_A = 12,
	NVTX_CORE_NAME_CATEGORY_W = 13,
	NVTX_CORE_NAME_THREAD_A = 14,
	NVTX_CORE_NAME_THREAD_W = 15,
	NVTX_CORE_SLOTS = 16,
};

enum nvtx_core2_slot {
	NVTX_CORE2_MARK_EX = 1,
	NVTX_CORE2_START_EX = 2,
	NVTX_CORE2_END = 3,
	NVTX_CORE2_PUSH_EX = 4,
	NVTX_CORE2_POP = 5,
	NVTX_CORE2_NAME_CATEGORY_A = 8,
	NVTX_CORE2_NAME_CATEGORY_W = 9,
	NVTX_CORE2_REGISTER_STRING_A = 10,
	NVTX_CORE2_REGISTER_STRING_W = 11,
	NVTX_CORE2_DOMAIN_CREATE_A = 12,
	NVTX_CORE2_DOMAIN_CREATE_W = 13,
	NVTX_CORE2_SLOTS = 16,
};

typedef void nvtx_function(void);

struct nvtx_callbacks {
	size_t bytes;
	/* The table is of pointers to where the module keeps its functions. */
	int (*get_table)(int module, nvtx_function ****ret_table, unsigned *ret_count);
};

typedef const void *nvtx_get_export(uint32_t table);

/* ---- events ---- */

typedef void *nvtx_handle; /* of a domain, or a registered string */

enum nvtx_message_type {
	NVTX_MESSAGE_ASCII = 1,
	NVTX_MESSAGE_WIDE = 2,
	NVTX_MESSAGE_REGISTERED = 3,
};

enum nvtx_payload_type {
	NVTX_PAYLOAD_U64 = 1,
	NVTX_PAYLOAD_I64 = 2,
	NVTX_PAYLOAD_DOUBLE = 3,
	NVTX_PAYLOAD_U32 = 4,
	NVTX_PAYLOAD_I32 = 5,
	NVTX_PAYLOAD_FLOAT = 6,
	/* struct nvtx_payload_data at the value, `count` of them. */
	NVTX_PAYLOAD_EXTENDED = (int)0xDFBD0009,
};

struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t count;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		nvtx_handle registered;
	} message;
};

/* ---- the payload extension ---- */

#define NVTX_EXTENSION_PAYLOAD 2

struct nvtx_extension_segment {
	size_t segment;
	size_t slot_count;
	intptr_t *slots;
};

struct nvtx_extension {
	uint16_t version, bytes;
	uint16_t module, compatibility;
	size_t segment_count;
	struct nvtx_extension_segment *segments;
	intptr_t (*get_export)(uint32_t function);
	const void *info;
};

enum nvtx_payload_slot {
	NVTX_PAYLOAD_SCHEMA_REGISTER = 0,
	NVTX_PAYLOAD_ENUM_REGISTER = 1,
	NVTX_PAYLOAD_MARK = 2,
	NVTX_PAYLOAD_PUSH = 3,
	NVTX_PAYLOAD_POP = 4,
	NVTX_PAYLOAD_START = 5,
	NVTX_PAYLOAD_END = 6,
};

/* Types of a schema's entries that are read. */
enum nvtx_entry_type {
	NVTX_ENTRY_CHAR = 1,
	NVTX_ENTRY_UCHAR = 2,
	NVTX_ENTRY_SHORT = 3,
	NVTX_ENTRY_USHORT = 4,
	NVTX_ENTRY_INT = 5,
	NVTX_ENTRY_UINT = 6,
	NVTX_ENTRY_LONG = 7,
	NVTX_ENTRY_ULONG = 8,
	NVTX_ENTRY_LONGLONG = 9,
	NVTX_ENTRY_ULONGLONG = 10,
	NVTX_ENTRY_INT8 = 11,
	NVTX_ENTRY_UINT8 = 12,
	NVTX_ENTRY_INT16 = 13,
	NVTX_ENTRY_UINT16 = 14,
	NVTX_ENTRY_INT32 = 15,
	NVTX_ENTRY_UINT32 = 16,
	NVTX_ENTRY_INT64 = 17,
	NVTX_ENTRY_UINT64 = 18,
	NVTX_ENTRY_FLOAT = 19,
	NVTX_ENTRY_DOUBLE = 20,
	NVTX_ENTRY_SIZE = 22,
	NVTX_ENTRY_ADDRESS = 23,
	NVTX_ENTRY_BYTE = 32,
	NVTX_ENTRY_FLOAT32 = 43,
	NVTX_ENTRY_FLOAT64 = 44,
	NVTX_ENTRY_CATEGORY = 68,
	NVTX_ENTRY_CSTRING = 75,
	NVTX_ENTRY_CSTRING_UTF8 = 76,
	NVTX_ENTRY_REGISTERED_STRING = 80,
};

/* Of an entry: it is no plain value at its offset, and it is the event's name. */
#define NVTX_ENTRY_FLAGS_NOT_PLAIN                                                                 \
	(1 << 1 /* pointer */ | 1 << 2 /* offset from base */ | 1 << 3 /* from here */ |           \
		7 << 4 /* arrays */)
#define NVTX_ENTRY_FLAG_MESSAGE (1 << 10)

#define NVTX_SCHEMA_STATIC     1
#define NVTX_SCHEMA_FIRST_ID   (1 << 24)
#define NVTX_SCHEMA_DYNAMIC_ID (1ULL << 32)

/* Which fields of the attributes are set. */
#define NVTX_SCHEMA_HAS_NAME  (1 << 1)
#define NVTX_SCHEMA_HAS_SIZE  (1 << 6)
#define NVTX_SCHEMA_HAS_ALIGN (1 << 7)
#define NVTX_SCHEMA_HAS_ID    (1 << 8)
#define NVTX_ENUM_HAS_ID      (1 << 5)

struct nvtx_payload_data {
	uint64_t schema;
	size_t bytes; /* SIZE_MAX: unknown */
	const void *data;
};

struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail;
	uint64_t offset; /* 0 of all but the first: after the one before */
	const void *semantics, *reserved;
};

struct nvtx_schema_attributes {
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t entry_count, bytes, align;
	uint64_t id;
	void *extension;
};

struct nvtx_enum_entry {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct nvtx_enum_attributes {
	uint64_t fields;
	const char *name;
	const struct nvtx_enum_entry *entries;
	size_t entry_count, bytes;
	uint64_t id;
	void *extension;
};
