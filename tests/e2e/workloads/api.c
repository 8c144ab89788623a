/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api SCENARIO: a program that uses sonde's C API. With API_CHECK set, what the calls return is
 * checked against a recording without windows.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sonde/sonde.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  1000

static void nap(long ms)
{
	struct timespec pause = {.tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

static void check(int is_right, const char *what)
{
	if (getenv("API_CHECK") && !is_right) {
		fprintf(stderr, "api: %s\n", what);
		exit(1);
	}
}

static void all(void)
{
	struct sonde_token token = SONDE_TOKEN_INIT;
	char name[16] = "first";

	errno = ENOENT;
	sonde_range_push("outer");
	check(sonde_is_open() && sonde_window() == 1, "is it open?");
	for (int i = 0; i < 3; i++) {
		sonde_range_push("inner");
		nap(2);
		sonde_range_pop();
		sonde_counter("loss", 4.0 - i);
		check(sonde_step("batch") == (uint64_t)i + 1, "a count of steps");
	}
	sonde_range_pop();
	sonde_range_push(name); /* another one at the same address */
	sonde_range_pop();
	strcpy(name, "second");
	sonde_range_push(name);
	sonde_range_pop();
	sonde_range_push("a name that has more than fifteen bytes");
	sonde_range_pop();
	sonde_range_push(NULL);
	sonde_range_pop();
	sonde_mark("a mark");
	token.request = "r1";
	token.phase = "prefill";
	sonde_token(&token);
	token.phase = "decode";
	for (token.index = 0; token.index < 5; token.index++) {
		nap(2);
		sonde_token(&token);
	}
	token.size = 1; /* of no release */
	sonde_token(&token);
	sonde_token(NULL);
	sonde_counter(NULL, 1);
	check(errno == ENOENT, "errno changed");
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		sonde_range_push("round");
		sonde_range_push("part");
		sonde_range_pop();
		sonde_range_pop();
		sonde_step("round");
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all_threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&all_threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all_threads[i], NULL);
	check(sonde_step("round") == THREADS * ROUNDS + 1, "steps of threads");
}

/* The child of a fork is not recorded, and what its parent has open stays so. */
static void forks(char **arguments)
{
	pid_t child;

	sonde_range_push("around the fork");
	child = fork();
	if (!child) {
		check(!sonde_is_open() && !sonde_window(), "a forked child is recorded");
		sonde_range_push("in the child");
		sonde_counter("in the child", 1);
		check(!sonde_step("step"), "a forked child makes steps");
		execl(arguments[0], arguments[0], "executed", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	sonde_range_pop();
}

static void executed(void)
{
	sonde_range_push("after exec");
	sonde_range_pop();
}

/* Says where it is, joins the session that the next line names, and works until it is ended. */
static void late(void)
{
	char folder[512];

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(folder, sizeof(folder), stdin)) {
		folder[strcspn(folder, "\n")] = '\0';
		printf("joined %d\n", sonde_open_session(folder));
		sonde_range_push("late");
		sonde_range_pop();
		sonde_step("late step");
		printf("open %d\n", sonde_is_open());
		fflush(stdout);
	}
}

int main(int count, char **arguments)
{
	const char *scenario = count > 1 ? arguments[1] : "";

	if (strcmp(scenario, "all") == 0)
		all();
	else if (strcmp(scenario, "threads") == 0)
		threads();
	else if (strcmp(scenario, "fork") == 0)
		forks(arguments);
	else if (strcmp(scenario, "executed") == 0)
		executed();
	else if (strcmp(scenario, "late") == 0)
		late();
	else if (strcmp(scenario, "kill") == 0) {
		sonde_range_push("left open");
		raise(SIGKILL);
	}
	return 0;
}
