/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/output_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/new_file.h"
#include "base/output_file.h"
#include "sources/process/proc_ranks.h"

bool output_name_has_marks(const char *pattern)
{
	return strchr(pattern, '%') != NULL;
}

/* sonde's own environment, as launchers set it. */
static int64_t own_rank(void)
{
	return proc_read_ranks((uint32_t)getpid()).rank;
}

/* Where PMIx says the rank alone, or another launcher does not say of how many. */
static bool is_of_several(const struct proc_ranks *ranks)
{
	if (ranks->world_size >= 0)
		return ranks->rank >= 0 && ranks->world_size > 1;
	return ranks->rank > 0 || (ranks->rank == 0 && getenv("PMIX_RANK"));
}

bool output_name_is_of_ranks(void)
{
	const struct proc_ranks own = proc_read_ranks((uint32_t)getpid());

	return is_of_several(&own);
}

struct output_name_facts output_name_facts_now(char *host, size_t host_size)
{
	struct utsname machine;

	snprintf(host, host_size, "%s", uname(&machine) == 0 ? machine.nodename : "unknown");
	return (struct output_name_facts){
		.host = host,
		.rank = own_rank(),
		.pid = (uint32_t)getpid(),
		.time = time(NULL),
	};
}

/* A host's name is part of a file's name. */
static void add_host(struct strbuf *out, const char *host)
{
	for (; *host; host++)
		strbuf_add_char(out, *host == '/' ? '_' : *host);
}

static int add_rank(struct strbuf *out, const char *pattern, int64_t rank, struct errmsg *err)
{
	if (rank < 0)
		return errmsg_set(err, -EINVAL,
			"-o %s: %%r is the rank, and none of RANK, OMPI_COMM_WORLD_RANK, "
			"MV2_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK and SLURM_PROCID is set: start sonde with torchrun, mpirun or "
			"srun, or use %%p",
			pattern);
	strbuf_addf(out, "%" PRId64, rank);
	return 0;
}

static void add_time(struct strbuf *out, time_t seconds)
{
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &utc);
	strbuf_add(out, text);
}

static int add_mark(struct strbuf *out, char mark, const char *pattern,
	const struct output_name_facts *facts, struct errmsg *err)
{
	switch (mark) {
	case 'h':
		add_host(out, facts->host);
		return 0;
	case 'r':
		return add_rank(out, pattern, facts->rank, err);
	case 'p':
		strbuf_addf(out, "%" PRIu32, facts->pid);
		return 0;
	case 't':
		add_time(out, facts->time);
		return 0;
	case '%':
		strbuf_add_char(out, '%');
		return 0;
	default:
		return errmsg_set(err, -EINVAL,
			"-o %s: a percent sign is followed by h (host), r (rank), p (process id), "
			"t (time), or by another one for itself",
			pattern);
	}
}

int output_name_expand(struct strbuf *out, const char *pattern,
	const struct output_name_facts *facts, struct errmsg *err)
{
	int r = 0;

	for (const char *at = pattern; r == 0 && *at; at++) {
		if (*at == '%')
			r = add_mark(out, *++at, pattern, facts, err);
		else
			strbuf_add_char(out, *at);
	}
	return r < 0 ? r : strbuf_status(out);
}

static int make_folder_of(const char *path, struct errmsg *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = NULL;
	int r;

	if (!slash || slash == path)
		return 0;
	folder = strndup(path, (size_t)(slash - path));
	r = folder ? new_folders(folder, 0777) : -ENOMEM;
	return r < 0 ? errmsg_set(err, r, "cannot make the folder of %s: %s", path, strerror(-r))
		     : 0;
}

int output_name_make(struct strbuf *out, const char *pattern, struct errmsg *err)
{
	char host[sizeof(((struct utsname *)NULL)->nodename)];
	const struct output_name_facts facts = output_name_facts_now(host, sizeof(host));
	int r = output_name_expand(out, pattern, &facts, err);

	return r < 0 ? r : make_folder_of(strbuf_cstr(out), err);
}
