/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `wait_calls SECONDS`: threads that wait in calls that are neither sleeps nor reads, each SECONDS
 * long: for locks on a file by flock and by fcntl, for the child of a vfork, for a signal, and
 * again and again, uninterruptibly, for the other CPUs. At the end it prints, for all but the last,
 * "waited FUNCTION SECONDS": what they measured, without the time that they waited for a CPU.
 */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

static double seconds;
static char path[] = "/tmp/sonde-wait-calls.XXXXXX";

static struct timespec as_timespec(double time)
{
	return (struct timespec){
		.tv_sec = (time_t)time, .tv_nsec = (long)((time - (double)(time_t)time) * 1e9)};
}

static int open_again(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("open");
	return fd;
}

static NOINLINE void wait_in_flock(void)
{
	if (flock(open_again(), LOCK_EX) < 0)
		die("flock");
}

static NOINLINE void wait_in_fcntl(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(open_again(), F_OFD_SETLKW, &lock) < 0)
		die("fcntl");
}

static NOINLINE void wait_in_vfork(void)
{
	struct timespec time = as_timespec(seconds);
	pid_t child = vfork();

	if (child == 0) {
		nanosleep(&time, NULL);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) < 0)
		die("vfork");
}

static NOINLINE void wait_for_signal(void)
{
	struct timespec time = as_timespec(seconds);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigtimedwait(&set, NULL, &time);
	KEEP_FRAME();
}

/* With one CPU it does not wait at all. */
static NOINLINE void wait_in_membarrier(void)
{
	double end = now_s() + seconds;

	while (now_s() < end)
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
			die("membarrier");
}

static struct wait {
	const char *function;
	void (*wait)(void);
	double waited_s;
} waits[] = {
	{"wait_in_flock", wait_in_flock},
	{"wait_in_fcntl", wait_in_fcntl},
	{"wait_in_vfork", wait_in_vfork},
	{"wait_for_signal", wait_for_signal},
	{"wait_in_membarrier", wait_in_membarrier},
};

static void *measure(void *argument)
{
	struct wait *wait = argument;
	struct moment begin = moment_now(), end;

	wait->wait();
	end = moment_now();
	wait->waited_s = waited_s(&begin, &end);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { WAITS = sizeof(waits) / sizeof(waits[0]) };
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct timespec time;
	pthread_t threads[WAITS];
	int fd = mkstemp(path);

	seconds = seconds_argument(argc, argv);
	time = as_timespec(seconds);
	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
		die("lock");
	for (int i = 0; i < WAITS; i++)
		pthread_create(&threads[i], NULL, measure, &waits[i]);
	ready();
	nanosleep(&time, NULL);
	lock.l_type = F_UNLCK;
	if (flock(fd, LOCK_UN) < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
		die("unlock");
	for (int i = 0; i < WAITS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WAITS - 1; i++)
		printf("waited %s %.6f\n", waits[i].function, waits[i].waited_s);
	unlink(path);
	return 0;
}
