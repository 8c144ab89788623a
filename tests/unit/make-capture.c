/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-capture FILE [uncompressed] [stack-sample] [device|windows|energy]: writes the example
 * capture, or that with device work, windows or energy, for the tests that look at captures with
 * other programs; make-capture --text FILE prints a capture as the tests compare it.
 */
#include <string.h>

#include "capture-energy-example.h"

static int print_text(const char *path)
{
	const struct capture_visitor visitor = energy_text_visitor();
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_read_result read;
	struct errmsg err;

	if (capture_read(path, &visitor, &text, &read, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	fputs(strbuf_cstr(&text), stdout);
	return 0;
}

int main(int argc, char **argv)
{
	bool uncompressed = false, stack_sample = false, device = false, windows = false;
	bool energy = false;

	if (argc == 3 && strcmp(argv[1], "--text") == 0)
		return print_text(argv[2]);
	for (int i = 2; i < argc; i++) {
		uncompressed |= strcmp(argv[i], "uncompressed") == 0;
		stack_sample |= strcmp(argv[i], "stack-sample") == 0;
		device |= strcmp(argv[i], "device") == 0;
		windows |= strcmp(argv[i], "windows") == 0;
		energy |= strcmp(argv[i], "energy") == 0;
	}
	return argc < 2 || write_file(argv[1], uncompressed, stack_sample,
				   energy    ? write_energy_example
				   : windows ? write_window_example
				   : device  ? write_device_example
					     : write_example) < 0;
}
