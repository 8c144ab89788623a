/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde version`: what this program is and what it was built with. */
#include <bpf/libbpf.h>
#include <elfutils/version.h>
#include <libdeflate.h>
#include <lzma.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/json.h"
#include "cli/commands.h"
#include "commit.h"
#include "page/page.h"

static bool version_json;

/* NULL when the build did not know. */
static const char *commit(void)
{
	return strcmp(SONDE_COMMIT, "unknown") == 0 ? NULL : SONDE_COMMIT;
}

struct part {
	const char *name, *version, *use;
};

static size_t list_parts(struct part parts[6])
{
	static char libbpf[32], elfutils[32];

	snprintf(libbpf, sizeof(libbpf), "%u.%u", libbpf_major_version(), libbpf_minor_version());
	snprintf(elfutils, sizeof(elfutils), "0.%d", _ELFUTILS_VERSION);
	parts[0] = (struct part){"libbpf", libbpf, "sampling and unwinding in the kernel"};
	parts[1] = (struct part){"elfutils", elfutils, "symbols and lines"};
	parts[2] = (struct part){"liblzma", lzma_version_string(), "compressed symbol tables"};
	parts[3] = (struct part){"protobuf-c", protobuf_c_version(), "pprof files"};
	parts[4] = (struct part){"zlib", zlibVersion(), "compressed files"};
	parts[5] = (struct part){
		"libdeflate", LIBDEFLATE_VERSION_STRING, "compressing captures, and reading them"};
	return 6;
}

static void print_json(const struct part *parts, size_t count)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text, .pretty = true};

	json_begin_object(&json);
	json_key(&json, "version");
	json_string(&json, SONDE_VERSION);
	json_key(&json, "commit");
	if (commit())
		json_string(&json, commit());
	else
		json_null(&json);
	json_key(&json, "parts");
	json_begin_object(&json);
	for (size_t index = 0; index < count; index++) {
		json_key(&json, parts[index].name);
		json_string(&json, parts[index].version);
	}
	json_end_object(&json);
	json_key(&json, "has_page");
	json_bool(&json, page_check(NULL) == 0);
	json_end_object(&json);
	puts(strbuf_cstr(&text));
}

static int run_version(int count, char **arguments)
{
	struct errmsg err;
	struct part parts[6];
	size_t part_count = list_parts(parts);

	if (version_json) {
		print_json(parts, part_count);
		return EXIT_OK;
	}
	printf("sonde %s%s%s%s\n", SONDE_VERSION, commit() ? " (" : "", commit() ? commit() : "",
		commit() ? ")" : "");
	for (size_t index = 0; index < part_count; index++)
		printf("  %-11s %-8s %s\n", parts[index].name, parts[index].version,
			parts[index].use);
	if (page_check(&err) < 0)
		printf("%s\n", err.text);
	return EXIT_OK;
}

static const struct option version_options[] = {
	{.long_name = "json", .type = OPTION_FLAG, .help = "Print JSON.", .value = &version_json},
	{0},
};

const struct command version_command = {
	.name = "version",
	.summary = "print the version, the commit and the parts sonde was built with",
	.usage = "[--json]",
	.description = "'sonde --version' says the same.",
	.examples = "sonde version --json\n    for scripts",
	.options = version_options,
	.run = run_version,
};
