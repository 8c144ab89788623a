/* SPDX-License-Identifier: Apache-2.0 */
/* Time in the kernel: read_zeroes reads /dev/zero in pieces of 1 MiB, so nearly all samples have
 * kernel frames. */
#include <fcntl.h>

#include "workload.h"

static NOINLINE void read_zeroes(int fd, char *buffer, size_t length)
{
	if (read(fd, buffer, length) != (ssize_t)length)
		die("read");
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double end = cpu_s() + seconds_argument(argc, argv);
	size_t length = 1 << 20;
	char *buffer = malloc(length);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (!buffer || fd < 0)
		die("/dev/zero");
	ready();
	while (cpu_s() < end)
		read_zeroes(fd, buffer, length);
	free(buffer);
	close(fd);
	return 0;
}
