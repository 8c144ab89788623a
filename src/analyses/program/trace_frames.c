/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_frames.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/modules.h"
#include "analyses/trace_view.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "model/classify.h"

/* What a row's name says. */
struct described {
	struct strbuf name, module;
	bool has_file; /* the module is a source file */
	uint32_t line; /* 0: not known */
	enum capture_frame_kind kind;
	enum model_class class;
};

static void described_done(struct described *described)
{
	strbuf_done(&described->name);
	strbuf_done(&described->module);
}

/* ---- Python functions ---- */

/* Appends the text without " at 0x7f12…", which is another one in each process. */
static void add_without_addresses(struct strbuf *out, const char *text)
{
	static const char before[] = " at 0x";
	const char *address;

	while ((address = strstr(text, before))) {
		strbuf_add_bytes(out, text, (size_t)(address - text));
		text = address + strlen(before);
		text += strspn(text, "0123456789abcdefABCDEF");
	}
	strbuf_add(out, text);
}

/* "FILE(LINE): NAME": where the line's digits begin; NULL: it is none of these. */
static const char *find_line(const char *text, const char **ret_name)
{
	static const char after[] = "): ";

	for (const char *end = strstr(text, after); end; end = strstr(end + 1, after)) {
		const char *digits = end;

		while (digits > text && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == end || digits < text + 2 || digits[-1] != '(')
			continue;
		*ret_name = end + strlen(after);
		return digits;
	}
	return NULL;
}

/* "$FILE:LINE NAME", as XLA's profiler has it. False: it is none of these. */
static bool describe_xla_python(struct described *described, const char *text)
{
	const char *colon = *text == '$' ? strchr(text, ':') : NULL, *name;

	name = colon ? colon + 1 + strspn(colon + 1, "0123456789") : NULL;
	if (!name || name == colon + 1 || *name != ' ')
		return false;
	strbuf_add_bytes(&described->module, text + 1, (size_t)(colon - text - 1));
	strbuf_add(&described->name, name + 1);
	described->has_file = true;
	described->line = (uint32_t)MIN(strtoul(colon + 1, NULL, 10), (unsigned long)UINT32_MAX);
	described->class = classify_trimmed_python(strbuf_cstr(&described->module));
	return true;
}

static void describe_python(struct described *described, const char *text)
{
	const char *name, *line = find_line(text, &name);

	described->kind = CAPTURE_FRAME_INTERPRETED;
	if (!line && describe_xla_python(described, text))
		return;
	if (line) {
		strbuf_add_bytes(&described->module, text, (size_t)(line - 1 - text));
		strbuf_add(&described->name, name);
		described->has_file = true;
		described->line = (uint32_t)MIN(strtoul(line, NULL, 10), (unsigned long)UINT32_MAX);
		described->class = classify_trimmed_python(strbuf_cstr(&described->module));
		return;
	}
	/* "nn.Module: Linear_0", "<built-in function linear>". */
	add_without_addresses(&described->name, text);
	strbuf_add(&described->module,
		module_of_python(text) ? TRACE_FRAME_MODULE : TRACE_FRAME_PYTHON);
	described->class = begins_with(text, "nn.Module: ") || strstr(text, "torch")
				   ? MODEL_CLASS_FRAMEWORK
				   : MODEL_CLASS_LIBRARY;
}

bool trace_frames_is_own_python(const char *name)
{
	_cleanup_(described_done) struct described described = {0};

	describe_python(&described, name);
	return described.has_file && described.class == MODEL_CLASS_USER;
}

void trace_frames_describe_python(const char *name, struct strbuf *out)
{
	_cleanup_(described_done) struct described described = {0};

	describe_python(&described, name);
	strbuf_add(out, strbuf_cstr(&described.name));
	if (described.has_file)
		strbuf_addf(out, " (%s:%u)", strbuf_cstr(&described.module), described.line);
	strbuf_inherit_status(out, &described.name);
	strbuf_inherit_status(out, &described.module);
}

/* ---- frames of the stacks of allocations ---- */

/* Digits behind the last colon. Returns the length of what is before it. */
static size_t take_line(struct described *described, const char *file, size_t length)
{
	size_t digits = length;

	while (digits && isdigit((unsigned char)file[digits - 1]))
		digits--;
	if (digits == length || digits < 2 || file[digits - 1] != ':')
		return length;
	described->line =
		(uint32_t)MIN(strtoul(file + digits, NULL, 10), (unsigned long)UINT32_MAX);
	return digits - 1;
}

