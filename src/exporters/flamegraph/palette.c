/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/flamegraph/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hue, saturation, lightness on a light page. */
struct palette_colour {
	const char *class_name;
	double hue, saturation, lightness;
};

#define NATIVE_COLOURS 12

static const struct palette_colour colours[] = {
	{"h0", 208, 0.68, 0.75},
	{"h1", 150, 0.42, 0.71},
	{"h2", 262, 0.58, 0.82},
	{"h3", 178, 0.44, 0.69},
	{"h4", 232, 0.66, 0.82},
	{"h5", 96, 0.40, 0.70},
	{"h6", 288, 0.42, 0.80},
	{"h7", 194, 0.58, 0.76},
	{"h8", 128, 0.38, 0.74},
	{"h9", 218, 0.45, 0.72},
	{"h10", 164, 0.50, 0.78},
	{"h11", 248, 0.48, 0.77},
	{"k", 14, 0.88, 0.71},
	{"p", 46, 0.92, 0.68},
	{"j", 66, 0.62, 0.66},
	{"u", 220, 0.06, 0.82},
	{"t", 220, 0.12, 0.87},
	{"r1", 4, 0.85, 0.92},
	{"r2", 4, 0.85, 0.85},
	{"r3", 4, 0.85, 0.78},
	{"r4", 4, 0.82, 0.71},
	{"r5", 4, 0.80, 0.64},
	{"r6", 4, 0.75, 0.56},
	{"b1", 214, 0.85, 0.93},
	{"b2", 214, 0.85, 0.87},
	{"b3", 214, 0.85, 0.80},
	{"b4", 214, 0.82, 0.73},
	{"b5", 214, 0.80, 0.66},
	{"b6", 214, 0.75, 0.58},
	{"n", 220, 0.08, 0.90},
};

static const char *class_by_kind(const struct call_tree_label *label)
{
	switch (label->kind) {
	case CALL_TREE_KERNEL:
		return "k";
	case CALL_TREE_INTERPRETED:
		return "p";
	case CALL_TREE_JIT:
		return "j";
	case CALL_TREE_TASK:
		return "t";
	default:
		return strcmp(label->module, "[unknown]") == 0 ? "u" : NULL;
	}
}

static int count_label(
	struct palette *palette, const struct call_tree_label *label, uint64_t samples)
{
	const char *fixed = class_by_kind(label);
	struct palette_module module = {.self_samples = 0};
	uint32_t id;
	int r;

	if (label->kind == CALL_TREE_TASK)
		return 0;
	r = intern_add(&palette->modules, label->module, strlen(label->module), &id);
	if (r > 0) {
		module.name = intern_get(&palette->modules, id);
		r = array_append(&palette->entries, module);
	}
	if (r < 0)
		return r;
	palette->entries.items[id].self_samples += samples;
	if (fixed)
		snprintf(palette->entries.items[id].class_name,
			sizeof(palette->entries.items[id].class_name), "%s", fixed);
	return 0;
}

static int compare_modules(const void *left, const void *right, void *context)
{
	const struct palette *palette = context;
	const struct palette_module *a = &palette->entries.items[*(const uint32_t *)left];
	const struct palette_module *b = &palette->entries.items[*(const uint32_t *)right];

	if (a->self_samples != b->self_samples)
		return a->self_samples > b->self_samples ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* The busiest modules choose first. Where the name's colour is taken, the next free one serves,
 * while there are any. */
static void choose_colours(struct palette *palette)
{
	bool taken[NATIVE_COLOURS] = {false};

	array_foreach (&palette->ranking, index) {
		struct palette_module *module = &palette->entries.items[*index];
		size_t wanted = hash_bytes(module->name, strlen(module->name), 0) % NATIVE_COLOURS;
		size_t choice = wanted;

		if (*module->class_name)
			continue;
		for (size_t i = 0; i < NATIVE_COLOURS && taken[choice]; i++)
			choice = (choice + 1) % NATIVE_COLOURS;
		taken[choice] = true;
		snprintf(module->class_name, sizeof(module->class_name), "%s",
			colours[choice].class_name);
	}
}

int palette_init(struct palette *palette, const struct call_tree *tree)
{
	int r = 0;

	*palette = (struct palette){0};
	array_foreach (&tree->nodes, node) {
		r = count_label(
			palette, &tree->labels.items[node->label], node->self[0] + node->self[1]);
		if (r < 0)
			break;
	}
	for (uint32_t i = 0; r == 0 && i < palette->entries.count; i++)
		r = array_append(&palette->ranking, i);
	if (r < 0) {
		palette_done(palette);
		return r;
	}
	if (palette->ranking.count)
		qsort_r(palette->ranking.items, palette->ranking.count,
			sizeof(*palette->ranking.items), compare_modules, palette);
	choose_colours(palette);
	return 0;
}

void palette_done(struct palette *palette)
{
	intern_done(&palette->modules);
	array_done(&palette->entries);
	array_done(&palette->ranking);
}

const char *palette_class(const struct palette *palette, const struct call_tree_label *label)
{
	const char *fixed = class_by_kind(label);
	uint32_t id;

	if (fixed)
		return fixed;
	if (!intern_find(&palette->modules, label->module, strlen(label->module), &id))
		return "u";
	return palette->entries.items[id].class_name;
}

void palette_add_css(struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		strbuf_addf(out, ".%s{--h:%g;--s:%g%%;--l:%g%%}\n", colours[i].class_name,
			colours[i].hue, 100 * colours[i].saturation, 100 * colours[i].lightness);
}

/* One channel of a colour given as hue, saturation and lightness (CSS Color 4, 7.1). */
static unsigned channel(const struct palette_colour *colour, double lightness, double offset)
{
	double k = fmod(offset + colour->hue / 30, 12);
	double amplitude = colour->saturation * fmin(lightness, 1 - lightness);
	double value = lightness - amplitude * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));

	return (unsigned)(value * 255 + 0.5);
}

const char *palette_fill(const char *class_name, unsigned shade, char buffer[static 8])
{
	const struct palette_colour *colour = &colours[ARRAY_SIZE(colours) - 1];
	double lightness;

	for (size_t i = 0; i < ARRAY_SIZE(colours); i++) {
		if (strcmp(colours[i].class_name, class_name) == 0)
			colour = &colours[i];
	}
	lightness = colour->lightness + ((double)shade - 1) * 0.035;
	snprintf(buffer, 8, "#%02x%02x%02x", channel(colour, lightness, 0) & 0xff,
		channel(colour, lightness, 8) & 0xff, channel(colour, lightness, 4) & 0xff);
	return buffer;
}

unsigned palette_shade(const char *name)
{
	return (unsigned)(hash_bytes(name, strlen(name), 1) % 3);
}
