/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/range_texts.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

/* No honest process has more of these. */
#define MAX_TEXTS      (1U << 20)
#define MAX_TEXT_TOTAL ((size_t)256 << 20)
#define MAX_PARTIAL    256

/* What an id stands for: of a text, or with `domain` and `category` of a category. */
struct name_key {
	uint32_t pid, image, id, domain;
	uint64_t kind;
};

/* A text whose pieces have not all come. */
struct partial_text {
	struct name_key key;
	struct strbuf bytes;
};

void range_texts_done(struct range_texts *texts)
{
	intern_done(&texts->texts);
	intern_done(&texts->names);
	array_done(&texts->name_texts);
	array_foreach (&texts->partial, partial)
		strbuf_done(&partial->bytes);
	array_done(&texts->partial);
}

static struct name_key text_key(uint32_t pid, uint32_t image, uint32_t id)
{
	return (struct name_key){.pid = pid, .image = image, .id = id};
}

static int set_name(struct range_texts *texts, const struct name_key *key, uint32_t text)
{
	uint32_t id;
	int result;

	if (texts->names.entries.count >= MAX_TEXTS)
		return -EINVAL;
	result = intern_add(&texts->names, key, sizeof(*key), &id);
	if (result > 0)
		return array_append(&texts->name_texts, text);
	if (result == 0)
		texts->name_texts.items[id] = text;
	return result;
}

/* NULL: unknown, or not yet known. */
static const char *name_of(const struct range_texts *texts, const struct name_key *key)
{
	uint32_t id;

	if (!intern_find(&texts->names, key, sizeof(*key), &id))
		return NULL;
	return intern_get(&texts->texts, texts->name_texts.items[id]);
}

static int keep_text(
	struct range_texts *texts, const struct name_key *key, const char *bytes, size_t length)
{
	uint32_t text;
	int result;

	if (texts->text_bytes > MAX_TEXT_TOTAL)
		return -EINVAL;
	result = intern_add(&texts->texts, bytes, strnlen(bytes, length), &text);
	if (result < 0)
		return result;
	texts->text_bytes += result ? length + 1 : 0;
	return set_name(texts, key, text);
}

static struct partial_text *find_partial(struct range_texts *texts, const struct name_key *key)
{
	array_foreach (&texts->partial, partial) {
		if (memcmp(&partial->key, key, sizeof(*key)) == 0)
			return partial;
	}
	return NULL;
}

static void forget_partial(struct range_texts *texts, struct partial_text *partial)
{
	strbuf_done(&partial->bytes);
	*partial = texts->partial.items[--texts->partial.count];
}

/* The first piece of a text begins it anew: the one before may be lost. */
static int add_piece(
	struct range_texts *texts, const struct name_key *key, const struct wire_range_text *text)
{
	struct partial_text *partial = find_partial(texts, key);
	int result;

	if (partial && !text->at)
		strbuf_clear(&partial->bytes);
	if (!partial && (text->at || texts->partial.count >= MAX_PARTIAL))
		return -EINVAL;
	if (!partial) {
		result = array_append(&texts->partial, (struct partial_text){.key = *key});
		if (result < 0)
			return result;
		partial = &texts->partial.items[texts->partial.count - 1];
	}
	if (partial->bytes.length != text->at) {
		forget_partial(texts, partial);
		return -EINVAL;
	}
	strbuf_add_bytes(&partial->bytes, (const char *)(text + 1), text->bytes);
	result = strbuf_status(&partial->bytes);
	if (result == 0 && partial->bytes.length < text->total)
		return 0;
	if (result == 0)
		result = keep_text(texts, key, strbuf_cstr(&partial->bytes), partial->bytes.length);
	forget_partial(texts, partial);
	return result;
}

int range_texts_add(struct range_texts *texts, uint32_t pid, const struct wire_range_text *text)
{
	struct name_key key;

	if (text->record.length_bytes < sizeof(*text) || !text->id ||
		text->bytes > text->record.length_bytes - sizeof(*text) ||
		text->total > WIRE_RANGE_TEXT_BYTES || text->at + text->bytes > text->total)
		return -EINVAL;
	key = text_key(pid, text->image, text->id);
	if (text->bytes == text->total)
		return keep_text(texts, &key, (const char *)(text + 1), text->bytes);
	return add_piece(texts, &key, text);
}

bool range_texts_find(const struct range_texts *texts, uint32_t pid,
	const struct wire_range_name *name, uint32_t *ret_text)
{
	const struct name_key key = text_key(pid, name->image, name->name);
	uint32_t id;

	if (!intern_find(&texts->names, &key, sizeof(key), &id))
		return false;
	*ret_text = texts->name_texts.items[id];
	return true;
}

static struct name_key category_key(uint32_t pid, uint32_t image, uint32_t domain, uint32_t id)
{
	return (struct name_key){.pid = pid, .image = image, .id = id, .domain = domain, .kind = 1};
}

int range_texts_name_category(
	struct range_texts *texts, uint32_t pid, const struct wire_range_name *name, uint32_t text)
{
	const struct name_key key = category_key(pid, name->image, name->domain, name->id);

	return set_name(texts, &key, text);
}

const char *range_texts_text(const struct range_texts *texts, uint32_t text)
{
	return intern_get(&texts->texts, text);
}

const char *range_texts_get(
	const struct range_texts *texts, uint32_t pid, uint32_t image, uint32_t id)
{
	const struct name_key key = text_key(pid, image, id);

	return name_of(texts, &key);
}

const char *range_texts_category(
	const struct range_texts *texts, uint32_t pid, const struct wire_range_event *event)
{
	const struct name_key key = category_key(pid, event->image, event->domain, event->category);

	return name_of(texts, &key);
}
