/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client_results.h"

#include "importers/rows.h"
#include "importers/vllm_bench/vllm_bench.h"

int load_client_results(struct client_results *ret_results, const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf bytes = {0};
	bool truncated;
	int r = import_read_file(path, NULL, &bytes, &truncated, err);

	return r < 0 ? r : vllm_bench_parse(ret_results, path, bytes.data, bytes.length, err);
}
