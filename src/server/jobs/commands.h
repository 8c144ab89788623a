/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that a server may start: those of the operator's file, which is read when the server
 * begins. Nothing of a request becomes a program or a part of a command line, but the values of
 * parameters, each within its bounds and within one argument. There is no shell.
 *
 *	{"jobs": 1,
 *	 "commands": [
 *	  {"name": "generate", "description": "…",
 *	   "argv": ["python3", "generate.py", "--batch={batch}", "{model}"],
 *	   "parameters": [
 *	    {"name": "batch", "type": "integer", "minimum": 1, "maximum": 64, "default": 8},
 *	    {"name": "model", "type": "choice", "choices": ["small", "large"]}],
 *	   "cwd": "/srv/model", "environment": {"OMP_NUM_THREADS": "4"},
 *	   "record": ["--window", "manual"], "seconds": 600, "keep": 20}]}
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "base/json.h"
#include "base/json_reader.h"

#define COMMAND_NAME_MAX    63
#define COMMANDS_MAX        100
#define COMMAND_WORDS_MAX   256  /* arguments, options, parameters, choices */
#define COMMAND_VALUE_MAX   4096 /* bytes of a string */
#define COMMANDS_FILE_BYTES (1 << 20)

/* Owned texts; command_words_done() frees them. */
struct command_words {
	ARRAY_OF(char *) list;
};

enum command_type {
	COMMAND_STRING, /* `maximum` bytes */
	COMMAND_INTEGER,
	COMMAND_NUMBER,
	COMMAND_CHOICE,
	COMMAND_TYPE_MAX,
};

extern const char *const command_type_names[COMMAND_TYPE_MAX];

struct command_parameter {
	char *name;
	enum command_type type;
	char *initial; /* as an argument; NULL: it must be given */
	bool has_minimum, has_maximum;
	double minimum, maximum;
	struct command_words choices;
};

struct job_command {
	char *name, *description, *cwd; /* the last two may be NULL */
	struct command_words argv, record;
	struct command_words environment; /* NAME=VALUE */
	ARRAY_OF(struct command_parameter) parameters;
	uint64_t seconds; /* then it is ended */
	uint64_t keep;    /* captures of it; 0: all */
	bool has_windows; /* that can be opened */
};

struct job_commands {
	ARRAY_OF(struct job_command) items;
	uint64_t jobs; /* at once */
};

/*
 * Reads the file, which must be the user's or root's, and which no other can write. Returns 0 or a
 * negative errno with a sentence.
 */
int commands_read(struct job_commands **ret_commands, const char *path, struct errmsg *err);
/* The same of a text. */
int commands_parse(struct job_commands **ret_commands, const char *text, size_t length,
	const char *path, struct errmsg *err);
struct job_commands *commands_free(struct job_commands *commands);

/* NULL: there is none. `commands` may be NULL. */
const struct job_command *commands_find(const struct job_commands *commands, const char *name);
/* CommandList of schema/api.json. */
void commands_write(const struct job_commands *commands, struct json_writer *json);

/*
 * The command line with the values of a JSON object, which may be NULL: each parameter by its name.
 * Returns 0, -ENOMEM, or -EINVAL with a sentence that names the parameter.
 */
int command_line(const struct job_command *command, const struct json_text *values,
	struct command_words *ret_words, struct errmsg *err);
/* As an argument, within the bounds of the parameter. Returns as command_line(). */
int command_value(const struct command_parameter *parameter, const struct json_text *value,
	char **ret_text, struct errmsg *err);
/*
 * The parameter that the word of `argv` ends with, in braces; NULL: it is none. Sets how many bytes
 * come before it.
 */
const struct command_parameter *command_word_parameter(
	const struct job_command *command, const char *word, size_t *ret_prefix);

/* Takes the text. Returns 0 or -ENOMEM, also for NULL. */
int command_words_add(struct command_words *words, char *text);
void command_words_done(struct command_words *words);
