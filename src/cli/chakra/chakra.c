/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra: execution traces of MLCommons Chakra. Each subcommand has a file of its own. */
#include "cli/chakra/chakra.h"

#include "importers/importers.h"
#include "load/trace_file.h"

bool chakra_is_execution_trace(const char *path)
{
	const struct importer *importer;

	trace_file_identify(path, &importer);
	return importer == &pytorch_et_importer;
}

static const struct command *const subcommands[] = {
	&chakra_link_command,
	&chakra_convert_command,
	&chakra_dump_command,
	&chakra_stat_command,
	&chakra_check_command,
	&chakra_graph_command,
	NULL,
};

const struct command chakra_command = {
	.name = "chakra",
	.summary = "link, convert and check MLCommons Chakra execution traces",
	.usage = "COMMAND [options]",
	.description =
		"Makes Chakra execution traces, which simulators replay, from two files of "
		"PyTorch: an execution trace (torch.profiler.ExecutionTraceObserver) says which "
		"operator called which, Kineto's trace of the same run says when they ran and what "
		"the device did. `link` joins the two, `convert` makes a Chakra trace of the "
		"result.",
	.examples = "sonde chakra link --rank 0 --chakra-host-trace et.json --chakra-device-trace "
		    "kineto.json --output-file linked.json\n"
		    "    The operators with their times, and device work under those that launched "
		    "it.",
	.subcommands = subcommands,
	.maximum_arguments = 0,
};
