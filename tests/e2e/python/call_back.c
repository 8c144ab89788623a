/* SPDX-License-Identifier: Apache-2.0 */
/* Calls back into Python: from the caller's thread, and from one that Python did not make. */
#include <pthread.h>

typedef int call_back_function(int);

__attribute__((noinline)) int call_back(call_back_function *function, int times)
{
	int sum = 0;

	for (int i = 0; i < times; i++)
		sum += function(i);
	return sum;
}

static void *in_native_thread(void *function)
{
	call_back((call_back_function *)function, 1);
	return 0;
}

int call_back_in_thread(call_back_function *function)
{
	pthread_t thread;

	if (pthread_create(&thread, 0, in_native_thread, (void *)function))
		return -1;
	return pthread_join(thread, 0);
}
