/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of other tools that are recognised and not read: each says what it is, and which command
 * reads it or makes one that sonde reads.
 */
#include <string.h>

#include "importers/importers.h"

static bool begins_with(const char *head, size_t length, const char *bytes, size_t count)
{
	return length >= count && memcmp(head, bytes, count) == 0;
}

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
