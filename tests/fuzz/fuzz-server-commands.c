/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of commands, then, behind a NUL, the parameters of a request: whatever they are, a command
 * line has as many words as its command, and each begins as the operator wrote it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "server/jobs/commands.h"
#include "target.h"

static void check_line(const struct job_command *command, const struct json_text *values)
{
	struct command_words words = {{0}};
	struct errmsg err;

	if (command_line(command, values, &words, &err) < 0)
		return;
	if (words.list.count != command->argv.list.count)
		abort();
	for (size_t i = 0; i < words.list.count; i++) {
		const char *word = command->argv.list.items[i];
		size_t prefix = strlen(word);

		command_word_parameter(command, word, &prefix);
		if (strncmp(word, words.list.items[i], prefix) != 0)
			abort();
	}
	if (strcmp(words.list.items[0], command->argv.list.items[0]) != 0)
		abort();
	command_words_done(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const char *text = (const char *)bytes, *end = memchr(text, '\0', length);
	size_t size = end ? (size_t)(end - text) : length;
	const struct json_text values = {end ? end + 1 : text, end ? length - size - 1 : 0, false};
	struct job_commands *commands;
	struct errmsg err;

	if (commands_parse(&commands, text, size, "commands.json", &err) < 0)
		return 0;
	array_foreach (&commands->items, command) {
		check_line(command, NULL);
		if (values.length)
			check_line(command, &values);
	}
	commands_free(commands);
	return 0;
}
