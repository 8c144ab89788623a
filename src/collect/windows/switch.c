/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/windows/switch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.h"

struct window_switch {
	window_switch_function *set_active;
	void *context;
	struct target_gate *gate;
	int poke_fd, stop_fd;
	pthread_t thread;
	bool is_running;
	pthread_mutex_t lock; /* what follows, and set_active() */
	bool is_on;
	uint64_t on_ns; /* when it was switched on last */
	int result;
};

static int set(struct window_switch *window_switch, bool on)
{
	int result = 0;

	pthread_mutex_lock(&window_switch->lock);
	on = on || target_gate_is_open(window_switch->gate);
	if (on != window_switch->is_on)
		result = window_switch->set_active(window_switch->context, on);
	if (result == 0 && on && !window_switch->is_on)
		window_switch->on_ns = monotonic_now_ns();
	if (result == 0)
		window_switch->is_on = on;
	else
		window_switch->result = result;
	result = window_switch->result;
	pthread_mutex_unlock(&window_switch->lock);
	return result;
}

static void *run(void *context)
{
	struct window_switch *window_switch = context;
	struct pollfd polls[] = {{.fd = window_switch->poke_fd, .events = POLLIN},
		{.fd = window_switch->stop_fd, .events = POLLIN}};
	char events[4096];

	pthread_setname_np(pthread_self(), "sonde-window");
	for (;;) {
		if (target_gate_is_open(window_switch->gate))
			set(window_switch, true);
		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			return NULL;
		if (polls[1].revents)
			return NULL;
		while (read(window_switch->poke_fd, events, sizeof(events)) > 0)
			;
	}
}

int window_switch_start(struct window_switch **ret_window_switch,
	window_switch_function *set_active, void *context, struct target_gate *gate,
	const char *gate_path)
{
	struct window_switch *window_switch = calloc(1, sizeof(*window_switch));
	int result = 0;

	if (!window_switch)
		return -ENOMEM;
	*window_switch = (struct window_switch){
		.set_active = set_active,
		.context = context,
		.gate = gate,
		.is_on = true,
		.on_ns = monotonic_now_ns(),
	};
	pthread_mutex_init(&window_switch->lock, NULL);
	window_switch->poke_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	window_switch->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (window_switch->poke_fd < 0 || window_switch->stop_fd < 0 ||
		inotify_add_watch(window_switch->poke_fd, gate_path, IN_ATTRIB) < 0)
		result = -errno;
	if (result == 0)
		result = -pthread_create(&window_switch->thread, NULL, run, window_switch);
	window_switch->is_running = result == 0;
	if (result < 0) {
		window_switch_free(window_switch);
		return result;
	}
	*ret_window_switch = window_switch;
	return 0;
}

int window_switch_set(struct window_switch *window_switch, bool on)
{
	return set(window_switch, on);
}

uint64_t window_switch_late_ns(
	struct window_switch *window_switch, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t on_ns;

	pthread_mutex_lock(&window_switch->lock);
	on_ns = window_switch->is_on ? window_switch->on_ns : end_ns;
	pthread_mutex_unlock(&window_switch->lock);
	return on_ns > begin_ns ? MIN(on_ns, end_ns) - begin_ns : 0;
}

struct window_switch *window_switch_free(struct window_switch *window_switch)
{
	const uint64_t one = 1;

	if (!window_switch)
		return NULL;
	if (window_switch->is_running) {
		while (write(window_switch->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(window_switch->thread, NULL);
	}
	closep(&window_switch->poke_fd);
	closep(&window_switch->stop_fd);
	pthread_mutex_destroy(&window_switch->lock);
	free(window_switch);
	return NULL;
}