static bool is_python_file(const char *file)
{
	return file[0] == '<' || text_ends_in(file, ".py");
}

/* C++ frames of PyTorch and of CUDA; others may be anybody's. */
static enum model_class class_of_native(const char *name)
{
	static const char *const words[] = {"at::", "c10::", "torch", "THPVariable", "PyTorch"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(name, words[i]))
			return MODEL_CLASS_FRAMEWORK;
	}
	return MODEL_CLASS_NATIVE;
}

/* "name (file:line)", "name (file)" or "name". */
static void describe_located(struct described *described, const char *text)
{
	size_t length = strlen(text), file_length = 0;
	const char *begin = length && text[length - 1] == ')' ? strrchr(text, '(') : NULL;

	described->kind = CAPTURE_FRAME_NATIVE;
	if (begin && begin > text + 1 && begin[-1] == ' ') {
		file_length = take_line(described, begin + 1, (size_t)(text + length - begin - 2));
		strbuf_add_bytes(&described->module, begin + 1, file_length);
		length = (size_t)(begin - 1 - text);
	}
	strbuf_add_bytes(&described->name, text, length);
	if (!file_length) {
		strbuf_add(&described->module, TRACE_FRAME_NATIVE);
		described->class = class_of_native(strbuf_cstr(&described->name));
		return;
	}
	described->has_file = true;
	if (is_python_file(strbuf_cstr(&described->module))) {
		described->kind = CAPTURE_FRAME_INTERPRETED;
		described->class = classify_trimmed_python(strbuf_cstr(&described->module));
	} else {
		described->class = class_of_native(strbuf_cstr(&described->name));
	}
}

/* ---- annotations ---- */

/* What PyTorch itself annotates; all else the program does. */
static bool is_of_framework(const char *name)
{
	static const char *const beginnings[] = {"ProfilerStep#", "Optimizer.", "enumerate(",
		"DataLoader", "DistributedDataParallel", "FullyShardedDataParallel",
		"FSDP::", "nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "autograd::", "TorchDynamo",
		"Torch-Compiled Region", "## Call CompiledFxGraph", "Pregraph bytecode"};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (begins_with(name, beginnings[i]))
			return true;
	}
	return false;
}

static void describe_annotation(struct described *described, const char *text)
{
	uint64_t number;

	described->class = is_of_framework(text) ? MODEL_CLASS_FRAMEWORK : MODEL_CLASS_USER;
	strbuf_add(&described->module, TRACE_FRAME_ANNOTATION);
	if (trace_step_number(text, &number))
		strbuf_add_bytes(&described->name, text, strcspn(text, "#"));
	else
		strbuf_add(&described->name, text);
}

/* ---- any row ---- */

static void describe(
	struct described *described, const struct trace *trace, const struct trace_event *event)
{
	const char *text = trace_text(trace, event->name);

	described->kind = CAPTURE_FRAME_NATIVE;
	described->class = MODEL_CLASS_RUNTIME;
	switch ((enum trace_category)event->category) {
	case TRACE_PYTHON_FUNCTION:
		describe_python(described, text);
		break;
	case TRACE_USER_ANNOTATION:
		describe_annotation(described, text);
		break;
	case TRACE_RUNTIME:
		strbuf_add(&described->module, TRACE_FRAME_RUNTIME);
		strbuf_add(&described->name, text);
		break;
	case TRACE_DRIVER:
		strbuf_add(&described->module, TRACE_FRAME_DRIVER);
		strbuf_add(&described->name, text);
		break;
	default:
		described->class = MODEL_CLASS_FRAMEWORK;
		strbuf_add(&described->module, TRACE_FRAME_OPERATOR);
		strbuf_add(&described->name, text);
	}
	if (!described->name.length)
		strbuf_add(&described->name, "[unnamed]");
	strbuf_inherit_status(&described->name, &described->module);
}

static int find_module(
	struct trace_frames *frames, const struct described *described, uint32_t *ret_module)
{
	const struct strbuf *path = &described->module;
	struct model_module module = {0};
	const char *slash;
	int r = intern_add(&frames->modules, path->data, path->length, ret_module);
	uint32_t id;

