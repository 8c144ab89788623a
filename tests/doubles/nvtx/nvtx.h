/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test double of NVTX's headers: the part that the tests use, written anew from their documented
 * interface. Like them it gives each module (program or library) that includes it its own tables,
 * loads the library that $NVTX_INJECTION64_PATH names at the first call, and hands the tables to
 * it. With REAL_NVTX the same names come from NVIDIA's headers.
 */
#pragma once

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#define HAS_NVTX_PAYLOAD 1
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#else
#define HAS_NVTX_PAYLOAD 1

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define NVTX_VERSION                     3
#define NVTX_NO_PUSH_POP_TRACKING        (-2)
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE    ((uint16_t)sizeof(nvtxEventAttributes_t))
#define NVTX_MESSAGE_TYPE_ASCII          1
#define NVTX_MESSAGE_TYPE_UNICODE        2
#define NVTX_MESSAGE_TYPE_REGISTERED     3
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 1
#define NVTX_PAYLOAD_TYPE_INT64          2
#define NVTX_PAYLOAD_TYPE_DOUBLE         3
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 4
#define NVTX_PAYLOAD_TYPE_INT32          5
#define NVTX_PAYLOAD_TYPE_FLOAT          6
#define NVTX_PAYLOAD_TYPE_EXT            ((int32_t)0xDFBD0009)

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType;
	int32_t reserved0;
	union {
		uint64_t ullValue;
		int64_t llValue;
		double dValue;
		uint32_t uiValue;
		int32_t iValue;
		float fValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

/* ---- the tables and how they are handed out ---- */

typedef void nvtx_double_function(void);

static nvtx_double_function *nvtx_double_core[16], *nvtx_double_core2[16];
static nvtx_double_function **nvtx_double_core_places[17], **nvtx_double_core2_places[17];
static pthread_once_t nvtx_double_once = PTHREAD_ONCE_INIT;

static int nvtx_double_get_table(int module, nvtx_double_function ****table, unsigned *count)
{
	if (module != 1 && module != 5)
		return 0;
	*table = module == 1 ? nvtx_double_core_places : nvtx_double_core2_places;
	*count = 16;
	return 1;
}

static const void *nvtx_double_export(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*get_table)(int, nvtx_double_function ****, unsigned *);
	} callbacks = {sizeof(callbacks), nvtx_double_get_table};

	return id == 1 ? &callbacks : NULL;
}

static void *nvtx_double_library(const char *entry)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;

	return library ? dlsym(library, entry) : NULL;
}

static void nvtx_double_init(void)
{
	int (*entry)(const void *(*)(uint32_t)) =
		(int (*)(const void *(*)(uint32_t)))nvtx_double_library("InitializeInjectionNvtx2");

	for (int i = 1; i < 16; i++) {
		nvtx_double_core_places[i] = &nvtx_double_core[i];
		nvtx_double_core2_places[i] = &nvtx_double_core2[i];
	}
	if (entry && !entry(nvtx_double_export)) {
		memset(nvtx_double_core, 0, sizeof(nvtx_double_core));
		memset(nvtx_double_core2, 0, sizeof(nvtx_double_core2));
	}
}

/* Until the first call has ended, the tables are empty; then a call goes straight to its place. */
#define NVTX_DOUBLE(table, slot, otherwise, returned, parameters, ...)                             \
	static int nvtx_double_seen_##table##slot;                                                 \
	if (__builtin_expect(!nvtx_double_seen_##table##slot, 0)) {                                \
		pthread_once(&nvtx_double_once, nvtx_double_init);                                 \
		nvtx_double_seen_##table##slot = 1;                                                \
	}                                                                                          \
	return nvtx_double_##table[slot]                                                           \
		       ? ((returned(*) parameters)nvtx_double_##table[slot])(__VA_ARGS__)          \
		       : (otherwise)

#define NVTX_DOUBLE_CALL(returned, name, table, slot, otherwise, parameters, ...)                  \
	static inline __attribute__((unused)) returned name parameters                             \
	{                                                                                          \
		NVTX_DOUBLE(table, slot, otherwise, returned, parameters, __VA_ARGS__);            \
	}

NVTX_DOUBLE_CALL(void, nvtxMarkEx, core, 1, (void)0, (const nvtxEventAttributes_t *a), a)
NVTX_DOUBLE_CALL(void, nvtxMarkA, core, 2, (void)0, (const char *a), a)
NVTX_DOUBLE_CALL(void, nvtxMarkW, core, 3, (void)0, (const wchar_t *a), a)
NVTX_DOUBLE_CALL(nvtxRangeId_t, nvtxRangeStartEx, core, 4, 0, (const nvtxEventAttributes_t *a), a)
NVTX_DOUBLE_CALL(nvtxRangeId_t, nvtxRangeStartA, core, 5, 0, (const char *a), a)
NVTX_DOUBLE_CALL(void, nvtxRangeEnd, core, 7, (void)0, (nvtxRangeId_t a), a)
NVTX_DOUBLE_CALL(int, nvtxRangePushEx, core, 8, -2, (const nvtxEventAttributes_t *a), a)
NVTX_DOUBLE_CALL(int, nvtxRangePushA, core, 9, -2, (const char *a), a)
NVTX_DOUBLE_CALL(int, nvtxRangePushW, core, 10, -2, (const wchar_t *a), a)
NVTX_DOUBLE_CALL(int, nvtxRangePop, core, 11, -2, (void))
NVTX_DOUBLE_CALL(void, nvtxNameCategoryA, core, 12, (void)0, (uint32_t a, const char *b), a, b)
NVTX_DOUBLE_CALL(void, nvtxNameOsThreadA, core, 14, (void)0, (uint32_t a, const char *b), a, b)
NVTX_DOUBLE_CALL(void, nvtxDomainMarkEx, core2, 1, (void)0,
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), d, a)
NVTX_DOUBLE_CALL(nvtxRangeId_t, nvtxDomainRangeStartEx, core2, 2, 0,
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), d, a)
NVTX_DOUBLE_CALL(
	void, nvtxDomainRangeEnd, core2, 3, (void)0, (nvtxDomainHandle_t d, nvtxRangeId_t a), d, a)
