/* SPDX-License-Identifier: Apache-2.0 */
#include "server/followers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "live/follower.h"
#include "server/isolate.h"

#define LOOK_NS (500 * NS_PER_MS)
/* At once; others are followed when one of these has ended. */
#define MOST_FOLLOWERS 8
/* Captures whose latest messages are kept, the newest ones. */
#define MOST_KEPT 32
/* A capture whose follower crashed so often is left alone. */
#define MOST_CRASHES 3
#define READ_CHUNK   ((size_t)64 << 10)

struct follower {
	struct loop_watch watch; /* first: of the socket */
	struct followers *followers;
	const struct capture *capture;
	uint64_t device, inode;
	pid_t pid;
	struct strbuf pending; /* the beginning of the next message */
	bool has_sent_end, is_final;
};

/* What is known of a capture from one look to the next. */
struct look {
	const struct capture *capture;
	struct capture_identity identity;
	unsigned crashes, generation;
	bool has_messages;
	bool is_final;        /* its file: it ended, or is damaged */
	uint64_t followed_ns; /* when that began */
};

struct followers {
	struct followers_setup setup;
	ARRAY_OF(struct follower *) items;
	ARRAY_OF(struct look) looks;
	struct map_u64 look_index; /* by the capture's address */
	uint64_t looked_ns;
};

static struct look *look_of(struct followers *followers, const struct capture *capture)
{
	uint64_t place;

	if (!map_u64_get(&followers->look_index, (uintptr_t)capture, &place))
		return NULL;
	return &followers->looks.items[place];
}

static struct look *add_look(struct followers *followers, const struct capture *capture)
{
	size_t place = followers->looks.count;

	if (array_reserve(&followers->looks, 1) < 0 || !followers->looks.items ||
		map_u64_set(&followers->look_index, (uintptr_t)capture, place) < 0)
		return NULL;
	followers->looks.items[place] = (struct look){.capture = capture};
	followers->looks.count++;
	return &followers->looks.items[place];
}

/* ---- messages ---- */

static int publish(struct follower *follower, enum live_message message, struct bus_data data)
{
	const char *type = live_message_types[message];

	for (size_t i = 0; i < API_MESSAGE_MAX; i++) {
		const struct api_message_kind *kind = &api_message_kinds[i];

		if (strcmp(kind->type, type) != 0)
			continue;
		data.kind = kind->frame_kind;
		return bus_publish_columns(follower->followers->setup.bus, type, kind->class,
			follower->capture->id, &data, monotonic_now_ns());
	}
	return -ENOENT;
}

/* Whole messages in what came. False: this is no message. */
static bool take_messages(struct follower *follower)
{
	struct strbuf *pending = &follower->pending;
	size_t at = 0;

	while (pending->length - at >= sizeof(struct live_packet)) {
		struct live_packet packet;
		struct bus_data data;

		memcpy(&packet, pending->data + at, sizeof(packet));
		data = (struct bus_data){
			.length = packet.length, .columns_length = packet.columns_length};
		if (packet.message >= LIVE_MESSAGE_MAX || data.length > LIVE_MESSAGE_BYTES ||
			data.columns_length > LIVE_MESSAGE_BYTES)
			return false;
		if (pending->length - at - sizeof(packet) < data.length + data.columns_length)
			break;
		at += sizeof(packet);
		data.json = pending->data + at;
		at += data.length;
		data.columns = pending->data + at;
		at += data.columns_length;
		publish(follower, (enum live_message)packet.message, data);
		follower->has_sent_end = packet.message == LIVE_ENDED;
		follower->is_final = packet.is_final;
	}
	pending->length -= at;
	memmove(pending->data, pending->data + at, pending->length);
	return true;
}

/* Of one that cannot say it itself. */
static void publish_ended(struct follower *follower, const char *reason, const char *sentence)
{
	_cleanup_strbuf_ struct strbuf data = {0};
	struct json_writer json = {.out = &data};

	json_begin_object(&json);
	json_member_text(&json, "capture", follower->capture->id);
	json_member_u64(&json, "t_ms", 0);
	json_member_text(&json, "reason", reason);
	json_member_text(&json, "message", sentence);
	json_member_known(&json, "exit_status", false, 0);
	json_end_object(&json);
	if (strbuf_status(&data) == 0)
		publish(follower, LIVE_ENDED,
			(struct bus_data){.json = strbuf_cstr(&data), .length = data.length});
}

