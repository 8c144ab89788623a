/* SPDX-License-Identifier: Apache-2.0 */
#include "model/classify.h"

#include <ctype.h>
#include <string.h>

static const char *const class_names[MODEL_CLASS_MAX] = {
	[MODEL_CLASS_USER] = "user",
	[MODEL_CLASS_LIBRARY] = "library",
	[MODEL_CLASS_FRAMEWORK] = "framework",
	[MODEL_CLASS_INTERPRETER] = "interpreter",
	[MODEL_CLASS_NATIVE] = "native",
	[MODEL_CLASS_KERNEL] = "kernel",
};

const char *model_class_to_string(enum model_class class)
{
	return (unsigned)class < MODEL_CLASS_MAX ? class_names[class] : NULL;
}

enum model_class model_class_from_string(const char *name)
{
	for (int i = 0; i < MODEL_CLASS_MAX; i++) {
		if (strcmp(name, class_names[i]) == 0)
			return (enum model_class)i;
	}
	return MODEL_CLASS_INVALID;
}

/* Packages that a program is written for, rather than ones that it uses in passing. */
static const char *const framework_packages[] = {"torch", "torchvision", "torchaudio", "functorch",
	"pyopencl", "numpy", "scipy", "pandas", "sklearn", "jax", "jaxlib", "flax", "optax",
	"tensorflow", "keras", "triton", "transformers", "tokenizers", "safetensors", "datasets",
	"accelerate", "diffusers", "vllm", "sglang", "deepspeed", "megatron", "lightning",
	"pytorch_lightning", "xformers", "flash_attn", "apex", "cupy", "numba", "pyarrow", "sonde"};

/* Libraries that belong to one, whatever folder they are in. */
static const char *const framework_libraries[] = {"libsonde-inject", "libtorch", "libc10",
	"libcudnn", "libcublas", "libcudart", "libcufft", "libcurand", "libcusolver", "libcusparse",
	"libnccl", "libnvrtc", "libmkl_", "libdnnl", "libopenblas", "libcblas", "libblas",
	"liblapack", "libgomp", "libiomp5"};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What follows "site-packages/" or Debian's "dist-packages/"; NULL: in neither. */
static const char *installed_package(const char *path)
{
	const char *found = strstr(path, "/site-packages/");

	if (!found)
		found = strstr(path, "/dist-packages/");
	return found ? found + strlen("/site-packages/") : NULL;
}

static bool is_framework_package(const char *package)
{
	size_t length = strcspn(package, "/.");

	for (size_t i = 0; i < ARRAY_SIZE(framework_packages); i++) {
		if (strlen(framework_packages[i]) == length &&
			strncmp(package, framework_packages[i], length) == 0)
			return true;
	}
	return false;
}

/* ".../lib/python3.11/…": the standard library, when it is no installed package. */
static bool is_standard_library(const char *path)
{
	const char *found = path;

	while ((found = strstr(found, "/lib/python"))) {
		found += strlen("/lib/python");
		if (isdigit((unsigned char)*found))
			return true;
	}
	return strstr(path, "/lib64/python3") != NULL || strstr(path, "/python3.zip") != NULL;
}

enum model_class classify_python(const char *file_name)
{
	const char *package = installed_package(file_name);

	if (starts_with(file_name, "<frozen importlib") || starts_with(file_name, "<frozen runpy"))
		return MODEL_CLASS_INTERPRETER;
	if (starts_with(file_name, "<frozen ") || starts_with(file_name, "<__array_function__"))
		return MODEL_CLASS_LIBRARY;
	if (starts_with(file_name, "<pyopencl")) /* code that it generates */
		return MODEL_CLASS_FRAMEWORK;
	if (strstr(file_name, "/python/sonde/")) /* ours, where it was built */
		return MODEL_CLASS_FRAMEWORK;
	if (package)
		return is_framework_package(package) ? MODEL_CLASS_FRAMEWORK : MODEL_CLASS_LIBRARY;
	return is_standard_library(file_name) ? MODEL_CLASS_LIBRARY : MODEL_CLASS_USER;
}

static bool is_interpreter(const char *name)
{
	if (starts_with(name, "libpython"))
		return true;
	if (!starts_with(name, "python"))
		return false;
	name += strlen("python");
	return strspn(name, "0123456789.") == strlen(name);
}

static bool is_system_path(const char *path)
{
	static const char *const folders[] = {
		"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/", "/nix/", "/snap/"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (starts_with(path, folders[i]))
			return !starts_with(path, "/usr/local/bin/");
	}
	return false;
}

enum model_class classify_native(const char *path, const char *program)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *package = installed_package(path);

	if (path[0] == '[')
		return strcmp(path, "[vdso]") == 0 || strcmp(path, "[anon]") == 0 ||
				       strcmp(path, "[unmapped]") == 0
			       ? MODEL_CLASS_NATIVE
			       : MODEL_CLASS_KERNEL;
	if (is_interpreter(name))
		return MODEL_CLASS_INTERPRETER;
	for (size_t i = 0; i < ARRAY_SIZE(framework_libraries); i++) {
		if (starts_with(name, framework_libraries[i]))
			return MODEL_CLASS_FRAMEWORK;
	}
	if (package)
		return is_framework_package(package) ? MODEL_CLASS_FRAMEWORK : MODEL_CLASS_LIBRARY;
	/* Its extension modules are part of the interpreter. */
	if (strstr(path, "/lib-dynload/"))
		return MODEL_CLASS_INTERPRETER;
	if (*program && strcmp(path, program) == 0)
		return MODEL_CLASS_USER;
	return path[0] == '/' && !is_system_path(path) ? MODEL_CLASS_USER : MODEL_CLASS_NATIVE;
}

int model_classify(struct model *model)
{
	array_foreach (&model->functions, function) {
		const char *path = function->module == MODEL_NONE
					   ? ""
					   : model->modules.items[function->module].path;

		switch (function->kind) {
		case CAPTURE_FRAME_KERNEL:
			function->class = MODEL_CLASS_KERNEL;
			break;
		case CAPTURE_FRAME_INTERPRETED:
			function->class = classify_python(path);
			break;
		case CAPTURE_FRAME_JIT:
			function->class = MODEL_CLASS_NATIVE;
			break;
		default:
			function->class = classify_native(path, "");
		}
	}
	return 0;
}
