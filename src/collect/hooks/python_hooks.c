/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/hooks/python_hooks.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"

#define BOOTSTRAP "hooks/bootstrap"

const char *const python_hook_groups[] = {"torch", "transformers", "vllm", NULL};

/* What --hooks transformers:LEVEL may say: LEVELS of python/sonde/_watch.py. */
static const char *const model_levels[] = {"step", "layer", "component", "stats", NULL};

/* And torch: options_of() of python/sonde/_gradients.py. */
static const char *const torch_options[] = {"gradients", NULL};

#define MODEL_GROUP "transformers"
#define TORCH_GROUP "torch"
#define EVERY       "every="

static bool is_one_of(const char *const *names, const char *name, size_t length)
{
	for (size_t i = 0; names[i]; i++) {
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return true;
	}
	return false;
}

/* A whole number from 1 on, after "every=". */
static bool is_every(const char *option, size_t length)
{
	size_t prefix = strlen(EVERY);

	if (length <= prefix || length > prefix + 9 || memcmp(option, EVERY, prefix) != 0)
		return false;
	return strspn(option + prefix, "0123456789") == length - prefix &&
	       strspn(option + prefix, "0") != length - prefix;
}

static bool is_group(const char *group, size_t length, const char *name)
{
	return length == strlen(name) && memcmp(group, name, length) == 0;
}

/* The options behind a group's name, each with a colon before it. */
static int check_options(
	const char *group, size_t group_length, const char *options, struct errmsg *err)
{
	while (*options == ':') {
		const char *option = options + 1;
		size_t length = strcspn(option, ":,");

		bool is_torch = is_group(group, group_length, TORCH_GROUP);

		if (!is_torch && !is_group(group, group_length, MODEL_GROUP))
			return errmsg_set(err, -EINVAL,
				"--hooks: only " MODEL_GROUP " and " TORCH_GROUP
				" take options, and %.*s is given '%.*s'; leave it out",
				(int)group_length, group, (int)MIN(length, (size_t)60), option);
		if (is_torch && !is_one_of(torch_options, option, length) &&
			!is_every(option, length))
			return errmsg_set(err, -EINVAL,
				"--hooks " TORCH_GROUP
				": '%.*s' is no option of it; give gradients, and every=N for one "
				"step in N",
				(int)MIN(length, (size_t)60), option);
		if (!is_torch && !is_one_of(model_levels, option, length) &&
			!is_every(option, length))
			return errmsg_set(err, -EINVAL,
				"--hooks " MODEL_GROUP ": '%.*s' is no level of models; give step, "
				"layer, component or stats, and every=N for one forward pass in N",
				(int)MIN(length, (size_t)60), option);
		options = option + length;
	}
	return 0;
}

int python_hooks_check(const char *list, struct errmsg *err)
{
	if (strcmp(list, PYTHON_HOOKS_AUTO) == 0 || strcmp(list, PYTHON_HOOKS_NONE) == 0)
		return 0;
	for (const char *name = list;; name++) {
		size_t length = strcspn(name, ",:");
		int r;

		if (!is_one_of(python_hook_groups, name, length))
			return errmsg_set(err, -EINVAL,
				"--hooks %.60s: there are no hooks '%.*s'; give torch, "
				"transformers, vllm, several with commas between them, auto or "
				"none",
				list, (int)MIN(length, (size_t)60), name);
		r = check_options(name, length, name + length, err);
		if (r < 0)
			return r;
		name += strcspn(name, ",");
		if (!*name)
			return 0;
	}
}

static int take_package(const char *path, char **ret_folder)
{
	_cleanup_strbuf_ struct strbuf bootstrap = {0};

	strbuf_addf(&bootstrap, "%s/" BOOTSTRAP "/sitecustomize.py", path);
	if (strbuf_status(&bootstrap) < 0)
		return -ENOMEM;
	if (access(strbuf_cstr(&bootstrap), R_OK) < 0)
		return -ENOENT;
	*ret_folder = realpath(path, NULL);
	return *ret_folder ? 0 : -errno;
}

/*
 * Built, installed, and where pip puts packages: of an environment, of the user, of Debian's
 * Python, and with
 * --target.
 */
static int find_package(const char *program, char **ret_folder)
{
	static const char *const places[] = {"python/sonde", "../" SONDE_PYTHONDIR "/sonde",
		SONDE_PYTHONDIR "/sonde", "../lib/python3*/site-packages/sonde",
		"../lib64/python3*/site-packages/sonde", "../lib/python3*/dist-packages/sonde",
		"../sonde"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_strbuf_ struct strbuf pattern = {0};
		glob_t found;
		int r;

		if (places[i][0] != '/')
			escape_glob(&pattern, program);
		strbuf_add(&pattern, places[i]);
		if (strbuf_status(&pattern) < 0)
			return -ENOMEM;
		if (glob(strbuf_cstr(&pattern), 0, NULL, &found) != 0)
			continue;
		r = -ENOENT;
		for (size_t j = 0; r == -ENOENT && j < found.gl_pathc; j++)
			r = take_package(found.gl_pathv[j], ret_folder);
		globfree(&found);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int python_package_find(char **ret_folder, struct errmsg *err)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash, *folder = NULL;
	_cleanup_strbuf_ struct strbuf core = {0};

	if (length < 0)
		return errmsg_set(err, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
	program[length] = '\0';
	slash = strrchr(program, '/');
	if (slash)
		slash[1] = '\0';
	if (find_package(program, &folder) < 0)
		return errmsg_set(err, -ENOENT,
			"the Python package sonde is not beside the program; install sonde again");
	strbuf_addf(&core, "%s/_core.abi3.so", folder);
	if (access(strbuf_cstr(&core), R_OK) < 0) {
		errmsg_set(err, -ENOENT,
			"the Python package %s has no extension _core.abi3.so; install sonde again",
			folder);
		free(folder);
		return -ENOENT;
	}
	*ret_folder = folder;
	return 0;
}

int python_hooks_groups(const char *list, struct strbuf *out)
{
	if (strcmp(list, PYTHON_HOOKS_AUTO) != 0) {
		strbuf_add(out, list);
		return strbuf_status(out);
	}
	for (size_t i = 0; python_hook_groups[i]; i++)
		strbuf_addf(out, "%s%s", i ? "," : "", python_hook_groups[i]);
	return strbuf_status(out);
}

int python_hooks_path(const char *folder, struct strbuf *out)
{
	const char *before = getenv("PYTHONPATH");

	strbuf_addf(out, "%s/" BOOTSTRAP, folder);
	if (before && *before) /* an empty entry would be the current folder */
		strbuf_addf(out, ":%s", before);
	return strbuf_status(out);
}
