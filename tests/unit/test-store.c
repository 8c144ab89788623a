/* SPDX-License-Identifier: Apache-2.0 */
/* The runs database: its tables and their versions, references, query plans, and its faults. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/file.h"
#include "store/change.h"
#include "store/choice.h"
#include "store/documents.h"
#include "store/sqlite/internal.h"

struct place {
	char folder[64], path[192];
};

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	snprintf(place->folder, sizeof(place->folder), "/tmp/sonde-store-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	snprintf(place->path, sizeof(place->path), "%s/runs.db", place->folder);
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", place->folder);
	assert_int_equal(system(command), 0);
	free(place);
	return 0;
}

static struct store *open_store(const struct place *place)
{
	struct store *store = NULL;
	struct errmsg err = {{0}};

	if (store_open(&store, place->path, STORE_WRITE, &err) < 0)
		fail_msg("%s", err.text);
	return store;
}

static int64_t count_of(struct store *store, const char *sql)
{
	struct errmsg err = {{0}};
	int64_t count = 0;

	if (store_count(store, sql, NULL, 0, &count, &err) < 0)
		fail_msg("%s", err.text);
	return count;
}

static void do_sql(const char *path, const char *sql)
{
	sqlite3 *database;

	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(database));
	sqlite3_close(database);
}

/* A run with rows in every table. */
static void add_run(struct store *store, int64_t number, const char *model)
{
	char id[33];
	struct store_value values[STORE_RUN_COLUMN_MAX] = {0};
	struct errmsg err = {{0}};
	int r;

	snprintf(id, sizeof(id), "%032llx", (unsigned long long)number);
	values[STORE_RUN_NUMBER] = store_integer(number);
	values[STORE_RUN_ID] = store_text(id);
	values[STORE_RUN_PATH] = store_text("/captures/a.pftrace");
	values[STORE_RUN_ADDED] = store_integer(number);
	values[STORE_RUN_TIME] = store_integer(number * 1000);
	values[STORE_RUN_MODEL] = store_text(model);
	values[STORE_RUN_ENERGY_J] = store_number((double)(number % 97));
	r = store->ops->insert(store, STORE_RUNS, values, &err);
	if (r == 0)
		r = store->ops->insert(store, STORE_FIGURE_NAMES,
			STORE_PARAMETERS(store_integer(7), store_text("energy"),
				store_text("domains"), store_text("name"), store_text("text")),
			&err);
	for (int table = 0; r == 0 && table < STORE_TABLE_MAX; table++) {
		struct store_value row[32] = {0};

		if (table == STORE_RUNS || table == STORE_FIGURE_NAMES)
			continue;
		for (size_t i = 0; i < store_tables[table].count; i++) {
			enum store_type type = store_tables[table].columns[i].type;

			row[i] = type == STORE_TEXT     ? store_text("x")
				 : type == STORE_NUMBER ? store_number(0.5)
							: store_integer(7);
		}
		row[0] = store_integer(number);
		r = store->ops->insert(store, (enum store_table_id)table, row, &err);
	}
	if (r < 0)
		fail_msg("%s", err.text);
}

/* ---- tables ---- */

static int take_name(void *context, const struct store_value *values, size_t count)
{
	struct strbuf *names = context;

	strbuf_addf(names, "%s %s;", store_as_text(&values[1]), store_as_text(&values[2]));
	return 0;
}

static void test_tables_are_those_of_the_header(void **state)
{
	static const char *const types[] = {
		[STORE_INTEGER] = "INTEGER", [STORE_NUMBER] = "REAL", [STORE_TEXT] = "TEXT"};
	_cleanup_store_ struct store *store = open_store(*state);

	for (int table = 0; table < STORE_TABLE_MAX; table++) {
		_cleanup_strbuf_ struct strbuf expected = {0}, found = {0};
		struct errmsg err;
		char sql[64];

		for (size_t i = 0; i < store_tables[table].count; i++)
			strbuf_addf(&expected, "%s %s;", store_tables[table].columns[i].name,
				types[store_tables[table].columns[i].type]);
		snprintf(sql, sizeof(sql), "PRAGMA table_info(%s)", store_tables[table].name);
		assert_int_equal(store_select(store, sql, take_name, &found, &err), 0);
		assert_string_equal(strbuf_cstr(&found), strbuf_cstr(&expected));
	}
	assert_int_equal(
		count_of(store, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
				"AND sql NOT LIKE '%STRICT%' AND name NOT LIKE 'sqlite_%'"),
		0);
}

