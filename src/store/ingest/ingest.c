/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ingest/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "base/warn.h"
#include "store/ingest/capture.h"

#define FUTURE_NS (24 * 3600 * (int64_t)NS_PER_S) /* clocks of hosts differ by less */

/* A file as it was when it was read. */
struct file {
	char *path; /* absolute */
	struct stat status;
	char id[STORE_ID_CHARACTERS + 1];
};

static void file_done(struct file *file)
{
	free(file->path);
}

/* ---- identity ---- */

static int hash_file(int fd, struct sha256 *hash)
{
	_cleanup_free_ char *piece = malloc(1 << 20);
	ssize_t length;

	if (!piece)
		return -ENOMEM;
	while ((length = read(fd, piece, 1 << 20)) != 0) {
		if (length > 0)
			sha256_add(hash, piece, (size_t)length);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int identify(struct file *file, int fd)
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;
	int r;

	sha256_init(&hash);
	r = hash_file(fd, &hash);
	if (r < 0)
		return r;
	sha256_finish(&hash, digest);
	for (size_t i = 0; i < STORE_ID_CHARACTERS / 2; i++)
		snprintf(&file->id[2 * i], 3, "%02x", digest[i]);
	return 0;
}

static int look_at(struct file *file, const char *path, struct errmsg *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r;

	if (fd < 0 || fstat(fd, &file->status) < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(file->status.st_mode))
		return errmsg_set(err, -EINVAL,
			"%s is no regular file: give captures or traces one by one", path);
	file->path = realpath(path, NULL);
	if (!file->path)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	r = identify(file, fd);
	return r < 0 ? errmsg_set(err, r, "cannot read %s: %s", path, strerror(-r)) : 0;
}

int store_identify(const char *path, char ret_id[STORE_ID_CHARACTERS + 1], struct errmsg *err)
{
	_cleanup_(file_done) struct file file = {0};
	int r = look_at(&file, path, err);

	if (r == 0)
		memcpy(ret_id, file.id, sizeof(file.id));
	return r;
}

static int check_unchanged(const struct file *file, struct errmsg *err)
{
	struct stat now;

	if (file->path && stat(file->path, &now) == 0 && now.st_size == file->status.st_size &&
		now.st_mtim.tv_sec == file->status.st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == file->status.st_mtim.tv_nsec)
		return 0;
	return errmsg_set(err, -EAGAIN,
		"%s changed while it was read: add it when its recording has ended", file->path);
}

int64_t store_number_of(const char *id)
{
	char digits[14] = {0}; /* 52 bits, which every reader of JSON keeps */

	memcpy(digits, id, strnlen(id, 13));
	return (int64_t)strtoull(digits, NULL, 16);
}

/* ---- labels ---- */

int store_add_tags(struct store *store, int64_t number, const char *const *tags, size_t count,
	struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct store_value values[] = {store_integer(number), store_text(tags[i])};

		r = store->ops->insert(store, STORE_TAGS, values, err);
	}
	return r;
}

/* What was given anew; the rest stays. */
static int relabel(struct store *store, const struct file *file, const struct store_labels *labels,
	struct errmsg *err)
{
	const struct store_change given[] = {
		{STORE_RUN_PATH, store_text(file->path)},
		{STORE_RUN_EXPERIMENT, store_text(labels->experiment)},
		{STORE_RUN_COMMIT, store_text(labels->commit)},
		{STORE_RUN_NOTES, store_text(labels->notes)},
		{STORE_RUN_PRICE, store_number(labels->rates.price_per_kwh)},
		{STORE_RUN_CO2_RATE, store_number(labels->rates.co2_g_per_kwh)},
	};
	int64_t number = store_number_of(file->id);
	struct store_change changes[ARRAY_SIZE(given)];
	size_t count = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (given[i].value.type != STORE_NULL)
			changes[count++] = given[i];
	}
	r = store->ops->update_run(store, number, changes, count, err);
	return r < 0 ? r : store_add_tags(store, number, labels->tags, labels->tag_count, err);
}

