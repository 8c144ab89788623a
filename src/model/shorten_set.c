/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of one column, shortened so that different ones stay different: of names that would look
 * alike, what all of them have in common goes first, and what tells them apart (a functor, a tile,
 * a type) stays.
 */
#include "model/shorten.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/demangle.h"
#include "base/text.h"

#define ELLIPSIS "\xe2\x80\xa6"
/* Equal names are distinguished again in smaller groups. */
#define DEPTH_MAX 8

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '$';
}

static size_t word_length(const char *text)
{
	size_t length = 0;

	while (is_word(text[length]))
		length++;
	return length;
}

/* Behind the bracket that closes the one at `text`; NULL: none does. */
static const char *behind_brackets(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		depth += strchr("([{", *text) != NULL;
		depth -= strchr(")]}", *text) != NULL;
		if (depth == 0)
			return text + 1;
	}
	return NULL;
}

/* ---- kernels ---- */

/* Demangled templates have their return type; functions of samples do not. */
static bool is_kernel(const char *name)
{
	return begins_with(name, "void ");
}

/* Behind the "::" that may follow parameters of a function whose lambda is named: NULL: none. */
static const char *behind_scope(const char *text)
{
	text += begins_with(text, " const") ? strlen(" const") : 0;
	return begins_with(text, "::") ? text + 2 : NULL;
}

/* "{lambda(float)#1}", "[lambda(float) (instance 1)]": its parameters, "(float)". */
static const char *add_lambda(struct strbuf *out, const char *text)
{
	const char *end = behind_brackets(text), *parameters = strchr(text, '(');
	const char *last = parameters ? behind_brackets(parameters) : NULL;

	if (!end || !last)
		return NULL;
	if (last - parameters > 2 && !behind_scope(end))
		strbuf_add_bytes(out, parameters, (size_t)(last - parameters));
	return behind_scope(end) ?: end;
}

/* What says nothing about which kernel it is: namespaces, parameters of functions whose lambda it
 * calls, "operator()". NULL: it is not such. */
static const char *skip_noise(const char *text)
{
	static const char *const noise[] = {"(anonymous namespace)::", "<unnamed>::",
		"operator()()", "operator ()()", "unnamed>::", NULL};
	size_t word = word_length(text);

	for (const char *const *each = noise; *each; each++) {
		const char *end = text + strlen(*each);

		if (begins_with(text, *each))
			return behind_scope(end) ?: end;
	}
	if (word && begins_with(text + word, "::"))
		return text + word + 2;
	if (*text == '(') {
		const char *end = behind_brackets(text);

		return end ? behind_scope(end) : NULL;
	}
	return NULL;
}

/* "void at::native::reduce_kernel<512, at::native::MeanOps<float> >(…)" → "reduce_kernel<512,
 * MeanOps<float> >" */
static void add_core(struct strbuf *out, const char *name)
{
	const char *text = name + (is_kernel(name) ? strlen("void ") : 0);
	int depth = 0;

	while (*text) {
		const char *next = skip_noise(text);

		if (next) {
			text = next;
			continue;
		}
		if (begins_with(text, "{lambda") || begins_with(text, "[lambda")) {
			next = add_lambda(out, text);
			if (next) {
				text = next;
				continue;
			}
		}
		depth += *text == '<';
		depth -= *text == '>';
		if (*text == '(' && depth == 0)
			return; /* its own parameters, which repeat the template's arguments */
		strbuf_add_bytes(out, text, MAX(word_length(text), (size_t)1));
		text += MAX(word_length(text), (size_t)1);
	}
}

void shorten_kernel(struct strbuf *out, const char *name, size_t columns)
{
	_cleanup_strbuf_ struct strbuf plain = {0}, core = {0};
	const char *text;

	demangle_symbol(name, &plain);
	text = strbuf_cstr(&plain);
	strbuf_inherit_status(out, &plain);
	if (shorten_columns(text) <= columns || !is_kernel(text)) {
		shorten_name(out, text, columns);
		return;
	}
	add_core(&core, text);
	strbuf_inherit_status(out, &core);
	shorten_end(out, strbuf_cstr(&core), columns);
}

/* ---- groups of names ---- */

struct names {
	const char *const *names;
	char **cores; /* what is compared */
	char **texts; /* as they are shown */
	size_t columns;
	bool is_function;
};

static size_t skip(const char *text, size_t columns)
{
	size_t at = 0;

	for (; text[at] && columns; columns--) {
		do
			at++;
		while (((unsigned char)text[at] & 0xc0) == 0x80);
	}
	return at;
}