/* A file with the tables of an older version. */
static void make_version(const char *path, int version)
{
	char sql[96];

	for (int i = 0; i < version; i++)
		do_sql(path, sqlite_migrations[i]);
	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		STORE_APPLICATION_ID, version);
	do_sql(path, sql);
}

/* Of every older version, with a run in it: what was there stays, and the rest is there. */
static void test_every_older_version_is_brought_up_to_date(void **state)
{
	const struct place *place = *state;

	for (int version = 1; version < STORE_VERSION; version++) {
		char path[128], log[160];
		struct place other;
		struct store *store;

		snprintf(path, sizeof(path), "%s/%d", place->folder, version);
		make_version(path, version);
		do_sql(path, "INSERT INTO runs (number, id, path, added_ns, model) "
			     "VALUES (5, 'abcd', '/a', 1, 'm'); INSERT INTO tags VALUES (5, 't')");
		snprintf(other.path, sizeof(other.path), "%s", path);
		store = open_store(&other);
		assert_int_equal(count_of(store, "PRAGMA user_version"), STORE_VERSION);
		assert_int_equal(count_of(store, "SELECT count(*) FROM runs WHERE model = 'm'"), 1);
		assert_int_equal(count_of(store, "SELECT count(*) FROM tags WHERE run = 5"), 1);
		add_run(store, 9, "new");
		store_close(store);
		snprintf(log, sizeof(log), "%s-wal", path);
		assert_int_equal(access(log, F_OK), -1);
	}
}

/* Reading brings it up to date, too, where it can. */
static void test_an_older_version_that_is_read(void **state)
{
	const struct place *place = *state;
	struct errmsg err = {{0}};
	_cleanup_store_ struct store *store = NULL;

	make_version(place->path, 1);
	assert_int_equal(store_open(&store, place->path, STORE_READ, &err), 0);
	assert_int_equal(count_of(store, "SELECT count(*) FROM layers"), 0);
}

static void test_deleting_leaves_no_orphans(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	struct errmsg err;

	add_run(store, 1, "a");
	add_run(store, 2, "a");
	assert_int_equal(count_of(store, "PRAGMA foreign_keys"), 1);
	assert_int_equal(store_run(store, "DELETE FROM runs WHERE number = ?1", NULL, NULL, &err,
				 store_integer(1)),
		0);
	for (int table = 0; table < STORE_TABLE_MAX; table++) {
		char sql[128];

		if (table == STORE_RUNS || table == STORE_FIGURE_NAMES)
			continue;
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE run = 1",
			store_tables[table].name);
		assert_int_equal(count_of(store, sql), 0);
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE run = 2",
			store_tables[table].name);
		assert_int_equal(count_of(store, sql), 1);
	}
}

/* A row of a run that is not there is refused. */
static void test_references_are_enforced(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	struct errmsg err;

	assert_int_equal(store->ops->insert(store, STORE_TAGS,
				 STORE_PARAMETERS(store_integer(4), store_text("t")), &err),
		-EEXIST);
}

static void test_a_transaction_that_is_taken_back(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	struct errmsg err;

	assert_int_equal(store->ops->begin(store, &err), 0);
	add_run(store, 1, "a");
	store->ops->rollback(store);
	assert_int_equal(count_of(store, "SELECT count(*) FROM runs"), 0);
	assert_int_equal(count_of(store, "SELECT count(*) FROM tokens"), 0);
}

/* ---- queries ---- */

static int take_plan(void *context, const struct store_value *values, size_t count)
{
	strbuf_addf(context, "%s\n", store_as_text(&values[3]));
	return 0;
}

