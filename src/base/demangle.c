/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names: Itanium C++ and Rust by libiberty, then the few rewrites that make a report
 * easier to read (std::string, CUDA launch stubs). Names come from foreign files: stack use and
 * output are bounded.
 */
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#undef ARRAY_SIZE /* libiberty.h has the same macro */
#include "base/demangle.h"
#include "base/macros.h"

#define NAME_LENGTH_MAX (64 << 10)
#define TEXT_LENGTH_MAX (256 << 10) /* back references let a short name expand without end */

/*
 * libiberty refuses names longer than this unless its limits are lifted; then a name takes up to
 * 700 bytes of stack per character, so longer ones are demangled on a stack made for
 * NAME_LENGTH_MAX.
 */
#define SHORT_NAME_MAX  (DEMANGLE_RECURSION_LIMIT / 2)
#define LONG_NAME_STACK ((size_t)NAME_LENGTH_MAX * 1024)

#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP)
#define DEVICE_STUB      "__device_stub__"

struct demangling {
	const char *mangled;
	int options;
	struct strbuf text;
	jmp_buf too_long;
	bool done;
};

static void append_piece(const char *piece, size_t length, void *opaque)
{
	struct demangling *job = opaque;

	/* The demanglers hold no memory but a Rust punycode buffer here; printing on might never
	 * end. */
	if (job->text.length + length > TEXT_LENGTH_MAX)
		longjmp(job->too_long, 1);
	strbuf_add_bytes(&job->text, piece, length);
}

static size_t identifier_length(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$");
}

/*
 * libiberty cannot resolve the parameters of some functions that take lambdas of templates,
 * at::parallel_for's OpenMP bodies among them; without its parameters such a name comes out right.
 * libiberty then stops where the parameters begin and does not look at the rest, so that is checked
 * and put back here.
 */
static bool demangle_without_parameters(struct demangling *job)
{
	const char *clone = job->mangled + identifier_length(job->mangled);

	if (clone[0] && clone[0] != '.')
		return false;
	strbuf_clear(&job->text);
	if (!cplus_demangle_v3_callback(
		    job->mangled, job->options & ~DMGL_PARAMS, append_piece, job))
		return false;
	if (clone[0])
		strbuf_addf(&job->text, " [clone %s]", clone);
	return true;
}

static void *run_demangling(void *opaque)
{
	struct demangling *job = opaque;

	if (setjmp(job->too_long)) {
		job->done = false;
		return NULL;
	}
	job->done = rust_demangle_callback(job->mangled, job->options, append_piece, job);
	if (job->done)
		return NULL;
	strbuf_clear(&job->text);
	job->done = cplus_demangle_v3_callback(job->mangled, job->options, append_piece, job) ||
		    demangle_without_parameters(job);
	return NULL;
}

static void run_on_large_stack(struct demangling *job)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (pthread_attr_init(&attributes) != 0)
		return;
	job->options |= DMGL_NO_RECURSE_LIMIT;
	if (pthread_attr_setstacksize(&attributes, LONG_NAME_STACK) == 0 &&
		pthread_create(&thread, &attributes, run_demangling, job) == 0)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

/* True and the text when `mangled` is a C++ or Rust name. */
static bool demangle_name(const char *mangled, struct strbuf *ret_text)
{
	struct demangling job = {.mangled = mangled, .options = DEMANGLE_OPTIONS};
	size_t length = strnlen(mangled, NAME_LENGTH_MAX + 1);

	if (length > NAME_LENGTH_MAX)
		return false;
	if (length > SHORT_NAME_MAX)
		run_on_large_stack(&job);
	else
		run_demangling(&job);
	if (!job.done || job.text.length == 0 || strbuf_status(&job.text) < 0) {
		strbuf_done(&job.text);
		return false;
	}
	*ret_text = job.text;
	return true;
}

/* Copies `text`, replacing what only the compiler needs to tell apart. */
static void add_shortened(struct strbuf *out, const char *text)
{
	static const struct {
		const char *from, *to;
	} rewrites[] = {
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
			"std::string"},
		{"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
		{"std::__cxx11::", "std::"},
		{"std::__1::", "std::"},
	};

	while (*text) {
		const char *next = strstr(text, "std::");
		size_t i;

		if (!next)
			break;
		strbuf_add_bytes(out, text, (size_t)(next - text));
		text = next;
		for (i = 0; i < ARRAY_SIZE(rewrites); i++) {
			if (strncmp(text, rewrites[i].from, strlen(rewrites[i].from)) == 0)
				break;
		}
		if (i < ARRAY_SIZE(rewrites)) {
			strbuf_add(out, rewrites[i].to);
			text += strlen(rewrites[i].from);
		} else {
			strbuf_add(out, "std::");
			text += strlen("std::");
		}
	}
	strbuf_add(out, text);
}

/* "Z" and the beginning of a function's name; a kernel may be called Zebra. */
static bool is_mangled_function(const char *text)
{
	return text[0] == 'Z' && text[1] && strchr("123456789NLS", text[1]);
}

/*
 * The host function that launches a CUDA or HIP kernel is named after it. nvcc puts the kernel's
 * whole mangled name behind the prefix, less its first underscore; clang and hipcc put the prefix
 * before the kernel's own identifier. Either way the kernel's name is what a reader looks for.
 */
static void add_kernel_name(struct strbuf *out, const char *text, const char *stub)
{
	const char *kernel = stub + strlen(DEVICE_STUB);
	_cleanup_strbuf_ struct strbuf mangled = {0}, demangled = {0};

	strbuf_add_char(&mangled, '_');
	strbuf_add_bytes(&mangled, kernel, identifier_length(kernel));
	if (is_mangled_function(kernel) && strbuf_status(&mangled) == 0 &&
		demangle_name(mangled.data, &demangled)) {
		add_shortened(out, strbuf_cstr(&demangled));
		return;
	}
	strbuf_add_bytes(&demangled, text, (size_t)(stub - text));
	strbuf_add(&demangled, kernel);
	add_shortened(out, strbuf_cstr(&demangled));
}

/* The part of the name that is mangled: without a version (@@X), "@plt", and ThinLTO's
 * .llvm.NUMBER. */
static size_t mangled_length(const char *name, const char **ret_suffix)
{
	static const char kernel[] = ".kd";
	size_t length = strcspn(name, "@");
	const char *llvm = strstr(name, ".llvm.");

	*ret_suffix = name + length;
	if (llvm && llvm < *ret_suffix && llvm + 6 + strspn(llvm + 6, "0123456789") == *ret_suffix)
		length = (size_t)(llvm - name);
	if (text_ends_in(name, kernel)) {
		length = strlen(name) - strlen(kernel);
		*ret_suffix = "";
	}
	return length;
}

static bool may_be_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 ||
	       strncmp(name, "__Z", 3) == 0 || strncmp(name, "__R", 3) == 0 ||
	       strncmp(name, "_GLOBAL_", 8) == 0;
}

void demangle_symbol(const char *name, struct strbuf *ret_text)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_free_ char *mangled = NULL;
	const char *suffix, *stub;

	if (may_be_mangled(name))
		mangled = strndup(name, mangled_length(name, &suffix));
	if (!mangled || !demangle_name(mangled, &text)) {
		strbuf_add(ret_text, name);
		return;
	}
	stub = strstr(strbuf_cstr(&text), DEVICE_STUB);
	if (stub)
		add_kernel_name(ret_text, strbuf_cstr(&text), stub);
	else
		add_shortened(ret_text, strbuf_cstr(&text));
	strbuf_add(ret_text, suffix);
}
