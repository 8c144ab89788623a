/* SPDX-License-Identifier: Apache-2.0 */
#include "server/question.h"

#include <errno.h>
#include <string.h>

static void add_word(struct strbuf *text, const char *word)
{
	strbuf_add_bytes(text, word, strlen(word) + 1);
}

void question_write(struct strbuf *text, const struct question *question)
{
	const char head[] = {(char)('a' + question->what), (char)('a' + question->form), '\0'};

	add_word(text, head);
	add_word(text, question->path);
}

void question_add(struct strbuf *text, const char *key, const char *value)
{
	add_word(text, key);
	add_word(text, value);
}

static const char *next_word(const char **at, const char *end)
{
	const char *word = *at, *nul = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return word;
}

int question_read(const char **at, const char *end, struct question *ret_question)
{
	const char *head = next_word(at, end), *path = head ? next_word(at, end) : NULL;

	if (!path || strlen(head) != 2 || head[0] < 'a' || head[0] >= 'a' + QUESTION_WHAT_MAX)
		return -EINVAL;
	*ret_question = (struct question){
		.what = (enum question_what)(head[0] - 'a'), .form = head[1] - 'a', .path = path};
	return 0;
}

int question_next(const char **at, const char *end, const char **ret_key, const char **ret_value)
{
	const char *key = next_word(at, end);

	if (!key)
		return 0;
	*ret_key = key;
	*ret_value = next_word(at, end);
	return *ret_value != NULL;
}