static void check_plan(struct store *store, const struct store_filter *filter,
	const struct store_order *order, const char *index)
{
	_cleanup_store_sql_ struct store_sql sql = {0};
	_cleanup_strbuf_ struct strbuf plan = {0};
	struct errmsg err = {{0}};

	strbuf_add(&sql.text, "EXPLAIN QUERY PLAN SELECT id FROM runs");
	assert_int_equal(store_sql_add_filter(&sql, filter), 0);
	store_sql_add_order(&sql, order);
	if (store_sql_run(store, &sql, take_plan, &plan, &err) < 0)
		fail_msg("%s", err.text);
	if (!strstr(strbuf_cstr(&plan), index))
		fail_msg("%s: %s", strbuf_cstr(&sql.text), strbuf_cstr(&plan));
}

static void test_lists_go_by_indices(void **state)
{
	static const char *const tags[] = {"t"};
	_cleanup_store_ struct store *store = open_store(*state);
	const struct store_order newest = {.limit = 20};
	const struct store_order energy = {.column = "energy_j", .rising = true, .limit = 20};

	check_plan(store, &(struct store_filter){0}, &newest, "runs_by_time");
	check_plan(store, &(struct store_filter){0}, &energy, "runs_by_energy");
	check_plan(store, &(struct store_filter){.model = "m"}, &newest, "runs_by_model");
	check_plan(store, &(struct store_filter){.experiment = "e"}, &newest, "runs_by_experiment");
	check_plan(store, &(struct store_filter){.since_ns = 5}, &newest, "runs_by_time");
	check_plan(store, &(struct store_filter){.search = "x"}, &newest, "SCAN runs\n");
	check_plan(store, &(struct store_filter){.search = "x", .model = "m"}, &newest,
		"runs_by_model");
	check_plan(store, &(struct store_filter){.tags = tags, .tag_count = 1}, &newest, "tags");
}

static size_t listed(struct store *store, const struct store_filter *filter,
	const struct store_order *order, int64_t *numbers)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct errmsg err = {{0}};

	if (store_read_runs(store, filter, order, &rows, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < rows.items.count; i++)
		numbers[i] = run_key(&rows.items.items[i]);
	return rows.items.count;
}

static void test_filters_and_orders(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	const struct store_order energy = {.column = "energy_j", .rising = true};
	int64_t numbers[16];
	struct errmsg err;

	add_run(store, 1, "llama");
	add_run(store, 2, "llama%_");
	add_run(store, 3, "x'; DROP TABLE runs; --");
	add_run(store, 96, NULL);
	assert_int_equal(store_run(store, "UPDATE runs SET energy_j = NULL WHERE number = ?1", NULL,
				 NULL, &err, store_integer(1)),
		0);
	assert_int_equal(listed(store, &(struct store_filter){0}, NULL, numbers), 4);
	assert_int_equal(numbers[0], 96);
	assert_int_equal(listed(store, &(struct store_filter){0}, &energy, numbers), 4);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(numbers[3], 1); /* what is not known comes last */
	assert_int_equal(listed(store, &(struct store_filter){.model = "llama"}, NULL, numbers), 1);
	assert_int_equal(
		listed(store, &(struct store_filter){.model = "llama*"}, NULL, numbers), 2);
	assert_int_equal(listed(store, &(struct store_filter){.model = "*%_"}, NULL, numbers), 1);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(
		listed(store, &(struct store_filter){.search = "DROP TABLE"}, NULL, numbers), 1);
	assert_int_equal(listed(store, &(struct store_filter){.model = "x'; DROP TABLE runs; --"},
				 NULL, numbers),
		1);
	assert_int_equal(listed(store, &(struct store_filter){.since_ns = 2000, .until_ns = 96000},
				 NULL, numbers),
		2);
}

