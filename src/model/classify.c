/* SPDX-License-Identifier: Apache-2.0 */
#include "model/classify.h"

#include <ctype.h>
#include <string.h>

#include "model/programs.h"

static const char *const class_names[MODEL_CLASS_MAX] = {
	[MODEL_CLASS_USER] = "user",
	[MODEL_CLASS_LIBRARY] = "library",
	[MODEL_CLASS_FRAMEWORK] = "framework",
	[MODEL_CLASS_INTERPRETER] = "interpreter",
	[MODEL_CLASS_NATIVE] = "native",
	[MODEL_CLASS_RUNTIME] = "runtime",
	[MODEL_CLASS_SONDE] = "sonde",
	[MODEL_CLASS_KERNEL] = "kernel",
};

const char *model_class_to_string(enum model_class class)
{
	return (unsigned)class < MODEL_CLASS_MAX ? class_names[class] : NULL;
}

/* Packages that a program is written for, rather than ones that it uses in passing. */
static const char *const framework_packages[] = {"torch", "torchvision", "torchaudio", "functorch",
	"pyopencl", "numpy", "scipy", "pandas", "sklearn", "jax", "jaxlib", "flax", "optax",
	"tensorflow", "keras", "triton", "transformers", "tokenizers", "safetensors", "datasets",
	"accelerate", "diffusers", "vllm", "sglang", "deepspeed", "megatron", "lightning",
	"pytorch_lightning", "xformers", "flash_attn", "apex", "cupy", "numba", "pyarrow",
	"tinygrad"};

/* Libraries that belong to one, whatever folder they are in. */
static const char *const framework_libraries[] = {"libtorch", "libc10", "libcudnn", "libcublas",
	"libcudart", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl", "libnvrtc",
	"libcupti", "libmkl_", "libdnnl", "libopenblas", "libcblas", "libblas", "liblapack",
	"libclblast", "libgomp", "libiomp5", "libomp.", "libomp5", "libtbb", "libgloo", "libmpi.",
	"libopen-pal", "libopen-rte", "libucp.", "libucs.", "libuct.", "libtensorflow",
	"libonnxruntime", "librccl", "librocblas", "libhipblas", "libMIOpen"};

/* What every program runs on: the C library, and how devices are reached. */
static const char *const runtime_libraries[] = {"ld-linux", "ld-musl", "ld64.so", "libc.so",
	"libc.musl", "libc-2.", "libm.so", "libm-2.", "libpthread", "libdl.so", "librt.so",
	"libstdc++.so", "libgcc_s.so", "libOpenCL", "libpocl", "libcuda.so", "libnvidia-",
	"libamdocl", "libamdhip", "libamd_comgr", "libhsa-runtime", "libigdrcl", "libigc.",
	"libze_", "libMesaOpenCL", "libRusticlOpenCL", "libLLVM", "libclang", "libdrm",
	"libintelocl", "libhwloc"};

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

/* Code that is in no file. What a person typed is theirs, what a library generated is not. */
static enum model_class classify_generated(const char *name)
{
	static const struct {
		const char *begin;
		enum model_class class;
	} names[] = {
		{"<frozen importlib", MODEL_CLASS_INTERPRETER},
		{"<frozen runpy", MODEL_CLASS_INTERPRETER},
		{"<stdin>", MODEL_CLASS_USER},
		{"<console>", MODEL_CLASS_USER},
		{"<python-input", MODEL_CLASS_USER},
		{"<ipython-input", MODEL_CLASS_USER},
		{"<cell", MODEL_CLASS_USER},
		{"<doctest", MODEL_CLASS_USER},
		{"<pyopencl", MODEL_CLASS_FRAMEWORK},
		{"<eval_with_key>", MODEL_CLASS_FRAMEWORK}, /* torch.fx */
		{"<torch", MODEL_CLASS_FRAMEWORK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (starts_with(name, names[i].begin))
			return names[i].class;
	}
	return MODEL_CLASS_LIBRARY;
}

enum model_class classify_python(const char *file_name)
{
	const char *package = installed_package(file_name);

