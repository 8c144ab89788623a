/* SPDX-License-Identifier: Apache-2.0 */
#include "store/change.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/ingest/ingest.h"

/* ---- labels ---- */

static int change_tags(struct store *store, const struct run_row *row, const char *const *added,
	size_t added_count, const char *const *removed, size_t removed_count, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < removed_count; i++)
		r = store->ops->delete_tag(store, run_key(row), removed[i], err);
	return r < 0 ? r : store_add_tags(store, run_key(row), added, added_count, err);
}

/* Ends what was begun: as it should be, or not at all. */
static int end(struct store *store, int r, struct errmsg *err)
{
	if (r == 0)
		return store->ops->commit(store, err);
	store->ops->rollback(store);
	return r;
}

int store_tag(struct store *store, const struct run_row *row, const char *const *added,
	size_t added_count, const char *const *removed, size_t removed_count, struct errmsg *err)
{
	int r = store->ops->begin(store, err);

	if (r < 0)
		return r;
	r = change_tags(store, row, added, added_count, removed, removed_count, err);
	return end(store, r, err);
}

int store_note(struct store *store, const struct run_row *row, const char *note, struct errmsg *err)
{
	const struct store_change change = {STORE_RUN_NOTES, store_text(note)};

	return store->ops->update_run(store, run_key(row), &change, 1, err);
}

static int replace_tags(struct store *store, const struct run_row *row,
	const struct store_edit *edit, struct errmsg *err)
{
	int r = store->ops->delete_tag(store, run_key(row), NULL, err);

	return r < 0 ? r : store_add_tags(store, run_key(row), edit->tags, edit->tag_count, err);
}

static int edit_labels(struct store *store, const struct run_row *row,
	const struct store_edit *edit, struct errmsg *err)
{
	struct store_change changes[2];
	size_t count = 0;
	int r = edit->has_tags ? replace_tags(store, row, edit, err) : 0;

	if (edit->has_note)
		changes[count++] = (struct store_change){STORE_RUN_NOTES, store_text(edit->note)};
	if (edit->has_experiment)
		changes[count++] =
			(struct store_change){STORE_RUN_EXPERIMENT, store_text(edit->experiment)};
	return r < 0 || !count ? r
			       : store->ops->update_run(store, run_key(row), changes, count, err);
}

int store_edit(struct store *store, const struct run_row *row, const struct store_edit *edit,
	struct errmsg *err)
{
	int r = store->ops->begin(store, err);

	return r < 0 ? r : end(store, edit_labels(store, row, edit, err), err);
}

/* ---- their end ---- */

int store_delete(struct store *store, const struct run_rows *rows, struct errmsg *err)
{
	size_t count = rows->items.count;
	_cleanup_free_ int64_t *numbers = calloc(count + 1, sizeof(*numbers));
	int r;

	if (!numbers)
		return errmsg_set(err, -ENOMEM, "memory ran out while deleting runs");
	r = store->ops->begin(store, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		numbers[i] = run_key(&rows->items.items[i]);
	return end(store, store->ops->delete_runs(store, numbers, count, err), err);
}

int store_remove_capture(const struct run_row *row, struct errmsg *err)
{
	const char *path = run_text(row, STORE_RUN_PATH);
	char id[STORE_ID_CHARACTERS + 1];
	struct stat status;
	int r;

	if (lstat(path, &status) < 0)
		return errmsg_set(
			err, -errno, "the capture %s was not removed: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return errmsg_set(err, -EEXIST,
			"the capture %s was not removed: a link or something else is there now",
			path);
	r = store_identify(path, id, err);
	if (r < 0)
		return r;
	if (strcmp(id, run_text(row, STORE_RUN_ID)) != 0)
		return errmsg_set(err, -EEXIST,
			"%s was not removed: it is not the capture of run %.8s any more", path,
			run_text(row, STORE_RUN_ID));
	if (unlink(path) < 0)
		return errmsg_set(
			err, -errno, "the capture %s was not removed: %s", path, strerror(errno));
	return 0;
}

/* ---- retention ---- */

static int64_t age_time(const struct run_row *row)
{
	const struct store_value *time = &row->values[STORE_RUN_TIME];
	int64_t added = row->values[STORE_RUN_ADDED].integer;

	return time->type == STORE_INTEGER ? MIN(time->integer, added) : added;
}

static int by_newest(const void *a, const void *b)
{
	int64_t first = age_time(a), second = age_time(b);

	return first == second ? 0 : first > second ? -1 : 1;
}

int store_find_expired(struct store *store, const struct store_retention *retention,
	struct run_rows *rows, struct errmsg *err)
{
	const struct store_filter all = {0};
	int64_t now = (int64_t)time(NULL) * (int64_t)NS_PER_S;
	size_t kept = 0;
	int r = store_read_runs(store, &all, NULL, rows, err);

	if (r < 0 || !rows->items.count)
		return r;
	qsort(rows->items.items, rows->items.count, sizeof(*rows->items.items), by_newest);
	array_foreach (&rows->items, row) {
		bool is_many = retention->keep && kept >= retention->keep;
		bool is_old = retention->max_age_ns && now - age_time(row) > retention->max_age_ns;

		if (is_many || is_old)
			break;
		kept++;
	}
	rows->items.count -= kept;
	memmove(rows->items.items, rows->items.items + kept,
		rows->items.count * sizeof(*rows->items.items));
	return 0;
}