	if (r <= 0)
		return r;
	r = intern_add(&frames->model->strings, path->data, path->length, &id);
	if (r < 0)
		return r;
	module.path = intern_get(&frames->model->strings, id);
	slash = strrchr(module.path, '/');
	module.name = slash && slash[1] ? slash + 1 : module.path;
	return array_append(&frames->model->modules, module);
}

static int find_function(
	struct trace_frames *frames, const struct described *described, uint32_t *ret_function)
{
	struct model_function function = {
		.source_file = "", .kind = described->kind, .class = described->class};
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t id;
	int r = find_module(frames, described, &function.module);

	if (r < 0)
		return r;
	strbuf_add_bytes(&key, &function.module, sizeof(function.module));
	strbuf_add_bytes(&key, described->name.data, described->name.length);
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	r = intern_add(&frames->functions, key.data, key.length, ret_function);
	if (r <= 0)
		return r;
	r = intern_add(&frames->model->strings, described->name.data, described->name.length, &id);
	if (r < 0)
		return r;
	function.name = intern_get(&frames->model->strings, id);
	if (described->has_file)
		function.source_file = frames->model->modules.items[function.module].path;
	return array_append(&frames->model->functions, function);
}

static int add_described(
	struct trace_frames *frames, const struct described *described, uint32_t *ret_frame)
{
	struct {
		uint32_t function, line;
	} key = {.line = described->line};
	struct model_frame frame = {.line = described->line};
	int r = strbuf_status(&described->name);

	if (r == 0)
		r = find_function(frames, described, &key.function);
	if (r < 0)
		return r;
	r = intern_add(&frames->frames, &key, sizeof(key), ret_frame);
	if (r <= 0)
		return r;
	frame.function = key.function;
	frame.source_file = frames->model->functions.items[key.function].source_file;
	return array_append(&frames->model->frames, frame);
}

int trace_frames_find(struct trace_frames *frames, const struct trace *trace,
	const struct trace_event *event, uint32_t *ret_frame)
{
	uint64_t key = (uint64_t)event->category << 32 | event->name, known;
	_cleanup_(described_done) struct described described = {0};
	int r;

	if (map_u64_get(&frames->known, key, &known)) {
		*ret_frame = (uint32_t)known;
		return 0;
	}
	describe(&described, trace, event);
	r = add_described(frames, &described, ret_frame);
	return r < 0 ? r : map_u64_set(&frames->known, key, *ret_frame);
}

int trace_frames_find_text(
	struct trace_frames *frames, const char *text, size_t length, uint32_t *ret_frame)
{
	_cleanup_(described_done) struct described described = {0};
	_cleanup_strbuf_ struct strbuf copy = {0};
	int r;

	strbuf_add_bytes(&copy, text, length);
	r = strbuf_status(&copy);
	if (r < 0)
		return r;
	describe_located(&described, strbuf_cstr(&copy));
	if (!described.name.length)
		strbuf_add(&described.name, "[unnamed]");
	strbuf_inherit_status(&described.name, &described.module);
	return MIN(add_described(frames, &described, ret_frame), 0);
}

int trace_frames_backward(struct trace_frames *frames, uint32_t *ret_frame)
{
	_cleanup_(described_done) struct described described = {
		.kind = CAPTURE_FRAME_NATIVE, .class = MODEL_CLASS_FRAMEWORK};
	int r;

	strbuf_add(&described.name, "[backward]");
	strbuf_add(&described.module, TRACE_FRAME_MODULE);
	strbuf_inherit_status(&described.name, &described.module);
	r = add_described(frames, &described, ret_frame);
	return MIN(r, 0);
}

bool trace_frames_is_module(const struct trace_frames *frames, uint32_t frame)
{
	const struct model *model = frames->model;
	const struct model_function *function =
		&model->functions.items[model->frames.items[frame].function];

	return strcmp(model->modules.items[function->module].path, TRACE_FRAME_MODULE) == 0;
}

void trace_frames_next_trace(struct trace_frames *frames)
{
	map_u64_clear(&frames->known);
}

void trace_frames_done(struct trace_frames *frames)
{
	intern_done(&frames->modules);
	intern_done(&frames->functions);
	intern_done(&frames->frames);
	map_u64_done(&frames->known);
}