/* ---- one follower ---- */

static void end_follower(struct follower *follower)
{
	struct followers *followers = follower->followers;

	for (size_t i = 0; i < followers->items.count; i++) {
		if (followers->items.items[i] == follower)
			followers->items.items[i] =
				followers->items.items[--followers->items.count];
	}
	loop_remove(followers->setup.loop, &follower->watch);
	close(follower->watch.fd);
	kill(follower->pid, SIGKILL);
	waitpid(follower->pid, NULL, 0);
	strbuf_done(&follower->pending);
	free(follower);
}

static void note_crash(struct follower *follower)
{
	struct look *look = look_of(follower->followers, follower->capture);

	if (look)
		look->crashes++;
	publish_ended(follower, "crashed",
		"the process that followed this capture has ended: it crashed, or memory ran out");
}

/* What it has read is not growth. */
static void note_end(const struct follower *follower)
{
	struct look *look = look_of(follower->followers, follower->capture);

	if (!look)
		return;
	look->is_final = follower->is_final;
	capture_identify(follower->capture, &look->identity);
}

static void readable(struct loop_watch *watch)
{
	struct follower *follower = (struct follower *)watch;
	char *room = strbuf_extend(&follower->pending, READ_CHUNK);
	ssize_t got = room ? recv(watch->fd, room, READ_CHUNK, MSG_DONTWAIT) : 0;
	bool is_again = got < 0 && (errno == EAGAIN || errno == EINTR);

	if (room)
		follower->pending.length -= READ_CHUNK - (got > 0 ? (size_t)got : 0);
	if (is_again || (got > 0 && take_messages(follower)))
		return;
	note_end(follower);
	if (!follower->has_sent_end)
		note_crash(follower);
	end_follower(follower);
}

_Noreturn static void run_follower(struct live_setup *setup, int parent, uint64_t memory_bytes)
{
	int descriptors[] = {setup->socket, setup->fd};

	isolate_begin("sonde-follower", parent, memory_bytes);
	isolate_keep(descriptors, ARRAY_SIZE(descriptors));
	setup->socket = descriptors[0];
	setup->fd = descriptors[1];
	live_follow(setup);
	_exit(0);
}

static int fork_follower(struct followers *followers, struct follower *follower,
	struct live_setup *setup, int *ret_socket)
{
	int sockets[2], parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	setup->socket = sockets[1];
	follower->pid = fork();
	if (follower->pid == 0)
		run_follower(setup, parent, followers->setup.memory_bytes);
	close(sockets[1]);
	if (follower->pid < 0) {
		close(sockets[0]);
		return -EAGAIN;
	}
	*ret_socket = sockets[0];
	return 0;
}

static int start_follower(
	struct followers *followers, const struct capture *capture, const struct look *look)
{
	_cleanup_free_ struct follower *follower = calloc(1, sizeof(*follower));
	_cleanup_close_ int fd = capture_open_file(capture);
	struct live_setup setup = {.fd = fd,
		.capture = capture->id,
		.name = capture->name,
		.generation = look->generation,
		.stalled_ns = LIVE_STALLED_NS,
		.gone_ns = LIVE_GONE_NS};
	int r, socket = -1;

	if (!follower || fd < 0 || array_reserve(&followers->items, 1) < 0)
		return -EAGAIN;
	r = fork_follower(followers, follower, &setup, &socket);
	if (r < 0)
		return r;
	follower->watch = (struct loop_watch){.fd = socket, .ready = readable};
	follower->followers = followers;
	follower->capture = capture;
	follower->device = look->identity.device;
	follower->inode = look->identity.inode;
	if (loop_add(followers->setup.loop, &follower->watch) < 0) {
		close(socket);
		return -EAGAIN;
	}
	followers->items.items[followers->items.count++] = TAKE_PTR(follower);
	return 0;
}

