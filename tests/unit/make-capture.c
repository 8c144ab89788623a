/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-capture FILE [uncompressed] [stack-sample]: writes the example capture, for the tests that
 * look at captures with other programs; make-capture --text FILE prints a capture as the tests
 * compare it.
 */
#include <string.h>

#include "capture-example.h"

static int print_text(const char *path)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_read_result read;
	struct errmsg err;

	if (capture_read(path, &text_visitor, &text, &read, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	fputs(strbuf_cstr(&text), stdout);
	return 0;
}

int main(int argc, char **argv)
{
	bool uncompressed = false, stack_sample = false;

	if (argc == 3 && strcmp(argv[1], "--text") == 0)
		return print_text(argv[2]);
	for (int i = 2; i < argc; i++) {
		uncompressed |= strcmp(argv[i], "uncompressed") == 0;
		stack_sample |= strcmp(argv[i], "stack-sample") == 0;
	}
	return argc < 2 || write_example_file(argv[1], uncompressed, stack_sample) < 0;
}
