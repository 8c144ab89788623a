/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/hooks.h"

#include <stdio.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/warn.h"
#include "cli/command.h"

#define ITEM_INDENT 4

static void print_line(const struct strbuf *text)
{
	_cleanup_strbuf_ struct strbuf lines = {0}, plain = {0};
	size_t width = isatty(STDERR_FILENO) ? text_terminal_width(stderr) : SIZE_MAX;

	strbuf_addf(&lines, "%*s", ITEM_INDENT, "");
	escape_plain(&plain, strbuf_cstr(text));
	text_wrap(&lines, strbuf_cstr(&plain), ITEM_INDENT, ITEM_INDENT + 2, width);
	fputs(strbuf_cstr(&lines), stderr);
}

/* The hooks of one group lie together. Returns the end of the one that begins at `begin`. */
static size_t group_end(const struct hook_table *table, size_t begin)
{
	size_t end = begin;

	while (end < table->hooks.count &&
		table->hooks.items[end].group == table->hooks.items[begin].group)
		end++;
	return end;
}

static void print_counts(const struct hook_table *table, size_t begin, size_t end)
{
	unsigned counts[HOOK_STATE_MAX] = {0};

	for (size_t i = begin; i < end; i++)
		counts[hook_status_state(&table->hooks.items[i])]++;
	print_plain("  %-14.14s", table->hooks.items[begin].group);
	fprintf(stderr, "%8u  %7u  %9u  %5u\n", counts[HOOK_APPLIED], counts[HOOK_WAITING],
		counts[HOOK_NOT_FOUND], counts[HOOK_ERROR]);
}

/* What a hook found, such as the layers of a model. */
static void print_findings(const struct hook_table *table, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		const struct hook_status *hook = &table->hooks.items[i];
		_cleanup_strbuf_ struct strbuf text = {0};

		if (hook_status_state(hook) != HOOK_APPLIED || !*hook->detail)
			continue;
		strbuf_addf(&text, "%s: %s", hook->module, hook->detail);
		print_line(&text);
	}
}

static void print_failures(const struct hook_table *table, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		const struct hook_status *hook = &table->hooks.items[i];
		_cleanup_strbuf_ struct strbuf text = {0};
		enum hook_state state = hook_status_state(hook);

		if (state < HOOK_NOT_FOUND)
			continue;
		strbuf_addf(&text, "%s: %s of %s: %s", hook_state_to_string(state), hook->attribute,
			hook->module, hook->detail);
		print_line(&text);
	}
}

/* Each module once: they come in the order of the table. */
static void print_waiting(const struct hook_table *table, size_t begin, size_t end)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *last = NULL;

	for (size_t i = begin; i < end; i++) {
		const struct hook_status *hook = &table->hooks.items[i];

		if (hook_status_state(hook) != HOOK_WAITING || hook->module == last)
			continue;
		strbuf_addf(&text, "%s%s", last ? ", " : "not imported: ", hook->module);
		last = hook->module;
	}
	if (last)
		print_line(&text);
}

void record_print_hooks(const struct hook_table *table)
{
	if (!table->hooks.count)
		return;
	fprintf(stderr, "  %-14s%8s  %7s  %9s  %5s\n", "hooks", "applied", "waiting", "not found",
		"error");
	for (size_t begin = 0, end; begin < table->hooks.count; begin = end) {
		end = group_end(table, begin);
		print_counts(table, begin, end);
		print_findings(table, begin, end);
		print_failures(table, begin, end);
		print_waiting(table, begin, end);
	}
}
