/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of corpus folders, in name order: `corpus-NAME FOLDER...`. So
 * what the fuzzer once found stays found in ordinary test runs, with any compiler and without
 * libFuzzer.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "target.h"

#define MAX_INPUT_BYTES ((size_t)64 * 1024 * 1024)

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The input is copied to a block of its exact size, so that sanitizers see reads past its end. */
static int run_file(const char *path)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_free_ uint8_t *exact = NULL;
	int result = read_whole_file(path, MAX_INPUT_BYTES, &text);

	if (result < 0) {
		fprintf(stderr, "cannot read %s: %s\n", path, strerror(-result));
		return result;
	}
	exact = malloc(text.length ? text.length : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, strbuf_cstr(&text), text.length);
	LLVMFuzzerTestOneInput(exact, text.length);
	return 0;
}

/* Returns the number of inputs run, or a negative errno. */
static int run_folder(const char *folder)
{
	struct dirent **entries = NULL;
	int result = 0, count = scandir(folder, &entries, is_input, alphasort);

	for (int i = 0; i < count; i++) {
		_cleanup_strbuf_ struct strbuf path = {0};

		strbuf_addf(&path, "%s/%s", folder, entries[i]->d_name);
		if (result == 0)
			result = strbuf_status(&path) < 0 ? -ENOMEM : run_file(path.data);
		free(entries[i]);
	}
	free(entries);
	return result < 0 ? result : count;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int count = run_folder(argv[i]);

		if (count <= 0) {
			fprintf(stderr, "no inputs run from %s\n", argv[i]);
			return 1;
		}
		printf("%s: %d inputs\n", argv[i], count);
	}
	return argc > 1 ? 0 : 2;
}
