/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader sees of mangled names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/demangle.h"

static const struct {
	const char *mangled, *text;
} names[] = {
	{"", ""},
	{"main", "main"},
	{"memcpy@plt", "memcpy@plt"},
	{"memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"},
	{"_Z3fooi", "foo(int)"},
	{"_Z3foov@plt", "foo()@plt"},
	{"_ZN2ck4gemmIfLi128EEEvi.kd", "ck::gemm<float, 128>(int)"},
	{"gemm.kd", "gemm.kd"},
	{"_Z3foov@@VERSION_1.0", "foo()@@VERSION_1.0"},
	{"_ZNK2at6Tensor4sizeEl", "at::Tensor::size(long) const"},
	{"_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE",
		"at::native::(anonymous namespace)::add_kernel(at::TensorIteratorBase&, "
		"c10::Scalar const&)"},
	/* no return types */
	{"_Z3addIfET_S0_S0_", "add<float>(float, float)"},
	{"_Z3fooNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "foo(std::string)"},
	{"_Z3fooSt17basic_string_viewIcSt11char_traitsIcEE", "foo(std::string_view)"},
	{"_ZNSt7__cxx114listIiSaIiEE5clearEv", "std::list<int, std::allocator<int> >::clear()"},
	/* parts and clones */
	{"_Z3foov.cold", "foo() [clone .cold]"},
	{"_Z3foov.part.0", "foo() [clone .part.0]"},
	{"_Z3foov.isra.0.constprop.1", "foo() [clone .isra.0] [clone .constprop.1]"},
	{"_Z3foov.llvm.1234567890", "foo()"},
	{"foo.cold", "foo.cold"},
	{"_Z3foov._omp_fn.0", "foo() [clone ._omp_fn.0]"},
	/* libiberty cannot resolve these parameters */
	{"_ZN2at8internal15invoke_parallelIZNS_12parallel_forIZ11compute_cpuIiEvPKT_PKlPS4_"
	 "llEUlllE_EEvlllRS5_EUlllE_EEvlllSB_._omp_fn.0",
		"at::internal::invoke_parallel<at::parallel_for<compute_cpu<int>(int const*, long "
		"const*, int*, long, long)::{lambda(long, long)#1}>(long, long, long, "
		"compute_cpu<int>(int const*, long const*, int*, long, long)::{lambda(long, "
		"long)#1} const&)::{lambda(long, long)#1}> [clone ._omp_fn.0]"},
	/* Rust, old and new */
	{"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"},
	{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	/* CUDA and HIP launch stubs */
	{"_Z22__device_stub__Z3fooPfPf", "foo(float*)"},
	{"_ZL34__device_stub__ZN2ns4gemmIfEEvPKT_PKf", "ns::gemm<float>(float const*)"},
	{"_Z18__device_stub__fooIfEvPT_", "foo<float>(float*)"},
	{"_ZN2ns18__device_stub__fooEPf", "ns::foo(float*)"},
	{"_Z20__device_stub__Zebrav", "Zebra()"},
	/* not what they seem */
	{"_Z", "_Z"},
	{"_Zebra", "_Zebra"},
	{"_Z3fo", "_Z3fo"},
	{"_R", "_R"},
	{"_Z3foo;evil", "_Z3foo;evil"},
	{"_Z3fooI\x01\xff", "_Z3fooI\x01\xff"},
	{"i", "i"},
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		demangle_symbol(names[i].mangled, &text);
		assert_string_equal(strbuf_cstr(&text), names[i].text);
	}
}

static void test_appends(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "in ");
	demangle_symbol("_Z3foov", &text);
	demangle_symbol("bar", &text);
	assert_string_equal(strbuf_cstr(&text), "in foo()bar");
}

/* "_Z1f" and then `unit` repeated up to `length`. */
static char *repeated(const char *unit, size_t length, const char *tail)
{
	struct strbuf name = {0};

	strbuf_add(&name, "_Z1f");
	while (name.length < length)
		strbuf_add(&name, unit);
	strbuf_add(&name, tail);
	assert_int_equal(strbuf_status(&name), 0);
	return name.data;
}

/* Long for a name, but what compilers write: longer than libiberty takes without being asked. */
static void test_long_real_name(void **state)
{
	_cleanup_strbuf_ struct strbuf mangled = {0}, text = {0};

	strbuf_add(&mangled, "_ZN");
	for (int i = 0; i < 300; i++)
		strbuf_addf(&mangled, "4n%03d", i);
	strbuf_add(&mangled, "1fEv");
	assert_true(mangled.length > 1400);
	demangle_symbol(mangled.data, &text);
	assert_memory_equal(strbuf_cstr(&text), "n000::n001::", 12);
	assert_non_null(strstr(strbuf_cstr(&text), "::n299::f()"));
}

/* Deep, wide and self-multiplying names: the outcome is free, coming back with bounded text is not.
 */
static void test_hostile_names_end(void **state)
{
	static const char *const units[] = {
		"P", "i", "N", "I", "1aI", "Z1fv", "S_", "DpT_", "_", "L", "FvPF", "St", "4aaaaI"};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		for (size_t length = 500; length < 70000; length *= 5) {
			_cleanup_free_ char *name = repeated(units[i], length, "i");
			_cleanup_strbuf_ struct strbuf text = {0};

			demangle_symbol(name, &text);
			assert_int_equal(strbuf_status(&text), 0);
			assert_in_range(text.length, 1, 1 << 20);
		}
	}
}

/* Each parameter is a pair of the one before: the text would double 34 times. */
static void test_exponential_name_ends(void **state)
{
	_cleanup_strbuf_ struct strbuf name = {0}, text = {0};

	strbuf_add(&name, "_Z1f1aIiiE");
	for (int i = 0; i < 34; i++)
		strbuf_addf(&name, "S_IS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	demangle_symbol(name.data, &text);
	assert_string_equal(strbuf_cstr(&text), name.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_long_real_name),
		cmocka_unit_test(test_hostile_names_end),
		cmocka_unit_test(test_exponential_name_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