static void test_pages(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	const struct store_filter all = {0};
	struct store_order order = {.rising = true, .limit = 2};
	int64_t numbers[16];

	for (int64_t number = 1; number <= 5; number++)
		add_run(store, number, "a");
	for (order.offset = 0; order.offset < 6; order.offset += 2) {
		size_t wanted = order.offset < 4 ? 2 : 1;

		assert_int_equal(listed(store, &all, &order, numbers), wanted);
		assert_int_equal(numbers[0], order.offset + 1);
	}
	/* Runs that are equal in it, too. */
	order = (struct store_order){.column = "model", .limit = 2};
	for (order.offset = 0; order.offset < 4; order.offset += 2) {
		assert_int_equal(listed(store, &all, &order, numbers), 2);
		assert_int_equal(numbers[0], 5 - order.offset);
	}
	order = (struct store_order){.rising = true, .offset = 3};
	assert_int_equal(listed(store, &all, &order, numbers), 2);
	assert_int_equal(numbers[0], 4);
	order.offset = 100;
	assert_int_equal(listed(store, &all, &order, numbers), 0);
}

static void test_names_of_orders(void **state)
{
	struct store_order order = {0};

	for (size_t i = 0; store_order_names[i]; i++) {
		assert_int_equal(store_order_choose(&order, store_order_names[i], false), 0);
		assert_non_null(store_column_find(&store_tables[STORE_RUNS], order.column));
	}
	assert_int_equal(store_order_choose(&order, NULL, true), 0);
	assert_string_equal(order.column, "time_ns");
	assert_true(order.rising);
	assert_int_equal(store_order_choose(&order, "number; DROP", false), -EINVAL);
}

/* ---- labels ---- */

static void test_labels_change_together(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	_cleanup_run_rows_ struct run_rows rows = {0};
	const char *const tags[] = {"x", "y"};
	const struct store_edit edit = {.has_tags = true,
		.has_note = true,
		.tags = tags,
		.tag_count = ARRAY_SIZE(tags),
		.note = "n"};
	struct errmsg err;

	add_run(store, 1, "a");
	assert_int_equal(store_read_runs(store, &(struct store_filter){0}, NULL, &rows, &err), 0);
	assert_int_equal(store_edit(store, &rows.items.items[0], &edit, &err), 0);
	assert_int_equal(count_of(store, "SELECT count(*) FROM tags WHERE tag IN ('x', 'y')"), 2);
	assert_int_equal(count_of(store, "SELECT count(*) FROM tags"), 2);
	assert_int_equal(count_of(store, "SELECT count(*) FROM runs WHERE notes = 'n'"), 1);
	assert_int_equal(store_edit(store, &rows.items.items[0],
				 &(struct store_edit){.has_tags = true}, &err),
		0);
	assert_int_equal(count_of(store, "SELECT count(*) FROM tags"), 0);
	assert_int_equal(count_of(store, "SELECT count(*) FROM runs WHERE notes = 'n'"), 1);
}

static size_t found(struct store *store, const char *text)
{
	int64_t numbers[16];

	return listed(store, &(struct store_filter){.search = text}, NULL, numbers);
}

static void test_a_search_looks_into_texts(void **state)
{
	_cleanup_store_ struct store *store = open_store(*state);
	int64_t numbers[16];

	add_run(store, 1, "Llama-3-8B");
	add_run(store, 2, "aaab");
	add_run(store, 3, NULL);
	assert_int_equal(found(store, "lLAMA"), 1);
	assert_int_equal(found(store, "-8b"), 1); /* at the end */
	assert_int_equal(found(store, "aab"), 1); /* begins again within itself */
	assert_int_equal(found(store, "8B "), 0);
	assert_int_equal(found(store, "a.pftrace"), 3);
	assert_int_equal(found(store, "/captures/a.pftraceX"), 0);
	/* No character stands for another one. */
	assert_int_equal(found(store, "l*a"), 0);
	assert_int_equal(found(store, "l%a"), 0);
	assert_int_equal(found(store, "l_ama"), 0);
	assert_int_equal(
		listed(store, &(struct store_filter){.search = "CAPTURES", .model = "aaab"}, NULL,
			numbers),
		1);
	assert_int_equal(numbers[0], 2);
}

/* ---- faults ---- */

static int opened(const struct place *place, enum store_mode mode, struct errmsg *err)
{
	struct store *store = NULL;
	int r = store_open(&store, place->path, mode, err);

	store_close(store);
	return r;
}

