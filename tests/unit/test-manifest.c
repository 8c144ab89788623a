/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest: what it says, and that a write that fails leaves the last good one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "collect/session/manifest.h"

static const struct output_how private = {.access = OUTPUT_PRIVATE};

static const struct capture_session session = {
	.sonde_version = "1",
	.host = "node-7",
	.start_time_ns = 1000,
	.start_realtime_ns = 500000,
};

static char folder[64], capture[128], path[160];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-manifest-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(capture, sizeof(capture), "%s/run.pftrace", folder);
	snprintf(path, sizeof(path), "%s" MANIFEST_SUFFIX, capture);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder); /* fails when anything else was left there */
}

static struct manifest *begin(void)
{
	struct manifest *manifest = NULL;

	assert_int_equal(manifest_new(&manifest, capture, &private, &session, "/run/session"), 0);
	return manifest;
}

static void read_back(struct strbuf *text)
{
	strbuf_clear(text);
	assert_int_equal(read_whole_file(path, 1 << 20, text), 0);
}

static void check_has(const struct strbuf *text, const char *wanted)
{
	if (!strstr(text->data, wanted))
		fail_msg("%s is not in %s", wanted, text->data);
}

static void check_lacks(const struct strbuf *text, const char *unwanted)
{
	if (strstr(text->data, unwanted))
		fail_msg("%s is in %s", unwanted, text->data);
}

static void test_windows(void **state)
{
	struct capture_window window = {
		.number = 1,
		.begin_ns = 1500,
		.first_step = 1,
		.opened_by = CAPTURE_TRIGGER_FLAG,
		.label = "a \"quoted\" one",
	};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct manifest *manifest = begin();

	assert_int_equal(manifest_window(manifest, &window), 0);
	assert_int_equal(manifest_write(manifest, false, NULL), 0);
	read_back(&text);
	check_has(&text, "\"format\": \"sonde-windows\"");
	check_has(&text, "\"host\": \"node-7\"");
	check_has(&text, "\"capture\": \"run.pftrace\"");
	check_has(&text, "\"session\": \"/run/session\"");
	check_has(&text, "\"recording_ended\": false");
	check_has(&text, "\"begin_unix_time_ns\": 500500");
	check_has(&text, "\"begin_monotonic_ns\": 1500");
	check_has(&text, "\"end_monotonic_ns\": null");
	check_has(&text, "\"closed_by\": null");
	check_has(&text, "\"first_step\": null");
	check_has(&text, "\"label\": \"a \\\"quoted\\\" one\"");
	window.end_ns = 2500;
	window.closed_by = CAPTURE_REASON_MAX_STEPS;
	window.last_step = 3;
	check_has(&text, "\"file\": \"run.pftrace\"");
	assert_int_equal(manifest_window(manifest, &window), 0);
	manifest_split(manifest);
	assert_int_equal(manifest_write(manifest, true, NULL), 0);
	read_back(&text);
	check_has(&text, "\"end_unix_time_ns\": 501500");
	check_has(&text, "\"closed_by\": \"max-steps\"");
	check_has(&text, "\"last_step\": 3");
	check_has(&text, "\"file\": \"run.w1.pftrace\"");
	check_has(&text, "\"recording_ended\": true");
	check_lacks(&text, "\"begin_monotonic_ns\": 1500,\n      \"end_unix_time_ns\": null");
	manifest_free(manifest);
}