/* ---- looking ---- */

static struct follower *follower_of(
	const struct followers *followers, const struct capture *capture)
{
	for (size_t i = 0; i < followers->items.count; i++) {
		if (followers->items.items[i]->capture == capture)
			return followers->items.items[i];
	}
	return NULL;
}

/* Of those that nobody records any more the oldest goes, where many have messages. */
static void forget_oldest(struct followers *followers)
{
	struct look *oldest = NULL;
	size_t kept = 0;

	array_foreach (&followers->looks, look) {
		kept += look->has_messages;
		if (look->has_messages && !follower_of(followers, look->capture) &&
			(!oldest || look->followed_ns < oldest->followed_ns))
			oldest = look;
	}
	if (kept < MOST_KEPT || !oldest)
		return;
	bus_forget(followers->setup.bus, oldest->capture->id);
	oldest->has_messages = false;
}

static void follow(struct followers *followers, struct look *look, uint64_t now_ns)
{
	if (followers->items.count >= MOST_FOLLOWERS || look->crashes >= MOST_CRASHES)
		return;
	if (!look->has_messages)
		forget_oldest(followers);
	/* What was sent of it before is of another beginning. */
	bus_forget(followers->setup.bus, look->capture->id);
	look->generation++;
	if (start_follower(followers, look->capture, look) < 0)
		return;
	look->has_messages = true;
	look->followed_ns = now_ns;
}

static bool is_recording_name(const char *name)
{
	return text_ends_in(name, ".pftrace") || text_ends_in(name, ".perfetto-trace");
}

static bool is_same_file(const struct capture_identity *left, const struct capture_identity *right)
{
	return left->device == right->device && left->inode == right->inode;
}

static void look_again(
	struct followers *followers, struct look *look, bool is_first, uint64_t now_ns)
{
	const struct capture_identity *now = &look->capture->identity;
	struct follower *follower = follower_of(followers, look->capture);
	bool is_same = !is_first && is_same_file(now, &look->identity);
	bool has_grown = is_same && now->size > look->identity.size;

	if (follower && (look->capture->is_gone || follower->device != now->device ||
				follower->inode != now->inode)) {
		publish_ended(follower, "unreadable",
			look->capture->is_gone ? "the capture is gone"
					       : "another file has taken this capture's name");
		end_follower(follower);
		follower = NULL;
	}
	/* The list may be a second old: older than what was noted when a follower ended. */
	if (has_grown || !is_same)
		look->identity = *now;
	look->is_final &= is_same;
	if (!follower && !look->capture->is_gone &&
		((has_grown && !look->is_final) || (is_first && followers->setup.follows_at_once)))
		follow(followers, look, now_ns);
}

void followers_tick(struct followers *followers, uint64_t now_ns, bool is_wanted)
{
	struct captures *captures = followers->setup.captures;

	if ((!is_wanted && !followers->items.count && !followers->setup.follows_at_once) ||
		now_ns - followers->looked_ns < LOOK_NS)
		return;
	followers->looked_ns = now_ns;
	captures_refresh(captures, now_ns);
	for (size_t i = 0; i < captures_count(captures); i++) {
		const struct capture *capture = captures_get(captures, i);
		struct look *look;
		bool is_first;

		if (capture->is_folder || !is_recording_name(capture->name))
			continue;
		look = look_of(followers, capture);
		is_first = !look;
		if (is_first)
			look = add_look(followers, capture);
		if (!look)
			return;
		look_again(followers, look, is_first, now_ns);
	}
}

/* ---- all ---- */

int followers_open(struct followers **ret_followers, const struct followers_setup *setup)
{
	struct followers *followers = calloc(1, sizeof(*followers));

	if (!followers)
		return -ENOMEM;
	followers->setup = *setup;
	*ret_followers = followers;
	return 0;
}

struct followers *followers_close(struct followers *followers)
{
	if (followers) {
		while (followers->items.count)
			end_follower(followers->items.items[0]);
		array_done(&followers->items);
		array_done(&followers->looks);
		map_u64_done(&followers->look_index);
		free(followers);
	}
	return NULL;
}
