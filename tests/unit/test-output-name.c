/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in the names of captures. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* the command line has one too */

#include "cli/record/output_name.h"
#include "sources/process/proc_ranks.h"

static const struct output_name_facts facts = {
	.host = "node/7", .rank = 12, .pid = 4711, .time = 1795535940};

static void check(const char *pattern, const char *expected)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	struct errmsg err;

	assert_int_equal(output_name_expand(&name, pattern, &facts, &err), 0);
	assert_string_equal(strbuf_cstr(&name), expected);
}

static void marks_are_replaced(void **state)
{
	(void)state;
	check("run/%h-%r.pftrace", "run/node_7-12.pftrace");
	check("%p.%t%%", "4711.20261124-155900%");
	check("plain.pftrace", "plain.pftrace");
	assert_true(output_name_has_marks("%r"));
	assert_false(output_name_has_marks("run/1.pftrace"));
}

static void refuse(const char *pattern, int64_t rank, const char *reason)
{
	struct output_name_facts given = facts;
	_cleanup_strbuf_ struct strbuf name = {0};
	struct errmsg err = {{0}};

	given.rank = rank;
	assert_int_equal(output_name_expand(&name, pattern, &given, &err), -EINVAL);
	assert_non_null(strstr(err.text, reason));
}

static void what_cannot_be_replaced_is_refused(void **state)
{
	(void)state;
	refuse("run/%r.pftrace", -1, "SLURM_PROCID");
	refuse("run/%x.pftrace", 1, "percent sign");
	refuse("run/%", 1, "percent sign");
}

/* Of a batch script of Slurm that calls mpirun, the rank is that of mpirun. */
static void ranks_of_launchers(void **state)
{
	static const char of_mpirun[] = "SLURM_PROCID=0\0SLURM_NTASKS=1\0PMIX_RANK=3";
	static const char of_srun[] = "SLURM_PROCID=5\0SLURM_NTASKS=8\0";
	_cleanup_strbuf_ struct strbuf environment = {0};

	(void)state;
	strbuf_add_bytes(&environment, of_mpirun, sizeof(of_mpirun));
	assert_int_equal(proc_find_ranks(&environment).rank, 3);
	assert_int_equal(proc_find_ranks(&environment).world_size, -1);
	strbuf_clear(&environment);
	strbuf_add_bytes(&environment, of_srun, sizeof(of_srun) - 1);
	assert_int_equal(proc_find_ranks(&environment).rank, 5);
	assert_int_equal(proc_find_ranks(&environment).world_size, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_are_replaced),
		cmocka_unit_test(what_cannot_be_replaced_is_refused),
		cmocka_unit_test(ranks_of_launchers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
