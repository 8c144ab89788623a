/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int strbuf_reserve(struct strbuf *buffer, size_t extra)
{
	size_t wanted, grown = buffer->capacity ? buffer->capacity : 64;
	char *moved;

	if (buffer->status)
		return buffer->status;
	if (__builtin_add_overflow(buffer->length, extra, &wanted) ||
		__builtin_add_overflow(wanted, (size_t)1, &wanted))
		return buffer->status = -ENOMEM;
	if (wanted <= buffer->capacity)
		return 0;
	while (grown < wanted) {
		if (__builtin_mul_overflow(grown, (size_t)2, &grown))
			return buffer->status = -ENOMEM;
	}
	moved = realloc(buffer->data, grown);
	if (!moved)
		return buffer->status = -ENOMEM;
	buffer->data = moved;
	buffer->capacity = grown;
	return 0;
}

void *strbuf_extend(struct strbuf *buffer, size_t length)
{
	char *room;

	if (strbuf_reserve(buffer, length) < 0)
		return NULL;
	room = buffer->data + buffer->length;
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
	return room;
}

void strbuf_add_bytes(struct strbuf *buffer, const void *bytes, size_t length)
{
	void *room = strbuf_room(buffer, length);

	if (!room)
		return;
	if (length)
		memcpy(room, bytes, length);
	strbuf_take(buffer, length);
}

void strbuf_add(struct strbuf *buffer, const char *text)
{
	strbuf_add_bytes(buffer, text, strlen(text));
}

void strbuf_add_char(struct strbuf *buffer, char character)
{
	char *room = strbuf_room(buffer, 1);

	if (!room)
		return;
	*room = character;
	strbuf_take(buffer, 1);
}

void strbuf_vaddf(struct strbuf *buffer, const char *format, va_list arguments)
{
	va_list again;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0 || strbuf_reserve(buffer, (size_t)length) < 0)
		return;
	vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
	buffer->length += (size_t)length;
}

void strbuf_add_count(struct strbuf *buffer, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			strbuf_add_char(buffer, ',');
		strbuf_add_char(buffer, digits[i]);
	}
}

void strbuf_addf(struct strbuf *buffer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	strbuf_vaddf(buffer, format, arguments);
	va_end(arguments);
}

void strbuf_inherit_status(struct strbuf *buffer, const struct strbuf *part)
{
	if (part->status)
		buffer->status = part->status;
}

void strbuf_clear(struct strbuf *buffer)
{
	buffer->length = 0;
	buffer->status = 0;
	if (buffer->data)
		buffer->data[0] = '\0';
}

void strbuf_done(struct strbuf *buffer)
{
	free(buffer->data);
	*buffer = (struct strbuf){0};
}