/* A process that waits for its input to end, and runs with this environment. */
static pid_t start_process(char *const *environment, int *ret_input)
{
	char *const command[] = {"cat", NULL};
	int input[2], output[2];
	char echoed;
	pid_t pid;

	assert_int_equal(pipe2(input, O_CLOEXEC) | pipe2(output, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		execve("/bin/cat", command, environment);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	/* Until it answers, its environment may be ours. */
	assert_int_equal(write(input[1], "x", 1), 1);
	assert_int_equal(read(output[0], &echoed, 1), 1);
	close(output[0]);
	*ret_input = input[1];
	return pid;
}

static void check_rank(char *const *environment, bool joined_late, const char *wanted)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct manifest *manifest = begin();
	int input;
	pid_t pid = start_process(environment, &input);

	assert_int_equal(manifest_process(manifest, (uint32_t)pid, joined_late), 0);
	assert_int_equal(manifest_process(manifest, (uint32_t)pid, !joined_late), 0);
	assert_int_equal(manifest_write(manifest, true, NULL), 0);
	close(input);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	read_back(&text);
	check_has(&text, wanted);
	manifest_free(manifest);
}

static void test_ranks(void **state)
{
	char *const torch[] = {
		"X=1", "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "SLURM_PROCID=9", NULL};
	char *const mpi[] = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", NULL};
	char *const slurm[] = {"SLURM_PROCID=5", "SLURM_NTASKS=16", "SLURM_LOCALID=5", NULL};
	char *const strange[] = {"RANK=many", "WORLD_SIZE=-1", "NO_RANK=1", NULL};

	check_rank(torch, true,
		"\"rank\": 3,\n      \"world_size\": 8,\n      \"local_rank\": 1,\n"
		"      \"joined_late\": true");
	check_rank(mpi, false,
		"\"rank\": 2,\n      \"world_size\": 4,\n      \"local_rank\": null,\n"
		"      \"joined_late\": false");
	check_rank(slurm, false, "\"rank\": 5,\n      \"world_size\": 16");
	check_rank(strange, false, "\"rank\": null,\n      \"world_size\": null");
}

static void test_steps(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct manifest *manifest = begin();

	assert_int_equal(manifest_step(manifest, 7, "step"), 0);
	assert_int_equal(manifest_step(manifest, 7, "step"), 0);
	assert_int_equal(manifest_step(manifest, 7, "optimizer"), 0);
	assert_int_equal(manifest_step(manifest, 8, "step"), 0);
	assert_int_equal(manifest_process(manifest, 1u << 30, false), 0); /* there is none */
	assert_int_equal(manifest_write(manifest, true, NULL), 0);
	read_back(&text);
	check_has(&text, "\"pid\": 7,\n      \"name\": \"step\",\n      \"count\": 2");
	check_has(&text, "\"name\": \"optimizer\",\n      \"count\": 1");
	check_has(&text, "\"pid\": 8,\n      \"name\": \"step\",\n      \"count\": 1");
	check_has(&text, "\"rank\": null");
	manifest_free(manifest);
}

/* A full disk, as seen through the limit of file sizes. */
static void test_full(void **state)
{
	struct capture_window window = {.number = 1, .begin_ns = 1500, .opened_by = 1};
	_cleanup_strbuf_ struct strbuf before = {0}, after = {0};
	struct manifest *manifest = begin();
	struct rlimit limit, tight;
	struct errmsg err = {""};

	assert_int_equal(manifest_write(manifest, false, NULL), 0);
	read_back(&before);
	assert_int_equal(manifest_window(manifest, &window), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	tight = (struct rlimit){.rlim_cur = 100, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(manifest_write(manifest, false, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "sonde report --by window"));
	read_back(&after);
	assert_string_equal(before.data, after.data);
	assert_int_equal(manifest_write(manifest, true, NULL), 0);
	manifest_free(manifest);
}

static void test_no_folder(void **state)
{
	struct manifest *manifest = NULL;
	struct errmsg err = {""};

	assert_int_equal(
		manifest_new(&manifest, "/nonexistent/x.pftrace", &private, &session, NULL), 0);
	assert_int_equal(manifest_write(manifest, true, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.pftrace.windows.json"));
	manifest_free(manifest);
}

/* Ten thousand windows are not ten thousand documents of thousands of windows. */
static void test_many(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct manifest *manifest = begin();

	for (uint32_t i = 1; i <= 300; i++) {
		const struct capture_window window = {
			.number = i, .begin_ns = i * 10, .end_ns = i * 10 + 5};

		assert_int_equal(manifest_window(manifest, &window), 0);
		assert_int_equal(manifest_write(manifest, false, NULL), 0);
	}
	read_back(&text);
	check_has(&text, "\"number\": 100");
	assert_int_equal(manifest_write(manifest, true, NULL), 0);
	read_back(&text);
	check_has(&text, "\"number\": 300");
	manifest_free(manifest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
