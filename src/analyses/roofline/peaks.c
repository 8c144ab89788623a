/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/roofline/peaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define TERA 1e12

/* Rates in 10^12 a second, the bandwidth in 10^12 bytes a second. */
struct device {
	/* Words that its name has all of, in any case: "A100-SXM4-80GB". The first that fits. */
	const char *words[3];
	const char *name, *source;
	double fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8;
	double bandwidth;
};

#define A100_RATES .fp64 = 19.5, .fp32 = 19.5, .tf32 = 156, .fp16 = 312, .bf16 = 312, .int8 = 624
#define H100_SXM_RATES                                                                             \
	.fp64 = 66.9, .fp32 = 66.9, .tf32 = 494.7, .fp16 = 989.4, .bf16 = 989.4, .fp8 = 1978.9,    \
	.int8 = 1978.9
#define MI300X_RATES                                                                               \
	.fp64 = 163.4, .fp32 = 163.4, .tf32 = 653.7, .fp16 = 1307.4, .bf16 = 1307.4,               \
	.fp8 = 2614.9, .int8 = 2614.9

/* Tensor and matrix cores, where a type has them; FP16 adds up in FP32. */
static const struct device devices[] = {
	{.words = {"B200"},
		.name = "NVIDIA B200",
		.source = "NVIDIA, DGX B200 data sheet: an eighth of the system, sparse figures "
			  "halved",
		.fp64 = 37,
		.fp32 = 75,
		.tf32 = 1125,
		.fp16 = 2250,
		.bf16 = 2250,
		.fp8 = 4500,
		.fp4 = 9000,
		.int8 = 4500,
		.bandwidth = 8},
	{.words = {"GH200"},
		.name = "NVIDIA GH200",
		.source = "NVIDIA, GH200 Grace Hopper data sheet (96 GB of HBM3)",
		H100_SXM_RATES,
		.bandwidth = 4},
	{.words = {"H200"},
		.name = "NVIDIA H200 SXM",
		.source = "NVIDIA, H200 data sheet, sparse figures halved",
		H100_SXM_RATES,
		.bandwidth = 4.8},
	{.words = {"H100", "PCIe"},
		.name = "NVIDIA H100 PCIe",
		.source = "NVIDIA, H100 Tensor Core GPU Architecture, table 2",
		.fp64 = 51.2,
		.fp32 = 51.2,
		.tf32 = 378,
		.fp16 = 756,
		.bf16 = 756,
		.fp8 = 1513,
		.int8 = 1513,
		.bandwidth = 2},
	{.words = {"H100", "NVL"},
		.name = "NVIDIA H100 NVL",
		.source = "NVIDIA, H100 data sheet, sparse figures halved",
		.fp64 = 60,
		.fp32 = 60,
		.tf32 = 417.5,
		.fp16 = 835.5,
		.bf16 = 835.5,
		.fp8 = 1670.5,
		.int8 = 1670.5,
		.bandwidth = 3.9},
	{.words = {"H100"},
		.name = "NVIDIA H100 SXM5",
		.source = "NVIDIA, H100 Tensor Core GPU Architecture, table 2",
		H100_SXM_RATES,
		.bandwidth = 3.35},
	{.words = {"A100", "PCIe", "80GB"},
		.name = "NVIDIA A100 PCIe 80 GB",
		.source = "NVIDIA, A100 data sheet",
		A100_RATES,
		.bandwidth = 1.935},
	{.words = {"A100", "80GB"},
		.name = "NVIDIA A100 SXM 80 GB",
		.source = "NVIDIA, A100 data sheet",
		A100_RATES,
		.bandwidth = 2.039},
	{.words = {"A100", "40GB"},
		.name = "NVIDIA A100 40 GB",
		.source = "NVIDIA, A100 Tensor Core GPU Architecture, table 1",
		A100_RATES,
		.bandwidth = 1.555},
	{.words = {"L40S"},
		.name = "NVIDIA L40S",
		.source = "NVIDIA, L40S data sheet",
		.fp32 = 91.6,
		.tf32 = 183,
		.fp16 = 362.05,
		.bf16 = 362.05,
		.fp8 = 733,
		.int8 = 733,
		.bandwidth = 0.864},
	{.words = {"NVIDIA L4"},
		.name = "NVIDIA L4",
		.source = "NVIDIA, L4 data sheet, sparse figures halved",
		.fp32 = 30.3,
		.tf32 = 60,
		.fp16 = 121,
		.bf16 = 121,
		.fp8 = 242.5,
		.int8 = 242.5,
		.bandwidth = 0.3},
	{.words = {"RTX 4090"},
		.name = "NVIDIA GeForce RTX 4090",
		.source = "NVIDIA, Ada GPU Architecture, appendix A, with FP32 accumulation",
		.fp64 = 1.29,
		.fp32 = 82.6,
		.tf32 = 82.6,
		.fp16 = 165.2,
		.bf16 = 165.2,
		.fp8 = 330.3,
		.int8 = 660.6,
		.bandwidth = 1.008},
	{.words = {"V100", "PCIe"},
		.name = "NVIDIA V100 PCIe",
		.source = "NVIDIA, V100 data sheet",
		.fp64 = 7,
		.fp32 = 14,
		.fp16 = 112,
		.bandwidth = 0.9},
	{.words = {"V100", "SXM2"},
		.name = "NVIDIA V100 SXM2",
		.source = "NVIDIA, V100 data sheet",
		.fp64 = 7.8,
		.fp32 = 15.7,
		.fp16 = 125,
		.bandwidth = 0.9},
	{.words = {"Tesla T4"},
		.name = "NVIDIA T4",
		.source = "NVIDIA, T4 data sheet",
		.fp32 = 8.1,
		.fp16 = 65,
		.int8 = 130,
		.bandwidth = 0.32},
	{.words = {"MI355X"},
		.name = "AMD Instinct MI355X",
		.source = "AMD, Instinct MI355X data sheet",
		.fp64 = 78.6,
		.fp32 = 157.3,
		.fp16 = 2516.6,
		.bf16 = 2516.6,
		.fp8 = 5033.2,
		.fp4 = 10066.3,
		.int8 = 5033.2,
		.bandwidth = 8},
	{.words = {"MI325X"},
		.name = "AMD Instinct MI325X",
		.source = "AMD, Instinct MI325X data sheet",
		MI300X_RATES,
		.bandwidth = 6},
	{.words = {"MI300X"},
		.name = "AMD Instinct MI300X",
		.source = "AMD, Instinct MI300X data sheet",
		MI300X_RATES,
		.bandwidth = 5.3},
	{.words = {"MI250X"},
		.name = "AMD Instinct MI250X, one of its two dies",
		.source = "AMD, Instinct MI250X data sheet, halved: a die is a device",
		.fp64 = 47.85,
		.fp32 = 47.85,
		.fp16 = 191.5,
		.bf16 = 191.5,
		.int8 = 191.5,
		.bandwidth = 1.6384},
	{.words = {"MI250"},
		.name = "AMD Instinct MI250, one of its two dies",
		.source = "AMD, Instinct MI250 data sheet, halved: a die is a device",
		.fp64 = 45.25,
		.fp32 = 45.25,
		.fp16 = 181.05,
		.bf16 = 181.05,
		.int8 = 181.05,
		.bandwidth = 1.6384},
};