/* ---- adding ---- */

static void warn_of_future(const struct file *file, const struct store_value *values)
{
	const struct store_value *time = &values[STORE_RUN_TIME];
	int64_t now = values[STORE_RUN_ADDED].integer;

	if (time->type == STORE_INTEGER && time->integer > now && time->integer - now > FUTURE_NS)
		warn("%s was recorded %lld days from now, by the clock of its host: that clock or "
		     "this one is wrong",
			file->path, (long long)((time->integer - now) / FUTURE_NS));
}

static int write_run(struct capture_writer *writer, const struct capture *capture,
	const struct file *file, const struct store_labels *labels)
{
	struct store_value values[STORE_RUN_COLUMN_MAX];
	int r = capture_describe(capture, file->id, labels, values);

	if (r < 0)
		return errmsg_set(writer->err, r, "memory ran out while adding %s", file->path);
	warn_of_future(file, values);
	r = capture_write(writer, STORE_RUNS, values);
	if (r == 0)
		r = store_add_tags(
			writer->store, writer->run, labels->tags, labels->tag_count, writer->err);
	if (r == 0)
		r = capture_write_details(writer, capture);
	return r < 0 ? r : capture_write_figures(writer, capture, labels->rows);
}

static int is_there(
	struct store *store, const struct file *file, int64_t *ret_count, struct errmsg *err)
{
	return store_count(store, "SELECT count(*) FROM runs WHERE id = ?1",
		STORE_PARAMETERS(store_text(file->id)), 1, ret_count, err);
}

/* In the transaction: another process may have added it meanwhile. */
static int write_all_of_it(struct capture_writer *writer, const struct capture *capture,
	const struct file *file, const struct store_labels *labels, bool *ret_was_there)
{
	int64_t count = 0;
	int r = is_there(writer->store, file, &count, writer->err);

	*ret_was_there = count != 0;
	if (r < 0)
		return r;
	if (count)
		return relabel(writer->store, file, labels, writer->err);
	if (!capture->model)
		return errmsg_set(writer->err, -EAGAIN,
			"the run of %s was deleted while it was added: add it again", file->path);
	return write_run(writer, capture, file, labels);
}

static int write_in_one(struct store *store, const struct capture *capture, const struct file *file,
	const struct store_labels *labels, struct store_added *added, struct errmsg *err)
{
	struct capture_writer writer = {
		.store = store, .run = store_number_of(file->id), .err = err};
	int r = store->ops->begin(store, err);

	if (r < 0)
		return r;
	r = write_all_of_it(&writer, capture, file, labels, &added->was_there);
	if (r == 0)
		r = store->ops->commit(store, err);
	else
		store->ops->rollback(store);
	added->rows = writer.rows;
	return r;
}

/* Where the connection broke, all of it is written anew: what was written before is not seen. */
static int write_at_last(struct store *store, const struct capture *capture,
	const struct file *file, const struct store_labels *labels, struct store_added *added,
	struct errmsg *err)
{
	const int attempts = 3;
	int r = -ECONNRESET;

	for (int i = 0; r == -ECONNRESET && i < attempts; i++)
		r = write_in_one(store, capture, file, labels, added, err);
	return r;
}

int store_add(struct store *store, const char *path, const struct store_labels *labels,
	struct store_added *ret_added, struct errmsg *err)
{
	_cleanup_(file_done) struct file file = {0};
	_cleanup_capture_ struct capture capture = {0};
	struct store_added added = {0};
	int64_t count = 0;
	int r = look_at(&file, path, err);

	if (r == 0)
		r = is_there(store, &file, &count, err);
	if (r == 0 && !count)
		r = capture_open(&capture, file.path, err);
	if (r == 0)
		r = check_unchanged(&file, err);
	capture.bytes = (uint64_t)file.status.st_size;
	if (r == 0)
		r = write_at_last(store, &capture, &file, labels, &added, err);
	if (r < 0)
		return r;
	memcpy(added.id, file.id, sizeof(added.id));
	*ret_added = added;
	return 0;
}
