/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/communication.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#include "model/format.h"

static struct {
	regex_t expression;
	bool is_set;
} user_names;

const char *communication_evidence_name(enum communication_evidence evidence)
{
	static const char *const names[COMMUNICATION_EVIDENCE_MAX] = {
		[COMMUNICATION_BY_GROUP] = "group",
		[COMMUNICATION_BY_OPERATOR] = "operator",
		[COMMUNICATION_BY_USER] = "option",
		[COMMUNICATION_BY_NAME] = "name",
		[COMMUNICATION_BY_STREAM] = "stream",
	};

	return evidence < COMMUNICATION_EVIDENCE_MAX ? names[evidence] : NULL;
}

int communication_add_names(const char *expression, struct errmsg *err)
{
	char why[128];
	int r;

	if (user_names.is_set)
		regfree(&user_names.expression);
	user_names.is_set = false;
	r = regcomp(&user_names.expression, expression, REG_EXTENDED | REG_NOSUB);
	if (r) {
		regerror(r, &user_names.expression, why, sizeof(why));
		return errmsg_set(err, -EINVAL,
			"--comm-kernels '%s' is not an extended regular expression: %s", expression,
			why);
	}
	user_names.is_set = true;
	return 0;
}

/* ---- names ---- */

static bool begins_with_any(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++) {
		if (strncmp(text, *beginnings, strlen(*beginnings)) == 0)
			return true;
	}
	return false;
}

static bool contains_any(const char *text, size_t length, const char *const *words)
{
	char name[512];

	length = MIN(length, sizeof(name) - 1);
	memcpy(name, text, length);
	name[length] = '\0';
	for (; *words; words++) {
		if (strcasestr(name, *words))
			return true;
	}
	return false;
}

/*
 * How much of a demangled name is the function's: its template arguments and parameters name other
 * functions, such as the operation that a reduction is done with.
 */
static size_t function_length(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *at = name;

	if (strncmp(name, "_Z", 2) == 0)
		return strlen(name);
	while (*at && *at != '<' && *at != '(') {
		at++;
		if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
			at += sizeof(anonymous) - 1;
	}
	return (size_t)(at - name);
}

/* What collectives are called, whoever wrote them. */
static const char *const collectives[] = {"allreduce", "all_reduce", "reducescatter",
	"reduce_scatter", "allgather", "all_gather", "alltoall", "all_to_all", NULL};

enum communication_evidence communication_of_name(const char *kernel)
{
	static const char *const beginnings[] = {
		"nccl", "rccl", "hccl", "oneccl", "ccl_", "nvshmem", NULL};
	/* Within a mangled name, or behind a return type. */
	static const char *const words[] = {"ncclKernel", "ncclDevKernel",
		"ncclSymk",                           /* NCCL, RCCL */
		"nvshmem",                            /* NVSHMEM, and PyTorch's use of it */
		"deep_ep",                            /* DeepEP */
		"cross_device_reduce", "quickreduce", /* vLLM, SGLang, AITER */
		"moeA2A", "lamport", "userbuffers_",  /* TensorRT-LLM, FlashInfer, TE */
		"multimem_", "symm_mem", "symmetric_memory", "mscclpp", NULL};
	/*
	 * Kernels that Inductor fuses are named after all operators of their graph; reductions of a
	 * block or warp stay within one GPU.
	 */
	static const char *const others[] = {"triton_", "blockallreduce", "warpallreduce",
		"block_all_reduce", "warp_all_reduce", NULL};
	size_t length = function_length(kernel);

	if (user_names.is_set && regexec(&user_names.expression, kernel, 0, NULL, 0) == 0)
		return COMMUNICATION_BY_USER;
	if (begins_with_any(kernel, beginnings) || contains_any(kernel, length, words))
		return COMMUNICATION_BY_NAME;
	if (contains_any(kernel, length, collectives) && !contains_any(kernel, length, others))
		return COMMUNICATION_BY_NAME;
	return COMMUNICATION_NOT;
}

bool communication_is_operator(const char *name)
{
	static const char *const beginnings[] = {"nccl:", "rccl:", "gloo:", "mpi:", "ucc:", "xccl:",
		"hccl:", "c10d::", "_c10d_functional::", "c10d_functional::", "record_param_comms",
		"_C_custom_ar::", "symm_mem::", NULL};
	/* They multiply, and communicate beside it: their kernels are distinguished by name. */
	static const char *const others[] = {"matmul", "gemm", "_mm", "triton_", "Autograd", NULL};
	size_t length = strlen(name);

	if (contains_any(name, length, others))
		return false;
	if (begins_with_any(name, beginnings))
		return true;
	/* "vllm::all_reduce": an operator of a library; a block that a user named is none. */
	return strstr(name, "::") && contains_any(name, length, collectives);
}

/* ---- stacks ---- */

/* The way from a launch to the device: it tells nothing of who launched. */
static bool is_of_driver(const char *module)
{
	static const char *const beginnings[] = {
		"libcuda", "libcudart", "libamdhip", "libhsa", "libOpenCL", "libsonde", "[", NULL};

	return begins_with_any(module, beginnings);
}

static bool is_of_collectives(const struct model *model, uint32_t function)
{
	static const char *const modules[] = {"libnccl", "librccl", "libnvshmem", "libmscclpp",
		"deep_ep", "libccl", "liboneccl", NULL};
	static const char *const names[] = {
		"nccl", "c10d::", "deep_ep::", "nvshmem", "mscclpp::", NULL};

	return begins_with_any(model_function_module(model, function), modules) ||
	       begins_with_any(model_function_name(model, function), names) ||
	       strstr(model->functions.items[function].source_file, "/deep_ep/");
}

bool communication_is_stack(const struct model *model, uint32_t stack)
{
	const struct model_stack *frames;

	if (stack == MODEL_NONE)
		return false;
	frames = &model->stacks.items[stack];
	for (uint32_t i = frames->count; i > 0; i--) {
		uint32_t frame = model->stack_frames.items[frames->first + i - 1];
		uint32_t function = model->frames.items[frame].function;

		if (is_of_collectives(model, function))
			return true;
		if (!is_of_driver(model_function_module(model, function)))
			return false;
	}
	return false;
}

/* ---- counts ---- */

void communication_add_counts(struct strbuf *out, const uint64_t counts[COMMUNICATION_EVIDENCE_MAX])
{
	size_t begin = out->length;

	for (int i = COMMUNICATION_NOT + 1; i < COMMUNICATION_EVIDENCE_MAX; i++) {
		if (!counts[i])
			continue;
		strbuf_add(out, out->length > begin ? ", " : "");
		format_count(out, counts[i]);
		strbuf_addf(
			out, " by %s", communication_evidence_name((enum communication_evidence)i));
	}
}