	if (file_name[0] == '<')
		return classify_generated(file_name);
	if (strstr(file_name, "/python/sonde/") || (package && starts_with(package, "sonde/")))
		return MODEL_CLASS_SONDE;
	if (strstr(file_name, "/torchinductor_")) /* what torch.compile() wrote */
		return MODEL_CLASS_FRAMEWORK;
	if (package)
		return is_framework_package(package) ? MODEL_CLASS_FRAMEWORK : MODEL_CLASS_LIBRARY;
	return is_standard_library(file_name) ? MODEL_CLASS_LIBRARY : MODEL_CLASS_USER;
}

/* Modules of the standard library that call a program's code, or are much called by it. */
static const char *const standard_modules[] = {"_bootlocale", "_collections_abc", "_weakrefset",
	"abc", "argparse", "ast", "asyncio", "base64", "bdb", "bisect", "bz2", "cProfile", "codecs",
	"collections", "concurrent", "configparser", "contextlib", "copy", "copyreg", "csv",
	"ctypes", "dataclasses", "datetime", "decimal", "email", "encodings", "enum", "fractions",
	"functools", "genericpath", "glob", "gzip", "hashlib", "heapq", "hmac", "html", "http",
	"importlib", "inspect", "io", "ipaddress", "json", "linecache", "logging", "lzma",
	"multiprocessing", "ntpath", "numbers", "operator", "os", "pathlib", "pdb", "pickle",
	"pkgutil", "platform", "posixpath", "pprint", "pstats", "queue", "random", "re", "reprlib",
	"runpy", "selectors", "shutil", "signal", "site", "socket", "socketserver", "sqlite3",
	"sre_compile", "sre_parse", "ssl", "statistics", "string", "struct", "subprocess",
	"sysconfig", "tarfile", "tempfile", "textwrap", "threading", "tokenize", "traceback",
	"tracemalloc", "types", "typing", "unittest", "urllib", "uuid", "warnings", "weakref",
	"xml", "zipfile", "zipimport"};

static bool is_standard_module(const char *path)
{
	size_t length = strcspn(path, "/.");

	for (size_t i = 0; i < ARRAY_SIZE(standard_modules); i++) {
		if (strlen(standard_modules[i]) == length &&
			strncmp(path, standard_modules[i], length) == 0)
			return true;
	}
	return false;
}

enum model_class classify_trimmed_python(const char *file_name)
{
	bool is_installed = starts_with(file_name, "site-packages/") ||
			    starts_with(file_name, "dist-packages/");
	const char *package = is_installed ? strchr(file_name, '/') + 1 : file_name;

	if (file_name[0] == '/' || file_name[0] == '<')
		return classify_python(file_name);
	if (starts_with(package, "sonde/"))
		return MODEL_CLASS_SONDE;
	if (is_framework_package(package))
		return MODEL_CLASS_FRAMEWORK;
	return is_installed || is_standard_module(package) ? MODEL_CLASS_LIBRARY : MODEL_CLASS_USER;
}

static bool is_interpreter(const char *name)
{
	if (starts_with(name, "libpython"))
		return true;
	if (!starts_with(name, "python"))
		return false;
	name += strlen("python");
	/* with the letters of a build: t is without the interpreter lock, d for debugging */
	return strspn(name, "0123456789.dmtu") == strlen(name);
}

bool classify_is_system_path(const char *path)
{
	static const char *const folders[] = {
		"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/", "/nix/", "/snap/"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (starts_with(path, folders[i]))
			return !starts_with(path, "/usr/local/bin/");
	}
	return false;
}

/* sonde, the library in its targets, and the extension of its Python package. */
static bool is_sonde(const char *path, const char *name)
{
	return strcmp(name, "sonde") == 0 || starts_with(name, "libsonde-inject") ||
	       (starts_with(name, "_core") && strstr(path, "/sonde/_core"));
}

static bool begins_with_any(const char *name, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (starts_with(name, beginnings[i]))
			return true;
	}
	return false;
}

