/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of other tools that are recognised and not read: each says what it is, and which command
 * reads it or makes one that sonde reads.
 */
#include <ctype.h>
#include <string.h>

#include "importers/importers.h"

static bool begins_with(const char *head, size_t length, const char *bytes, size_t count)
{
	return length >= count && memcmp(head, bytes, count) == 0;
}

static bool contains(const char *head, size_t length, const char *text)
{
	return memmem(head, length, text, strlen(text)) != NULL;
}

/* ---- Chakra ---- */

/* A varint; false: it does not end, or is larger than 32 bits. */
static bool read_varint(const char *head, size_t length, size_t *at, uint32_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < length && shift < 35; shift += 7) {
		unsigned char byte = (unsigned char)head[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* The length of its GlobalMetadata, whose first field is the version, a text, or an attribute, a
 * message that begins with its name. */
static bool is_chakra(const char *head, size_t length)
{
	uint32_t metadata, field;
	size_t at = 0, end;

	if (!read_varint(head, length, &at, &metadata) || !metadata || at >= length)
		return false;
	end = at + metadata;
	if (head[at] == 0x0a) {
		at++;
		if (!read_varint(head, length, &at, &field) || at + field > end)
			return false;
		return field && field < 64 && at + field <= length &&
		       isdigit((unsigned char)head[at]) && memchr(head + at, '.', field);
	}
	if (head[at] != 0x12)
		return false;
	at++;
	return read_varint(head, length, &at, &field) && at + field <= end && at < length &&
	       head[at] == 0x0a && contains(head, length, "schema");
}

const struct importer chakra_et_importer = {
	.name = "chakra-et",
	.description = "execution traces of Chakra, for sonde chakra",
	.knows = is_chakra,
	.refusal = "is an execution trace of Chakra (.et), which has no threads and streams",
	.instead = "read it with `sonde chakra stat`, `sonde chakra dump` or `sonde chakra check`",
};

/* ---- archives ---- */

static bool is_archive(const char *head, size_t length)
{
	return (length >= 262 && memcmp(head + 257, "ustar", 5) == 0) ||
	       begins_with(head, length, "PK\3\4", 4);
}

const struct importer archive_importer = {
	.name = "archive",
	.description = "tar and zip archives",
	.knows = is_archive,
	.refusal = "is an archive",
	.instead = "unpack it (`tar -xf` or `unzip`), and name a trace in it, or the folder with "
		   "one trace for each rank",
};

/* ---- ROCm ---- */

static bool is_rocprofv3_csv(const char *head, size_t length)
{
	return begins_with(head, length, "\"Kind\",\"Agent_Id\"", 17) ||
	       begins_with(head, length, "\"Domain\",\"Function\"", 19);
}

const struct importer rocprofv3_csv_importer = {
	.name = "rocprofv3-csv",
	.description = "results of rocprofv3 as CSV",
	.knows = is_rocprofv3_csv,
	.refusal =
		"is a result of rocprofv3 as CSV, which has each kind of record in a file of its "
		"own",
	.instead = "have rocprofv3 write --output-format json, which sonde reads",
};

/* ---- Nsight ---- */

static const char *const nsight_names[] = {".nsys-rep", ".qdrep", ".ncu-rep", ".qdstrm", NULL};

const struct importer nsight_importer = {
	.name = "nsight",
	.description = "reports of Nsight Systems and Nsight Compute",
	.names = nsight_names,
	.refusal = "is a report of Nsight Systems or Nsight Compute, in a format of its own",
	.instead = "export the first with `nsys export --type sqlite`, which sonde reads; read the "
		   "second with `ncu --import`",
};
