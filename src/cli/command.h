/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per command. To add one:
 *   1. src/cli/NAME.c with `const struct command NAME_command` at its bottom,
 *   2. its declaration in commands.h, and a line in the table in main.c,
 *   3. the file in src/cli/meson.build, and its name there in command_names,
 *   4. a test in tests/e2e,
 *   5. `make docs` writes its man page and completion from the tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

enum option_type {
	OPTION_FLAG,    /* bool */
	OPTION_STRING,  /* const char * */
	OPTION_U64,     /* uint64_t, checked against minimum and maximum */
	OPTION_DOUBLE,  /* double, checked against minimum and maximum */
	OPTION_CHOICE,  /* const char *, one of `choices` */
	OPTION_STRINGS, /* struct option_strings, may be given several times */
};

struct option_strings {
	const char *values[64];
	size_t count;
};

struct strbuf;

struct option {
	char short_name;       /* 0: none */
	const char *long_name; /* without dashes */
	enum option_type type;
	const char *argument; /* name in the help: "HZ", "FILE" …; NULL for flags */
	const char *help;     /* one line */
	/*
	 * Where it goes, by type. Holds the default before parsing, which help shows unless it is
	 * 0, UINT64_MAX or NULL, or the help line says "default".
	 */
	void *value;
	double minimum, maximum;    /* both 0: no limits */
	const char *const *choices; /* NULL-ended */
	/* In place of them, where they are another layer's. */
	const char *const *(*list_choices)(void);
	void (*describe_choices)(struct strbuf *out); /* after the help line; NULL: nothing */
	const char *group;                            /* heading in the help; NULL: "Options" */
};

/* NULL-ended. */
static inline const char *const *option_choices(const struct option *option)
{
	return option->list_choices ? option->list_choices() : option->choices;
}

/* Options end with {0}. */
struct command {
	const char *name;
	const char *summary;     /* one line for `sonde --help` */
	const char *usage;       /* "[options] -- COMMAND [ARGUMENT…]" */
	const char *description; /* paragraphs for --help and the man page */
	const char *examples;    /* lines of "command\n    what it does" */
	const struct option *options;
	int minimum_arguments, maximum_arguments; /* maximum -1: any number */
	const char *default_argument;             /* see default_captures.h; NULL: none */
	bool stops_at_first_argument;             /* for commands that run a command */
	bool hidden; /* works, but is not listed in help and completion */
	/*
	 * NULL-ended; each is named "COMMAND WORD" and has options of its own. The command itself
	 * has then neither options nor `run`.
	 */
	const struct command *const *subcommands;
	const struct command *otherwise; /* of them: that is meant without a word; NULL: none */
	/* `arguments` has `count` positional arguments, NULL-ended. Returns the exit status. */
	int (*run)(int count, char **arguments);
};

/* What `sonde record` writes and other commands read, where nothing else is named. */
#define DEFAULT_CAPTURE "sonde.pftrace"

/* Exit statuses. */
enum {
	EXIT_OK = 0,
	EXIT_ERROR = 1, /* could not do it */
	EXIT_USAGE = 2, /* wrong command line */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

extern const struct command *const commands[]; /* NULL-ended, in main.c */

/* Prints "sonde: SENTENCE" to standard error and returns EXIT_ERROR. */
int fail(const struct errmsg *err);
/* The same for a wrong command line that the option table cannot tell; returns EXIT_USAGE. */
int fail_usage(const struct errmsg *err);