static void test_files_that_are_refused(void **state)
{
	struct place *place = *state;
	struct errmsg err;
	char link[128];

	assert_int_equal(opened(place, STORE_READ, &err), -ENOENT);
	assert_non_null(strstr(err.text, "sonde runs add"));
	do_sql(place->path, "CREATE TABLE theirs (a)");
	assert_int_equal(opened(place, STORE_WRITE, &err), -EINVAL);
	assert_non_null(strstr(err.text, "another program"));
	assert_int_equal(unlink(place->path), 0);
	store_close(open_store(place));
	do_sql(place->path, "PRAGMA user_version = 1000");
	assert_int_equal(opened(place, STORE_WRITE, &err), -EPROTO);
	assert_non_null(strstr(err.text, "newer sonde"));
	assert_int_equal(opened(place, STORE_READ, &err), -EPROTO);
	snprintf(link, sizeof(link), "%s/link", place->folder);
	assert_int_equal(symlink(place->path, link), 0);
	snprintf(place->path, sizeof(place->path), "%s", link);
	assert_int_equal(opened(place, STORE_WRITE, &err), -ELOOP);
	assert_int_equal(opened(place, STORE_READ, &err), -ELOOP);
}

static void test_a_new_file_is_the_users_alone(void **state)
{
	const struct place *place = *state;
	struct stat status;

	store_close(open_store(place));
	assert_int_equal(stat(place->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void test_another_writer(void **state)
{
	_cleanup_store_ struct store *first = open_store(*state), *second = NULL;
	struct errmsg err;

	store_sqlite_set_patience(20);
	second = open_store(*state);
	assert_int_equal(first->ops->begin(first, &err), 0);
	add_run(first, 1, "a");
	assert_int_equal(second->ops->begin(second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another program writes to it"));
	assert_int_equal(count_of(second, "SELECT count(*) FROM runs"), 0); /* readers go on */
	assert_int_equal(first->ops->commit(first, &err), 0);
	assert_int_equal(second->ops->begin(second, &err), 0);
	assert_int_equal(count_of(second, "SELECT count(*) FROM runs"), 1);
}

static void count_fault(void *context, const char *sentence)
{
	(*(size_t *)context)++;
}

static void test_damage_is_found(void **state)
{
	struct place *place = *state;
	struct store *store = open_store(place);
	struct errmsg err;
	size_t faults = 0;
	FILE *file;
	char bytes[4096];

	for (int i = 1; i < 200; i++)
		add_run(store, i, "model");
	assert_int_equal(store->ops->check(store, count_fault, &faults, &err), 0);
	assert_int_equal(faults, 0);
	store_close(store);
	memset(bytes, 0xa5, sizeof(bytes));
	file = fopen(place->path, "r+");
	for (int page = 2; page < 12; page++) {
		assert_int_equal(fseek(file, page * 4096L, SEEK_SET), 0);
		assert_int_equal(fwrite(bytes, sizeof(bytes), 1, file), 1);
	}
	fclose(file);
	store = NULL;
	if (store_open(&store, place->path, STORE_READ, &err) == 0) {
		int r = store->ops->check(store, count_fault, &faults, &err);

		assert_true(r == -EBADMSG || faults > 0);
	}
	store_close(store);
	assert_int_equal(truncate(place->path, 100), 0);
	assert_int_equal(opened(place, STORE_READ, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "damaged"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tables_are_those_of_the_header),
		TEST(test_every_older_version_is_brought_up_to_date),
		TEST(test_an_older_version_that_is_read),
		TEST(test_deleting_leaves_no_orphans),
		TEST(test_references_are_enforced),
		TEST(test_a_transaction_that_is_taken_back),
		TEST(test_lists_go_by_indices),
		TEST(test_filters_and_orders),
		TEST(test_pages),
		TEST(test_names_of_orders),
		TEST(test_labels_change_together),
		TEST(test_a_search_looks_into_texts),
		TEST(test_files_that_are_refused),
		TEST(test_a_new_file_is_the_users_alone),
		TEST(test_another_writer),
		TEST(test_damage_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
