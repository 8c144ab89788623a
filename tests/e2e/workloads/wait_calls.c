/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `wait_calls SECONDS`: threads that wait in calls that are neither sleeps nor reads, each SECONDS
 * long: for locks on a file by flock and by fcntl, for the child of a vfork, for a signal, and
 * again and again, uninterruptibly, for the other CPUs.
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

static NOINLINE void *wait_in_flock(void *unused)
{
	if (flock(open_again(), LOCK_EX) < 0)
		die("flock");
	return unused;
}

static NOINLINE void *wait_in_fcntl(void *unused)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(open_again(), F_OFD_SETLKW, &lock) < 0)
		die("fcntl");
	return unused;
}

static NOINLINE void *wait_in_vfork(void *unused)
{
	struct timespec time = as_timespec(seconds);
	pid_t child = vfork();

	if (child == 0) {
		nanosleep(&time, NULL);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) < 0)
		die("vfork");
	return unused;
}

static NOINLINE void *wait_for_signal(void *unused)
{
	struct timespec time = as_timespec(seconds);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigtimedwait(&set, NULL, &time);
	return unused;
}

/* With one CPU it does not wait at all. */
static NOINLINE void *wait_in_membarrier(void *unused)
{
	double end = now_s() + seconds;

	while (now_s() < end)
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
			die("membarrier");
	return unused;
}

int main(int argc, char **argv)
{
	static void *(*const waits[])(void *) = {
		wait_in_flock, wait_in_fcntl, wait_in_vfork, wait_for_signal, wait_in_membarrier};
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
		pthread_create(&threads[i], NULL, waits[i], NULL);
	ready();
	nanosleep(&time, NULL);
	lock.l_type = F_UNLCK;
	if (flock(fd, LOCK_UN) < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
		die("unlock");
	for (int i = 0; i < WAITS; i++)
		pthread_join(threads[i], NULL);
	unlink(path);
	return 0;
}
