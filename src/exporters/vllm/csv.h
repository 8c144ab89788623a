/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the vllm-csv export share: for vllm_csv*.c alone. */
#pragma once

#include "analyses/inference/inference.h"
#include "analyses/program/experts.h"
#include "base/json.h"
#include "exporters/exporters.h"

#define VLLM_DOMAIN "vllm"

/* A forward pass. */
struct vllm_pass {
	const struct model_range *range;
	/* From the first start to the last end of the device work that it launched; 0: none. */
	uint64_t device_start_ns, device_end_ns;
};

struct vllm_csv {
	const struct model *model;
	struct export_files *files;
	struct inference inference;
	/* Those of the engine, and which it is by process and number. */
	ARRAY_OF(const struct inference_request *) requests;
	struct intern request_keys;
	struct experts experts;
	ARRAY_OF(struct vllm_pass) passes; /* in the order of their starts */
};

struct vllm_values {
	ARRAY_OF(double) of;
};

/* Each adds its files, and returns 0 or -ENOMEM. */
int vllm_csv_add_passes(struct vllm_csv *csv);
int vllm_csv_add_operations(struct vllm_csv *csv);
int vllm_csv_add_batches(struct vllm_csv *csv);
int vllm_csv_add_encoders(struct vllm_csv *csv);
int vllm_csv_add_graphs(struct vllm_csv *csv);
int vllm_csv_add_cache(struct vllm_csv *csv);
int vllm_csv_add_requests(struct vllm_csv *csv);
int vllm_csv_add_experts(struct vllm_csv *csv);

/* On devices, else on the host where no device work is known. */
uint64_t vllm_pass_time_ns(const struct vllm_pass *pass);
/* The pass of a thread at a moment; NULL: none. */
struct vllm_pass *vllm_csv_pass_at(const struct vllm_csv *csv, uint32_t thread, uint64_t time_ns);
/* Is it one of vLLM's, of this name? */
bool vllm_csv_is(const struct model_range *range, const char *name);

/* Seconds since the recording began; as long as a duration. Nothing for 0. */
void vllm_csv_time(struct strbuf *out, const struct vllm_csv *csv, uint64_t time_ns);
void vllm_csv_seconds(struct strbuf *out, uint64_t duration_ns);
void vllm_csv_number(struct strbuf *out, double value);
/* ",pid" and the line's end. */
void vllm_csv_end(struct strbuf *out, const struct vllm_csv *csv, uint32_t process);
/* A field as a number, or nothing. */
void vllm_csv_field(struct strbuf *out, const struct vllm_csv *csv, const struct model_range *range,
	const char *name);

/* Moves the content, and returns 0 or -ENOMEM. The name lives on. */
int vllm_csv_add_file(struct vllm_csv *csv, const char *name, struct strbuf *take_content);

double vllm_values_mean(const struct vllm_values *values);
/* Members "count", "mean_ms", "std_ms", "min_ms", "max_ms", and of percentiles those at hand. Sorts
 * the values. */
void vllm_values_write(
	struct json_writer *json, struct vllm_values *values, const unsigned *percentiles);