/* "L4" is no beginning of "L40S". */
static bool has_word(const char *name, const char *word)
{
	size_t length = strlen(word);
	const char *at = strcasestr(name, word);

	while (at && at[length] >= '0' && at[length] <= '9')
		at = strcasestr(at + 1, word);
	return at != NULL;
}

static bool fits(const struct device *device, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(device->words) && device->words[i]; i++) {
		if (!has_word(name, device->words[i]))
			return false;
	}
	return true;
}

bool peaks_of_device(struct peaks *ret_peaks, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		const struct device *device = &devices[i];

		if (!fits(device, name))
			continue;
		*ret_peaks = (struct peaks){
			.flops = {[OP_FP64] = device->fp64 * TERA,
				[OP_FP32] = device->fp32 * TERA,
				[OP_TF32] = device->tf32 * TERA,
				[OP_FP16] = device->fp16 * TERA,
				[OP_BF16] = device->bf16 * TERA,
				[OP_FP8] = device->fp8 * TERA,
				[OP_FP4] = device->fp4 * TERA,
				[OP_INT8] = device->int8 * TERA},
			.bytes_per_s = device->bandwidth * TERA,
			.device = device->name,
			.source = device->source,
		};
		return true;
	}
	return false;
}

/* ---- --peak ---- */

#define EXAMPLE "such as tflops=312,tbps=2.0, or bf16=312,fp32=19.5,tbps=2.0"

/* A type by its name; OP_DTYPE_UNKNOWN: none of these. */
static enum op_dtype dtype_of_name(const char *name, size_t length)
{
	for (int dtype = OP_DTYPE_UNKNOWN + 1; dtype < OP_DTYPE_MAX; dtype++) {
		const char *known = op_dtype_name((enum op_dtype)dtype);

		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return (enum op_dtype)dtype;
	}
	return OP_DTYPE_UNKNOWN;
}

static bool is_word(const char *name, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(name, word, length) == 0;
}

/* One "bf16=312"; moves past it. */
static int parse_figure(struct peaks *peaks, const char **text, struct errmsg *err)
{
	const char *name = *text, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strcspn(name, ",");
	enum op_dtype dtype = dtype_of_name(name, length);
	bool is_all = is_word(name, length, "tflops"), is_bytes = is_word(name, length, "tbps");
	char *end;
	double value;

	if (!equals || (!is_all && !is_bytes && dtype == OP_DTYPE_UNKNOWN))
		return errmsg_set(err, -EINVAL,
			"--peak '%.64s' names no figure: give tflops, tbps or a type, " EXAMPLE,
			name);
	value = strtod(equals + 1, &end);
	if (end == equals + 1 || (*end && *end != ',') || !(value > 0 && value < 1e9))
		return errmsg_set(err, -EINVAL,
			"--peak '%.64s' has no number above 0: give 10^12 a second, " EXAMPLE,
			name);
	for (int i = OP_DTYPE_UNKNOWN + 1; i < OP_DTYPE_MAX; i++) {
		if (is_all ? peaks->flops[i] <= 0 : i == (int)dtype)
			peaks->flops[i] = value * TERA;
	}
	if (is_bytes)
		peaks->bytes_per_s = value * TERA;
	*text = end;
	return 0;
}

int peaks_parse(struct peaks *ret_peaks, const char *text, struct errmsg *err)
{
	struct peaks peaks = {.source = "--peak"};
	int r = parse_figure(&peaks, &text, err);

	while (r == 0 && *text == ',') {
		text++;
		r = parse_figure(&peaks, &text, err);
	}
	if (r == 0)
		*ret_peaks = peaks;
	return r;
}

void peaks_override(struct peaks *peaks, const struct peaks *given)
{
	for (int i = 0; i < OP_DTYPE_MAX; i++) {
		if (given->flops[i] > 0)
			peaks->flops[i] = given->flops[i];
	}
	if (given->bytes_per_s > 0)
		peaks->bytes_per_s = given->bytes_per_s;
	peaks->source = peaks->device ? peaks->source : given->source;
}
