/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of a trace are valid UTF-8 without NUL, whatever the file holds. Each is looked at when
 * it comes for the first time; a map leads from those that had to be cleaned to what they became.
 */
#include "importers/kineto/parser.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/json.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define MENDED      (UINT64_C(1) << 32) /* in parser->cleaned, beside the string */

/* Nothing but ASCII without control characters? Nearly all strings are. */
static bool is_plain(const char *bytes, size_t length)
{
	size_t at = 0;

#ifdef __SSE2__
	for (; length - at >= 16; at += 16) {
		const __m128i part = _mm_loadu_si128((const void *)(bytes + at));

		/* Signed: bytes beyond ASCII are below, too. */
		if (_mm_movemask_epi8(_mm_cmplt_epi8(part, _mm_set1_epi8(' '))))
			return false;
	}
#endif
	for (; at < length; at++) {
		if ((signed char)bytes[at] < ' ')
			return false;
	}
	return true;
}

struct text_faults {
	bool bytes;    /* no UTF-8, or NUL */
	bool controls; /* control characters, which JSON wants escaped */
};

static struct text_faults find_faults(const char *bytes, size_t length)
{
	struct text_faults faults = {0};

	for (size_t i = 0; i < length;) {
		size_t sequence = utf8_sequence_length(bytes + i, length - i);

		faults.bytes |= sequence == 0 || bytes[i] == '\0';
		faults.controls |= (unsigned char)bytes[i] < ' ';
		i += sequence ? sequence : 1;
	}
	return faults;
}

/*
 * Appends the text with what is no UTF-8 replaced. Of JSON text, control characters in its strings
 * are escaped, too, and line breaks between them become spaces, which alone is no mending: false.
 */
static bool add_clean(struct strbuf *out, const char *bytes, size_t length, bool is_json)
{
	bool inside = false, mended = false;

	for (size_t i = 0; i < length;) {
		size_t sequence = utf8_sequence_length(bytes + i, length - i);
		bool control = (unsigned char)bytes[i] < ' ';

		mended |= sequence == 0 || (control && inside) || bytes[i] == '\0';
		if (sequence == 0 || (bytes[i] == '\0' && !is_json))
			strbuf_add(out, REPLACEMENT);
		else if (is_json && control && inside)
			strbuf_addf(out, "\\u%04x", (unsigned char)bytes[i]);
		else if (is_json && control)
			strbuf_add_char(out, ' ');
		else
			strbuf_add_bytes(out, bytes + i, sequence);
		if (is_json && bytes[i] == '\\' && inside && i + 1 < length &&
			(signed char)bytes[i + 1] >= ' ')
			strbuf_add_char(out, bytes[++i]);
		else if (bytes[i] == '"')
			inside = !inside;
		i += sequence ? sequence : 1;
	}
	return mended;
}

static int intern_text(
	struct kineto_parser *parser, const char *bytes, size_t length, uint32_t *ret_string)
{
	int r = intern_add(&parser->trace->strings, bytes, length, ret_string);

	if (r > 0)
		parser->text_bytes += length;
	return r;
}

/* The string is new and not plain: is it damaged? `escaped`: control characters are its own. */
static int clean_new(struct kineto_parser *parser, bool escaped, bool is_json, uint32_t *string)
{
	const struct intern_entry entry = parser->trace->strings.entries.items[*string];
	struct text_faults faults = find_faults(entry.bytes, entry.length);
	_cleanup_strbuf_ struct strbuf clean = {0};
	uint32_t cleaned = *string;
	bool mended = true;
	int r;

	if (!faults.bytes && (!faults.controls || (escaped && !is_json)))
		return 0;
	if (faults.bytes || is_json) {
		mended = add_clean(&clean, entry.bytes, entry.length, is_json);
		if (strbuf_status(&clean) < 0)
			return -ENOMEM;
		r = intern_text(parser, strbuf_cstr(&clean), clean.length, &cleaned);
		if (r < 0)
			return r;
	}
	r = map_u64_set(&parser->cleaned, *string, cleaned | (mended ? MENDED : 0));
	if (r < 0)
		return r;
	parser->event_mended |= mended;
	*string = cleaned;
	return 0;
}

static int add_text(struct kineto_parser *parser, const char *bytes, size_t length, bool escaped,
	bool is_json, uint32_t *ret_string)
{
	uint64_t cleaned;
	uint32_t string;
	int r = intern_text(parser, bytes, length, &string);

	if (r < 0)
		return r;
	if (r > 0 && !is_plain(bytes, length)) {
		r = clean_new(parser, escaped, is_json, &string);
		if (r < 0)
			return r;
	} else if (r == 0 && parser->cleaned.count &&
		   map_u64_get(&parser->cleaned, string, &cleaned)) {
		parser->event_mended |= (cleaned & MENDED) != 0;
		string = (uint32_t)cleaned;
	}
	*ret_string = string;
	return 0;
}

int kineto_add_string(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string)
{
	struct json_text text = json_text_inside(value);

	if (!text.escaped)
		return add_text(parser, text.bytes, text.length, false, false, ret_string);
	strbuf_clear(&parser->scratch);
	json_text_unescape(&parser->scratch, &text);
	if (strbuf_status(&parser->scratch) < 0)
		return -ENOMEM;
	return add_text(parser, strbuf_cstr(&parser->scratch), parser->scratch.length, true, false,
		ret_string);
}

int kineto_add_json(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string)
{
	return add_text(parser, value->bytes, value->length, false, true, ret_string);
}

int kineto_merge_strings(
	struct kineto_parser *to, const struct kineto_parser *from, struct kineto_known *known)
{
	const struct intern *strings = &from->trace->strings;
	size_t count = strings->entries.count, position = 0;
	uint64_t damaged, cleaned;

	if (known->strings.count == count)
		return 0;
	if (array_reserve(&known->strings, count - known->strings.count) < 0)
		return -ENOMEM;
	for (size_t i = known->strings.count; i < count; i++) {
		const struct intern_entry *entry = &strings->entries.items[i];

		if (intern_text(to, entry->bytes, entry->length, &known->strings.items[i]) < 0)
			return -ENOMEM;
		known->strings.count++;
	}
	while (map_u64_next(&from->cleaned, &position, &damaged, &cleaned)) {
		uint64_t string = known->strings.items[(uint32_t)cleaned] | (cleaned & MENDED);

		if (map_u64_set(&to->cleaned, known->strings.items[damaged], string) < 0)
			return -ENOMEM;
	}
	return 0;
}
