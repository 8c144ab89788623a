/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code a file is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/macros.h"
#include "model/classify.h"

struct expectation {
	const char *path;
	enum model_class class;
};

static void test_python_files(void **state)
{
	static const struct expectation files[] = {
		{"/home/me/train.py", MODEL_CLASS_USER},
		{"train.py", MODEL_CLASS_USER},
		{"<stdin>", MODEL_CLASS_USER},
		{"/tmp/ipykernel_12/34.py", MODEL_CLASS_USER},
		{"<ipython-input-3-5c2a>", MODEL_CLASS_USER},
		{"<python-input-0>", MODEL_CLASS_USER},
		{"<string>", MODEL_CLASS_LIBRARY}, /* dataclasses, namedtuple, tinygrad */
		{"<attrs generated init me.Point>", MODEL_CLASS_LIBRARY},
		{"<template>", MODEL_CLASS_LIBRARY},
		{"<__array_function__ internals>", MODEL_CLASS_LIBRARY},
		{"<eval_with_key>.3", MODEL_CLASS_FRAMEWORK},
		{"<pyopencl invoker for 'scale'>", MODEL_CLASS_FRAMEWORK},
		{"/tmp/torchinductor_me/ab/cabc.py", MODEL_CLASS_FRAMEWORK},
		{"/home/me/torch/mine.py", MODEL_CLASS_USER}, /* not installed */
		{"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py",
			MODEL_CLASS_FRAMEWORK},
		{"/home/me/venv/lib/python3.11/site-packages/torch/_tensor.py",
			MODEL_CLASS_FRAMEWORK},
		{"/opt/conda/lib/python3.10/site-packages/numpy/core/fromnumeric.py",
			MODEL_CLASS_FRAMEWORK},
		{"/venv/lib/python3.12/site-packages/vllm/engine/llm_engine.py",
			MODEL_CLASS_FRAMEWORK},
		{"/venv/lib/python3.12/site-packages/torchmetrics/metric.py", MODEL_CLASS_LIBRARY},
		{"/venv/lib/python3.12/site-packages/requests/api.py", MODEL_CLASS_LIBRARY},
		{"/venv/lib/python3.12/site-packages/six.py", MODEL_CLASS_LIBRARY},
		{"/usr/lib/python3.11/threading.py", MODEL_CLASS_LIBRARY},
		{"/home/me/.pyenv/versions/3.13.0/lib/python3.13/json/__init__.py",
			MODEL_CLASS_LIBRARY},
		{"<frozen importlib._bootstrap>", MODEL_CLASS_INTERPRETER},
		{"<frozen runpy>", MODEL_CLASS_INTERPRETER},
		{"<frozen os>", MODEL_CLASS_LIBRARY},
		{"/home/u/sonde/build/python/sonde/hooks/wrap.py", MODEL_CLASS_SONDE},
		{"/usr/lib/python3/dist-packages/sonde/hooks/wrap.py", MODEL_CLASS_SONDE},
		{"/home/u/sonde/train.py", MODEL_CLASS_USER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		print_message("%s\n", files[i].path);
		assert_int_equal(classify_python(files[i].path), files[i].class);
	}
}

/* As PyTorch's profiler names files: without the folder of sys.path. */
static void test_trimmed_python_files(void **state)
{
	static const struct expectation files[] = {
		{"train.py", MODEL_CLASS_USER},
		{"model/layers.py", MODEL_CLASS_USER},
		{"torch/nn/modules/module.py", MODEL_CLASS_FRAMEWORK},
		{"vllm/worker/model_runner.py", MODEL_CLASS_FRAMEWORK},
		{"torchlike.py", MODEL_CLASS_USER},
		{"threading.py", MODEL_CLASS_LIBRARY},
		{"multiprocessing/process.py", MODEL_CLASS_LIBRARY},
		{"site-packages/yaml/loader.py", MODEL_CLASS_LIBRARY},
		{"dist-packages/numpy/core/numeric.py", MODEL_CLASS_FRAMEWORK},
		{"sonde/hooks/wrap.py", MODEL_CLASS_SONDE},
		{"<string>", MODEL_CLASS_LIBRARY},
		{"/usr/lib/python3.11/threading.py", MODEL_CLASS_LIBRARY},
		{"/home/me/torch/mine.py", MODEL_CLASS_USER},
		{"", MODEL_CLASS_USER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		print_message("%s\n", files[i].path);
		assert_int_equal(classify_trimmed_python(files[i].path), files[i].class);
	}
}

static void test_native_files(void **state)
{
	static const struct expectation files[] = {
		{"[kernel]", MODEL_CLASS_KERNEL},
		{"[nvidia]", MODEL_CLASS_KERNEL},
		{"[vdso]", MODEL_CLASS_RUNTIME},
		{"[anon]", MODEL_CLASS_NATIVE},
		{"/usr/bin/python3.11", MODEL_CLASS_INTERPRETER},
		{"/usr/local/bin/python3.14t", MODEL_CLASS_INTERPRETER},
		{"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", MODEL_CLASS_INTERPRETER},
		{"/usr/lib/python3.11/lib-dynload/_json.so", MODEL_CLASS_INTERPRETER},
		{"/usr/bin/python3-config-helper", MODEL_CLASS_NATIVE},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", MODEL_CLASS_RUNTIME},
		{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", MODEL_CLASS_RUNTIME},
		{"/usr/lib/x86_64-linux-gnu/libOpenCL.so.1.0.0", MODEL_CLASS_RUNTIME},
		{"/home/me/pocl/lib/libpocl.so.2.9.0", MODEL_CLASS_RUNTIME},
		{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", MODEL_CLASS_NATIVE},
		{"/usr/lib/x86_64-linux-gnu/libclblast.so.1.5.2", MODEL_CLASS_FRAMEWORK},
		{"/home/u/sonde/build/sonde", MODEL_CLASS_SONDE},
		{"/usr/local/lib/sonde/libsonde-inject.so", MODEL_CLASS_SONDE},
		{"/home/u/sonde/build/python/sonde/_core.abi3.so", MODEL_CLASS_SONDE},
		{"/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0", MODEL_CLASS_FRAMEWORK},
		{"/usr/lib/x86_64-linux-gnu/libopenblas.so.0", MODEL_CLASS_FRAMEWORK},
		{"/venv/lib/python3.11/site-packages/numpy/core/_multiarray.so",
			MODEL_CLASS_FRAMEWORK},
		{"/venv/lib/python3.11/site-packages/lxml/etree.so", MODEL_CLASS_LIBRARY},
		{"/home/me/build/solver", MODEL_CLASS_USER},
		{"/usr/bin/sqlite3", MODEL_CLASS_NATIVE},
		{"", MODEL_CLASS_NATIVE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		print_message("%s\n", files[i].path);
		assert_int_equal(classify_native(files[i].path, false), files[i].class);
	}
	assert_int_equal(classify_native("/usr/bin/ffmpeg", true), MODEL_CLASS_USER);
	assert_int_equal(classify_native("/usr/bin/python3.11", true), MODEL_CLASS_INTERPRETER);
}

static void test_names(void **state)
{
	for (int i = 0; i < MODEL_CLASS_MAX; i++)
		assert_non_null(model_class_to_string((enum model_class)i));
	assert_null(model_class_to_string(MODEL_CLASS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python_files),
		cmocka_unit_test(test_trimmed_python_files),
		cmocka_unit_test(test_native_files),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