NVTX_DOUBLE_CALL(int, nvtxDomainRangePushEx, core2, 4, -2,
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), d, a)
NVTX_DOUBLE_CALL(int, nvtxDomainRangePop, core2, 5, -2, (nvtxDomainHandle_t d), d)
NVTX_DOUBLE_CALL(void, nvtxDomainNameCategoryA, core2, 8, (void)0,
	(nvtxDomainHandle_t d, uint32_t a, const char *b), d, a, b)
NVTX_DOUBLE_CALL(nvtxStringHandle_t, nvtxDomainRegisterStringA, core2, 10, NULL,
	(nvtxDomainHandle_t d, const char *a), d, a)
NVTX_DOUBLE_CALL(nvtxDomainHandle_t, nvtxDomainCreateA, core2, 12, NULL, (const char *a), a)
NVTX_DOUBLE_CALL(void, nvtxDomainDestroy, core2, 14, (void)0, (nvtxDomainHandle_t d), d)

/* ---- the payload extension ---- */

#define NVTX_PAYLOAD_ENTRY_TYPE_INT                5
#define NVTX_PAYLOAD_ENTRY_TYPE_UINT64             18
#define NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE             20
#define NVTX_PAYLOAD_ENTRY_TYPE_SIZE               22
#define NVTX_PAYLOAD_SCHEMA_TYPE_STATIC            1
#define NVTX_PAYLOAD_SCHEMA_ID_STATIC_START        (1 << 24)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME        (1 << 1)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE        (1 << 2)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES     (1 << 4)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES (1 << 5)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE (1 << 6)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID   (1 << 8)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES       (1 << 2)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES   (1 << 3)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE          (1 << 4)
#define NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID     (1 << 5)

typedef struct {
	uint64_t schemaId;
	size_t size;
	const void *payload;
} nvtxPayloadData_t;

typedef struct {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t arrayOrUnionDetail, offset;
	const void *semantics, *reserved;
} nvtxPayloadSchemaEntry_t;

typedef struct {
	uint64_t fieldMask;
	const char *name;
	uint64_t type, flags;
	const nvtxPayloadSchemaEntry_t *entries;
	size_t numEntries, payloadStaticSize, packAlign;
	uint64_t schemaId;
	void *extension;
} nvtxPayloadSchemaAttr_t;

typedef struct {
	const char *name;
	uint64_t value;
	int8_t isFlag;
} nvtxPayloadEnum_t;

typedef struct {
	uint64_t fieldMask;
	const char *name;
	const nvtxPayloadEnum_t *entries;
	size_t numEntries, sizeOfEnum;
	uint64_t schemaId;
	void *extension;
} nvtxPayloadEnumAttr_t;

static intptr_t nvtx_double_payload[63];
static pthread_once_t nvtx_double_payload_once = PTHREAD_ONCE_INIT;

static void nvtx_double_payload_init(void)
{
	struct {
		size_t id, count;
		intptr_t *slots;
	} segment = {0, 63, nvtx_double_payload};
	struct {
		uint16_t version, bytes, module, compatibility;
		size_t segment_count;
		void *segments;
		intptr_t (*get_export)(uint32_t);
		const void *info;
	} module = {3, sizeof(module), 2, 0x0104, 1, &segment, NULL, NULL};
	int (*entry)(void *) =
		(int (*)(void *))nvtx_double_library("InitializeInjectionNvtxExtension");

	pthread_once(&nvtx_double_once, nvtx_double_init);
	if (entry && !entry(&module))
		memset(nvtx_double_payload, 0, sizeof(nvtx_double_payload));
}

#define NVTX_DOUBLE_PAYLOAD(returned, name, slot, otherwise, parameters, ...)                      \
	static inline __attribute__((unused)) returned name parameters                             \
	{                                                                                          \
		pthread_once(&nvtx_double_payload_once, nvtx_double_payload_init);                 \
		return nvtx_double_payload[slot]                                                   \
			       ? ((returned(*) parameters)nvtx_double_payload[slot])(__VA_ARGS__)  \
			       : (otherwise);                                                      \
	}

NVTX_DOUBLE_PAYLOAD(uint64_t, nvtxPayloadSchemaRegister, 0, 0,
	(nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t *a), d, a)
NVTX_DOUBLE_PAYLOAD(uint64_t, nvtxPayloadEnumRegister, 1, 0,
	(nvtxDomainHandle_t d, const nvtxPayloadEnumAttr_t *a), d, a)
NVTX_DOUBLE_PAYLOAD(int, nvtxRangePushPayload, 3, -2,
	(nvtxDomainHandle_t d, const nvtxPayloadData_t *a, size_t n), d, a, n)
NVTX_DOUBLE_PAYLOAD(int, nvtxRangePopPayload, 4, -2,
	(nvtxDomainHandle_t d, const nvtxPayloadData_t *a, size_t n), d, a, n)

#endif