enum model_class classify_native(const char *path, bool is_program)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *package = installed_package(path);

	if (strcmp(path, "[vdso]") == 0)
		return MODEL_CLASS_RUNTIME;
	if (path[0] == '[')
		return strcmp(path, "[anon]") == 0 || strcmp(path, "[unmapped]") == 0 ||
				       strcmp(path, "[left out]") == 0
			       ? MODEL_CLASS_NATIVE
			       : MODEL_CLASS_KERNEL;
	if (is_sonde(path, name))
		return MODEL_CLASS_SONDE;
	if (is_interpreter(name))
		return MODEL_CLASS_INTERPRETER;
	if (begins_with_any(name, framework_libraries, ARRAY_SIZE(framework_libraries)))
		return MODEL_CLASS_FRAMEWORK;
	if (begins_with_any(name, runtime_libraries, ARRAY_SIZE(runtime_libraries)))
		return MODEL_CLASS_RUNTIME;
	if (package)
		return is_framework_package(package) ? MODEL_CLASS_FRAMEWORK : MODEL_CLASS_LIBRARY;
	/* Its extension modules are part of the interpreter. */
	if (strstr(path, "/lib-dynload/"))
		return MODEL_CLASS_INTERPRETER;
	if (is_program)
		return MODEL_CLASS_USER;
	return path[0] == '/' && !classify_is_system_path(path) ? MODEL_CLASS_USER
								: MODEL_CLASS_NATIVE;
}

static bool classify_is_installed_source(const char *path)
{
	static const char *const beginnings[] = {"/usr/include/", "/usr/local/include/",
		"/usr/lib/gcc", "/usr/local/cuda", "/opt/rocm", "/rustc/", "/usr/src/",
		"/usr/lib/go", "/usr/local/go/"};
	static const char *const parts[] = {
		"/include/c++/", "/.cargo/registry/", "/.rustup/toolchains/", "/go/pkg/mod/"};

	if (installed_package(path) || begins_with_any(path, beginnings, ARRAY_SIZE(beginnings)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strstr(path, parts[i]))
			return true;
	}
	return false;
}

/* "/venv/bin/torchrun" beside "/venv/lib/python3.11/…": what was installed with a package. */
static bool is_installed_script(const struct model *model, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0; /* "/venv/bin" */

	if (length < strlen("/bin") || strchr(slash, '.') ||
		strncmp(slash - strlen("/bin"), "/bin", strlen("/bin")) != 0)
		return false;
	length -= strlen("bin");
	array_foreach (&model->modules, module) {
		if (strncmp(module->path, path, length) == 0 &&
			starts_with(module->path + length, "lib/python"))
			return true;
	}
	return false;
}

/* multiprocessing's first function in a child, which may have been forked in any line. */
static bool begins_process(const struct model_function *function, const char *path)
{
	static const char file[] = "/multiprocessing/process.py", name[] = "_bootstrap";
	size_t path_length = strlen(path), name_length = strlen(function->name);

	return path_length >= strlen(file) && name_length >= strlen(name) &&
	       strcmp(path + path_length - strlen(file), file) == 0 &&
	       strcmp(function->name + name_length - strlen(name), name) == 0;
}

static enum model_class class_of(const struct model *model, const struct programs *programs,
	const struct model_function *function)
{
	uint32_t module = function->module;
	const char *path = module == MODEL_NONE ? "" : model->modules.items[module].path;
	enum model_class class;

	switch (function->kind) {
	case CAPTURE_FRAME_KERNEL:
		return MODEL_CLASS_KERNEL;
	case CAPTURE_FRAME_INTERPRETED:
		/* dataclasses wrap what they generate in a function of this name. */
		if (programs->has_command_text && strcmp(path, "<string>") == 0 &&
			!strstr(function->name, "__create_fn__"))
			return MODEL_CLASS_USER;
		class = classify_python(path);
		return class == MODEL_CLASS_USER && is_installed_script(model, path)
			       ? MODEL_CLASS_LIBRARY
			       : class;
	case CAPTURE_FRAME_JIT:
		return MODEL_CLASS_NATIVE;
	default:
		class = classify_native(path, module != MODEL_NONE && programs->modules[module]);
		/* Of a header, compiled into the program's own file. */
		return class == MODEL_CLASS_USER &&
				       classify_is_installed_source(function->source_file)
			       ? MODEL_CLASS_LIBRARY
			       : class;
	}
}

int model_classify(struct model *model)
{
	_cleanup_programs_ struct programs programs = {0};
	int r = programs_init(&programs, model);

	if (r < 0)
		return r;
	array_foreach (&model->functions, function) {
		function->class = class_of(model, &programs, function);
		function->begins_process =
			function->kind == CAPTURE_FRAME_INTERPRETED &&
			function->module != MODEL_NONE &&
			begins_process(function, model->modules.items[function->module].path);
	}
	return 0;
}