/* How long what all have in common is, from the begin or the end; whole words. */
static size_t common_begin(const struct names *names, const uint32_t *group, size_t count)
{
	const char *first = names->cores[group[0]];
	size_t length = strlen(first), whole;

	for (size_t i = 1; i < count; i++) {
		const char *other = names->cores[group[i]];
		size_t at = 0;

		while (at < length && first[at] == other[at])
			at++;
		length = at;
	}
	for (whole = length; whole && is_word(first[whole - 1]) && is_word(first[whole]);)
		whole--;
	/* All of one word: where in it they differ. */
	while (length && ((unsigned char)first[length] & 0xc0) == 0x80)
		length--;
	return length - whole < names->columns / 3 ? whole : length;
}

/* Some of the beginning, then what tells it apart. */
static void show_difference(const struct names *names, uint32_t index, size_t common)
{
	const char *core = names->cores[index];
	size_t head = MIN(common, skip(core, MAX(names->columns / 3, (size_t)2)));
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t left;

	strbuf_add_bytes(&text, core, head);
	if (head < common)
		strbuf_add(&text, ELLIPSIS);
	left = names->columns - MIN(shorten_columns(strbuf_cstr(&text)), names->columns);
	shorten_end(&text, core + common, left);
	if (strbuf_status(&text) < 0)
		return;
	free(names->texts[index]);
	names->texts[index] = TAKE_PTR(text.data);
}

static int compare_texts(const void *left, const void *right, void *context)
{
	const struct names *names = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int order = strcmp(names->texts[a], names->texts[b]);

	return order ?: strcmp(names->cores[a], names->cores[b]);
}

static void tell_apart(const struct names *names, uint32_t *group, size_t count, unsigned depth);

/* What was left out of all is what tells them apart: false where the names are the same. */
static bool use_names(const struct names *names, const uint32_t *group, size_t count)
{
	bool differ = false;

	for (size_t i = 1; i < count && !differ; i++)
		differ = strcmp(names->names[group[i]], names->names[group[0]]) != 0;
	for (size_t i = 0; differ && i < count; i++) {
		char *name = strdup(names->names[group[i]]);

		if (!name)
			return false;
		free(names->cores[group[i]]);
		names->cores[group[i]] = name;
	}
	return differ;
}

/* Those that look alike and are not the same. */
static void tell_alike_apart(
	const struct names *names, uint32_t *group, size_t count, unsigned depth)
{
	qsort_r(group, count, sizeof(*group), compare_texts, (void *)names);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count &&
				   strcmp(names->texts[group[i]], names->texts[group[next]]) == 0;)
			next++;
		if (strcmp(names->cores[group[i]], names->cores[group[next - 1]]) != 0 ||
			use_names(names, group + i, next - i))
			tell_apart(names, group + i, next - i, depth + 1);
	}
}

static void tell_apart(const struct names *names, uint32_t *group, size_t count, unsigned depth)
{
	size_t common = common_begin(names, group, count);

	if (depth > DEPTH_MAX)
		return;
	for (size_t i = 0; i < count; i++)
		show_difference(names, group[i], common);
	tell_alike_apart(names, group, count, depth);
}

/* ---- all ---- */

static char *take(struct strbuf *text)
{
	char *bytes = text->data ? text->data : strdup("");

	if (strbuf_status(text) < 0) {
		free(bytes);
		bytes = NULL;
	}
	*text = (struct strbuf){0};
	return bytes;
}

static int shorten_one(const struct names *names, uint32_t index)
{
	_cleanup_strbuf_ struct strbuf core = {0}, text = {0};
	const char *name = names->names[index];
	bool fits = shorten_columns(name) <= names->columns;

	if (names->is_function)
		add_core(&core, name);
	if (!core.length)
		strbuf_add(&core, name);
	if (fits)
		strbuf_add(&text, name);
	else if (names->is_function && is_kernel(name))
		shorten_end(&text, strbuf_cstr(&core), names->columns);
	else if (names->is_function)
		shorten_name(&text, name, names->columns);
	else
		shorten_text(&text, name, names->columns);
	names->cores[index] = take(&core);
	names->texts[index] = take(&text);
	return names->cores[index] && names->texts[index] ? 0 : -ENOMEM;
}

int shorten_all(
	char **ret_texts, const char *const *all, size_t count, size_t columns, bool is_function)
{
	const struct names names = {
		.names = all,
		.cores = calloc(count + 1, sizeof(char *)),
		.texts = ret_texts,
		.columns = columns,
		.is_function = is_function,
	};
	_cleanup_free_ uint32_t *group = calloc(count + 1, sizeof(*group));
	int r = names.cores && group ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		group[i] = i;
		r = shorten_one(&names, i);
	}
	if (r == 0 && columns > 3)
		tell_alike_apart(&names, group, count, 0);
	for (size_t i = 0; names.cores && i < count; i++)
		free(names.cores[i]);
	free(names.cores);
	return r;
}
